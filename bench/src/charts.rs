//! Charts and tables that other benchmarks leave in files, drawn as this one draws its own.
//!
//! A file holds `charts` (lines over x) and `tables`. Both go into `docs/PAGE-figures.md`, each into the part of its
//! name. A part that no file has stays as it is, so that one benchmark alone renews its own.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use plotters::prelude::IntoLogRange;
use serde::Deserialize;

use crate::figures::Line;
use crate::{machine, plot, report};

/// What a benchmark leaves.
#[derive(Deserialize)]
struct Figures {
    /// Of which the page's name is made; "functions" if the file has none.
    #[serde(default)]
    page: Option<String>,
    #[serde(default)]
    charts: Vec<Chart>,
    #[serde(default)]
    tables: Vec<Table>,
}

/// Lines over a common x.
#[derive(Deserialize)]
struct Chart {
    /// The part of the page, and the file's name.
    name: String,
    title: String,
    x: String,
    y: String,
    /// Whether the x axis is logarithmic; the y axis always is.
    #[serde(default)]
    logarithmic: bool,
    series: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Rows under a head, all as long as it.
#[derive(Deserialize)]
struct Table {
    /// The part of the page.
    name: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Draws what is in `files` into `docs`, and says which machine it was.
pub fn update(files: &[PathBuf], docs: &Path) -> Result<(), String> {
    for file in files {
        let told = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let json = std::fs::read_to_string(file).map_err(|e| told(&e))?;
        let figures: Figures = serde_json::from_str(&json).map_err(|e| told(&e))?;
        let name = figures.page.as_deref().unwrap_or("functions");
        let page = docs.join(format!("{name}-figures.md"));
        let failed = |e: std::io::Error| format!("{}: {e}", page.display());
        let mut text = std::fs::read_to_string(&page).map_err(failed)?;
        for chart in &figures.charts {
            draw(chart, docs).map_err(|e| told(&e))?;
            text = report::replace(&text, &chart.name, &report::picture(&chart.name, &chart.title))?;
        }
        for table in &figures.tables {
            text = report::replace(&text, &table.name, &rendered(table).map_err(|e| told(&e))?)?;
        }
        let here = format!("| machine |\n|---|\n| {} |", machine::Machine::here());
        text = report::replace(&text, &format!("{name}-machine"), &here)?;
        std::fs::write(&page, text).map_err(failed)?;
        println!("{} is up to date with {}", page.display(), file.display());
    }
    Ok(())
}

/// The least and the greatest, with room above for the legend.
fn range(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let least = values.clone().min_by(f64::total_cmp)?;
    let most = values.max_by(f64::total_cmp)?;
    (least > 0.0 && most.is_finite()).then_some((least * 0.7, most * 4.0))
}

fn draw(chart: &Chart, docs: &Path) -> Result<(), String> {
    let points = || chart.series.iter().flat_map(|s| s.points.iter());
    let bad = || {
        format!(
            "{}: values have to be above zero, and there have to be some",
            chart.name
        )
    };
    let y = range(points().map(|p| p.1)).ok_or_else(bad)?;
    let first = points().map(|p| p.0).min_by(f64::total_cmp).ok_or_else(bad)?;
    let last = points().map(|p| p.0).max_by(f64::total_cmp).ok_or_else(bad)?;
    let series: Vec<Line> = chart
        .series
        .iter()
        .map(|s| Line {
            name: s.name.clone(),
            points: s.points.clone(),
        })
        .collect();
    let titles = [chart.title.as_str(), chart.x.as_str(), chart.y.as_str()];
    plot::in_themes(docs, &chart.name, |file, theme| {
        if chart.logarithmic {
            plot::lines(file, theme, titles, (first..last).log_scale(), y, &series)
        } else {
            plot::lines(file, theme, titles, first..last, y, &series)
        }
    })
}

/// A table in Markdown.
fn rendered(table: &Table) -> Result<String, String> {
    let mut text = format!(
        "| {} |\n|{}\n",
        table.head.join(" | "),
        "---|".repeat(table.head.len())
    );
    for row in &table.rows {
        if row.len() != table.head.len() {
            return Err(format!(
                "{}: a row of {} cells under {} heads",
                table.name,
                row.len(),
                table.head.len()
            ));
        }
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Figures, update};

    const PAGE: &str = "functions-figures.md";

    const JSON: &str = r#"{"charts": [{"name": "null-call", "title": "T", "x": "arguments", "y": "ns",
        "series": [{"name": "fenced", "points": [[0, 5.0], [6, 7.5]]}]}],
        "tables": [{"name": "null-call-table", "head": ["a", "b"], "rows": [["1", "2"]]}]}"#;

    #[test]
    fn parts_are_replaced_and_plots_drawn() {
        let dir = std::env::temp_dir().join(format!("rf-charts-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let parts = ["null-call", "null-call-table", "functions-machine"];
        let page: String = parts
            .iter()
            .map(|p| format!("<!-- bench:{p} -->\nold {p}\n<!-- /bench:{p} -->\n"))
            .collect();
        std::fs::write(dir.join(PAGE), page).expect("a file");
        let json = dir.join("x.json");
        std::fs::write(&json, JSON).expect("a file");
        update(std::slice::from_ref(&json), &dir).expect("it is drawn");
        let text = std::fs::read_to_string(dir.join(PAGE)).expect("the page");
        assert!(
            text.contains("| 1 | 2 |") && text.contains("null-call-dark.svg"),
            "{text}"
        );
        assert!(!text.contains("old"), "{text}");
        let plot = std::fs::read_to_string(dir.join("null-call-light.svg")).expect("a plot");
        assert!(plot.contains("fenced"));
        // Another page, with a machine of its own.
        std::fs::write(
            dir.join("web-figures.md"),
            "<!-- bench:web-machine -->\nold\n<!-- /bench:web-machine -->\n",
        )
        .expect("a file");
        std::fs::write(&json, r#"{"page": "web"}"#).expect("a file");
        update(std::slice::from_ref(&json), &dir).expect("it is drawn");
        let text = std::fs::read_to_string(dir.join("web-figures.md")).expect("the page");
        assert!(text.contains("| machine |") && !text.contains("old"), "{text}");
        // Neither a file that is none, nor a value that has no logarithm, nor a part that the page lacks.
        for (from, to) in [
            ("\"charts\"", "charts"),
            ("5.0", "0.0"),
            ("null-call-table", "other"),
        ] {
            std::fs::write(&json, JSON.replace(from, to)).expect("a file");
            assert!(update(std::slice::from_ref(&json), &dir).is_err(), "{to}");
        }
        std::fs::remove_dir_all(dir).expect("it goes");
    }

    #[test]
    fn rows_have_the_length_of_the_head() {
        let figures: Figures =
            serde_json::from_str(&JSON.replace("[\"1\", \"2\"]", "[\"1\"]")).expect("it is read");
        assert!(super::rendered(&figures.tables[0]).is_err());
    }
}

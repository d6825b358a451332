//! What a benchmark leaves for `bench charts`: tables, printed as they come, and lines over x.

use std::path::PathBuf;

use serde_json::{Value, json};

/// A line of a chart.
pub struct Series(Value);

impl Series {
    /// With a name for the legend.
    pub fn new(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points: Vec<_> = points.into_iter().collect();
        Series(json!({ "name": name, "points": points }))
    }
}

/// What has been found so far.
#[derive(Default)]
pub struct Figures {
    charts: Vec<Value>,
    tables: Vec<Value>,
}

impl Figures {
    /// A chart, with its title and those of its axes.
    pub fn chart(&mut self, name: &str, titles: [&str; 3], series: &[Series]) {
        let series: Vec<_> = series.iter().map(|s| &s.0).collect();
        let [title, x, y] = titles;
        self.charts
            .push(json!({ "name": name, "title": title, "x": x, "y": y, "series": series }));
    }

    /// A table, which is printed.
    pub fn table(&mut self, name: &str, head: &[&str], rows: Vec<Vec<String>>) {
        println!("| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
        rows.iter().for_each(|row| println!("| {} |", row.join(" | ")));
        println!();
        self.tables
            .push(json!({ "name": name, "head": head, "rows": rows }));
    }

    /// Writes everything to the file behind `--json`, if the command line has it.
    pub fn end(self) -> Result<(), Box<dyn std::error::Error>> {
        let mut args = std::env::args().skip_while(|a| a != "--json").skip(1);
        if let Some(file) = args.next().map(PathBuf::from) {
            if let Some(directory) = file.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let all = json!({ "charts": self.charts, "tables": self.tables });
            std::fs::write(&file, serde_json::to_string_pretty(&all)? + "\n")?;
        }
        Ok(())
    }
}

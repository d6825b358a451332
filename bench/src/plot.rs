//! Plots as SVG, each for light and for dark pages.
//!
//! `plotters` draws them: the most used plotting library for Rust. Without its font feature text stays text, so that
//! the same figures give the same bytes on every machine.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Results;
use crate::breakeven;
use crate::figures::Line;
use crate::workloads::BEST;

/// Why a plot was not drawn.
pub type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Colours of one kind of page.
pub struct Theme {
    name: &'static str,
    /// Below everything: a page may have the other colours.
    paper: RGBColor,
    text: RGBColor,
    grid: RGBColor,
    series: [RGBColor; 5],
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        paper: RGBColor(0xff, 0xff, 0xff),
        text: RGBColor(0x1f, 0x23, 0x28),
        grid: RGBColor(0xd0, 0xd7, 0xde),
        series: [
            RGBColor(0x09, 0x69, 0xda),
            RGBColor(0xbc, 0x4c, 0x00),
            RGBColor(0x1a, 0x7f, 0x37),
            RGBColor(0x82, 0x50, 0xdf),
            RGBColor(0x9a, 0x67, 0x00),
        ],
    },
    Theme {
        name: "dark",
        paper: RGBColor(0x0d, 0x11, 0x17),
        text: RGBColor(0xe6, 0xed, 0xf3),
        grid: RGBColor(0x3d, 0x44, 0x4d),
        series: [
            RGBColor(0x44, 0x93, 0xf8),
            RGBColor(0xdb, 0x6d, 0x28),
            RGBColor(0x3f, 0xb9, 0x50),
            RGBColor(0xab, 0x7d, 0xf8),
            RGBColor(0xd2, 0x99, 0x22),
        ],
    },
];

/// Draws all plots for which there are figures into `docs`.
pub fn draw(docs: &Path, results: &Results) -> Result<(), String> {
    for (name, plot) in [
        (
            "overhead",
            overhead as fn(&Path, &Theme, &Results) -> Result<(), Failure>,
        ),
        ("peers", peers),
        ("string-reverse", strings),
        ("break-even", break_even),
    ] {
        in_themes(docs, name, |file, theme| plot(file, theme, results))?;
    }
    Ok(())
}

/// Draws a plot once for each kind of page, as `NAME-light.svg` and `NAME-dark.svg`.
pub fn in_themes(
    docs: &Path,
    name: &str,
    plot: impl Fn(&Path, &Theme) -> Result<(), Failure>,
) -> Result<(), String> {
    for theme in &THEMES {
        let file = docs.join(format!("{name}-{}.svg", theme.name));
        plot(&file, theme).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(())
}

fn font(size: u32, theme: &Theme) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&theme.text)
}

/// Bars for each workload, one for each of `columns` (configuration and name), as ratios to native code.
fn bars(
    file: &Path,
    theme: &Theme,
    results: &Results,
    title: &str,
    columns: &[(&str, &str)],
    range: (f64, f64),
) -> Result<(), Failure> {
    let rows: Vec<_> = results
        .workloads
        .rows
        .iter()
        .filter(|r| columns.iter().any(|c| r.ratio(c.0, BEST).is_some()))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    let step = 8 * columns.len() as u32 + 8;
    let height = 70 + rows.len() as u32 * step;
    let root = SVGBackend::new(file, (760, height)).into_drawing_area();
    root.fill(&theme.paper)?;
    root.draw_text(title, &font(14, theme), (10, 6))?;
    let (left, width, top) = (190, 500, 50);
    let x = |ratio: f64| {
        left + ((ratio.clamp(range.0, range.1) - range.0) / (range.1 - range.0) * f64::from(width)) as i32
    };
    let small = font(11, theme);
    let line = |area: &Area, at: f64, wide: u32| {
        let ends = [(x(at), top), (x(at), height as i32 - 10)];
        area.draw(&PathElement::new(ends, theme.grid.stroke_width(wide)))
    };
    for i in 0..=8 {
        let at = range.0 + (range.1 - range.0) * f64::from(i) / 8.0;
        line(&root, at, 1)?;
        let style = small.pos(Pos::new(HPos::Center, VPos::Bottom));
        root.draw_text(&format!("{at:.2}"), &style, (x(at), top - 2))?;
    }
    let mut at = left;
    for (i, (_, name)) in columns.iter().enumerate() {
        root.draw(&Rectangle::new(
            [(at, 26), (at + 10, 34)],
            theme.series[i].filled(),
        ))?;
        root.draw_text(name, &small, (at + 14, 25))?;
        at += 150;
    }
    for (n, row) in rows.iter().enumerate() {
        let y = top + 4 + (n as u32 * step) as i32;
        let middle = y + 4 * columns.len() as i32;
        root.draw_text(
            &row.name,
            &small.pos(Pos::new(HPos::Right, VPos::Center)),
            (left - 8, middle),
        )?;
        for (i, (configuration, _)) in columns.iter().enumerate() {
            let Some(ratio) = row.ratio(configuration, BEST) else {
                continue;
            };
            let y = y + 8 * i as i32;
            let (from, to) = (x(ratio.min(1.0)), x(ratio.max(1.0)));
            root.draw(&Rectangle::new(
                [(from, y), (to.max(from + 1), y + 7)],
                theme.series[i].filled(),
            ))?;
            if ratio > range.1 {
                let style = font(9, theme).pos(Pos::new(HPos::Left, VPos::Center));
                root.draw_text(&format!("{ratio:.1}"), &style, (x(range.1) + 4, y + 4))?;
            }
        }
    }
    line(&root, 1.0, 2)?;
    root.present()?;
    Ok(())
}

fn overhead(file: &Path, theme: &Theme, results: &Results) -> Result<(), Failure> {
    let columns = [
        ("full", "full isolation"),
        ("integrity", "integrity only"),
        ("aligned", "native, loops aligned"),
    ];
    bars(
        file,
        theme,
        results,
        "Time over native gcc -O2",
        &columns,
        (0.8, 1.2),
    )
}

fn peers(file: &Path, theme: &Theme, results: &Results) -> Result<(), Failure> {
    let columns = [
        ("full", "Ringfence, full"),
        ("wasm2c", "wasm2c"),
        ("wasmtime", "Wasmtime"),
    ];
    let has = |c: &str| results.workloads.rows.iter().any(|r| r.seconds.contains_key(c));
    if !has("wasm2c") && !has("wasmtime") {
        return Ok(());
    }
    bars(
        file,
        theme,
        results,
        "Time over native gcc -O2, the same sources",
        &columns,
        (0.5, 2.5),
    )
}

/// A chart of lines with logarithmic axes, or a linear one to the right.
pub fn lines<X>(
    file: &Path,
    theme: &Theme,
    titles: [&str; 3],
    x: X,
    y: (f64, f64),
    series: &[Line],
) -> Result<(), Failure>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let root = SVGBackend::new(file, (760, 420)).into_drawing_area();
    root.fill(&theme.paper)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(titles[0], font(14, theme))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(x, (y.0..y.1).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(titles[1])
        .y_desc(titles[2])
        .axis_style(theme.text)
        .bold_line_style(theme.grid)
        .light_line_style(TRANSPARENT)
        .label_style(font(11, theme))
        .axis_desc_style(font(12, theme))
        .y_label_formatter(&|v| short(*v))
        .x_label_formatter(&|v| short(*v))
        .draw()?;
    for (i, line) in series.iter().enumerate() {
        let colour = theme.series[i % theme.series.len()];
        chart
            .draw_series(LineSeries::new(
                line.points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(font(11, theme))
        .border_style(theme.grid)
        .draw()?;
    root.present()?;
    Ok(())
}

/// 2500000 as 2.5M.
fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{}{unit}", (scaled * 100.0).round() / 100.0)
}

fn strings(file: &Path, theme: &Theme, results: &Results) -> Result<(), Failure> {
    let rows = &results.strings;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Ok(());
    };
    let line = |name: &str, of: fn(&crate::strings::Row) -> f64| Line {
        name: name.to_owned(),
        points: rows.iter().map(|r| (r.size as f64, of(r))).collect(),
    };
    let series = [
        line("unprotected call", |r| r.plain.median),
        line("fenced, string in the domain", |r| r.fenced.median),
        line("fenced, copied in and out", |r| r.copied.median),
        line("process, shared memory", |r| r.shared.median),
        line("process, pipe", |r| r.pipe.median),
    ];
    let titles = ["Reversing a string", "bytes", "nanoseconds"];
    let x = (first.size as f64..last.size as f64).log_scale().base(2.0);
    lines(file, theme, titles, x, (3.0, 20000.0), &series)
}

fn break_even(file: &Path, theme: &Theme, results: &Results) -> Result<(), Failure> {
    let series = breakeven::curves(results);
    if series.is_empty() {
        return Ok(());
    }
    let titles = [
        "Above its line, a fence costs less than another process",
        "per cent of time spent in the extension",
        "crossings per second",
    ];
    lines(file, theme, titles, 0.0..100.0, (1.0, 1e6), &series)
}

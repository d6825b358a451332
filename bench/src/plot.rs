//! Bar charts of the workloads, as SVG for light and for dark pages.

use crate::workloads::Row;
use std::fmt::Write;
use std::io;
use std::path::Path;

struct Theme {
    name: &'static str,
    text: &'static str,
    grid: &'static str,
    bar: &'static str,
    above: &'static str,
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        text: "#1f2328",
        grid: "#d0d7de",
        bar: "#0969da",
        above: "#bc4c00",
    },
    Theme {
        name: "dark",
        text: "#e6edf3",
        grid: "#3d444d",
        bar: "#4493f8",
        above: "#db6d28",
    },
];

const LEFT: f64 = 130.0;
const WIDTH: f64 = 560.0;
const ROW: f64 = 20.0;
const TOP: f64 = 44.0;
/// The scale runs from here to 1 + this much.
const SPAN: f64 = 0.2;

/// Draws `workloads-light.svg` and `workloads-dark.svg` into `dir`.
pub fn draw(dir: &Path, rows: &[Row]) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for theme in &THEMES {
        std::fs::write(
            dir.join(format!("workloads-{}.svg", theme.name)),
            chart(rows, theme),
        )?;
    }
    Ok(())
}

fn x(ratio: f64) -> f64 {
    LEFT + WIDTH * ((ratio.clamp(1.0 - SPAN, 1.0 + SPAN) - (1.0 - SPAN)) / (2.0 * SPAN))
}

fn chart(rows: &[Row], theme: &Theme) -> String {
    let height = TOP + ROW * rows.len() as f64 + 12.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"{1}\">\n\
         <text x=\"{LEFT}\" y=\"14\" font-weight=\"600\">Time of the fenced build over native gcc -O2, aligned loops on both sides</text>\n",
        LEFT + WIDTH + 60.0,
        theme.text
    );
    for step in -4..=4 {
        let ratio = 1.0 + f64::from(step) * SPAN / 4.0;
        let at = x(ratio);
        let width = if step == 0 { 1.5 } else { 0.5 };
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{height}\" stroke=\"{}\" stroke-width=\"{width}\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{ratio:.2}</text>",
            TOP - 6.0,
            theme.grid,
            TOP - 12.0
        );
    }
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let (from, to) = (x(1.0).min(x(row.ratio_aligned)), x(1.0).max(x(row.ratio_aligned)));
        let colour = if row.ratio_aligned > 1.03 {
            theme.above
        } else {
            theme.bar
        };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{:.1}\">{:.3}</text>",
            LEFT - 8.0,
            y + 13.0,
            row.name,
            y + 3.0,
            (to - from).max(1.0),
            ROW - 7.0,
            LEFT + WIDTH + 12.0,
            y + 13.0,
            row.ratio_aligned
        );
    }
    svg.push_str("</svg>\n");
    svg
}

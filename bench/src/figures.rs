//! Figures out of the results, for tables and plots.

use crate::Results;
use crate::measure::geometric_mean;
use crate::workloads::{Row, Size};

/// A line of points with a name.
pub struct Line {
    /// For the legend.
    pub name: String,
    /// In the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

/// Ratios of all workloads that have both configurations, with their names.
pub fn ratios<'a>(results: &'a Results, of: &str, over: &str) -> Vec<(&'a str, f64)> {
    let ratio = |r: &'a Row| Some((r.name.as_str(), r.ratio(of, over)?));
    results.workloads.rows.iter().filter_map(ratio).collect()
}

/// Geometric mean and worst of these ratios.
pub fn mean_and_worst<'a>(list: &[(&'a str, f64)]) -> Option<(f64, &'a str, f64)> {
    let worst = list.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let values: Vec<f64> = list.iter().map(|r| r.1).collect();
    Some((geometric_mean(&values), worst.0, worst.1))
}

/// The line of this name in the table of costs.
pub fn cost<'a>(results: &'a Results, name: &str) -> Option<&'a crate::Cost> {
    results.costs.iter().find(|c| c.name == name)
}

/// How many times faster than a peer in the mean, on how many workloads, of how many.
pub fn against(results: &Results, peer: &str) -> Option<(f64, usize, usize)> {
    let list = ratios(results, peer, "full");
    let (mean, ..) = mean_and_worst(&list)?;
    Some((mean, list.iter().filter(|r| r.1 > 1.0).count(), list.len()))
}

/// Growth of the text, geometric mean over all programs.
pub fn text_growth(results: &Results) -> Option<f64> {
    let growth = |s: &Size| Some(*s.text.get("full")? as f64 / *s.text.get("native")? as f64);
    let values: Vec<f64> = results.workloads.sizes.iter().filter_map(growth).collect();
    (!values.is_empty()).then(|| geometric_mean(&values))
}

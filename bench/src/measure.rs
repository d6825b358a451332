//! Interleaved runs and what is said about them.

use std::time::Instant;

/// What a series of runs came to, in the unit it was measured in. Figures that were kept as tables only have the median.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct Summary {
    /// The middle run.
    pub median: f64,
    /// The best run.
    #[serde(default)]
    pub best: f64,
    /// Distance between the quartiles.
    #[serde(default)]
    pub spread: f64,
    /// How many runs.
    #[serde(default)]
    pub runs: usize,
}

impl Summary {
    /// Summarises samples; there is at least one.
    pub fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |q: f64| samples[((samples.len() - 1) as f64 * q).round() as usize];
        Summary {
            median: at(0.5),
            best: samples[0],
            spread: at(0.75) - at(0.25),
            runs: samples.len(),
        }
    }
}

/// One thing to measure: its name, and a closure that does it once and returns the measured value.
pub type Subject<'a> = (&'static str, Box<dyn FnMut() -> Result<f64, String> + 'a>);

/// Runs all subjects in turn, `runs` times round, after one round that is not counted.
pub fn interleave(runs: usize, subjects: &mut [Subject]) -> Result<Vec<Summary>, String> {
    for (name, subject) in subjects.iter_mut() {
        subject().map_err(|e| format!("{name}: {e}"))?;
    }
    let mut samples = vec![Vec::with_capacity(runs); subjects.len()];
    for _ in 0..runs {
        for (i, (name, subject)) in subjects.iter_mut().enumerate() {
            samples[i].push(subject().map_err(|e| format!("{name}: {e}"))?);
        }
    }
    Ok(samples.into_iter().map(Summary::of).collect())
}

/// Seconds that the calling thread has spent on a processor: what others take in between does not count.
pub fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the struct is ours; the clock exists since Linux 2.6
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Nanoseconds of processor time for one of `count` turns of `body`.
pub fn thread_nanoseconds(count: u32, mut body: impl FnMut()) -> f64 {
    let start = thread_seconds();
    for _ in 0..count {
        body();
    }
    (thread_seconds() - start) * 1e9 / f64::from(count)
}

/// Nanoseconds for one of `count` turns of `body`.
pub fn nanoseconds(count: u32, mut body: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        body();
    }
    start.elapsed().as_nanos() as f64 / f64::from(count)
}

/// The geometric mean.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::{Summary, geometric_mean};

    #[test]
    fn a_summary_names_the_middle() {
        let s = Summary::of(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((s.median, s.best, s.spread, s.runs), (3.0, 1.0, 2.0, 5));
        assert_eq!(Summary::of(vec![7.0]).median, 7.0);
    }

    #[test]
    fn the_mean_is_geometric() {
        assert!((geometric_mean(&[0.5, 2.0]) - 1.0).abs() < 1e-12);
    }
}

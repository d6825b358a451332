//! How late limits of time are, on the clock on the wall: what a host sees.

use crate::adapter::{self, DomainOptions, End, Module};
use crate::case::{Case, Op, Shape};
use crate::figures::Figures;
use crate::{files, frames};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A limit in milliseconds, and how often.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "calls",
        numbers: &[(1, 1000), (1, 10_000)],
    },
    // 65,000 short constructors, or 500 long ones (3, 4: as in files).
    Shape {
        name: "makes",
        numbers: &[(1, 1000), (1, 10_000), (3, 4)],
    },
    Shape {
        name: "ends",
        numbers: &[(1, 1000), (1, 10_000), (3, 4)],
    },
    // What the machine itself does: a thread that sleeps so long and then tells this one, which spins.
    Shape {
        name: "timer",
        numbers: &[(1, 1000), (1, 10_000)],
    },
];

/// How much later than the limit each of them ended.
///
/// # Errors
/// What ended otherwise than by its limit.
pub fn run(case: &Case) -> Result<String, String> {
    let mut figures = Figures::default();
    for op in &case.ops {
        let limit = Duration::from_millis(op.n(0));
        let mut late = late(op, limit)?;
        late.sort();
        figures.note("count", late.len() as u64);
        figures.time("median_us", late[late.len() / 2]);
        figures.time("late_us", late[(late.len() - 1) * 19 / 20]);
        figures.time("most_us", late[late.len() - 1]);
    }
    Ok(format!("all were ended; {figures}"))
}

/// How much later than `limit` a thread that spins hears of it from one that sleeps: the clock, the scheduler and whoever else runs
/// here, without anything of ours.
fn timer(limit: Duration) -> Duration {
    let told = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = limit;
            while !left.is_zero() {
                std::thread::sleep(left.min(Duration::from_millis(1)));
                left = limit.saturating_sub(begin.elapsed());
            }
            told.store(true, Relaxed);
        });
        while !told.load(Relaxed) {
            std::hint::spin_loop();
        }
        begin.elapsed().saturating_sub(limit)
    })
}

fn late(op: &Op, limit: Duration) -> Result<Vec<Duration>, String> {
    if op.name == "timer" {
        return Ok((0..op.n(1))
            .map(|_| {
                let late = timer(limit);
                std::thread::sleep(limit / 4);
                late
            })
            .collect());
    }
    let many = if op.n(2) == 3 { 65_000 } else { 500 };
    let series = |name: &str| -> Result<Module, String> {
        let case = Case::parse(&format!("{name} {many} {}", op.n(2)), files::SHAPES)?;
        adapter::load(&files::spec(&case).bytes())
    };
    let module = match op.name.as_str() {
        "calls" => adapter::load(&frames::endless()?)?,
        "makes" => series("constructors")?,
        _ => series("destructors")?,
    };
    let mut options = DomainOptions::default();
    options.time_limit = Some(limit);
    // A rest after each: the kernel lets no thread of a high priority run all the time.
    let past = |begin: Instant| {
        let late = begin.elapsed().saturating_sub(limit);
        std::thread::sleep(limit / 4);
        late
    };
    if op.name == "calls" {
        let domain = module.domain(&options)?;
        return (0..op.n(1))
            .map(|_| {
                let begin = Instant::now();
                let end = domain.call("start", 0, 0);
                let late = past(begin);
                domain.0.reset().map_err(|e| e.to_string())?;
                match end {
                    End::Fault(fault) if fault.kind == adapter::FaultKind::TimeLimit => Ok(late),
                    _ => Err("a call was not ended by its limit".into()),
                }
            })
            .collect();
    }
    (0..op.n(1))
        .map(|_| {
            if op.name == "makes" {
                let begin = Instant::now();
                let made = module.domain(&options);
                let late = past(begin);
                return made.map_or(Ok(late), |_| Err("constructors had no limit".into()));
            }
            let domain = module.domain(&options)?;
            let begin = Instant::now();
            let ended = domain.0.run_destructors();
            let late = past(begin);
            ended.map_or(Ok(late), |()| Err("destructors had no limit".into()))
        })
        .collect()
}

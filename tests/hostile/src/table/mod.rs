//! The bounds in one table, measured: target beside figure. `docs/security/bounds.md` has the table and says what each row means.

pub mod limits;
pub mod speed;

use crate::case::Case;
use crate::figures::read;
use crate::{Kind, bounds, children, failing, files, frames, kind};
use std::fmt;

/// Kinds that measure instead of hunting.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "files-measured",
        shapes: files::SHAPES,
        most: 0,
        batch: 1,
        run: files::measure,
        kept: "",
    },
    Kind {
        name: "frames-measured",
        shapes: frames::SHAPES,
        most: 0,
        batch: 1,
        run: frames::measure,
        kept: "",
    },
    Kind {
        name: "limits",
        shapes: limits::SHAPES,
        most: 0,
        batch: 1,
        run: limits::run,
        kept: "",
    },
    Kind {
        name: "places",
        shapes: failing::SHAPES,
        most: 4,
        batch: 1,
        run: failing::run,
        kept: include_str!("../../corpus/places.txt"),
    },
];

/// A row.
#[derive(serde::Serialize)]
pub struct Row {
    /// What is bounded.
    pub bound: &'static str,
    /// The most that is allowed.
    pub target: String,
    /// What was measured.
    pub figure: String,
    /// Whether it holds; `None` where a smoke run does not judge, which is all that is about time.
    pub holds: Option<bool>,
    /// Of what, and of how many.
    pub of: String,
}

/// All rows, and where they were measured.
#[derive(serde::Serialize)]
pub struct Table {
    /// Processor, processors, kernel, load.
    pub machine: String,
    /// In this order.
    pub rows: Vec<Row>,
    /// Cases that broke a bound in the hunt's own way of looking, or ended their process.
    pub failures: Vec<String>,
}

/// What to measure.
#[derive(Default)]
pub struct Options {
    /// A few cases of each, and no judgement of times.
    pub smoke: bool,
    /// This revision's `paired_cost`.
    pub speed: Option<speed::Program>,
    /// An earlier one's.
    pub base: Option<speed::Program>,
}

/// Shapes of files at two sizes, of which the second is four times the first: about 4 and 16 MiB.
const GROWING: &[(&str, u64)] = &[
    ("code {} 0; code {} 3", 8 << 20),
    ("code {} 1; code {} 4", 8 << 20),
    ("code {} 6; code {} 6", 8 << 20),
    ("symbols {} 20 0; symbols {} 5 4", 300_000),
    ("symtab {} 100 6; symtab {} 100 2", 340_000),
    ("relocations {} 0; relocations {} 0", 250_000),
    ("data {}", 16 << 20),
    ("siblings {} 4; rows {} 5 4", 1 << 21),
    ("inlined {} 0 4; inlined {} 1 4", 349_000),
];

/// A measured case.
struct Measured {
    case: String,
    told: String,
}

impl Measured {
    fn read(&self, name: &str) -> Option<f64> {
        read(&self.told, name).map(|n| n as f64)
    }

    /// The case, so short that it fits a table.
    fn short(&self) -> String {
        match self.case.char_indices().nth(48) {
            Some((at, _)) => format!("`{}…`", &self.case[..at]),
            None => format!("`{}`", self.case),
        }
    }
}

struct Run<'a> {
    options: &'a Options,
    rows: Vec<Row>,
    failures: Vec<String>,
}

/// Measures all of it.
///
/// # Errors
/// What cannot be measured here.
pub fn measure(options: &Options) -> Result<Table, String> {
    let machine = machine();
    let mut run = Run {
        options,
        rows: Vec::new(),
        failures: Vec::new(),
    };
    let growing = run.growing()?;
    let files = run.kept("files", "files-measured")?;
    run.files(&growing, &files);
    run.limits()?;
    let frames = run.kept("frames", "frames-measured")?;
    run.frames(&frames, &files);
    run.memory()?;
    run.speed()?;
    Ok(Table {
        machine,
        rows: run.rows,
        failures: run.failures,
    })
}

/// The largest of them by a measure, if there is one.
fn worst<'a>(
    all: impl IntoIterator<Item = &'a Measured>,
    measure: impl Fn(&Measured) -> Option<f64>,
) -> Option<(f64, &'a Measured)> {
    let all = all.into_iter().filter_map(|m| Some((measure(m)?, m)));
    all.max_by(|a, b| a.0.total_cmp(&b.0))
}

impl Run<'_> {
    /// Tries cases, each in a process of its own; what breaks a bound there is a failure of the table.
    fn tried(&mut self, kind_name: &str, cases: &[Case]) -> Result<Vec<Measured>, String> {
        let kind = kind(kind_name).ok_or("no such kind")?;
        let mut all = Vec::new();
        for (case, told) in cases.iter().zip(children::run(kind, cases)) {
            let case = case.to_string();
            match told {
                Ok(told) => all.push(Measured { case, told }),
                Err(why) => self.failures.push(format!("{kind_name} '{case}': {why}")),
            }
        }
        Ok(all)
    }

    fn kept(&mut self, of: &str, by: &str) -> Result<Vec<Measured>, String> {
        let all = kind(of).ok_or("no such kind")?.corpus()?;
        let few = if self.options.smoke { 6 } else { 1 };
        let cases: Vec<Case> = all.into_iter().step_by(few).collect();
        self.tried(by, &cases)
    }

    /// The growing files: of each shape the smaller, then the larger one.
    fn growing(&mut self) -> Result<Vec<Measured>, String> {
        let count = if self.options.smoke { 1 } else { GROWING.len() };
        let mut cases = Vec::new();
        for (shape, most) in &GROWING[..count] {
            for part in [4, 1] {
                let text = shape.replace("{}", &(most / part).to_string());
                cases.push(Case::parse(&text, files::SHAPES)?);
            }
        }
        self.tried("files-measured", &cases)
    }

    fn row(
        &mut self,
        bound: &'static str,
        target: impl Into<String>,
        figure: impl Into<String>,
        holds: bool,
        of: impl Into<String>,
    ) {
        self.rows.push(Row {
            bound,
            target: target.into(),
            figure: figure.into(),
            holds: Some(holds),
            of: of.into(),
        });
    }

    /// A row about time: a smoke run shows it and does not judge.
    fn timed(
        &mut self,
        bound: &'static str,
        target: &str,
        figure: String,
        holds: bool,
        of: impl Into<String>,
    ) {
        self.row(bound, target, figure, holds, of);
        if let Some(row) = self.rows.last_mut().filter(|_| self.options.smoke) {
            row.holds = None;
        }
    }

    fn files(&mut self, growing: &[Measured], kept: &[Measured]) {
        let all = || growing.iter().chain(kept);
        let count = growing.len() + kept.len();
        let bytes = |m: &Measured| m.read("bytes");
        let taken = |m: &Measured| Some(m.read("heap")?.max(m.read("resident")?));
        let used = |m: &Measured| Some(taken(m)? / bounds::memory(bytes(m)? as u64) as f64);
        if let Some((part, m)) = worst(all(), used) {
            let mib = |n: Option<f64>| n.unwrap_or(0.0) / f64::from(1 << 20);
            let figure = format!(
                "{:.1} MiB for {:.1}, {:.0} %",
                mib(taken(m)),
                mib(bytes(m)),
                100.0 * part
            );
            let of = format!("worst of {count} files: {}", m.short());
            self.row(
                "memory to load and report a file of n bytes",
                "64 MiB + 8 n",
                figure,
                part <= 1.0,
                of,
            );
        }
        let mebibyte = f64::from(1 << 20);
        let large = |m: &Measured| bytes(m).filter(|&n| n >= mebibyte);
        let second = |m: &Measured| Some(m.read("load_us")? / 1e6 * 16.0 * mebibyte / large(m)?);
        if let Some((seconds, m)) = worst(all(), second) {
            let of = format!(
                "worst of {}: {}",
                all().filter(|m| large(m).is_some()).count(),
                m.short()
            );
            self.timed(
                "time to load or refuse 16 MiB, files from 1 MiB",
                "1 s",
                format!("{seconds:.2} s"),
                seconds <= 1.0,
                of,
            );
        }
        let small = |m: &Measured| match large(m) {
            None => Some(m.read("load_us")? / 1e3),
            Some(_) => None,
        };
        if let Some((ms, m)) = worst(all(), small) {
            let most = bounds::loading(1 << 20).as_secs_f64() * 1e3;
            let of = format!(
                "worst of {}: {}",
                all().filter(|m| large(m).is_none()).count(),
                m.short()
            );
            self.timed(
                "time to load or refuse smaller files",
                "83 ms",
                format!("{ms:.2} ms"),
                ms <= most,
                of,
            );
        }
        // What takes less than a twentieth of the bound tells of caches, not of growth.
        let each = |m: &Measured| Some(m.read("load_us")? / bytes(m)?);
        let pairs: Vec<(f64, &Measured)> = growing
            .chunks_exact(2)
            .filter(|two| two[1].read("load_us").is_some_and(|us| us >= 50_000.0))
            .filter_map(|two| Some((each(&two[1])? / each(&two[0])?, &two[1])))
            .collect();
        if let Some((growth, m)) = pairs.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
            self.timed(
                "time for a byte at 16 MiB over that at 4 MiB",
                "1.5",
                format!("{growth:.2}"),
                *growth <= 1.5,
                format!("worst of {} shapes that take 50 ms: {}", pairs.len(), m.short()),
            );
        }
    }

    fn limits(&mut self) -> Result<(), String> {
        let (many, few) = if self.options.smoke { (3, 2) } else { (300, 150) };
        let mut plain = 0.0;
        let rows = [
            (
                "a plain timer, nothing of ours, late by",
                vec![format!("timer 1 {many}"), format!("timer 20 {many}")],
            ),
            (
                "a call with a limit, an endless loop, late by",
                vec![format!("calls 1 {many}"), format!("calls 20 {many}")],
            ),
            (
                "making a domain with a limit, late by",
                vec![format!("makes 20 {few} 3"), format!("makes 20 {few} 4")],
            ),
            (
                "ending a domain with a limit, late by",
                vec![format!("ends 20 {few} 3"), format!("ends 20 {few} 4")],
            ),
        ];
        for (bound, texts) in rows {
            let cases: Result<Vec<Case>, String> =
                texts.iter().map(|t| Case::parse(t, limits::SHAPES)).collect();
            let all = self.tried("limits", &cases?)?;
            let ms = |name: &'static str| move |m: &Measured| Some(m.read(name)? / 1e3);
            let (Some((median, _)), Some((late, m)), Some((most, _))) = (
                worst(&all, ms("median_us")),
                worst(&all, ms("late_us")),
                worst(&all, ms("most_us")),
            ) else {
                continue;
            };
            let count: f64 = all.iter().filter_map(|m| m.read("count")).sum();
            let of = format!(
                "wall's clock, 19 of 20 of {count}: {}; the median is {median:.2} ms, the worst {most:.2} ms",
                m.short()
            );
            // What the machine takes is nobody's fault here.
            let (target, most) = match plain {
                0.0 => (String::new(), f64::INFINITY),
                plain => (format!("2 ms + {plain:.2} ms"), plain + 2.0),
            };
            if plain == 0.0 {
                plain = late.max(0.001);
            }
            self.timed(bound, &target, format!("{late:.2} ms"), late <= most, of);
        }
        Ok(())
    }

    fn frames(&mut self, frames: &[Measured], files: &[Measured]) {
        let ms = |name: &'static str| move |m: &Measured| Some(m.read(name)? / 1e3);
        if let Some((late, m)) = worst(frames, ms("beyond_us")) {
            let of = format!("processor time, worst of {} stacks: {}", frames.len(), m.short());
            self.timed(
                "a call with a limit, in the runtime's own walks, late by",
                "2 ms",
                format!("{late:.2} ms"),
                late <= 2.0,
                of,
            );
        }
        if let Some((report, m)) = worst(frames.iter().chain(files), ms("report_us")) {
            let of = format!("worst of {}: {}", frames.len() + files.len(), m.short());
            self.timed(
                "report of a fault",
                "50 ms",
                format!("{report:.1} ms"),
                report <= 50.0,
                of,
            );
        }
    }

    fn memory(&mut self) -> Result<(), String> {
        let mut cases = kind("places").ok_or("no such kind")?.corpus()?;
        if self.options.smoke {
            cases.truncate(2);
        }
        let before = self.failures.len();
        let all = self.tried("places", &cases)?;
        let places: f64 = all.iter().filter_map(|m| m.read("places")).sum();
        let errors: f64 = all.iter().filter_map(|m| m.read("errors")).sum();
        let wrong = self.failures.len() - before;
        self.row(
            "allocations that fail: operations that abort or leave something behind",
            "0",
            wrong.to_string(),
            wrong == 0 && places > 0.0,
            format!("{places} places, {errors} typed errors, the others succeeded"),
        );
        Ok(())
    }

    /// Without an earlier revision there is nothing beside which speeds could stand.
    fn speed(&mut self) -> Result<(), String> {
        let (Some(speed), Some(base)) = (&self.options.speed, &self.options.base) else {
            return Ok(());
        };
        let figures = speed::run(&[speed, base])?;
        let rows = [
            "null call, over the earlier revision's",
            "call with a callback, the same",
            "fault delivered, the same",
            "reset, the same",
        ];
        for (i, bound) in rows.into_iter().enumerate() {
            let (now, then) = (figures[0][i], figures[1][i]);
            let figure = format!("{:.2}", now / then);
            let of = format!("{now:.1} ns, {then:.1} ns, the best of interleaved runs");
            self.timed(bound, "1.03", figure, now / then <= 1.03, of);
        }
        Ok(())
    }
}

/// The machine, as far as figures depend on it.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let name = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    format!(
        "{}, {} processors, Linux {}, load {} at the beginning",
        name.map_or("unknown processor", |n| n.1),
        std::thread::available_parallelism().map_or(0, usize::from),
        kernel.split('-').next().unwrap_or_default().trim(),
        load.split(' ').next().unwrap_or_default()
    )
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\n\n| bound | target | measured | holds | of |\n|---|---|---|---|---|",
            self.machine
        )?;
        for r in &self.rows {
            let holds = match r.holds {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "not judged",
            };
            writeln!(
                f,
                "| {} | {} | {} | {holds} | {} |",
                r.bound, r.target, r.figure, r.of
            )?;
        }
        self.failures
            .iter()
            .try_for_each(|why| writeln!(f, "FAILED {why}"))
    }
}

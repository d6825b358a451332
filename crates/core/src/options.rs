//! Options of domains: one table, from which Rust, C, the command line and the pages have them.

use crate::backend::Backend;
use crate::cancel::Cancel;
use crate::error::DomainError;
use ringfence_isa::{Addressing, PAGE, window};
use std::ops::RangeInclusive;
use std::time::Duration;

/// What the number of an option counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionUnit {
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
    /// Things.
    Count,
    /// 0 or 1.
    Flag,
    /// One of these names, by its place.
    Choice(&'static [&'static str]),
}

impl OptionUnit {
    /// A number for a person: `64 MiB`.
    #[must_use]
    pub fn text(self, number: u64) -> String {
        match self {
            Self::Bytes if number > 0 && number.is_multiple_of(1 << 30) => format!("{} GiB", number >> 30),
            Self::Bytes if number > 0 && number.is_multiple_of(1 << 20) => format!("{} MiB", number >> 20),
            Self::Bytes if number > 0 && number.is_multiple_of(1 << 10) => format!("{} KiB", number >> 10),
            Self::Choice(names) => match usize::try_from(number).ok().and_then(|n| names.get(n)) {
                Some(name) => (*name).to_owned(),
                None => number.to_string(),
            },
            _ => number.to_string(),
        }
    }

    /// The number that a person means: `64M` as bytes, `20ms` as nanoseconds (a bare number is seconds), or the name of a choice.
    ///
    /// # Errors
    /// What to write instead.
    ///
    /// # Examples
    /// ```
    /// use ringfence_core::OptionUnit;
    ///
    /// assert_eq!(OptionUnit::Bytes.read("64K"), Ok(65536));
    /// assert_eq!(OptionUnit::Time.read("20ms"), Ok(20_000_000));
    /// assert!(OptionUnit::Count.read("many").is_err());
    /// ```
    pub fn read(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Bytes => size(text),
            Self::Time => duration(text),
            Self::Choice(names) => match names.iter().position(|name| *name == text) {
                Some(place) => Ok(place as u64),
                None => Err(format!("choose one of {}", names.join(", "))),
            },
            Self::Count | Self::Flag => text.parse().map_err(|_| "write a number".to_owned()),
        }
    }
}

/// A time as `500us`, `20ms`, `2s`, `1m`; a bare number is seconds.
fn duration(text: &str) -> Result<u64, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..split]
        .parse()
        .map_err(|_| "write a time like 500ms or 2s".to_owned())?;
    let unit = match &text[split..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        other => return Err(format!("unknown unit '{other}': us, ms, s or m")),
    };
    let time = Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())?;
    u64::try_from(time.as_nanos()).map_err(|_| "too long".to_owned())
}

/// A size as `4096`, `64K`, `64M`, `1G`.
fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split]
        .parse()
        .map_err(|_| "write a size like 64M".to_owned())?;
    let shift = match text[split..].trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        other => return Err(format!("unknown unit '{other}': K, M or G")),
    };
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

/// The back ends by their numbers.
const BACKENDS: OptionUnit = OptionUnit::Choice(&["window", "process", "none"]);
/// The forms of operands by their numbers.
const ADDRESSINGS: OptionUnit = OptionUnit::Choice(&[Addressing::Any.name(), Addressing::Segment.name()]);

/// An option of domains, as the interfaces that are not Rust's have it: by its name, as a number.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionRow {
    /// The name: of the field here, of the field of `rf_domain_options` in C and C++, and of `ringfence`'s option (with `-` for `_`).
    pub name: &'static str,
    /// One line for a person.
    pub summary: &'static str,
    /// What the number counts.
    pub unit: OptionUnit,
    /// Which numbers it takes.
    pub range: RangeInclusive<u64>,
    /// The number is a multiple of this.
    pub step: u64,
    get: fn(&DomainOptions) -> Option<u64>,
    put: fn(&mut DomainOptions, u64),
}

impl OptionRow {
    /// Sets the option.
    ///
    /// # Errors
    /// [`DomainError::Option`] if the number is none that it takes.
    pub fn set(&self, options: &mut DomainOptions, number: u64) -> Result<(), DomainError> {
        self.check(number)?;
        (self.put)(options, number);
        Ok(())
    }

    /// What the options have; `None` if the option is off.
    #[must_use]
    pub fn of(&self, options: &DomainOptions) -> Option<u64> {
        (self.get)(options)
    }

    /// The default; `None` if the option is off unless it is set.
    #[must_use]
    pub fn default(&self) -> Option<u64> {
        (self.get)(&DomainOptions::default())
    }

    /// The numbers that it takes, for a person, such as `1 to 63`.
    #[must_use]
    pub fn accepted(&self) -> String {
        let number = |n| self.unit.text(n);
        if let OptionUnit::Choice(names) = self.unit {
            return names.join(", ");
        }
        let pages = if self.step > 1 { "whole pages, " } else { "" };
        match (*self.range.start(), *self.range.end()) {
            (0, u64::MAX) => "any".to_owned(),
            (least, u64::MAX) => format!("{pages}at least {}", number(least)),
            (0, most) if self.unit != OptionUnit::Flag => format!("{pages}at most {}", number(most)),
            (least, most) => format!("{pages}{} to {}", number(least), number(most)),
        }
    }

    fn check(&self, number: u64) -> Result<(), DomainError> {
        if self.range.contains(&number) && number.is_multiple_of(self.step) {
            return Ok(());
        }
        Err(DomainError::Option {
            option: self.name,
            reason: format!("must be {}", self.accepted()),
        })
    }
}

/// A type that an option's number has in Rust.
trait Number: Sized {
    /// `None`: the option is off.
    fn to_number(&self) -> Option<u64>;
    /// From a number in the option's range.
    fn from_number(number: u64) -> Self;
}

impl Number for u64 {
    fn to_number(&self) -> Option<u64> {
        Some(*self)
    }
    fn from_number(number: u64) -> Self {
        number
    }
}

impl Number for u32 {
    fn to_number(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
    fn from_number(number: u64) -> Self {
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

impl Number for bool {
    fn to_number(&self) -> Option<u64> {
        Some(u64::from(*self))
    }
    fn from_number(number: u64) -> Self {
        number != 0
    }
}

impl Number for Backend {
    fn to_number(&self) -> Option<u64> {
        Backend::ALL.iter().position(|b| b == self).map(|n| n as u64)
    }
    fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|n| Backend::ALL.get(n));
        known.copied().unwrap_or_default()
    }
}

impl Number for Addressing {
    fn to_number(&self) -> Option<u64> {
        Addressing::ALL.iter().position(|a| a == self).map(|n| n as u64)
    }
    fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|n| Addressing::ALL.get(n));
        known.copied().unwrap_or_default()
    }
}

impl Number for Duration {
    fn to_number(&self) -> Option<u64> {
        Some(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
    }
    fn from_number(number: u64) -> Self {
        match number {
            u64::MAX => Duration::MAX,
            number => Duration::from_nanos(number),
        }
    }
}

impl<T: Number> Number for Option<T> {
    fn to_number(&self) -> Option<u64> {
        self.as_ref().and_then(Number::to_number)
    }
    fn from_number(number: u64) -> Self {
        Some(T::from_number(number))
    }
}

/// The table. `name: type = default, unit, range, step, "summary"`, under what Rust's documentation says. In C, a number of 0 is
/// the default, and the fields of `rf_domain_options` come in this order: new rows go to the end.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, $unit:expr, $range:expr, $step:expr, $summary:literal;)*) => {
        /// Limits of a domain, and how it is made.
        ///
        /// # Examples
        /// ```
        /// use ringfence_core::DomainOptions;
        /// use std::time::Duration;
        ///
        /// let mut options = DomainOptions::default();
        /// options.time_limit = Some(Duration::from_millis(20));
        /// options.memory_limit = 64 << 20;
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct DomainOptions {
            $($(#[$doc])* pub $name: $type,)*
            /// A word of the host's that ends calls while it is not 0: with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted), within some
            /// milliseconds. `None`: there is none. It is no number, so it is not in the [table](Self::TABLE).
            pub cancel: Option<Cancel>,
        }

        impl Default for DomainOptions {
            fn default() -> Self {
                DomainOptions { $($name: $default,)* cancel: None }
            }
        }

        impl DomainOptions {
            /// All options.
            pub const TABLE: &'static [OptionRow] = &[$(OptionRow {
                name: stringify!($name),
                summary: $summary,
                unit: $unit,
                range: $range,
                step: $step,
                get: |options| options.$name.to_number(),
                put: |options, number| options.$name = Number::from_number(number),
            },)*];
        }
    };
}

options! {
    /// How long a call may take, time in host functions included. `None`: for ever.
    time_limit: Option<Duration> = None, OptionUnit::Time, 1..=u64::MAX, 1, "how long a call from the host may take";
    /// Most processor time that the domain's own code may use in all its life. Calls that are in progress when it is used
    /// up, and all later ones, end with [`FaultKind::TimeLimit`](crate::FaultKind::TimeLimit) within some milliseconds. `None`: no limit, and the
    /// time is not counted; [`Duration::MAX`]: no limit, and it is.
    processor_time: Option<Duration> = None, OptionUnit::Time, 0..=u64::MAX, 1, "processor time of the domain's own code, over all its life";
    /// Most calls from outside that the domain may get ([`Usage::calls`](crate::Usage), constructors and what other domains call included);
    /// all later ones fail with [`CallError::Calls`](crate::CallError::Calls). It holds exactly, for all threads together. A pool's next
    /// user has them anew. `None`: no limit, and calls cost some nanoseconds less.
    call_limit: Option<u64> = None, OptionUnit::Count, 1..=u64::MAX, 1, "calls from outside, constructors included";
    /// After so many faults the domain cannot be reset any more. `None`: no limit.
    fault_limit: Option<u64> = None, OptionUnit::Count, 0..=u64::MAX, 1, "faults, after which the domain cannot be reset";
    /// Most bytes of modules' writable data, heap, anonymous maps, host allocations and stacks together. Stacks count in full, touched
    /// or not, from the first call of a thread on: `data_stack`, `control_stack` and the modules' thread-local variables for each thread,
    /// until [`trim`](crate::Instance::trim). A thread whose stacks do not fit is refused with [`CallError::Memory`](crate::CallError::Memory).
    memory_limit: u64 = 1 << 30, OptionUnit::Bytes, 0..=u64::MAX, 1, "modules' data, heap, maps, host allocations and stacks together";
    /// Most bytes of code that may be added to the living domain; at most 16 MiB.
    code_limit: u32 = 1 << 20, OptionUnit::Bytes, 0..=(window::IMAGES_END - window::ARENA) as u64, 1, "code that is added later";
    /// Most bytes of images of modules that may be added to the living domain. Their writable data counts
    /// as memory as well, see `memory_limit`.
    module_limit: u64 = 64 << 20, OptionUnit::Bytes, 0..=u64::MAX, 1, "images of modules that are added later";
    /// How many threads may be in the domain, at most 63.
    max_lanes: u32 = window::LANE_COUNT, OptionUnit::Count, 1..=window::LANE_COUNT as u64, 1, "threads that may have stacks in the domain";
    /// Bytes of data stack a lane has; at most 15 MiB.
    data_stack: u32 = 8 << 20, OptionUnit::Bytes, 64 << 10..=15 << 20, PAGE, "data stack of each thread";
    /// Bytes of control stack a lane has.
    control_stack: u32 = 1 << 20, OptionUnit::Bytes, 16 << 10..=1 << 30, PAGE, "control stack of each thread";
    /// Bytes that lanes keep for thread-local variables of modules that are added later, at most 1 MiB; at least 8 KiB if `extensible` is
    /// set. A module with the C or C++ library has about 2,400.
    thread_local_reserve: u32 = 1 << 10, OptionUnit::Bytes, 0..=1 << 20, 1, "thread-local variables of modules that are added later";
    /// How many processors the domain is told of.
    processors: u32 = 1, OptionUnit::Count, 1..=u32::MAX as u64, 1, "processors that the domain is told of";
    /// Whether code added later may use vector registers although no module that the domain starts with does: then
    /// gates look after them from the beginning. And whether modules added later may import any host
    /// function that the domain is made with, needed so far or not.
    extensible: bool = false, OptionUnit::Flag, 0..=1, 1, "code and modules that come later may use all that the host gives, and vector registers";
    /// What keeps the domain from the host.
    backend: Backend = Backend::Window, BACKENDS, 0..=2, 1, "what keeps the domain from the host";
    /// By which forms of operands its code may reach memory: that of the modules it is made of, and all that comes later. With
    /// [`Addressing::Segment`] each operand is confined by itself, by the processor, whatever a register holds and wherever control
    /// came from; modules are compiled for it (`ringfence cc --addressing=segment`), and any other is refused.
    addressing: Addressing = Addressing::Any, ADDRESSINGS, 0..=1, 1, "by which operands code may reach memory";
    /// Whether code and modules that come later may use the x87 unit (`long double`) although no module that the domain starts with
    /// does: then gates look after it from the beginning, which costs each call some ten nanoseconds.
    x87: bool = false, OptionUnit::Flag, 0..=1, 1, "code and modules that come later may use the x87 unit";
    /// Heap that stays with the domain when it goes back to its pool, for the next user: what was written is zeroed where it is, which
    /// takes a tenth of the time that the page faults of fresh memory take. It counts against `memory_limit`. If more was in use,
    /// all of it is given back, as it is by a reset; so is what one user has left unused of the last one's, if that is more than 256 KiB.
    idle_heap: u64 = 1 << 20, OptionUnit::Bytes, 0..=u64::MAX, 1, "heap that a pool keeps for a domain's next user";
}

impl DomainOptions {
    /// What lanes keep for thread-local variables of modules that come later.
    pub fn thread_local_room(&self) -> u32 {
        let least = if self.extensible { 8 << 10 } else { 0 };
        self.thread_local_reserve.max(least)
    }

    /// Whether an option other than the back end is not its default.
    #[must_use]
    pub fn any_set(&self) -> bool {
        let others = Self::TABLE.iter().filter(|row| row.name != "backend");
        self.cancel.is_some() || others.into_iter().any(|row| (row.get)(self) != row.default())
    }

    /// Whether all values can work.
    ///
    /// # Errors
    /// [`DomainError::Option`] names the first that cannot.
    pub fn check(&self) -> Result<(), DomainError> {
        Self::TABLE.iter().try_for_each(|row| match (row.get)(self) {
            Some(number) => row.check(number),
            None => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes() {
        let (time, bytes) = (OptionUnit::Time, OptionUnit::Bytes);
        assert_eq!(time.read("500ms"), Ok(500_000_000));
        assert_eq!(time.read("2"), Ok(2_000_000_000));
        assert!(time.read("2h").is_err() && time.read("").is_err() && time.read("99999999999m").is_err());
        assert_eq!(bytes.read("64M"), Ok(64 << 20));
        assert_eq!(bytes.read("1GiB"), Ok(1 << 30));
        assert!(bytes.read("1T").is_err() && bytes.read("99999999999G").is_err());
        assert_eq!(BACKENDS.read("none"), Ok(2));
        assert!(BACKENDS.read("nowhere").is_err());
    }

    #[test]
    fn defaults_are_in_range_and_numbers_come_back() {
        let defaults = DomainOptions::default();
        defaults.check().expect("the defaults are fine");
        for row in DomainOptions::TABLE {
            assert_eq!((row.get)(&defaults), row.default(), "{}", row.name);
            for number in [*row.range.start(), *row.range.end()] {
                let mut options = DomainOptions::default();
                row.set(&mut options, number).expect("in range");
                assert_eq!((row.get)(&options), Some(number), "{}", row.name);
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_named() {
        for (name, number, reason) in [
            ("max_lanes", 64, "must be 1 to 63"),
            ("max_lanes", 0, "must be 1 to 63"),
            (
                "data_stack",
                (1 << 20) + 1,
                "must be whole pages, 64 KiB to 15 MiB",
            ),
            ("control_stack", 1 << 31, "must be whole pages, 16 KiB to 1 GiB"),
            ("code_limit", 1 << 33, "must be at most 16 MiB"),
            ("thread_local_reserve", (1 << 20) + 1, "must be at most 1 MiB"),
            ("call_limit", 0, "must be at least 1"),
            ("time_limit", 0, "must be at least 1"),
            ("extensible", 2, "must be 0 to 1"),
        ] {
            let row = DomainOptions::TABLE.iter().find(|r| r.name == name).expect(name);
            let mut options = DomainOptions::default();
            match row.set(&mut options, number) {
                Err(DomainError::Option { option, reason: why }) => {
                    assert_eq!((option, &*why), (name, reason))
                }
                other => panic!("{name} = {number}: {other:?}"),
            }
            options.check().expect("nothing was set");
        }
    }
}

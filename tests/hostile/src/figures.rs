//! Figures of a case: words `name=number` among what is told of it, for people and for the table alike.

use std::fmt;
use std::time::Duration;

/// What was measured, in the order in which it was. It takes no memory of the heap, which is measured, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    list: [(&'static str, u64); 16],
    len: usize,
}

impl Figures {
    /// Notes a number; the larger counts if there is one already.
    ///
    /// # Panics
    /// If there are more than 16 names.
    pub fn note(&mut self, name: &'static str, value: u64) {
        match self.find(name) {
            Some(figure) => *figure = value.max(*figure),
            None => {
                self.list[self.len] = (name, value);
                self.len += 1;
            }
        }
    }

    fn find(&mut self, name: &str) -> Option<&mut u64> {
        let list = &mut self.list[..self.len];
        list.iter_mut().find(|f| f.0 == name).map(|f| &mut f.1)
    }

    /// Notes a time, in microseconds.
    pub fn time(&mut self, name: &'static str, value: Duration) {
        self.note(name, value.as_micros() as u64);
    }

    /// Of two measurements of the same, the lesser of each time (names that end in `_us`), and the larger of all else.
    pub fn least(&mut self, other: &Figures) {
        for &(name, value) in &other.list[..other.len] {
            match self.find(name) {
                Some(figure) if name.ends_with("_us") => *figure = value.min(*figure),
                _ => self.note(name, value),
            }
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.list[..self.len].iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

/// The figure of that name in what was told of a case.
#[must_use]
pub fn read(told: &str, name: &str) -> Option<u64> {
    let values = told
        .split([' ', ';', ','])
        .filter_map(|word| word.split_once('='));
    values.filter(|v| v.0 == name).find_map(|v| v.1.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_again() {
        let mut figures = Figures::default();
        figures.note("bytes", 5);
        figures.note("bytes", 3);
        figures.time("load_us", Duration::from_millis(2));
        let mut again = Figures::default();
        again.note("bytes", 7);
        again.time("load_us", Duration::from_millis(1));
        figures.least(&again);
        let told = format!("refused: a=b; {figures}");
        assert_eq!(told, "refused: a=b; bytes=7 load_us=1000");
        assert_eq!(
            (read(&told, "bytes"), read(&told, "load_us"), read(&told, "a")),
            (Some(7), Some(1000), None)
        );
    }
}

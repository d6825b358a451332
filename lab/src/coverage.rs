//! Which lines of assembly a run executes: each instruction is preceded by a store of one byte, which leaves flags and registers as they
//! are, into an array that is a file (`lab/subjects/cover.c`). Threads and servers do it like anybody else.

use crate::text::Unit;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Bytes of the array: as many as `lab/subjects/cover.c` has.
const ROOM: usize = 1 << 20;

/// Numbers for the lines of units.
#[derive(Default)]
pub struct Marks {
    /// What the number says: unit and line.
    places: Vec<(usize, usize)>,
}

impl Marks {
    /// The unit's text with marks in it.
    ///
    /// # Errors
    /// All units together have too many lines.
    pub fn mark(&mut self, unit: &Unit, number: usize) -> Result<String, String> {
        let mut text = String::new();
        for (at, line) in unit.lines.iter().enumerate() {
            // What an entry begins with has to stay the first.
            let marked = unit.instruction(at).is_some_and(|i| !i.name.starts_with("endbr"));
            if marked {
                let _ = writeln!(text, "\tmovb\t$1, lab_hits+{}(%rip)", self.places.len());
                self.places.push((number, at));
            }
            text.push_str(line);
            text.push('\n');
        }
        match self.places.len() <= ROOM {
            true => Ok(text),
            false => Err(format!("{}: too many lines", unit.name)),
        }
    }

    /// An empty file for what a run meets.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(path: &Path) -> Result<(), String> {
        std::fs::write(path, vec![0; ROOM]).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// What runs have met: unit and line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn met(&self, path: &Path) -> Result<BTreeSet<(usize, usize)>, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let places = self.places.iter().zip(bytes);
        Ok(places.filter(|(_, b)| *b != 0).map(|(p, _)| *p).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_marked_and_found() {
        let units = ["f:\n\tendbr64\n\tret", "g:\n\tnop\n\tret"].map(|t| Unit::new("u", t));
        let mut marks = Marks::default();
        let text = marks.mark(&units[0], 0).expect("few lines");
        assert_eq!(text, "f:\n\tendbr64\n\tmovb\t$1, lab_hits+0(%rip)\n\tret\n");
        assert!(
            marks
                .mark(&units[1], 1)
                .expect("few lines")
                .contains("lab_hits+2(%rip)\n\tret")
        );
        let path = std::env::temp_dir().join(format!("lab-marks-{}", std::process::id()));
        std::fs::write(&path, [1, 0, 1]).expect("a file");
        let met = marks.met(&path).expect("there");
        assert_eq!(met.into_iter().collect::<Vec<_>>(), [(0, 2), (1, 2)]);
        let _ = std::fs::remove_file(path);
    }
}

//! Cases: lists of operations with numbers, made at random from a seed, and written as text, so that each can be kept, repeated
//! and made smaller.

use ringfence_attack::rng::Rng;
use std::fmt;

/// An operation that a kind of cases knows, and the ranges of its numbers, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name in texts.
    pub name: &'static str,
    /// The ranges.
    pub numbers: &'static [(u64, u64)],
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Which.
    pub name: String,
    /// Its numbers: as many as the shape has.
    pub numbers: Vec<u64>,
}

impl Op {
    /// A number, or 0.
    #[must_use]
    pub fn n(&self, i: usize) -> u64 {
        self.numbers.get(i).copied().unwrap_or(0)
    }
}

/// A list of operations. Its text is `op number number; op number`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// In this order.
    pub ops: Vec<Op>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, op) in self.ops.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            f.write_str(&op.name)?;
            for n in &op.numbers {
                write!(f, " {n}")?;
            }
        }
        Ok(())
    }
}

impl Case {
    /// A case of up to `most` operations.
    pub fn random(shapes: &[Shape], most: u64, rng: &mut Rng) -> Case {
        let count = 1 + rng.below(most);
        let op = |_| {
            let shape = rng.pick(shapes);
            Op {
                name: shape.name.into(),
                numbers: shape.numbers.iter().map(|&range| number(range, rng)).collect(),
            }
        };
        Case {
            ops: (0..count).map(op).collect(),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, shapes: &[Shape]) -> Result<Case, String> {
        let op = |text: &str| {
            let mut words = text.split_whitespace();
            let name = words.next().ok_or("an operation without a name")?;
            let shape = shapes
                .iter()
                .find(|s| s.name == name)
                .ok_or_else(|| format!("there is no operation {name}"))?;
            let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
            let numbers = numbers.map_err(|e| format!("{name}: {e}"))?;
            if numbers.len() != shape.numbers.len() {
                return Err(format!("{name} takes {} numbers", shape.numbers.len()));
            }
            Ok(Op {
                name: name.into(),
                numbers,
            })
        };
        let ops: Result<Vec<Op>, String> = text.split(';').map(op).collect();
        Ok(Case { ops: ops? })
    }

    /// Makes a case that fails smaller while it still does: drops operations, then halves numbers. `fails` is asked at most
    /// `tries` times.
    pub fn shrink(&mut self, mut tries: u32, mut fails: impl FnMut(&Case) -> bool) {
        let mut ask = |case: &Case| {
            tries = tries.saturating_sub(1);
            tries > 0 && fails(case)
        };
        let mut i = 0;
        while self.ops.len() > 1 && i < self.ops.len() {
            let mut smaller = self.clone();
            smaller.ops.remove(i);
            if ask(&smaller) {
                *self = smaller;
            } else {
                i += 1;
            }
        }
        for op in 0..self.ops.len() {
            for n in 0..self.ops[op].numbers.len() {
                while self.ops[op].numbers[n] > 1 {
                    let mut smaller = self.clone();
                    smaller.ops[op].numbers[n] /= 2;
                    if !ask(&smaller) {
                        break;
                    }
                    *self = smaller;
                }
            }
        }
    }
}

/// Small and large ones are equally likely, and so are the ends.
fn number((low, high): (u64, u64), rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => low,
        1 => high,
        _ => {
            let bits = (high - low).checked_ilog2().unwrap_or(0) + 1;
            let most = 1_u128 << rng.below(u64::from(bits) + 1);
            let spread = u128::from(rng.bits()) % most;
            low + (spread as u64).min(high - low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: &[Shape] = &[
        Shape {
            name: "one",
            numbers: &[(3, 3)],
        },
        Shape {
            name: "wide",
            numbers: &[(0, u64::MAX), (10, 20)],
        },
    ];

    #[test]
    fn texts_and_cases_are_the_same() {
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let case = Case::random(SHAPES, 4, &mut rng);
            assert_eq!(Case::parse(&case.to_string(), SHAPES), Ok(case.clone()));
            let wide = case.ops.iter().filter(|o| o.name == "wide");
            assert!(wide.into_iter().all(|o| (10..=20).contains(&o.n(1))));
        }
        for bad in ["", "one", "one 1 2", "two 1", "one x", "one 3;"] {
            assert!(Case::parse(bad, SHAPES).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_does_not_matter_is_dropped() {
        let mut case = Case::parse("one 3; wide 5 10; wide 1000 10; one 3", SHAPES).unwrap();
        case.shrink(100, |c| c.ops.iter().any(|o| o.name == "wide" && o.n(0) >= 100));
        assert_eq!(case.to_string(), "wide 125 1");
    }
}

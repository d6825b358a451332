//! Names for addresses: symbols and debug information.
//!
//! The file is read once from front to back for all addresses of a backtrace together; when the budget is used up what was
//! found so far is told.

use crate::asked::Asked;
use crate::bytes::{Cursor, Stop};
use crate::lines::Lines;
use crate::sections::Sections;
use crate::unit::{Abbreviations, Entry, Unit, Value, tag};
use ringfence_core::work::{Budget, Exceeded};

/// Most places that can be asked for at once.
pub const MOST: usize = 64;

/// Functions that are told for one place, inlined ones included.
const INLINED: usize = 16;

/// Steps from an entry to the one that has its name.
const HOPS: usize = 8;

/// One function at a place: names as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// The function's name.
    pub function: Option<Vec<u8>>,
    /// The path of its source, as the compiler wrote it.
    pub file: Option<Vec<u8>>,
    /// The line there.
    pub line: Option<u64>,
}

/// A function that covers a place, while the entries are read.
#[derive(Clone, Copy)]
struct Covering<'a> {
    entry: Entry<'a>,
    level: usize,
}

/// The functions at each of at most [`MOST`] offsets in an image, inlined ones first; and why they are not all, if so.
///
/// ```
/// use ringfence_core::work::Budget;
/// let (names, cut) = ringfence_debug::look_up(b"not a module", &[0x1000], &mut Budget::new(1000, 1000));
/// assert!(names[0].is_empty() && cut.is_none());
/// ```
pub fn look_up(file: &[u8], offsets: &[u64], budget: &mut Budget) -> (Vec<Vec<Name>>, Option<Exceeded>) {
    let mut places = offsets.to_vec();
    places.sort_unstable();
    places.dedup();
    places.truncate(MOST);
    let asked = Asked::new(places);
    let mut found = vec![Vec::new(); asked.places().len()];
    let cut = match fill(file, &asked, &mut found, budget) {
        Err(Stop::Exceeded(e)) => Some(e),
        // What makes no sense is not told.
        Ok(()) | Err(Stop::Malformed) => None,
    };
    let name = |at: &u64| {
        let place = asked.places().binary_search(at).ok();
        place.map_or(Vec::new(), |place| found[place].clone())
    };
    (offsets.iter().map(name).collect(), cut)
}

fn fill(file: &[u8], asked: &Asked, found: &mut [Vec<Name>], budget: &mut Budget) -> Result<(), Stop> {
    let sections = Sections::find(file, budget)?;
    let symbols = sections.symbols(asked, budget)?;
    for (names, symbol) in found.iter_mut().zip(&symbols) {
        names.push(Name {
            function: symbol.map(<[u8]>::to_vec),
            ..Name::default()
        });
    }
    let (mut at, mut left) = (0, asked.between(1, u64::MAX));
    let mut abbreviations = Abbreviations::default();
    while left != 0 && (at as usize) < sections.info.len() {
        budget.step()?;
        let unit = Unit::at(&sections, at)?;
        at = unit.next;
        if unit.code {
            let done = in_unit(&sections, unit, asked, left, found, &mut abbreviations, budget);
            match done {
                Ok(done) => left &= !done,
                // The next one may be better.
                Err(Stop::Malformed) => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}

/// Names the places among `left` that are in a unit; which they are.
fn in_unit<'a>(
    sections: &Sections<'a>,
    mut unit: Unit<'a>,
    asked: &Asked,
    left: u64,
    found: &mut [Vec<Name>],
    abbreviations: &mut Abbreviations,
    budget: &mut Budget,
) -> Result<u64, Stop> {
    unit.load(abbreviations, budget)?;
    let mut c = unit.entries()?;
    let Some(root) = unit.entry(&mut c, abbreviations, budget)? else {
        return Ok(0);
    };
    unit.take_bases(&root);
    let here = unit.covers(&root, asked, budget)? & left;
    if here == 0 {
        return Ok(0);
    }
    // What is found before the budget ends, or the entries make no sense any more, is told.
    let mut chains: Vec<Vec<Covering<'a>>> = vec![Vec::new(); asked.places().len()];
    let walked = match root.children {
        true => walk(&unit, c, asked, here, &mut chains, abbreviations, budget),
        false => Ok(()),
    };
    let lines = match root.lines {
        Some(Value::Offset(at) | Value::Number(at)) => Lines::new(sections, at, unit.address).ok(),
        _ => None,
    };
    let mut rows = vec![None; asked.places().len()];
    let looked = lines.map_or(Ok(()), |lines| {
        lines.look(asked, here, budget, |place, file, line| {
            rows[place].get_or_insert((file, line));
        })
    });
    let directory = root.directory.and_then(|v| unit.text(v)).unwrap_or_default();
    let mut paths: Vec<(u64, Option<Vec<u8>>)> = Vec::new();
    let mut path = |file: u64, budget: &mut Budget| -> Result<Option<Vec<u8>>, Stop> {
        if let Some((_, known)) = paths.iter().find(|p| p.0 == file) {
            return Ok(known.clone());
        }
        let made = match lines.map(|lines| lines.path(file, directory, budget)) {
            Some(Ok(path)) => Some(path),
            None | Some(Err(Stop::Malformed)) => None,
            Some(Err(e)) => return Err(e),
        };
        paths.push((file, made.clone()));
        Ok(made)
    };
    let mut told = Ok(());
    for place in (0..asked.places().len()).filter(|place| here >> place & 1 != 0) {
        let symbol = found[place].first().and_then(|n| n.function.clone());
        let mut names = Vec::new();
        let mut position = rows[place];
        for covering in chains[place].iter().rev() {
            let function = named(sections, &unit, covering.entry, abbreviations, budget).unwrap_or_default();
            let (file, line) = position.unwrap_or_default();
            let file = match position.map(|_| path(file, budget)) {
                Some(Ok(path)) => path,
                None => None,
                Some(Err(e)) => {
                    told = Err(e);
                    None
                }
            };
            names.push(Name {
                // The outermost is the function that the symbol names, too.
                function: function
                    .map(<[u8]>::to_vec)
                    .or_else(|| symbol.clone().filter(|_| covering.entry.tag == tag::SUBPROGRAM)),
                file,
                line: Some(line).filter(|&l| l > 0),
            });
            let number = |value| match value {
                Some(Value::Number(n)) => n,
                _ => 0,
            };
            position = Some((number(covering.entry.call_file), number(covering.entry.call_line)));
        }
        if names.is_empty() {
            // A line without a function's entry still has the line.
            let (file, line) = position.unwrap_or_default();
            names.push(Name {
                function: symbol,
                file: position.map_or(Ok(None), |_| path(file, budget))?,
                line: Some(line).filter(|&l| l > 0),
            });
        }
        found[place] = names;
    }
    walked.and(looked).and(told)?;
    Ok(here)
}

/// Reads the entries of a unit and notes which functions cover which of the places `here`, outer ones first.
fn walk<'a>(
    unit: &Unit<'a>,
    mut c: Cursor<'a>,
    asked: &Asked,
    here: u64,
    chains: &mut [Vec<Covering<'a>>],
    abbreviations: &Abbreviations,
    budget: &mut Budget,
) -> Result<(), Stop> {
    // How deep the entry in hand is, and the places whose innermost function so far is around it.
    let (mut level, mut open) = (1_usize, 0_u64);
    while level > 0 && !c.done() {
        let Some(entry) = unit.entry(&mut c, abbreviations, budget)? else {
            level -= 1;
            close(&mut open, chains, level);
            continue;
        };
        let mut skip = matches!(entry.tag, tag::ARRAY | tag::ENUMERATION | tag::SUBROUTINE_TYPE);
        if matches!(entry.tag, tag::SUBPROGRAM | tag::INLINED) {
            let set = unit.covers(&entry, asked, budget)? & here;
            skip |= set == 0;
            let mut rest = set;
            while rest != 0 {
                let place = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let chain = &mut chains[place];
                if entry.tag == tag::SUBPROGRAM {
                    chain.clear();
                } else if open >> place & 1 == 0 || chain.len() >= INLINED {
                    continue;
                }
                chain.push(Covering { entry, level });
                open |= 1 << place;
            }
        }
        if !entry.children {
            // Nothing is inside it.
            close(&mut open, chains, level);
        } else if let (true, Some(next)) = (skip, entry.sibling.and_then(|v| unit.referred(v)))
            && next > c.at as u64
            && next < unit.next
        {
            c.at = next as usize;
        } else {
            level += 1;
        }
    }
    Ok(())
}

/// The entries of `level` and deeper have ended: the functions among them take no more inlined ones.
fn close(open: &mut u64, chains: &[Vec<Covering<'_>>], level: usize) {
    let mut rest = *open;
    while rest != 0 {
        let place = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if chains[place].last().is_none_or(|last| last.level >= level) {
            *open &= !(1 << place);
        }
    }
}

/// The name of a function, or that of the entry that it refers to.
fn named<'a>(
    sections: &Sections<'a>,
    unit: &Unit<'a>,
    entry: Entry<'a>,
    abbreviations: &mut Abbreviations,
    budget: &mut Budget,
) -> Result<Option<&'a [u8]>, Stop> {
    let (mut unit, mut entry) = (*unit, entry);
    for _ in 0..HOPS {
        let name = entry.linkage.or(entry.name).and_then(|v| unit.text(v));
        if name.is_some() {
            return Ok(name);
        }
        let Some(at) = entry.origin.and_then(|v| unit.referred(v)) else {
            break;
        };
        if !(unit.first..unit.next).contains(&at) {
            let mut start = 0;
            unit = loop {
                budget.step()?;
                let other = Unit::at(sections, start)?;
                if at < other.next {
                    break other;
                }
                start = other.next;
            };
            let mut c = unit.entries()?;
            unit.load(abbreviations, budget)?;
            if let Some(root) = unit.entry(&mut c, abbreviations, budget)? {
                unit.take_bases(&root);
            }
        }
        unit.load(abbreviations, budget)?;
        let mut c = unit.entries()?;
        c = Cursor::new(c.bytes, at)?;
        match unit.entry(&mut c, abbreviations, budget)? {
            Some(next) => entry = next,
            None => break,
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

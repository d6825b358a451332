//! The matrix of a running process, to be looked at.

use super::{Region, lock};
use crate::share::rights::{DomainId, GroupId, Party, RegionId, Rights};
use crate::words::{self, ArenaRow, WordsGroupRow, WordsOf};
use std::fmt;

/// One line of the matrix: a region and who may do what to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the region.
    pub region: u64,
    /// Its offset in every window.
    pub offset: u32,
    /// Its length.
    pub len: u64,
    /// Name of the domain that owns it; `None`: the host.
    pub owner: Option<String>,
    /// Names and rights of the domains that have any, in the order in which they became known.
    pub rights: Vec<(String, Rights)>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.as_deref().unwrap_or("host");
        write!(
            f,
            "region {} at {:#010x}, {} bytes, of {owner}:",
            self.region, self.offset, self.len
        )?;
        if self.rights.is_empty() {
            write!(f, " nobody")?;
        }
        for (name, rights) in &self.rights {
            write!(f, " {name}={}", letters(*rights))?;
        }
        Ok(())
    }
}

/// A group: who decides, who is in it, what that is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// Number of the group.
    pub group: u64,
    /// Name of the domain that owns it and decides who is in it; `None`: the host.
    pub owner: Option<String>,
    /// Whether domains join at their own wish.
    pub open: bool,
    /// Names of the domains in it.
    pub members: Vec<String>,
    /// Numbers of the regions that it was given rights to, and the rights.
    pub rights: Vec<(u64, Rights)>,
}

impl fmt::Display for GroupRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.as_deref().unwrap_or("host");
        let open = if self.open { "open" } else { "closed" };
        write!(f, "group {}, {open}, of {owner}:", self.group)?;
        if self.members.is_empty() {
            write!(f, " nobody")?;
        }
        for name in &self.members {
            write!(f, " {name}")?;
        }
        for (region, rights) in &self.rights {
            write!(f, "; region {region}={}", letters(*rights))?;
        }
        Ok(())
    }
}

/// Who may do what, in the whole process, at one moment. Printed, it is one region and one group a line.
///
/// # Examples
/// ```
/// # use ringfence_runtime::supervisor::{Group, overview};
/// # use ringfence_runtime::Region;
/// let shared = Region::new(4096)?;
/// let group = Group::new(true);
/// let now = overview();
/// print!("{now}");
/// assert!(now.to_string().contains("4096 bytes, of host: nobody"));
/// assert!(now.to_json().contains(r#""bytes":4096,"owner":null"#));
/// # Ok::<(), ringfence_runtime::RegionError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// All regions.
    pub regions: Vec<Row>,
    /// All groups.
    pub groups: Vec<GroupRow>,
    /// All arenas, with rights to their words.
    pub arenas: Vec<ArenaRow>,
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.regions.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        self.groups.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        self.arenas.iter().try_for_each(|row| arena_lines(f, row))
    }
}

/// A line for an arena, and one for each of its domains and groups.
fn arena_lines(f: &mut fmt::Formatter<'_>, row: &ArenaRow) -> fmt::Result {
    let ArenaRow {
        arena, len, objects, ..
    } = row;
    let words = |f: &mut fmt::Formatter<'_>, words: &WordsOf| {
        for (run, rights) in &words.runs {
            write!(f, " {:#x}..{:#x}={}", run.start, run.end, letters(*rights))?;
        }
        match words.more {
            0 => writeln!(f),
            more => writeln!(f, " and {more} more"),
        }
    };
    writeln!(f, "arena {arena}, {len} bytes, {objects} objects")?;
    for (name, of) in &row.domains {
        write!(f, "  {name}:")?;
        words(f, of)?;
    }
    for group in &row.groups {
        let owner = group.owner.as_deref().unwrap_or("host");
        let open = if group.open { "open" } else { "closed" };
        write!(f, "  group {}, {open}, of {owner}:", group.group)?;
        group.members.iter().try_for_each(|name| write!(f, " {name}"))?;
        write!(f, ";")?;
        words(f, &group.words)?;
    }
    Ok(())
}

impl Overview {
    /// As JSON: an object with the lists `regions` (each with `region`, `offset`, `bytes`, `owner`, and `rights` by domain) and `groups`
    /// (each with `group`, `owner`, `open`, `members`, and `rights` by region), and `arenas` (each with `arena`, `bytes`, `objects`, `domains`
    /// with their `words`, and `groups`). Words are `from`, `to` and `rights`, in bytes from the arena's start; `more` says how many runs
    /// there are that are not told. Rights are `"r"` or `"rw"`; the host as an
    /// owner is `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let owner = |name: &Option<String>| name.as_deref().map_or("null".into(), quoted);
        let list = |items: Vec<String>| items.join(",");
        let regions = self.regions.iter().map(|row| {
            let rights = row
                .rights
                .iter()
                .map(|(name, r)| format!("{}:\"{}\"", quoted(name), letters(*r)));
            format!(
                "{{\"region\":{},\"offset\":{},\"bytes\":{},\"owner\":{},\"rights\":{{{}}}}}",
                row.region,
                row.offset,
                row.len,
                owner(&row.owner),
                list(rights.collect())
            )
        });
        let groups = self.groups.iter().map(|row| {
            let rights = row
                .rights
                .iter()
                .map(|(region, r)| format!("\"{region}\":\"{}\"", letters(*r)));
            format!(
                "{{\"group\":{},\"owner\":{},\"open\":{},\"members\":[{}],\"rights\":{{{}}}}}",
                row.group,
                owner(&row.owner),
                row.open,
                list(row.members.iter().map(|name| quoted(name)).collect()),
                list(rights.collect())
            )
        });
        let words = |of: &WordsOf| {
            let run = |(run, rights): &(std::ops::Range<u64>, Rights)| {
                let (from, to) = (run.start, run.end);
                format!(
                    "{{\"from\":{from},\"to\":{to},\"rights\":\"{}\"}}",
                    letters(*rights)
                )
            };
            let runs = list(of.runs.iter().map(run).collect());
            format!("\"words\":[{runs}],\"more\":{}", of.more)
        };
        let domain =
            |(name, of): &(String, WordsOf)| format!("{{\"domain\":{},{}}}", quoted(name), words(of));
        let words_group = |g: &WordsGroupRow| {
            let members = list(g.members.iter().map(|name| quoted(name)).collect());
            let (number, open, owner) = (g.group, g.open, owner(&g.owner));
            format!(
                "{{\"group\":{number},\"owner\":{owner},\"open\":{open},\"members\":[{members}],{}}}",
                words(&g.words)
            )
        };
        let arenas = self.arenas.iter().map(|row| {
            format!(
                "{{\"arena\":{},\"bytes\":{},\"objects\":{},\"domains\":[{}],\"groups\":[{}]}}",
                row.arena,
                row.len,
                row.objects,
                list(row.domains.iter().map(domain).collect()),
                list(row.groups.iter().map(words_group).collect())
            )
        });
        format!(
            "{{\"regions\":[{}],\"groups\":[{}],\"arenas\":[{}]}}",
            list(regions.collect()),
            list(groups.collect()),
            list(arenas.collect())
        )
    }
}

fn letters(rights: Rights) -> &'static str {
    match rights {
        Rights::Write => "rw",
        Rights::Read => "r",
        Rights::None => "",
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Who may do what to which region, in the whole process, at this moment.
#[must_use]
pub fn matrix() -> Vec<Row> {
    overview().regions
}

/// Who may do what to which region, and who is in which group, in the whole process, at this moment.
#[must_use]
pub fn overview() -> Overview {
    let state = lock();
    let name = |id: DomainId| match state.domains.get(&id) {
        Some(known) => format!("{}#{}", known.name, id.0),
        None => format!("#{}", id.0),
    };
    let owner = |party: Party| match party {
        Party::Domain(d) => Some(name(d)),
        Party::Host => None,
    };
    let region = |id: RegionId| {
        let backing = state.regions.get(&id)?;
        let rights = state.matrix.domains_of(id);
        Some(Row {
            region: id.0,
            offset: backing.offset,
            len: backing.len,
            owner: state.matrix.owner(id).ok().and_then(owner),
            rights: rights.into_iter().map(|(d, r)| (name(d), r)).collect(),
        })
    };
    let group = |id: GroupId| {
        let about = state.matrix.about(id).ok()?;
        Some(GroupRow {
            group: id.0,
            owner: owner(about.owner),
            open: about.open,
            members: about.members.into_iter().map(name).collect(),
            rights: about
                .regions
                .into_iter()
                .map(|(region, r)| (region.0, r))
                .collect(),
        })
    };
    Overview {
        regions: state.matrix.regions().filter_map(region).collect(),
        groups: state.matrix.groups().filter_map(group).collect(),
        arenas: words::arenas(),
    }
}

/// The region with this number, if the host still holds it or a domain owns it.
#[must_use]
pub fn region(number: u64) -> Option<Region> {
    lock()
        .regions
        .get(&RegionId(number))?
        .handle
        .upgrade()
        .map(Region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_lists_told() {
        let words = |more| WordsOf {
            runs: vec![(0..32, Rights::Write), (64..68, Rights::Read)],
            more,
        };
        let all = Overview {
            regions: vec![Row {
                region: 7,
                offset: 0x8000_0000,
                len: 4096,
                owner: Some("a\"b\\c\n.rf#1".into()),
                rights: vec![("x#1".into(), Rights::Write), ("y#2".into(), Rights::Read)],
            }],
            groups: vec![GroupRow {
                group: 3,
                owner: None,
                open: false,
                members: vec!["x#1".into(), "y#2".into()],
                rights: vec![(7, Rights::Read)],
            }],
            arenas: vec![ArenaRow {
                arena: 1,
                len: 8192,
                objects: 2,
                domains: vec![("x#1".into(), words(2)), ("y#2".into(), WordsOf::default())],
                groups: vec![WordsGroupRow {
                    group: 5,
                    owner: Some("x#1".into()),
                    open: true,
                    members: vec!["y#2".into()],
                    words: words(0),
                }],
            }],
        };
        assert_eq!(
            all.to_json(),
            r#"{"regions":[{"region":7,"offset":2147483648,"bytes":4096,"owner":"a\"b\\c\u000a.rf#1","rights":{"x#1":"rw","y#2":"r"}}],"groups":[{"group":3,"owner":null,"open":false,"members":["x#1","y#2"],"rights":{"7":"r"}}],"arenas":[{"arena":1,"bytes":8192,"objects":2,"domains":[{"domain":"x#1","words":[{"from":0,"to":32,"rights":"rw"},{"from":64,"to":68,"rights":"r"}],"more":2},{"domain":"y#2","words":[],"more":0}],"groups":[{"group":5,"owner":"x#1","open":true,"members":["y#2"],"words":[{"from":0,"to":32,"rights":"rw"},{"from":64,"to":68,"rights":"r"}],"more":0}]}]}"#
        );
        assert!(all.to_string().ends_with(
            "arena 1, 8192 bytes, 2 objects\n  x#1: 0x0..0x20=rw 0x40..0x44=r and 2 more\n  y#2:\n  \
             group 5, open, of x#1: y#2; 0x0..0x20=rw 0x40..0x44=r\n"
        ));
        assert_eq!(
            all.groups[0].to_string(),
            "group 3, closed, of host: x#1 y#2; region 7=r"
        );
        assert_eq!(
            Overview::default().to_json(),
            r#"{"regions":[],"groups":[],"arenas":[]}"#
        );
        assert_eq!(Overview::default().to_string(), "");
    }
}

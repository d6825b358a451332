//! Real captures: the packets are those that libpcap reads, and expressions select those that it selects.
//!
//! `integrations/packet-filter/test/captures.sh` fetches captures, and runs this with them:
//!
//! | variable | what it has |
//! |---|---|
//! | `RINGFENCE_CAPTURES` | directories of captures, with colons between; without it nothing is tried |
//! | `RINGFENCE_FILTER_ROUNDS` | how many expressions are generated for each link type |
//! | `LIBPCAP` | libpcap's development tree, whose tests of expressions are in `testprogs/TESTrun` |

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};

use libloading::{Library, Symbol};
use ringfence::DomainOptions;
use ringfence_packet_filter::capture::{Capture, CaptureError};
use ringfence_packet_filter::pcap::{Interpreted, compile};
use ringfence_packet_filter::{Batch, Engine, FilterError};
use support::{EXPRESSIONS, Names, Random, expression};

/// A packet's bytes, and its length on the wire; and one with its link type in front.
type Captured = (Vec<u8>, u32);
type Linked = (i32, Vec<u8>, u32);
type Packets = Vec<Captured>;

/// `struct pcap_pkthdr`.
#[repr(C)]
struct Header {
    time: [i64; 2],
    captured: u32,
    wire: u32,
}

/// `pcap_t`.
#[repr(C)]
struct Handle([u8; 0]);

type Open = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut Handle;
type Link = unsafe extern "C" fn(*mut Handle) -> c_int;
type Next = unsafe extern "C" fn(*mut Handle, *mut *const Header, *mut *const u8) -> c_int;
type Close = unsafe extern "C" fn(*mut Handle);

/// What libpcap reads of a file up to its end or the first error; `None` if it does not open it.
fn by_libpcap(library: &Library, path: &Path) -> Option<(i32, Packets)> {
    let name = CString::new(path.to_str().expect("a name in UTF-8")).expect("no NUL");
    let mut message: [c_char; 256] = [0; 256];
    let mut packets = Packets::new();
    // SAFETY: the types are those of pcap.h; the name ends with NUL, `message` has PCAP_ERRBUF_SIZE bytes, and what `next` gives
    // is copied before it is called again.
    unsafe {
        let open: Symbol<'_, Open> = library.get(b"pcap_open_offline\0").expect("libpcap");
        let link: Symbol<'_, Link> = library.get(b"pcap_datalink\0").expect("libpcap");
        let next: Symbol<'_, Next> = library.get(b"pcap_next_ex\0").expect("libpcap");
        let close: Symbol<'_, Close> = library.get(b"pcap_close\0").expect("libpcap");
        let handle = open(name.as_ptr(), message.as_mut_ptr());
        if handle.is_null() {
            return None;
        }
        let link = link(handle);
        let (mut header, mut bytes) = (std::ptr::null(), std::ptr::null());
        while next(handle, &raw mut header, &raw mut bytes) == 1 {
            let Header { captured, wire, .. } = *header;
            packets.push((
                std::slice::from_raw_parts(bytes, captured as usize).to_vec(),
                wire,
            ));
        }
        close(handle);
        Some((link, packets))
    }
}

/// What is read here: packets with their link types, and why no more came.
fn by_us(path: &Path) -> (Vec<Linked>, Option<CaptureError>) {
    let mut packets = Vec::new();
    let mut capture = match Capture::open(path) {
        Ok(capture) => capture,
        Err(e) => return (packets, Some(e)),
    };
    loop {
        match capture.next_packet() {
            Ok(Some(p)) => packets.push((p.link, p.bytes.to_vec(), p.wire)),
            Ok(None) => return (packets, None),
            Err(e) => return (packets, Some(e)),
        }
    }
}

/// All captures below a directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path
            .extension()
            .is_some_and(|e| ["pcap", "pcapng", "cap"].contains(&&*e.to_string_lossy()))
        {
            found.push(path);
        }
    }
}

/// The packets of all captures by link type. Each file is compared with what libpcap reads of it.
fn captures(library: &Library, directories: &str) -> BTreeMap<i32, Packets> {
    let mut paths = Vec::new();
    for directory in directories.split(':') {
        files(Path::new(directory), &mut paths);
    }
    paths.sort();
    let mut by_link: BTreeMap<i32, Packets> = BTreeMap::new();
    let (mut read, mut ended, mut wrong, mut refused) = (0, 0, Vec::new(), Vec::new());
    for path in &paths {
        let name = path.display();
        let (ours, error) = by_us(path);
        let Some((link, theirs)) = by_libpcap(library, path) else {
            // What libpcap does not open gives no packets here either, or is one of several link types.
            ended += 1;
            if error.is_none() && !ours.is_empty() {
                println!("{name}: libpcap does not open it; {} packets here", ours.len());
            }
            continue;
        };
        read += 1;
        let same =
            |(ours, theirs): (&Linked, &Captured)| ours.0 == link && ours.1 == theirs.0 && ours.2 == theirs.1;
        let equal = ours.iter().zip(&theirs).take_while(|pair| same(*pair)).count();
        if equal < theirs.len() || error.is_none() && equal < ours.len() {
            let (n, m) = (theirs.len(), ours.len());
            let told = error.as_ref().map(|e| format!(": {e}")).unwrap_or_default();
            let what = format!(
                "{name}: link type {link}, {equal} packets are the same; libpcap reads {n}, we {m}{told}"
            );
            match error {
                // Names that are no text, lengths beyond the end: in files that were damaged on purpose.
                Some(CaptureError::Format { .. } | CaptureError::Cut { .. }) if equal == m => {
                    refused.push(what)
                }
                _ => wrong.push(what),
            }
        }
        by_link.entry(link).or_default().extend(theirs);
    }
    println!("{read} captures are read; libpcap does not open {ended} others");
    refused.iter().for_each(|r| println!("refused as damaged: {r}"));
    assert!(refused.len() * 100 <= read, "too many are refused");
    assert!(
        wrong.is_empty(),
        "{} captures differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    by_link
}

/// The expressions of libpcap's own tests: the strings in its lists of `aliases`.
fn of_libpcap(tree: &Path) -> BTreeSet<String> {
    let path = tree.join("testprogs/TESTrun");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut found, mut inside) = (BTreeSet::new(), false);
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
        inside |= line.starts_with("aliases => [");
        if inside {
            let parts: Vec<&str> = line.split('\'').collect();
            let told = parts.iter().skip(1).step_by(2);
            // Names of hosts and networks would be asked of this machine's resolver, which knows nothing of them.
            let known = told.filter(|p| !p.contains(".test"));
            found.extend(known.map(|p| p.replace("\\\\", "\\")));
            inside = !parts.iter().step_by(2).any(|p| p.contains(']'));
        }
    }
    found
}

/// What a comparison of one expression over all packets of a link type finds.
enum Found {
    /// libpcap does not take it for this link type.
    Refused,
    /// How many packets it selects.
    Selected(usize),
}

/// Packets of one link type behind the fence, to compare with.
struct Comparison<'a> {
    link: i32,
    packets: &'a Packets,
    engine: Engine,
    batches: Vec<Batch>,
}

impl<'a> Comparison<'a> {
    fn new(link: i32, packets: &'a Packets) -> Self {
        let engine = Engine::new(&DomainOptions::default()).expect("an engine");
        let mut batches = vec![engine.batch()];
        for (bytes, wire) in packets {
            if !batches.last_mut().is_some_and(|b| b.push(bytes, *wire)) {
                let mut next = engine.batch();
                assert!(next.push(bytes, *wire), "a packet is too large");
                batches.push(next);
            }
        }
        Comparison {
            link,
            packets,
            engine,
            batches,
        }
    }

    fn expression(&mut self, text: &str) -> Found {
        let program = match compile(text, self.link) {
            Ok(program) => program,
            Err(FilterError::Expression { .. }) => return Found::Refused,
            Err(e) => panic!("{text}: {e}"),
        };
        let what = format!("link type {}: {text}", self.link);
        let filter = self
            .engine
            .program(&program)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        let interpreted = Interpreted::new(&program).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (mut first, mut selected) = (0, 0);
        for batch in &mut self.batches {
            let count = batch.len();
            let got = filter.run(batch).unwrap_or_else(|e| panic!("{what}: {e}"));
            let mut next = got.iter().peekable();
            for (number, (bytes, wire)) in (0..).zip(&self.packets[first..first + count]) {
                let here = next.next_if(|n| **n == number).is_some();
                let there = interpreted.accepts(bytes, *wire);
                assert_eq!(
                    here,
                    there,
                    "{what}: packet {} ({wire}): {bytes:02x?}",
                    first + number as usize
                );
                selected += usize::from(here);
            }
            first += count;
        }
        Found::Selected(selected)
    }
}

#[test]
fn expressions_select_what_libpcap_selects_of_real_captures() {
    let Ok(directories) = std::env::var("RINGFENCE_CAPTURES") else {
        println!(
            "left out: RINGFENCE_CAPTURES names no captures (integrations/packet-filter/test/captures.sh fetches them)"
        );
        return;
    };
    // SAFETY: the system's libpcap, whose initialisers do nothing that matters here.
    let library = unsafe { Library::new("libpcap.so.0.8") }.expect("libpcap (Debian package libpcap0.8)");
    let by_link = captures(&library, &directories);
    let rounds = std::env::var("RINGFENCE_FILTER_ROUNDS").map_or(200, |n| n.parse().expect("a number"));

    let mut known: Vec<String> = EXPRESSIONS
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let own = known.len();
    if let Some(tree) = std::env::var_os("LIBPCAP") {
        let theirs = of_libpcap(Path::new(&tree));
        assert!(
            theirs.len() > 500,
            "{} expressions in libpcap's tests",
            theirs.len()
        );
        known.extend(theirs);
    }
    println!(
        "{own} known expressions, {} of libpcap's own tests, {rounds} generated",
        known.len() - own
    );

    let (mut compared, mut decisions) = (0_u64, 0_u64);
    let mut taken = BTreeSet::new();
    for (&link, packets) in &by_link {
        let mut comparison = Comparison::new(link, packets);
        let (mut tried, mut some, mut refused) = (0, 0, 0);
        let mut see = |text: &str| match comparison.expression(text) {
            Found::Refused => {
                refused += 1;
                false
            }
            Found::Selected(n) => {
                tried += 1;
                some += u64::from(n > 0 && n < packets.len());
                true
            }
        };
        for text in &known {
            if see(text) {
                taken.insert(text.clone());
            }
        }
        let names = Names::of(packets);
        let mut random = Random(79);
        // Of some link types nearly nothing can be asked.
        let (mut left, mut tries) = (rounds, 20 * rounds);
        while left > 0 && tries > 0 {
            left -= u64::from(see(&expression(&mut random, 4, &names)));
            tries -= 1;
        }
        println!(
            "link type {link}: {} packets, {tried} expressions compared, {some} of them select some packets and not all, {refused} are not taken",
            packets.len()
        );
        compared += tried;
        decisions += tried * packets.len() as u64;
    }
    let count: usize = by_link.values().map(Vec::len).sum();
    println!(
        "{count} packets of {} link types, {compared} expressions ({} of {} known ones taken), {decisions} decisions, all as libpcap's",
        by_link.len(),
        taken.len(),
        known.len()
    );
    assert!(count > 1000 && compared > 1000, "too few to say anything");
}

//! `rfdump`: what it prints, counts and writes, and what it says of files that are damaged.

mod support;

use ringfence_packet_filter::capture::{Packet, Writer};
use ringfence_packet_filter::pcap::{Interpreted, compile};
use ringfence_packet_filter::{ETHERNET, FilterError};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use support::packets;

/// A directory for one test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rfdump-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rfdump"));
        command.current_dir(&self.0).args(words).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && errors.is_empty(),
            "{words:?}: {errors}"
        );
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn fails(&self, words: &[&str], part: &str) -> String {
        let output = self.run(words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {errors}");
        assert!(errors.contains(part), "no {part:?} in {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(dir: &Dir, name: &str, packets: &[(Vec<u8>, u32)]) -> PathBuf {
    let path = dir.0.join(name);
    let mut writer = Writer::create(&path).unwrap();
    for (i, (bytes, wire)) in packets.iter().enumerate() {
        let time = Duration::new(3600 + i as u64, 1_234_567);
        let packet = Packet {
            time,
            wire: *wire,
            link: ETHERNET,
            bytes,
        };
        writer.write(&packet).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, &body, &len].concat()
}

/// A capture in the newer form, of two interfaces: Ethernet, with times in milliseconds, and raw IP.
fn pcapng(packets: &[(Vec<u8>, u32)]) -> Vec<u8> {
    let mut file = block(
        0x0A0D_0D0A,
        &[&0x1A2B_3C4D_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xFF; 8]].concat(),
    );
    file.extend(block(
        1,
        &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0],
    ));
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 4, 0]));
    for (i, (bytes, wire)) in packets.iter().enumerate() {
        let raw = i % 5 == 4 && bytes.len() > 14 && bytes[12..14] == [8, 0];
        let bytes = if raw { &bytes[14..] } else { bytes };
        let mut body = Vec::new();
        let time = if raw { 5_000_000 } else { 5_000_u32 };
        for word in [u32::from(raw), 0, time, bytes.len() as u32, *wire] {
            body.extend(word.to_le_bytes());
        }
        body.extend(bytes);
        file.extend(block(6, &body));
    }
    file
}

const TCP: &str = "int filter(const unsigned char *p, unsigned n, unsigned wire)
{
	return n > 34 && p[12] == 8 && p[13] == 0 && p[23] == 6;
}
";

#[test]
fn packets_are_printed_counted_and_written() {
    let dir = Dir::new("all");
    let packets = packets(5, 3000);
    write(&dir, "all.pcap", &packets);
    dir.file("tcp.c", TCP.as_bytes());
    let is_tcp = |(p, _): &&(Vec<u8>, u32)| p.len() > 34 && p[12..14] == [8, 0] && p[23] == 6;
    let tcp: Vec<(Vec<u8>, u32)> = packets.iter().filter(is_tcp).cloned().collect();
    assert!(tcp.len() > 100);
    let count = dir.ok(&["-r", "all.pcap", "--count", "-f", "tcp.c"]);
    assert_eq!(count, format!("{}\n", tcp.len()));
    assert_eq!(dir.ok(&["-r", "all.pcap", "-w", "tcp.pcap", "-f", "tcp.c"]), "");
    assert_eq!(dir.ok(&["-r", "tcp.pcap", "--count", "-f", "tcp.c"]), count);
    let lines = dir.ok(&["-r", "tcp.pcap", "-f", "tcp.c"]);
    assert_eq!(lines.lines().count(), tcp.len());
    for (line, (_, wire)) in lines.lines().zip(&tcp) {
        assert!(line.starts_with("01:") && line.contains(".001234 IP "), "{line}");
        assert!(line.ends_with(&format!(", length {wire}")), "{line}");
    }
    // Times and lengths come through as they were.
    write(&dir, "some.pcap", &tcp[..50]);
    dir.ok(&["-r", "some.pcap", "-w", "again.pcap", "-f", "tcp.c"]);
    assert_eq!(
        std::fs::read(dir.0.join("again.pcap")).unwrap(),
        std::fs::read(dir.0.join("some.pcap")).unwrap()
    );
}

#[test]
fn expressions_select_what_libpcap_selects() {
    let program = match compile("tcp and not port 22", ETHERNET) {
        Err(FilterError::NoLibrary { .. }) => return, // tests/filters.rs says so
        other => Interpreted::new(&other.unwrap()).unwrap(),
    };
    let dir = Dir::new("expression");
    let packets = packets(6, 2000);
    write(&dir, "all.pcap", &packets);
    let accepted = packets
        .iter()
        .filter(|(p, wire)| program.accepts(p, *wire))
        .count();
    let words = ["-r", "all.pcap", "--count", "tcp", "and", "not", "port", "22"];
    assert_eq!(dir.ok(&words), format!("{accepted}\n"));
    assert_eq!(dir.ok(&["-r", "all.pcap", "--count"]), "2000\n");
    dir.fails(&["-r", "all.pcap", "tcp", "prot"], "rfdump: error: ");
    dir.file("all.pcapng", &pcapng(&packets));
    assert_eq!(dir.ok(&["-r", "all.pcapng", "--count"]), "2000\n");
    let lines = dir.ok(&["-r", "all.pcapng", "ip", "and", "udp"]);
    assert!(
        lines.lines().all(|l| l.starts_with("00:00:05.000000 ")),
        "{lines}"
    );
    // One file is of one link type.
    dir.fails(&["-r", "all.pcapng", "-w", "out.pcap"], "link types 1 and 12");
}

#[test]
fn what_nobody_asks_for_may_be_odd() {
    let dir = Dir::new("odd");
    let packets = packets(3, 6);
    dir.file("any.c", TCP.replace("return ", "return 1 || ").as_bytes());
    dir.file("plain.pcapng", &pcapng(&packets));
    let plain = dir.run(&["-r", "plain.pcapng", "-f", "any.c"]);
    // A comment that is no UTF-8, an address of one byte, times that are an hour later; names that are none, and a block of another kind.
    let odd: [&[u8]; 4] = [
        &[1, 0, 3, 0, 0xFF, 0xFE, 0x80, 0],
        &[6, 0, 1, 0, 7, 0, 0, 0],
        &[14, 0, 8, 0, 0x10, 0x0E, 0, 0, 0, 0, 0, 0],
        &[9, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0],
    ];
    let whole = pcapng(&packets);
    let (head, rest) = (&whole[..28], &whole[28 + 32..]);
    let mut file = head.to_vec();
    file.extend(block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0], &odd.concat()[..]].concat()));
    file.extend(block(4, &[1, 0, 200, 0, 1, 2, 3, 4]));
    file.extend(block(0x0BAD_0BAD, &[0xFF; 40]));
    file.extend_from_slice(rest);
    // Of the last packet, too.
    let mut body = [0; 20];
    (body[12], body[16]) = (14, 60);
    file.extend(block(6, &[&body[..], &[0; 16], odd[0]].concat()));
    dir.file("odd.pcapng", &file);
    let output = dir.run(&["-r", "odd.pcapng", "-f", "any.c"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let (told, plain) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&plain.stdout).into_owned(),
    );
    assert_eq!(told.lines().count(), packets.len() + 1);
    let first = |text: &str| text.lines().next().unwrap().to_owned();
    assert!(first(&plain).starts_with("00:00:05"), "{plain}");
    assert_eq!(first(&told), first(&plain).replacen("00:00:05", "01:00:05", 1));
}

#[test]
fn files_that_are_cut_or_damaged_are_told() {
    let dir = Dir::new("cut");
    let packets = packets(7, 20);
    let path = write(&dir, "all.pcap", &packets);
    dir.file("any.c", TCP.replace("return ", "return 1 || ").as_bytes());
    let whole = std::fs::read(&path).unwrap();
    for (name, whole, first) in [("pcap", &whole, 24), ("pcapng", &pcapng(&packets), 28)] {
        let file = format!("cut.{name}");
        let mut lines = 0;
        for len in (1..whole.len()).step_by(23) {
            dir.file(&file, &whole[..len]);
            let output = dir.run(&["-r", &file, "-f", "any.c"]);
            let errors = String::from_utf8_lossy(&output.stderr);
            let printed = String::from_utf8_lossy(&output.stdout).lines().count();
            // Between two packets a cut cannot be seen.
            if !output.status.success() {
                assert!(
                    errors.contains("it is cut off in the middle, after"),
                    "{name} {len}: {errors}"
                );
                assert!(
                    errors.contains(&format!("after {printed} packets")),
                    "{name} {len}: {errors}"
                );
            }
            assert!(output.status.success() || printed < packets.len());
            assert!(len >= first || !output.status.success(), "{name} {len}");
            assert!(printed >= lines, "what comes before is shown");
            lines = printed;
        }
    }
    // What cannot be read empties no other file, and no file is copied over itself.
    let kept = std::fs::read(&path).unwrap();
    dir.fails(&["-r", "all.pcap", "-w", "all.pcap"], "write to another file");
    dir.fails(
        &["-r", "./all.pcap", "-w", "all.pcap", "tcp"],
        "all.pcap is what is read",
    );
    dir.fails(&["-r", "nofile", "-w", "all.pcap"], "nofile");
    dir.fails(&["-r", "any.c", "-w", "all.pcap"], "any.c");
    assert_eq!(std::fs::read(&path).unwrap(), kept);
    dir.file(
        "endless.c",
        b"int filter(unsigned char *p, unsigned n, unsigned w) { for (;;); }",
    );
    dir.fails(
        &["-r", "all.pcap", "--time-limit", "20ms", "-f", "endless.c"],
        "time limit",
    );
    dir.file("empty", b"");
    let output = dir.run(&["-r", "empty"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("empty: it is empty"));
    dir.file(
        "text",
        b"this is no capture at all, but a text that is long enough",
    );
    dir.fails(&["-r", "text", "-f", "any.c"], "text: it is no capture file");
    dir.fails(&["-r", "none", "-f", "any.c"], "none: ");
    dir.fails(&["-r", "all.pcap", "-f", "none.c"], "none.c: ");
    dir.fails(&["-r", "all.pcap", "-w", "no/where", "-f", "any.c"], "no/where: ");
    dir.file(
        "bad.c",
        b"int filter(const unsigned char *p, unsigned n, unsigned w) { return m; }",
    );
    dir.fails(&["-r", "all.pcap", "-f", "bad.c"], "unknown name `m`");
    dir.file(
        "wild.c",
        b"int filter(const unsigned char *p, unsigned n, unsigned w) { return *(int *)64; }",
    );
    dir.fails(&["-r", "all.pcap", "-f", "wild.c"], "bad read");
}

//! `rfdump -i`: packets of interfaces that are made for the test, in a network name space of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A shell in a network name space of its own, with the rights that it needs there. `None`, told, where that is not allowed.
fn inside(script: &str) -> Option<Command> {
    for ways in [&["--user", "--map-root-user", "--net"][..], &["--net"]] {
        let probe = Command::new("unshare")
            .args(ways)
            .args(["ip", "link", "set", "lo", "up"])
            .stderr(Stdio::null())
            .status();
        if probe.is_ok_and(|s| s.success()) {
            let mut command = Command::new("unshare");
            command.args(ways).args(["bash", "-euc", script]);
            command.env("RFDUMP", env!("CARGO_BIN_EXE_rfdump"));
            return Some(command);
        }
    }
    let tools = ["unshare", "ip"].map(|tool| Command::new(tool).arg("--help").output().is_ok());
    assert!(
        tools == [true; 2] || std::env::var_os("CI").is_none(),
        "unshare (util-linux) and ip (iproute2) are missing"
    );
    eprintln!("skipped: no network name space can be made here");
    None
}

/// Runs a script; what it writes to standard output and standard error.
fn run(script: &str) -> Option<(bool, String, String)> {
    let output = inside(script)?.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Some((
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    ))
}

/// Two interfaces that are joined; what is sent to 10.9.0.2 leaves by `left` and arrives at `right`. `listening` waits until a capture
/// that writes to a file says that it listens.
const PAIR: &str = r#"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
ip link set lo up
ip link add left type veth peer name right
ip addr add 10.9.0.1/24 dev left
ip link set left up; ip link set right up
ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:02 dev left
listening() { until grep -q listening "$1"; do sleep 0.02; kill -0 "$2"; done; }
say() { printf '%s' "$1" >"/dev/udp/10.9.0.2/$2"; }
"#;

#[test]
fn packets_of_an_interface_are_selected_and_counted() {
    // The port is compared in C, so that libpcap is not needed.
    let script = format!(
        r#"{PAIR}
cat >"$work/port.c" <<'END'
int filter(const unsigned char *p, unsigned n, unsigned wire)
{{
	return n > 42 && p[12] == 8 && p[13] == 0 && p[23] == 17 && (p[36] << 8 | p[37]) == 4000;
}}
END
"$RFDUMP" -i right -c 3 -w "$work/three.pcap" -f "$work/port.c" 2>"$work/log" & capture=$!
listening "$work/log" $capture
for i in 1 2 3 4 5; do say other 4001; say "this is $i" 4000; done
wait $capture
cat "$work/log" >&2
"$RFDUMP" -r "$work/three.pcap"
"$RFDUMP" -r "$work/three.pcap" --count
"#
    );
    let Some((ok, out, err)) = run(&script) else {
        return;
    };
    assert!(ok, "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    for line in &lines[..3] {
        assert!(
            line.contains("IP 10.9.0.1.") && line.ends_with("> 10.9.0.2.4000: udp, length 51"),
            "{line}"
        );
    }
    assert_eq!(lines[3], "3");
    assert!(err.contains("listening on right, link type 1\n"), "{err}");
    assert!(err.contains("3 packets selected, "), "{err}");
    assert!(err.contains(" 0 dropped by the kernel"), "{err}");
}

#[test]
fn a_tag_that_the_kernel_takes_out_is_put_back() {
    // Sent as a whole frame, so that the kernel needs no VLAN interfaces.
    let script = format!(
        r#"{PAIR}
cat >"$work/tag.c" <<'END'
int filter(const unsigned char *p, unsigned n, unsigned wire)
{{
	return n > 46 && p[12] == 0x81 && p[13] == 0 && p[15] == 77 && p[27] == 17;
}}
END
"$RFDUMP" -i right -c 1 -f "$work/tag.c" 2>"$work/log" & capture=$!
listening "$work/log" $capture
python3 - <<'END'
import socket
ip = bytes.fromhex("45000023000000004011000005060708090a0b0c")
frame = b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x81\0\0M" + b"\x08\0" + ip + b"\0\1\x0f\xa0\0\x0f\0\0" + b"tagged."
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("left", 0))
s.send(frame)
END
wait $capture
"#
    );
    let Some((ok, out, err)) = run(&script) else {
        return;
    };
    assert!(ok, "{err}");
    assert!(
        out.ends_with(" vlan 77, IP 5.6.7.8.1 > 9.10.11.12.4000: udp, length 53\n"),
        "{out}"
    );
}

#[test]
fn what_goes_through_loopback_is_seen_once_and_signals_end_in_order() {
    let script = r#"
ip link set lo up
exec "$RFDUMP" -i lo -f <(cat <<'END'
int filter(const unsigned char *p, unsigned n, unsigned wire)
{
	return n > 42 && p[12] == 8 && p[13] == 0 && p[23] == 17;
}
END
)"#;
    let Some(mut command) = inside(script) else {
        return;
    };
    let mut capture: Child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(capture.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.contains("listening on lo"), "{line}");
    let pid = capture.id().to_string();
    let send = |text: &str| {
        let status = Command::new("nsenter")
            .args([
                "--preserve-credentials",
                "--user",
                "--net",
                "--target",
                &pid,
                "bash",
                "-c",
            ])
            .arg(format!("printf {text} >/dev/udp/127.0.0.1/5000"))
            .status();
        assert!(status.unwrap().success());
    };
    let mut lines = BufReader::new(capture.stdout.take().unwrap());
    for text in ["a", "bb", "ccc"] {
        send(text);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let length = format!("127.0.0.1.5000: udp, length {}\n", 42 + text.len());
        assert!(line.ends_with(&length), "{line}");
    }
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(capture.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("3 packets selected, "), "{rest}");
    let mut more = String::new();
    lines.read_to_string(&mut more).unwrap();
    assert_eq!(more, "", "what is sent and received is one packet");
}

#[test]
fn what_cannot_be_captured_is_told() {
    let script = r#"
"$RFDUMP" -i nowhere || true
ip link set lo down
"$RFDUMP" -i lo || true
ip link set lo up
setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$RFDUMP" -i lo || true
"$RFDUMP" -i lo -r file || true
"#;
    let Some((_, _, err)) = run(script) else {
        return;
    };
    assert!(err.contains("there is no interface `nowhere`"), "{err}");
    assert!(err.contains("the interface `lo` is down"), "{err}");
    assert!(
        err.contains("capturing needs the capability CAP_NET_RAW"),
        "{err}"
    );
    assert!(err.contains("cannot be used with"), "{err}");
}

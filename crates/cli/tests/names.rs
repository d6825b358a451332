//! Names of hosts: the library's own resolver, by what the policy grants, asking a server that the test is.

mod common;

use common::Dir;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const LOOKUP: &str = r#"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static void find(const char *name, const char *service, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags }, *list;
	int e = getaddrinfo(name, service, &hints, &list), n = 0;
	printf("%s: ", name);
	if (e) {
		puts(gai_strerror(e));
		return;
	}
	for (struct addrinfo *a = list; a; a = a->ai_next, n++) {
		char text[INET6_ADDRSTRLEN];
		void *at = a->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr
		                                   : (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		if (n < 3) printf("%s %d, ", inet_ntop(a->ai_family, at, text, sizeof text), ntohs(((struct sockaddr_in *)a->ai_addr)->sin_port));
	}
	printf("%d\n", n);
	freeaddrinfo(list);
}

int main(int argc, char **argv)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(80) };
	char host[NI_MAXHOST], service[NI_MAXSERV];
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "addr:", 5)) {
			find(argv[i], "http", i % 2 ? AI_ADDRCONFIG : 0);
			continue;
		}
		inet_pton(AF_INET, argv[i] + 5, &sa.sin_addr);
		int e = getnameinfo((void *)&sa, sizeof sa, host, sizeof host, service, sizeof service, NI_NAMEREQD);
		printf("%s: %s\n", argv[i] + 5, e ? gai_strerror(e) : host);
	}
	return 0;
}
"#;

/// A server of names on port 53 of an address of the loopback that is the test's own, and how often it was asked by which way.
struct Server {
    ip: Ipv4Addr,
    asked: Arc<[AtomicUsize; 2]>,
}

const UDP: usize = 0;
const TCP: usize = 1;

/// The answer to a question, `None` for a server that is silent.
fn answer(question: &[u8], way: usize) -> Option<Vec<u8>> {
    let (mut at, mut name) = (12, Vec::new());
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        name.push(String::from_utf8_lossy(&question[at + 1..end]).into_owned());
        at = end;
    }
    let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
    let end = at + 5;
    let labels = |name: &str| {
        let mut bytes = Vec::new();
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes
    };
    const A: u16 = 1;
    const CNAME: u16 = 5;
    const PTR: u16 = 12;
    const AAAA: u16 = 28;
    let v6 = || {
        let mut bytes = vec![0x20, 1, 0x0D, 0xB8];
        bytes.resize(15, 0);
        bytes.push(1);
        bytes
    };
    let (mut flags, mut code) = (0x84, 0);
    let records: Vec<(Vec<u8>, u16, Vec<u8>)> = match (name.join(".").as_str(), kind) {
        ("silent.test", _) => return None,
        ("plain.test", A) => vec![(labels("plain.test"), A, vec![192, 0, 2, 1])],
        ("plain.test", AAAA) => vec![(labels("plain.test"), AAAA, v6())],
        ("alias.test", A) => vec![
            (labels("alias.test"), CNAME, labels("plain.test")),
            (labels("plain.test"), A, vec![192, 0, 2, 1]),
        ],
        ("big.test", A) if way == UDP => {
            flags |= 2;
            Vec::new()
        }
        ("big.test", A) => (0..40)
            .map(|n| (labels("big.test"), A, vec![198, 51, 100, n]))
            .collect(),
        ("big.test" | "alias.test", _) => Vec::new(),
        ("7.2.0.192.in-addr.arpa", PTR) => {
            vec![(labels("7.2.0.192.in-addr.arpa"), PTR, labels("seven.test"))]
        }
        _ => {
            code = 3;
            Vec::new()
        }
    };
    let mut reply = vec![
        question[0],
        question[1],
        flags,
        code,
        0,
        1,
        0,
        records.len() as u8,
        0,
        0,
        0,
        0,
    ];
    reply.extend(&question[12..end]);
    for (name, kind, data) in records {
        reply.extend(name);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1, 0, 0, 0, 60]);
        reply.extend((data.len() as u16).to_be_bytes());
        reply.extend(data);
    }
    Some(reply)
}

impl Server {
    /// `None` where this user may not have port 53.
    fn start(last: u8) -> Option<Server> {
        let [.., a, b] = std::process::id().to_be_bytes();
        let ip = Ipv4Addr::new(127, 100 + last, a, b.clamp(1, 254));
        let at = SocketAddr::from((ip, 53));
        let udp = match UdpSocket::bind(at) {
            Ok(udp) => udp,
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "port 53: {e}");
                eprintln!("skipped: this user may not have port 53: {e}");
                return None;
            }
        };
        let tcp = TcpListener::bind(at).unwrap();
        let asked: Arc<[AtomicUsize; 2]> = Arc::default();
        let count = asked.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 512];
            while let Ok((n, from)) = udp.recv_from(&mut bytes) {
                count[UDP].fetch_add(1, Ordering::Relaxed);
                if let Some(reply) = answer(&bytes[..n], UDP) {
                    udp.send_to(&reply, from).unwrap();
                }
            }
        });
        let count = asked.clone();
        std::thread::spawn(move || {
            for stream in tcp.incoming() {
                let mut stream = stream.unwrap();
                let mut len = [0; 2];
                stream.read_exact(&mut len).unwrap();
                let mut bytes = vec![0; u16::from_be_bytes(len).into()];
                stream.read_exact(&mut bytes).unwrap();
                count[TCP].fetch_add(1, Ordering::Relaxed);
                let reply = answer(&bytes, TCP).unwrap();
                stream.write_all(&(reply.len() as u16).to_be_bytes()).unwrap();
                // In two pieces: the reader puts them together.
                stream.write_all(&reply[..20]).unwrap();
                stream.flush().unwrap();
                std::thread::yield_now();
                stream.write_all(&reply[20..]).unwrap();
            }
        });
        Some(Server { ip, asked })
    }

    fn asked(&self, way: usize) -> usize {
        self.asked[way].load(Ordering::Relaxed)
    }

    /// `/etc` of the program.
    fn files(&self, d: &Dir) {
        let ip = self.ip;
        let text = format!("nameserver {ip}\noptions timeout:1 attempts:1\nsearch test\n");
        d.write("etc/resolv.conf", text);
        d.write("etc/hosts", "192.0.2.99 written.test\n2001:db8::7 seventh\n");
        d.write("etc/services", "http 80/tcp\n");
    }
}

const NAMES: &str = "plain.test alias.test big.test written.test plain nothing.test addr:192.0.2.7 addr:192.0.2.99 addr:192.0.2.8";

#[test]
fn names_are_found_by_the_servers_that_are_granted() {
    let Some(server) = Server::start(1) else { return };
    let d = Dir::new();
    d.program(LOOKUP);
    server.files(&d);
    let grants = format!("--dir etc:/etc:ro --connect {}:53", server.ip);
    let ran = d.sh(&format!("$RF run --time-limit 60s {grants} p.rf {NAMES}"));
    let out = ran.ok().out.clone();
    let expected = "plain.test: 192.0.2.1 80, 2001:db8::1 80, 2\n\
                    alias.test: 192.0.2.1 80, 1\n\
                    big.test: 198.51.100.0 80, 198.51.100.1 80, 198.51.100.2 80, 40\n\
                    written.test: 192.0.2.99 80, 1\n\
                    plain: 192.0.2.1 80, 2001:db8::1 80, 2\n\
                    nothing.test: Name does not resolve\n\
                    192.0.2.7: seven.test\n\
                    192.0.2.99: written.test\n\
                    192.0.2.8: Name does not resolve\n";
    // Which family comes first is the library's to decide.
    let sorted = |text: &str| {
        let line = |l: &str| {
            let mut words: Vec<&str> = l.split(", ").flat_map(|w| w.split(": ")).collect();
            words.sort_unstable();
            words.join(" ")
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    assert_eq!(sorted(&out), sorted(expected));
    assert!(server.asked(UDP) > 5 && server.asked(TCP) >= 1);
    // A server that is silent: the program's own time-out.
    let ran = d.sh(&format!("$RF run --time-limit 60s {grants} p.rf silent.test"));
    assert_eq!(ran.ok().out, "silent.test: Try again\n");
}

#[test]
fn nobody_else_is_asked() {
    let Some(server) = Server::start(2) else { return };
    let d = Dir::new();
    d.program(LOOKUP);
    server.files(&d);
    // No address, another one, another port: what is written down is found, the rest fails at once, or after the library's time.
    for grants in [
        "",
        "--connect 127.0.0.1:53",
        &format!("--connect {}:54", server.ip),
    ] {
        let ran = d.sh(&format!(
            "$RF run --time-limit 60s --dir etc:/etc:ro {grants} p.rf written.test plain.test"
        ));
        let out = &ran.ok().out;
        let mut lines = out.lines();
        assert_eq!(
            lines.next(),
            Some("written.test: 192.0.2.99 80, 1"),
            "{grants}: {out}"
        );
        let failed = lines.next().unwrap();
        assert!(
            failed == "plain.test: System error" || failed == "plain.test: Try again",
            "{grants}: {out}"
        );
    }
    // Without clocks nothing can be waited for.
    let grants = format!("--no-clocks --dir etc:/etc:ro --connect {}:53", server.ip);
    let ran = d.sh(&format!("$RF run --time-limit 60s {grants} p.rf plain.test"));
    assert_eq!(ran.ok().out, "plain.test: System error\n");
    assert_eq!((server.asked(UDP), server.asked(TCP)), (0, 0));
}

//! A server for a test, requests to it, and pictures.

#![allow(dead_code)] // each test uses a part

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use ringfence_transcode::{Options, Server};

/// Client `one`'s key, and `two`'s.
pub const ONE: &str = "first-key-of-one";
pub const TWO: &str = "second-key-of-two";

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("there")
}

/// A directory of the test's own, and the server's pictures.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "transcode-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory");
        Directory(path)
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("written");
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options for a test: any port, two clients.
pub fn options(directory: &Directory) -> Options {
    let mut options = Options::defaults();
    options.listen = "127.0.0.1:0".parse().expect("an address");
    options.pictures = Some(directory.0.clone());
    options.module = root().join("build/transcode/pictures.rf");
    options.clients = vec![("one".into(), ONE.into()), ("two".into(), TWO.into())];
    options.processors = Some(2);
    options
}

pub fn start(options: &Options) -> Server {
    Server::start(options).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles a module of `tests/modules`.
pub fn module(directory: &Directory, name: &str) -> PathBuf {
    let root = root();
    let ringfence =
        std::env::var_os("RINGFENCE").map_or_else(|| root.join("target/release/ringfence"), PathBuf::from);
    let into = directory.0.join(format!("{name}.rf"));
    let made = Command::new(ringfence)
        .args(["cc", "-g", "-O1", "-shared"])
        .arg(format!("-I{}", root.join("include").display()))
        .arg(root.join(format!("apps/transcode/tests/modules/{name}.c")))
        .arg("-o")
        .arg(&into)
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "{name}.c was not compiled"
    );
    into
}

/// What came back.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The picture in it.
    #[track_caller]
    pub fn picture(&self) -> DynamicImage {
        assert_eq!(self.status, 200, "{}", self.text());
        image::load_from_memory(&self.body).expect("a picture")
    }

    /// Checks status and a part of the text.
    #[track_caller]
    pub fn told(&self, status: u16, part: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        assert!(self.text().contains(part), "{}", self.text());
    }
}

/// The head of a request.
pub fn head(method: &str, path: &str, key: &str, more: &str) -> String {
    let key = if key.is_empty() {
        String::new()
    } else {
        format!("Authorization: Bearer {key}\r\n")
    };
    format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{key}{more}\r\n")
}

pub fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.address()).expect("the server listens")
}

/// A request with a body.
pub fn send(server: &Server, method: &str, path: &str, key: &str, body: &[u8]) -> Answer {
    let mut stream = connect(server);
    let more = format!("Content-Length: {}\r\n", body.len());
    stream
        .write_all(head(method, path, key, &more).as_bytes())
        .expect("sent");
    // Who refuses a body may close before it was sent.
    let _ = stream.write_all(body);
    receive(stream)
}

pub fn get(server: &Server, path: &str, key: &str) -> Answer {
    with(server, path, key, "")
}

/// `GET` with further header lines.
pub fn with(server: &Server, path: &str, key: &str, more: &str) -> Answer {
    let mut stream = connect(server);
    stream
        .write_all(head("GET", path, key, more).as_bytes())
        .expect("sent");
    receive(stream)
}

/// Reads an answer to its end.
pub fn receive(mut stream: TcpStream) -> Answer {
    let mut all = Vec::new();
    // Reset by a server that has not read all: what came before counts.
    let _ = stream.read_to_end(&mut all);
    let end = all.windows(4).position(|w| w == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&all)));
    let text = String::from_utf8_lossy(&all[..end]).into_owned();
    let mut lines = text.lines();
    let status = lines
        .next()
        .and_then(|l| l.split(' ').nth(1)?.parse().ok())
        .expect("a status");
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()))
        .collect();
    let mut body = all.split_off(end + 4);
    if headers
        .iter()
        .any(|(n, v)| n == "transfer-encoding" && v == "chunked")
    {
        body = chunks(&body);
    }
    Answer {
        status,
        headers,
        body,
    }
}

/// What is in the chunks. One that has no end gives what there is, and a mark that no picture has.
fn chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|w| w == b"\r\n") else {
            return b"cut".to_vec();
        };
        let size = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|s| usize::from_str_radix(s, 16).ok());
        let size = size.expect("the size of a chunk");
        rest = &rest[line + 2..];
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

/// A picture of slow changes, which survives compression, and of which each part is another.
pub fn gradient(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([
            (x * 255 / width) as u8,
            (y * 255 / height) as u8,
            ((x + y) * 255 / (width + height)) as u8,
        ])
    })
}

/// A picture that does not compress.
pub fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([(state >> 8) as u8, (state >> 16) as u8, (state >> 24) as u8])
    })
}

pub fn encode(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = picture.into();
    if format == ImageFormat::Pnm {
        // Of its kinds of PNM the plain binary one is meant.
        let head = format!("P6\n# a comment\n{} {}\n255\n", picture.width(), picture.height());
        return [head.into_bytes(), picture.to_rgb8().into_raw()].concat();
    }
    picture.write_to(&mut bytes, format).expect("encoded");
    bytes.into_inner()
}

/// How far two pictures of the same size are apart, in the mean.
#[track_caller]
pub fn distance(a: &DynamicImage, b: &DynamicImage) -> f64 {
    let (a, b) = (a.to_rgb8(), b.to_rgb8());
    assert_eq!(a.dimensions(), b.dimensions());
    let sum: u64 = a
        .iter()
        .zip(b.iter())
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / a.len() as f64
}

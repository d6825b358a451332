//! Malformed pictures, bombs, dribbling clients, failing functions and decoders: a status that says what it was, and the server goes
//! on. `apps/transcode/test/run.sh` builds the module and runs these.

mod support;

use std::io::{Read, Write};
use std::time::Duration;

use image::ImageFormat;
use support::*;

/// Whether the server still makes pictures.
#[track_caller]
fn works(server: &ringfence_transcode::Server) {
    let picture = encode(gradient(40, 30), ImageFormat::Png);
    let made = send(server, "POST", "/pictures?through=grey", ONE, &picture).picture();
    assert_eq!((made.width(), made.height()), (40, 30));
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn malformed_pictures_get_the_librarys_message() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let post = |bytes: &[u8]| send(&server, "POST", "/pictures?width=20&format=png", "", bytes);
    let picture = noise(100, 80);
    let jpeg = encode(picture.clone(), ImageFormat::Jpeg);
    post(&jpeg[..jpeg.len() / 2]).told(422, "Premature end of");
    post(&jpeg[..20]).told(422, "Premature end of");
    let mut bent = jpeg.clone();
    let scan = bent.windows(2).position(|w| w == [0xff, 0xda]).unwrap();
    bent[scan + 20..scan + 60].fill(0x55);
    assert!(matches!(post(&bent).status, 200 | 422));
    let png = encode(picture.clone(), ImageFormat::Png);
    post(&png[..png.len() / 2]).told(422, "ends too early");
    let mut bent = png.clone();
    bent[20] ^= 1;
    post(&bent).told(422, "CRC");
    let webp = encode(picture.clone(), ImageFormat::WebP);
    post(&webp[..webp.len() / 2]).told(422, "libwebp: ");
    let pnm = encode(picture, ImageFormat::Pnm);
    post(&pnm[..pnm.len() / 2]).told(422, "PNM: the picture ends too early");
    post(b"P6 1x").told(422, "PNM: ");
    post(b"P6 0 5 255\n").told(422, "no pixels");
    post(b"GIF89a and so on").told(415, "neither JPEG");
    post(b"P").told(415, "neither JPEG");
    post(b"").told(415, "there is no picture");
    works(&server);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn bent_pictures_harm_nothing() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.pixels_limit = 4 << 20;
    let server = start(&options);
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let formats = [
        ImageFormat::Jpeg,
        ImageFormat::Png,
        ImageFormat::WebP,
        ImageFormat::Pnm,
    ];
    let pictures: Vec<Vec<u8>> = formats.iter().map(|&f| encode(gradient(60, 50), f)).collect();
    let rounds = if std::env::var("RINGFENCE_SOAK").is_ok_and(|s| s == "1") {
        20_000
    } else {
        200
    };
    for _ in 0..rounds {
        let mut bytes = pictures[random(pictures.len())].clone();
        for _ in 0..1 + random(4) {
            match random(3) {
                0 => bytes.truncate(1 + random(bytes.len())),
                _ => {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
            }
        }
        let answer = send(
            &server,
            "POST",
            "/pictures?width=30&through=grey&format=png",
            ONE,
            &bytes,
        );
        assert!(
            matches!(answer.status, 200 | 413 | 415 | 422),
            "{}: {}",
            answer.status,
            answer.text()
        );
    }
    works(&server);
}

/// As PNG has it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &b| {
        (0..8).fold(crc ^ u32::from(b), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn bombs_are_refused() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.size_limit = 1 << 20;
    options.memory_limit = 64 << 20;
    let server = start(&options);
    // 60,000 pixels a side, in some hundred bytes.
    let mut png = encode(gradient(40, 30), ImageFormat::Png);
    png[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    png[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let sum = crc(&png[12..29]);
    png[29..33].copy_from_slice(&sum.to_be_bytes());
    let mut jpeg = encode(gradient(40, 30), ImageFormat::Jpeg);
    let frame = jpeg
        .windows(2)
        .position(|w| w == [0xff, 0xc0])
        .expect("a baseline frame");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xea, 0x60, 0xea, 0x60]);
    for bomb in [&png, &jpeg, &b"P6 60000 60000 255\n".to_vec()] {
        let answer = send(&server, "POST", "/pictures?width=100", "", bomb);
        answer.told(413, "60000 x 60000 pixels: more than 50000000 (--pixels-limit)");
    }
    // Allowed by its pixels, and too large for the domain's memory.
    let mut wide = encode(gradient(40, 30), ImageFormat::Png);
    wide[16..20].copy_from_slice(&7000_u32.to_be_bytes());
    wide[20..24].copy_from_slice(&7000_u32.to_be_bytes());
    let sum = crc(&wide[12..29]);
    wide[29..33].copy_from_slice(&sum.to_be_bytes());
    send(&server, "POST", "/pictures", "", &wide).told(413, "--memory-limit");
    // More bytes than may come, told beforehand and not.
    let mut stream = connect(&server);
    let start = head("POST", "/pictures", "", "Content-Length: 2000000\r\n");
    stream.write_all(start.as_bytes()).unwrap();
    receive(stream).told(413, "--size-limit");
    let mut stream = connect(&server);
    let start = head("POST", "/pictures", "", "Transfer-Encoding: chunked\r\n");
    stream.write_all(start.as_bytes()).unwrap();
    let mut body = b"186A0\r\n".to_vec();
    body.extend_from_slice(b"P6 1000 1000 255\n");
    body.resize(7 + 100_000, 0);
    body.extend_from_slice(b"\r\n");
    stream.write_all(&body).unwrap();
    let more = [b"186A0\r\n".as_slice(), &[0; 100_000], b"\r\n"].concat();
    for _ in 0..10 {
        // The server may have answered already.
        if stream.write_all(&more).is_err() {
            break;
        }
    }
    receive(stream).told(413, "--size-limit");
    // A picture that a function has made too large.
    let large = "int large(struct picture *p) { p->width = p->height = 30000; return 0; }";
    send(&server, "PUT", "/functions/large", ONE, large.as_bytes()).told(201, "");
    let picture = encode(gradient(40, 30), ImageFormat::Png);
    send(&server, "POST", "/pictures?through=large", ONE, &picture)
        .told(500, "function large: it left no picture");
    works(&server);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn who_dribbles_is_told_so_and_keeps_nobody_waiting() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.input_limit = Duration::from_millis(1500);
    options.processors = Some(1);
    options.requests = 3;
    let server = start(&options);
    let slow: Vec<_> = (0..2)
        .map(|_| {
            let mut stream = connect(&server);
            let start = head("POST", "/pictures", "", "Content-Length: 100000\r\n");
            stream.write_all(start.as_bytes()).unwrap();
            stream.write_all(b"P6 100 100 255\n").unwrap();
            stream
        })
        .collect();
    // There is one processor, and two wait: this one does not. They have begun when their places are taken.
    works(&server);
    for stream in slow {
        receive(stream).told(408, "--input-limit");
    }
    // A text that dribbles, and a head that does.
    let mut stream = connect(&server);
    stream
        .write_all(head("PUT", "/functions/f", ONE, "Content-Length: 50\r\n").as_bytes())
        .unwrap();
    stream.write_all(b"int").unwrap();
    receive(stream).told(408, "--input-limit");
    let mut stream = connect(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(
        rest.is_empty(),
        "the connection ends: {}",
        String::from_utf8_lossy(&rest)
    );
    works(&server);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn more_requests_than_there_are_places() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.requests = 1;
    options.input_limit = Duration::from_secs(60);
    let server = start(&options);
    let mut first = connect(&server);
    let start = head("POST", "/pictures?format=pnm", "", "Content-Length: 18\r\n");
    first.write_all(start.as_bytes()).unwrap();
    first.write_all(b"P6 2 1 255\n12345").unwrap();
    let taken = |n: usize| {
        let line = format!("transcode_on_their_way {n}\n");
        while !get(&server, "/metrics", "").text().contains(&line) {
            std::thread::yield_now();
        }
    };
    taken(1);
    let refused = send(&server, "POST", "/pictures", "", b"no picture at all");
    refused.told(503, "--requests");
    assert_eq!(refused.header("retry-after"), "1");
    first.write_all(b"6\n").unwrap();
    assert_eq!(receive(first).picture().to_rgb8().into_raw(), b"123456");
    taken(0);
    send(&server, "POST", "/pictures", "", b"no picture at all").told(415, "");
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn failing_functions_are_named() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.time_limit = Duration::from_millis(300);
    let server = start(&options);
    let picture = encode(gradient(40, 30), ImageFormat::Png);
    for (name, text, status, part) in [
        (
            "wild",
            "int wild(struct picture *p) { return *(int *)16; }",
            500,
            "function wild: bad read",
        ),
        (
            "far",
            "int far(struct picture *p) { p->pixels[1L << 40] = 1; return 0; }",
            500,
            "function far",
        ),
        (
            "zero",
            "int zero(struct picture *p) { return 1 / (p->channels - 3); }",
            500,
            "function zero: ",
        ),
        (
            "deep",
            "int deep(struct picture *p) { return deep(p) * 3; }",
            500,
            "function deep: ",
        ),
        (
            "loop",
            "int loop(struct picture *p) { for (;;) p->width++; return 0; }",
            504,
            "function loop: ",
        ),
        (
            "lost",
            "int lost(struct picture *p) { p->pixels = (unsigned char *)64; return 0; }",
            500,
            "function lost: ",
        ),
        (
            "much",
            "void *room(unsigned long); int much(struct picture *p) { p->pixels = room(1L << 40); return !p->pixels; }",
            422,
            "returned 1",
        ),
    ] {
        send(
            &server,
            "PUT",
            &format!("/functions/{name}"),
            ONE,
            text.as_bytes(),
        )
        .told(201, "");
        let path = format!("/pictures?through={name}");
        // `far` is an address of 64 bits, of which a window has the lower half: a stray pixel of its own, perhaps.
        let answer = send(&server, "POST", &path, ONE, &picture);
        if name != "far" || answer.status != 200 {
            answer.told(status, part);
            assert!(!answer.text().contains("0x"), "no addresses: {}", answer.text());
        }
        works(&server);
    }
    // While one client's functions fail, and take their runtime with them, its other requests and those of others are answered.
    std::thread::scope(|scope| {
        for name in ["wild", "zero"] {
            let (server, picture) = (&server, &picture);
            scope.spawn(move || {
                for _ in 0..30 {
                    let answer = send(server, "POST", &format!("/pictures?through={name}"), ONE, picture);
                    answer.told(500, &format!("function {name}"));
                }
            });
        }
        for _ in 0..60 {
            assert_eq!(
                send(&server, "POST", "/pictures?through=grey", TWO, &picture).status,
                200
            );
        }
    });
    works(&server);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn hostile_texts_are_refused() {
    let directory = Directory::new();
    let mut options = options(&directory);
    let put = |server: &ringfence_transcode::Server, text: &str| {
        send(server, "PUT", "/functions/f", ONE, text.as_bytes())
    };
    let begin = "int f(struct picture *p) { return ";
    let line = format!("{begin}0{}; }}", "+1".repeat(5 << 20));
    let server = start(&options);
    put(&server, &line).told(413, "--text-limit");
    for text in [
        "int f(struct picture *p) { /* a comment that does not end".to_owned(),
        format!("{begin}\"a string"),
        format!("{begin}0;"),
        format!("{begin}{}0{}; }}", "(".repeat(20_000), ")".repeat(20_000)),
        format!(
            "int f(struct picture *p) {}{}",
            "{".repeat(20_000),
            "}".repeat(20_000)
        ),
        format!("{begin}{}0; }}", "!".repeat(40_000)),
        format!("{begin}room(p, 1, 2) != 0; }}"),
        format!("{begin}nothing_of_that_name(p); }}"),
        "\u{0}\u{1}\u{7f}".to_owned(),
    ] {
        put(&server, &text).told(422, "1:");
        works(&server);
    }
    // Ten megabytes on a line, where so much is allowed.
    options.text_limit = 32 << 20;
    let server = start(&options);
    let answer = put(&server, &line);
    answer.told(422, "");
    assert!(
        answer.body.len() < 4096,
        "{} bytes of messages",
        answer.body.len()
    );
    works(&server);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn who_calls_a_deleted_function_is_told_so() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let picture = encode(gradient(40, 30), ImageFormat::Png);
    let inner = "int inner(struct picture *p) { p->pixels[0] = 9; return 0; }";
    let outer = "int inner(struct picture *p); int outer(struct picture *p) { return inner(p); }";
    let call = || send(&server, "POST", "/pictures?through=outer", ONE, &picture);
    send(&server, "PUT", "/functions/inner", ONE, inner.as_bytes()).told(201, "");
    send(&server, "PUT", "/functions/outer", ONE, outer.as_bytes()).told(201, "");
    assert_eq!(call().status, 200);
    send(&server, "DELETE", "/functions/inner", ONE, b"");
    let answer = call();
    assert!((400..600).contains(&answer.status), "{}", answer.status);
    assert!(answer.text().contains("inner"), "{}", answer.text());
    works(&server);
    // It comes back when it is given again, after what it calls.
    for (name, text) in [("inner", inner), ("outer", outer)] {
        let path = format!("/functions/{name}");
        let answer = send(&server, "PUT", &path, ONE, text.as_bytes());
        assert!(answer.status < 300, "{}", answer.text());
    }
    assert_eq!(call().status, 200);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn failing_decoders_are_named() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.module = module(&directory, "hostile");
    options.time_limit = Duration::from_millis(300);
    let server = start(&options);
    let post = |first: &str| send(&server, "POST", "/pictures", ONE, first.as_bytes());
    for (first, status, part) in [
        ("F", 500, "hostile.rf: bad write in crash_here"),
        ("L", 504, "hostile.rf: "),
        ("A", 500, "hostile.rf: it answered 77"),
    ] {
        post(first).told(status, part);
        assert_eq!(post("x").body, b"P6 1 1 255\nabc", "after {first}");
    }
    for first in ["W", "H"] {
        send(&server, "POST", "/pictures?through=grey", ONE, first.as_bytes()).told(500, "hostile.rf: ");
    }
    assert_eq!(post("x").status, 200);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn nothing_of_a_request_is_left_for_the_next() {
    let directory = Directory::new();
    let mut options = options(&directory);
    options.module = module(&directory, "hostile");
    options.processors = Some(1);
    let server = start(&options);
    for round in 0..20 {
        // One client's picture leaves marks in the data, the heap and the stack; the domain comes back to the other one.
        assert_eq!(send(&server, "POST", "/pictures", ONE, b"P").status, 200);
        let answer = send(&server, "POST", "/pictures", TWO, b"S");
        answer.told(422, "found:");
        assert_eq!(answer.text(), "found:\n", "round {round}");
    }
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn functions_of_one_client_see_nothing_of_another() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    // One client's pictures are all of one mark, and its function keeps them; the other one's looks through new memory for it.
    let keep = "void *malloc(unsigned long); static unsigned char *kept; int keep(struct picture *p)
        { long n = p->height * p->stride; kept = malloc(n); if (!kept) return 1;
          for (long i = 0; i < n; i++) kept[i] = p->pixels[i]; return 0; }";
    let look = "void *room(unsigned long); void *malloc(unsigned long);
        static long marks(const unsigned char *at, long n)
        { long found = 0; for (long i = 0; i + 2 < n; i++) found += at[i] == 0xa5 && at[i + 1] == 0x5a && at[i + 2] == 0xc3; return found; }
        int look(struct picture *p)
        { unsigned char *a = room(8 << 20), *b = malloc(8 << 20); unsigned char local[65536];
          if (!a || !b) return 1;
          long found = marks(a, 8 << 20) + marks(b, 8 << 20) + marks(local, sizeof local);
          return found ? 2 : 0; }";
    send(&server, "PUT", "/functions/keep", ONE, keep.as_bytes()).told(201, "");
    send(&server, "PUT", "/functions/look", TWO, look.as_bytes()).told(201, "");
    let marked = image::RgbImage::from_pixel(600, 400, image::Rgb([0xa5, 0x5a, 0xc3]));
    let marked = encode(marked, ImageFormat::Png);
    let other = encode(gradient(40, 30), ImageFormat::Png);
    for _ in 0..5 {
        assert_eq!(
            send(&server, "POST", "/pictures?through=keep", ONE, &marked).status,
            200
        );
        let answer = send(&server, "POST", "/pictures?through=look", TWO, &other);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

//! The server as its clients see it: pictures, functions, tags, limits. `apps/transcode/test/run.sh` builds the module and runs
//! these.

mod support;

use std::io::{Read, Write};

use image::{DynamicImage, ImageFormat, RgbaImage};
use ringfence_transcode::{Options, Server};
use support::*;

const FORMATS: [(&str, ImageFormat); 4] = [
    ("jpeg", ImageFormat::Jpeg),
    ("png", ImageFormat::Png),
    ("webp", ImageFormat::WebP),
    ("pnm", ImageFormat::Pnm),
];

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn every_format_becomes_every_other() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let original = gradient(200, 150);
    for (from, kind) in FORMATS {
        let picture = encode(original.clone(), kind);
        for (to, kind) in FORMATS {
            let answer = send(
                &server,
                "POST",
                &format!("/pictures?format={to}&quality=95"),
                "",
                &picture,
            );
            let made = answer.picture();
            assert_eq!(image::guess_format(&answer.body).unwrap(), kind, "{from} to {to}");
            let apart = distance(&made, &original.clone().into());
            assert!(apart < 3.0, "{from} to {to}: {apart}");
        }
        let same = send(&server, "POST", "/pictures?width=100", "", &picture);
        assert_eq!(image::guess_format(&same.body).unwrap(), kind, "as it came");
        assert!(same.header("server-timing").contains("decode;dur="));
    }
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn pictures_are_made_smaller_to_fit_and_never_larger() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    directory.put("large.jpg", &encode(gradient(2000, 1333), ImageFormat::Jpeg));
    directory.put("large.png", &encode(gradient(2000, 1333), ImageFormat::Png));
    for (query, size) in [
        ("width=500", (500, 333)),
        ("height=333", (500, 333)),
        ("width=500&height=100", (150, 100)),
        ("width=1999", (1999, 1332)),
        ("width=700", (700, 467)),
        ("width=1", (1, 1)),
        ("width=4000", (2000, 1333)),
    ] {
        for name in ["large.jpg", "large.png"] {
            let made = get(&server, &format!("/pictures/{name}?{query}&format=png"), "").picture();
            assert_eq!((made.width(), made.height()), size, "{name}?{query}");
            let apart = distance(&made, &gradient(size.0, size.1).into());
            // Rounding of a gradient, and JPEG's own.
            assert!(size.0 == 1 || apart < 2.5, "{name}?{query}: {apart}");
        }
    }
    // The mean of white is white, and of black black, whatever the ratio.
    for level in [0, 255] {
        let plain = DynamicImage::ImageRgb8(image::RgbImage::from_pixel(997, 13, image::Rgb([level; 3])));
        directory.put("plain.png", &encode(plain, ImageFormat::Png));
        for width in [996, 500, 333, 7] {
            let made = get(&server, &format!("/pictures/plain.png?width={width}"), "")
                .picture()
                .to_rgb8();
            assert!(made.iter().all(|&p| p == level), "{width}");
        }
    }
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn kinds_of_pictures() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let grey = DynamicImage::ImageRgb8(gradient(64, 64)).to_luma8();
    let made = send(
        &server,
        "POST",
        "/pictures?width=32",
        "",
        &encode(grey.clone(), ImageFormat::Png),
    )
    .picture();
    assert_eq!(made.color().channel_count(), 1, "grey stays grey");
    let made = send(
        &server,
        "POST",
        "/pictures?format=webp",
        "",
        &encode(grey, ImageFormat::Jpeg),
    )
    .picture();
    assert_eq!((made.width(), made.height()), (64, 64));
    // Half of it can be seen through.
    let clear = RgbaImage::from_fn(64, 64, |x, _| {
        image::Rgba([200, 0, 0, if x < 32 { 0 } else { 255 }])
    });
    let clear = encode(clear, ImageFormat::Png);
    let made = send(&server, "POST", "/pictures?format=webp", "", &clear)
        .picture()
        .to_rgba8();
    assert_eq!((made[(5, 5)][3], made[(60, 5)][3]), (0, 255));
    let made = send(&server, "POST", "/pictures?format=jpeg", "", &clear)
        .picture()
        .to_rgb8();
    assert!(
        made[(5, 5)].0.iter().all(|&p| p > 250),
        "on white: {:?}",
        made[(5, 5)]
    );
    let deep = DynamicImage::ImageRgb8(gradient(64, 64)).to_rgb16();
    let made = send(
        &server,
        "POST",
        "/pictures?width=32",
        "",
        &encode(deep, ImageFormat::Png),
    )
    .picture();
    assert!(distance(&made, &gradient(32, 32).into()) < 3.0);
    let made = send(&server, "POST", "/pictures?through=grey", "", &clear)
        .picture()
        .to_rgba8();
    assert_eq!(
        (made[(5, 5)][3], made[(60, 5)].0),
        (0, [60, 60, 60, 255]),
        "opacity stays"
    );
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn pictures_go_through_functions() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    directory.put("a.png", &encode(gradient(200, 100), ImageFormat::Png));
    let through = |functions: &str| get(&server, &format!("/pictures/a.png?through={functions}"), ONE);
    let original = gradient(200, 100);
    let grey = through("grey").picture();
    assert_eq!(grey.color().channel_count(), 1);
    assert!(distance(&grey, &DynamicImage::from(original.clone()).grayscale()) < 12.0);
    let cropped = through("crop(50,20,30,40)").picture().to_rgb8();
    assert_eq!(
        cropped,
        image::imageops::crop_imm(&original, 50, 20, 30, 40).to_image()
    );
    let edge = through("crop(190,-5,500,500)").picture();
    assert_eq!(
        (edge.width(), edge.height()),
        (10, 100),
        "what lies outside is left away"
    );
    let scaled = through("scale(300,50)").picture();
    let other = image::imageops::resize(&original, 300, 50, image::imageops::FilterType::Triangle);
    let apart = distance(&scaled, &other.into());
    assert!(apart < 2.0, "{apart}");
    let few = through("quantise(3)").picture().to_rgb8();
    assert!(few.iter().all(|p| [0, 127, 255].contains(p)));
    let marked = through("watermark(255)").picture().to_rgb8();
    let changed = marked
        .enumerate_pixels()
        .filter(|(x, y, p)| original.get_pixel(*x, *y) != *p);
    let changed: Vec<_> = changed.map(|(x, y, p)| (x, y, *p)).collect();
    assert!(
        !changed.is_empty()
            && changed
                .iter()
                .all(|(x, y, p)| *x > 150 && *y > 70 && p.0 == [255; 3])
    );
    let all = through("crop(0,0,100,100),scale(50,50),grey,quantise(2)").picture();
    assert_eq!(
        (all.width(), all.height(), all.color().channel_count()),
        (50, 50, 1)
    );
    through("scale(0,5)").told(422, "function scale refused the picture");
    through("scale(5)").told(400, "scale takes 2 arguments, not 1");
    through("crop(1.5,0,5,5)").told(400, "argument 1 of crop");
    through("nothing").told(404, "no function nothing");
}

const NEGATIVE: &str = "int negative(struct picture *p)
{
	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width * p->channels; x++)
			p->pixels[y * p->stride + x] ^= 255;
	return 0;
}
";

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn clients_give_functions_and_each_has_its_own() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    directory.put("a.png", &encode(gradient(40, 30), ImageFormat::Png));
    let put = |key: &str, text: &str| send(&server, "PUT", "/functions/negative", key, text.as_bytes());
    put("", NEGATIVE).told(401, "Authorization: Bearer KEY");
    put("wrong-key", NEGATIVE).told(401, "nobody has that key");
    assert_eq!(put("wrong-key", NEGATIVE).header("www-authenticate"), "Bearer");
    put(ONE, NEGATIVE).told(201, "negative was created");
    put(ONE, NEGATIVE).told(200, "negative was replaced");
    let through = |key: &str| get(&server, "/pictures/a.png?through=negative", key);
    let made = through(ONE).picture().to_rgb8();
    assert!(
        made.iter()
            .zip(gradient(40, 30).iter())
            .all(|(a, b)| *a == 255 - *b)
    );
    through(TWO).told(404, "no function negative");
    through("").told(404, "no function negative");
    get(&server, "/functions/negative", TWO).told(404, "negative");
    assert_eq!(get(&server, "/functions/negative", ONE).text(), NEGATIVE);
    let list = get(&server, "/functions", ONE).text();
    assert!(
        list.contains("\"client\":\"one\"") && list.contains("int negative(void *)"),
        "{list}"
    );
    assert!(!get(&server, "/functions", TWO).text().contains("negative"));

    // What does not compile is shown with its place, and changes nothing.
    let answer = put(ONE, "int negative(struct picture *p)\n{\n\treturn p->depth;\n}\n");
    answer.told(422, "3:12: error: ");
    assert!(
        answer.text().contains("^~~~~") || answer.text().contains('^'),
        "{}",
        answer.text()
    );
    assert_eq!(through(ONE).status, 200);
    // Static data is the client's, and stays.
    let count = "static int calls; int count(struct picture *p) { p->width = ++calls; return 0; }";
    send(&server, "PUT", "/functions/count", ONE, count.as_bytes()).told(201, "");
    for n in 1..4 {
        assert_eq!(
            get(&server, "/pictures/a.png?through=count", ONE)
                .picture()
                .width(),
            n
        );
    }
    assert_eq!(
        send(&server, "DELETE", "/functions/negative", ONE, b"").status,
        204
    );
    through(ONE).told(404, "no function negative");
    send(&server, "DELETE", "/functions/negative", ONE, b"").told(404, "negative");
    send(&server, "PUT", "/functions/9", ONE, b"").told(400, "letters, digits");
    let long = "x".repeat(70_000);
    put(ONE, &long).told(413, "--text-limit");
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn a_client_begins_again() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    directory.put("a.png", &encode(gradient(400, 300), ImageFormat::Png));
    let put = |name: &str, text: &str| {
        let path = format!("/functions/{name}");
        send(&server, "PUT", &path, ONE, text.as_bytes()).told(201, "");
    };
    let through = |name: &str| get(&server, &format!("/pictures/a.png?through={name}"), ONE);
    put(
        "hoard",
        "int hoard(struct picture *p) { for (long n = 1 << 24; n > 4096; n /= 2) while (malloc(n)); return 7; }",
    );
    put(
        "wild",
        "int wild(struct picture *p)\n{\n\t*(int *)5 = 1;\n\treturn 0;\n}",
    );
    through("wild").told(500, "bad write in wild (line 3)");
    through("hoard").told(422, "it returned 7");
    // A larger one than that for which there was room.
    directory.put("b.png", &encode(gradient(800, 600), ImageFormat::Png));
    let larger = || get(&server, "/pictures/b.png?through=grey", ONE);
    larger().told(413, "DELETE /functions takes all away");
    send(&server, "DELETE", "/functions", "", b"").told(401, "a client's own");
    assert_eq!(send(&server, "DELETE", "/functions", ONE, b"").status, 204);
    through("hoard").told(404, "no function hoard");
    assert_eq!(larger().status, 200);
    assert!(!get(&server, "/functions", ONE).text().contains("wild"));
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn what_is_missing_is_told_at_the_start() {
    let directory = Directory::new();
    directory.put("a.png", b"");
    let fails = |change: &dyn Fn(&mut Options), part: &str| {
        let mut options = options(&directory);
        change(&mut options);
        let told = match Server::start(&options) {
            Ok(_) => panic!("it has started, without {part}"),
            Err(e) => e.to_string(),
        };
        assert!(told.contains(part), "no {part:?} in {told}");
    };
    fails(&|o| o.pictures = Some("/nowhere".into()), "--pictures /nowhere");
    fails(&|o| o.pictures = Some(directory.0.join("a.png")), "--pictures");
    fails(
        &|o| o.module = module(&directory, "other"),
        "it has no transcode_decode",
    );
    fails(
        &|o| o.clients.push(("one".into(), "another-key".into())),
        "two clients of the name one",
    );
    fails(&|o| o.clients.push(("three".into(), ONE.into())), "the same key");
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn who_has_a_picture_is_told_so() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    directory.put("a.jpg", &encode(gradient(40, 30), ImageFormat::Jpeg));
    let path = "/pictures/a.jpg?through=grey";
    let first = get(&server, path, ONE);
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    assert_eq!(first.header("cache-control"), "private, max-age=3600");
    assert_eq!(
        get(&server, path, "").header("cache-control"),
        "public, max-age=3600"
    );
    let known = format!("If-None-Match: {tag}\r\n");
    let again = with(&server, path, ONE, &known);
    assert_eq!(
        (again.status, again.body.len(), again.header("etag")),
        (304, 0, &*tag)
    );
    assert_eq!(
        with(&server, "/pictures/a.jpg?through=grey&width=20", ONE, &known).status,
        200
    );
    // Another text, another picture; for the other client nothing has changed.
    let same = get(&server, path, TWO).header("etag").to_owned();
    let text = "int grey(struct picture *p) { return 0; }";
    send(&server, "PUT", "/functions/grey", ONE, text.as_bytes()).told(200, "replaced");
    assert_eq!(with(&server, path, ONE, &known).status, 200);
    assert_eq!(get(&server, path, TWO).header("etag"), same);
    // Another file, too.
    let known = format!("If-None-Match: {same}\r\n");
    assert_eq!(with(&server, path, TWO, &known).status, 304);
    directory.put("a.jpg", &encode(gradient(40, 31), ImageFormat::Jpeg));
    assert_eq!(with(&server, path, TWO, &known).status, 200);

    // As it is: the file, its length, its date.
    let plain = get(&server, "/pictures/a.jpg", "");
    assert_eq!(plain.body, std::fs::read(directory.0.join("a.jpg")).unwrap());
    assert_eq!(plain.header("content-type"), "image/jpeg");
    assert_eq!(plain.header("content-length"), plain.body.len().to_string());
    let since = format!("If-Modified-Since: {}\r\n", plain.header("last-modified"));
    assert_eq!(with(&server, "/pictures/a.jpg", "", &since).status, 304);
    let mut stream = connect(&server);
    stream.write_all(head("HEAD", path, "", "").as_bytes()).unwrap();
    let answer = receive(stream);
    assert_eq!(
        (answer.status, answer.body.len(), answer.header("content-type")),
        (200, 0, "image/jpeg")
    );
    // What is wrong is so for those, too, who want no body or have the picture.
    for (wrong, status) in [
        ("through=nobody", 404),
        ("through=grey(1)", 400),
        ("through=crop(1.5,0,5,5)", 400),
    ] {
        let mut stream = connect(&server);
        let request = head("HEAD", &format!("/pictures/a.jpg?{wrong}"), "", "");
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(receive(stream).status, status);
        let path = format!("/pictures/a.jpg?{wrong}");
        assert_eq!(with(&server, &path, "", "If-None-Match: *\r\n").status, status);
    }
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn only_plain_pictures_of_the_directory_are_served() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let picture = encode(gradient(4, 4), ImageFormat::Png);
    directory.put("a.png", &picture);
    directory.put(".hidden.png", &picture);
    directory.put("secret.txt", b"secret");
    std::fs::create_dir(directory.0.join("d.png")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.0.join("link.png")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(directory.0.join("pipe.png"))
        .status();
    assert!(made.unwrap().success());
    for name in [
        ".hidden.png",
        "secret.txt",
        "d.png",
        "link.png",
        "pipe.png",
        "b.png",
        "..",
        "%2e%2e%2fa.png",
        "d.png/a.png",
    ] {
        get(&server, &format!("/pictures/{name}"), "").told(404, "");
    }
    assert_eq!(get(&server, "/pictures/%61.png", "").status, 200);
    let list = get(&server, "/pictures", "").text();
    assert!(
        list.contains("a.png")
            && !list.contains("hidden")
            && !list.contains("secret")
            && !list.contains("link")
            && !list.contains("d.png"),
        "{list}"
    );
    get(&server, "/pictures/%ff", "").told(400, "UTF-8");
    get(&server, "/nowhere", "").told(404, "/functions");
    send(&server, "POST", "/metrics", "", b"").told(405, "GET");
    assert_eq!(
        send(&server, "POST", "/metrics", "", b"").header("allow"),
        "GET, HEAD"
    );
    get(&server, "/pictures/a.png?wide=5", "").told(400, "no parameter");
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn large_pictures_stream_out_and_in() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let picture = noise(1500, 1000);
    let bytes = encode(picture.clone(), ImageFormat::Png);
    // In as chunks, with pauses; out as chunks, while the encoder is at work.
    let mut stream = connect(&server);
    let start = head(
        "POST",
        "/pictures?through=watermark(0)",
        ONE,
        "Transfer-Encoding: chunked\r\n",
    );
    stream.write_all(start.as_bytes()).unwrap();
    let mut sender = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let thread = std::thread::spawn(move || {
        for (number, chunk) in sent.chunks(100_000).enumerate() {
            let head = format!("{:x}\r\n", chunk.len());
            sender
                .write_all(&[head.as_bytes(), chunk, b"\r\n"].concat())
                .unwrap();
            if number % 10 == 0 {
                std::thread::yield_now();
            }
        }
        sender.write_all(b"0\r\n\r\n").unwrap();
    });
    let answer = receive(stream);
    thread.join().unwrap();
    assert_eq!(answer.header("transfer-encoding"), "chunked");
    assert_eq!(answer.picture().to_rgb8(), picture);

    // Who leaves in the middle harms nobody.
    directory.put("noise.png", &bytes);
    for _ in 0..4 {
        let mut stream = connect(&server);
        stream
            .write_all(head("GET", "/pictures/noise.png?through=watermark(9)", "", "").as_bytes())
            .unwrap();
        let mut first = [0; 1000];
        stream.read_exact(&mut first).unwrap();
    }
    assert_eq!(get(&server, "/pictures/noise.png?width=10", "").status, 200);
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn metrics_count_what_was_done() {
    let directory = Directory::new();
    let server = start(&options(&directory));
    let picture = encode(gradient(40, 30), ImageFormat::Png);
    for _ in 0..3 {
        assert_eq!(
            send(&server, "POST", "/pictures?through=grey", ONE, &picture).status,
            200
        );
    }
    send(&server, "POST", "/pictures", ONE, b"no picture at all").told(415, "");
    let answer = get(&server, "/metrics", "");
    assert!(
        answer
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    let text = answer.text();
    for line in [
        "transcode_requests_total{method=\"POST\",status=\"200\"} 3",
        "transcode_requests_total{method=\"POST\",status=\"415\"} 1",
        "transcode_stage_seconds_count{stage=\"decode\"} 4",
        "transcode_stage_seconds_count{stage=\"function\"} 3",
        "transcode_stage_seconds_count{stage=\"encode\"} 3",
        "transcode_clients 2",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let taken = format!("transcode_taken_bytes_total {}", 3 * picture.len() + 17);
    assert!(text.contains(&taken), "{taken} is not in\n{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
#[ignore = "needs the module: apps/transcode/test/run.sh"]
fn other_back_ends_have_the_standard_functions() {
    for (backend, module) in [
        (ringfence::Backend::None, "pictures.so"),
        (ringfence::Backend::Process, "pictures.rf"),
    ] {
        let directory = Directory::new();
        let mut options = options(&directory);
        options.backend = backend;
        options.module = root().join("build/transcode").join(module);
        let server = start(&options);
        let picture = encode(gradient(400, 300), ImageFormat::Jpeg);
        for _ in 0..3 {
            let answer = send(
                &server,
                "POST",
                "/pictures?width=100&through=crop(0,0,50,50),scale(20,30),grey&format=png",
                ONE,
                &picture,
            );
            let made = answer.picture();
            assert_eq!(
                (made.width(), made.height(), made.color().channel_count()),
                (20, 30, 1),
                "{backend}"
            );
            send(
                &server,
                "POST",
                "/pictures?width=10",
                ONE,
                &picture[..picture.len() / 2],
            )
            .told(422, "remature end");
        }
        send(&server, "POST", "/pictures?through=scale(0,0)", ONE, &picture).told(422, "scale refused");
        send(
            &server,
            "POST",
            "/pictures?through=transcode_clear",
            ONE,
            &picture,
        )
        .told(404, "transcode_clear");
        send(&server, "PUT", "/functions/f", ONE, NEGATIVE.as_bytes()).told(501, "--backend window");
    }
}

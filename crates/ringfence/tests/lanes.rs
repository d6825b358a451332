//! The C library behind the fence with several lanes inside at once: its heap, its streams, its locks, `errno`.

mod support;

use std::ffi::OsString;
use std::path::Path;

use ringfence::policy::{Captured, Policy, Stream};
use ringfence::{Imports, Module};
use support::Start as _;

fn module() -> Module {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let sysroot = top.join("build/sysroot");
    assert!(
        sysroot.join("lib/libc.a").exists(),
        "no libc in build/sysroot: run sysroot/build.sh first"
    );
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lanes-{}.rf", std::process::id()));
    let mut args: Vec<OsString> = ["-O2", "-Wall", "-shared", "--sysroot-rf"].map(Into::into).into();
    args.extend([
        sysroot.into(),
        "-o".into(),
        output.clone().into(),
        support::source("lanes").into(),
    ]);
    assert_eq!(ringfence_driver::cc(ringfence_driver::args::Front::C, args), 0);
    let module = Module::open(&output).unwrap();
    let _ = std::fs::remove_file(&output);
    module
}

#[test]
fn many_lanes_in_one_libc() {
    needs!(Policy);
    const LANES: u32 = 8;
    let rounds: i32 = if std::env::var("RINGFENCE_SOAK").is_ok_and(|v| v == "1") {
        20_000
    } else {
        200
    };
    let output = Captured::default();
    let monitor = Policy::new()
        .stdout(Stream::Capture(output.clone()))
        .capture_limit(1 << 30)
        .start()
        .unwrap();
    let domain = module().start(Imports::new().policy(monitor)).unwrap();
    let work = domain.func::<(u32, i32), i32>("work").unwrap();
    let total = domain.func::<(), i64>("total").unwrap();
    // Twice: the second time in lanes and with locks that have been used, and after a reset as at first.
    for round in 1..=3i64 {
        std::thread::scope(|scope| {
            for id in 1..=LANES {
                let work = &work;
                scope.spawn(move || {
                    let result = work.call(id, rounds).unwrap().into_inner_unchecked();
                    assert_eq!(
                        result, 0,
                        "lane {id}: check {result} of tests/api/modules/lanes.c"
                    );
                });
            }
        });
        let expected = i64::from(LANES) * i64::from(rounds);
        let counted = if round == 3 { 1 } else { round } * expected;
        assert_eq!(total.call().unwrap().into_inner_unchecked(), counted);
        let text = String::from_utf8(output.take()).unwrap();
        assert_eq!(text.lines().count() as i64, expected);
        for line in text.lines() {
            let whole = line.starts_with('<')
                && line.ends_with(" 0123456789012345678901234567890123456789>")
                && line.split(' ').count() == 3;
            assert!(whole, "a line of two lanes: {line:?}");
        }
        if round == 2 {
            domain.reset().unwrap();
        }
    }
}

//! Nothing of a domain is left when it goes. A program of its own: it counts what the process has.

mod support;

use ringfence::{Error, Imports, Ptr};
use support::Start as _;
use support::{basic_imports, module};

fn count(path: &str) -> usize {
    std::fs::read_to_string(path)
        .map(|s| s.lines().count())
        .unwrap_or(0)
}

#[test]
fn nothing_is_left_when_domains_go() -> Result<(), Error> {
    needs!(Regions);
    let module = module("basic");
    let round = || -> Result<(), Error> {
        let d = module.start(basic_imports())?;
        let m = d.memory();
        let _block = m.put_slice(&[1u8; 100_000])?;
        let region = ringfence::Region::new(8192)?;
        region.give(&d, ringfence::Rights::Write)?;
        d.func::<(i32, i32), i32>("add")?.call(1, 2)?;
        assert!(d.func::<(Ptr<i32>,), i32>("outer")?.call(Ptr::NULL).is_err());
        d.reset()?;
        let e = module.start(Imports::new()).map(drop).unwrap_err();
        assert!(e.to_string().contains("host_"), "{e}");
        Ok(())
    };
    for _ in 0..20 {
        round()?;
    }
    let descriptors = || {
        std::fs::read_dir("/proc/self/fd")
            .map(Iterator::count)
            .unwrap_or(0)
    };
    let (maps, fds) = (count("/proc/self/maps"), descriptors());
    for _ in 0..200 {
        round()?;
    }
    // Other tests of this program run meanwhile: some slack, far from one mapping a round.
    assert!(
        count("/proc/self/maps") < maps + 150,
        "{maps} mappings grew to {}",
        count("/proc/self/maps")
    );
    assert!(
        descriptors() < fds + 2,
        "{fds} descriptors grew to {}",
        descriptors()
    );
    Ok(())
}

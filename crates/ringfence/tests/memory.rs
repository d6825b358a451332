//! A domain's memory from the host: every kind of access, every kind of wrong address.

mod support;

use ringfence::bytemuck::{Pod, Zeroable};
use ringfence::{Error, MemoryError, Ptr, TextError};
use support::basic;

const PAGE: u64 = 4096;
const WINDOW: u64 = 1 << 32;

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
struct Point {
    x: i32,
    y: i32,
    weight: f64,
    next: Ptr<Point>,
}

#[test]
fn what_is_written_is_read_and_seen_by_the_module() -> Result<(), Error> {
    let d = basic();
    let m = d.memory();
    let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * 7) as u8).collect();
    let held = m.put_slice(&bytes)?;
    assert_eq!(held.to_vec()?, bytes);
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in &bytes {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    assert_eq!(
        d.func::<(Ptr<u8>, usize), u32>("checksum")?
            .call(held.ptr(), held.len())?,
        b << 16 | a
    );
    let mut part = [0u8; 100];
    m.read_slice(held.ptr().wrapping_add(50), &mut part)?;
    assert_eq!(part[..], bytes[50..150]);
    Ok(())
}

#[test]
fn structs_with_pointers() -> Result<(), Error> {
    let d = basic();
    let m = d.memory();
    let last = m.put(Point {
        x: 2,
        y: 3,
        weight: 0.5,
        next: Ptr::NULL,
    })?;
    let first = m.put(Point {
        x: 10,
        y: 1,
        weight: 2.0,
        next: last.ptr(),
    })?;
    assert_eq!(
        d.func::<(Ptr<Point>,), f64>("total_weight")?.call(first.ptr())?,
        23.0
    );
    let copy = m.read(first.ptr())?.into_inner_unchecked();
    assert_eq!(
        m.read(copy.next)?,
        Point {
            x: 2,
            y: 3,
            weight: 0.5,
            next: Ptr::NULL
        }
    );
    m.write(first.ptr().field(8), 3.0f64)?;
    assert_eq!(first.read()?.map(|p| p.weight), 3.0);
    Ok(())
}

#[test]
fn strings() -> Result<(), Error> {
    let d = basic();
    let m = d.memory();
    let text = m.put_c_string("grüße from outside")?;
    assert_eq!(d.func::<(Ptr<u8>,), usize>("upper")?.call(text.ptr())?, 20);
    assert_eq!(m.read_string(text.ptr(), 100)?, "GRüßE FROM OUTSIDE".to_owned());
    assert_eq!(m.read_string(text.ptr(), 20)?, "GRüßE FROM OUTSIDE".to_owned());
    assert!(matches!(
        m.read_string(text.ptr(), 19),
        Err(TextError::TooLong { limit: 19, .. })
    ));
    assert!(matches!(
        m.read_c_string(text.ptr(), 0),
        Err(TextError::TooLong { .. })
    ));
    let banner = d.func::<(), Ptr<u8>>("where_is_banner")?.call()?;
    assert_eq!(m.read_string(banner, 64)?, "hello from inside".to_owned());
    let broken = m.put_c_string([b'a', 0xFF, b'b'])?;
    assert!(matches!(
        m.read_string(broken.ptr(), 9),
        Err(TextError::NotUtf8 { valid: 1, .. })
    ));
    let empty = m.put_c_string("")?;
    assert_eq!(m.read_string(empty.ptr(), 0)?, String::new());
    Ok(())
}

#[test]
fn a_string_may_end_where_memory_ends() -> Result<(), Error> {
    needs!(Fence);
    let d = basic();
    let m = d.memory();
    // The end of a lane's data stack is the end of what is mapped before the window's last slot, or of the next lane's guard.
    let big = m.alloc_array::<u8>(1 << 20)?;
    m.write_slice(big.ptr(), &vec![b'x'; 1 << 20])?;
    let e = m.read_c_string(big.ptr(), 1 << 30).unwrap_err();
    assert!(
        matches!(e, TextError::Memory(MemoryError::Unmapped { .. })),
        "{e}: no NUL before the first hole"
    );
    m.write(big.ptr().wrapping_add((1 << 20) - 1), 0u8)?;
    assert_eq!(
        m.read_c_string(big.ptr().wrapping_add((1 << 20) - 300), 1 << 30)?
            .map(|v| v.len()),
        299
    );
    Ok(())
}

#[test]
fn objects() -> Result<(), Error> {
    let d = basic();
    let counter: Ptr<i32> = d.object("counter").expect("exported");
    assert_eq!(d.memory().read(counter)?, 7);
    d.memory().write(counter, 41)?;
    assert_eq!(d.func::<(), i64>("bump")?.call()?, 42);
    assert_eq!(d.object::<u8>("no such thing"), None);
    Ok(())
}

#[test]
fn addresses_outside_the_window_are_refused() {
    needs!(Fence);
    let d = basic();
    let m = d.memory();
    let base = m.base();
    let host = 5u64;
    let outside = [
        0,
        1,
        (&raw const host) as u64,
        base - 1,
        base + WINDOW,
        u64::MAX,
        1 << 63,
        base ^ 1 << 47,
        0xFFFF_FFFF_FFFF_F000,
    ];
    for at in outside {
        let at = Ptr::<u64>::from_address(at);
        assert!(matches!(m.read(at), Err(MemoryError::Outside { .. })), "{at:?}");
        assert!(
            matches!(m.write(at, 1), Err(MemoryError::Outside { .. })),
            "{at:?}"
        );
        assert!(
            matches!(m.read_vec(at, 10), Err(MemoryError::Outside { .. })),
            "{at:?}"
        );
        assert!(
            matches!(m.write_slice(at, &[1, 2]), Err(MemoryError::Outside { .. })),
            "{at:?}"
        );
        assert!(m.read_c_string(at.cast(), 10).is_err(), "{at:?}");
        assert!(!m.contains(at, 1));
    }
    assert_eq!(host, 5);
    // Across the end, and lengths that wrap.
    let last = Ptr::<u64>::from_address(base + WINDOW - 4);
    assert!(matches!(m.read(last), Err(MemoryError::Outside { .. })));
    for count in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 2, 1 << 61, 1 << 29] {
        let at = Ptr::<u64>::from_address(base + 0x10000);
        assert!(
            matches!(m.read_vec(at, count), Err(MemoryError::Outside { .. })),
            "{count:#x}"
        );
        assert!(!m.contains(at, count), "{count:#x}");
    }
    assert!(m.contains(Ptr::<u8>::from_address(base), WINDOW as usize));
}

#[test]
fn unmapped_and_read_only_memory_is_an_error() -> Result<(), Error> {
    needs!(Fence);
    let d = basic();
    let m = d.memory();
    let base = m.base();
    for offset in [0, 8, 0xFFFF, 0x3FFF_F000, 0xFF00_0000, 0xFFFF_FFF8] {
        let at = Ptr::<u64>::from_address(base + offset);
        let read = m.read(at);
        assert!(
            matches!(read, Err(MemoryError::Unmapped { .. })),
            "{offset:#x}: {read:?}"
        );
        assert!(m.write(at, 1).is_err(), "{offset:#x}");
    }
    // A count that is made up fails without allocating it all.
    assert!(
        m.read_vec(Ptr::<u8>::from_address(base), WINDOW as usize)
            .is_err()
    );
    // Text and read-only data can be read but not written.
    let code = Ptr::<u64>::from_address(d.func::<(), ()>("nothing")?.ptr().address());
    let before = m.read(code)?;
    assert!(matches!(m.write(code, 0), Err(MemoryError::Unmapped { .. })));
    assert_eq!(m.read(code)?, before);
    let banner: Ptr<u8> = d.object("banner").expect("exported");
    assert!(m.write(banner, b'X').is_err());
    assert!(
        m.write(Ptr::<u64>::from_address(base + 0x10000), 1).is_err(),
        "the header page"
    );
    // A range that begins in good memory and runs into a hole.
    let held = m.alloc_array::<u8>(PAGE as usize)?;
    assert!(m.write_slice(held.ptr(), &vec![1u8; 1 << 24]).is_err());
    assert!(m.read_vec(held.ptr(), 1 << 24).is_err());
    Ok(())
}

#[test]
fn allocations_are_zeroed_aligned_apart_and_freed() -> Result<(), Error> {
    let d = basic();
    let m = d.memory();
    let mut all = Vec::new();
    for i in 0..300usize {
        let a = m.alloc_array::<u8>(i * 7)?;
        assert_eq!(a.ptr().address() % 16, 0);
        assert!(
            m.read_vec(a.ptr(), a.len())?
                .into_inner_unchecked()
                .iter()
                .all(|&b| b == 0)
        );
        m.write_slice(a.ptr(), &vec![i as u8; i * 7])?;
        all.push(a);
    }
    for (i, a) in all.iter().enumerate() {
        assert!(
            a.to_vec()?.into_inner_unchecked().iter().all(|&b| b == i as u8),
            "block {i}"
        );
    }
    drop(all);
    // What was used before is zeroed again; thousands of blocks come and go without using the heap up.
    for i in 0..20_000usize {
        let a = m.alloc_array::<u64>(i % 1000)?;
        if i % 100 == 0 {
            assert!(a.to_vec()?.into_inner_unchecked().iter().all(|&b| b == 0));
        }
        m.write_slice(a.ptr(), &vec![u64::MAX; i % 1000])?;
    }
    Ok(())
}

#[test]
fn allocations_that_do_not_fit_are_errors() -> Result<(), Error> {
    needs!(Fence);
    let d = basic();
    let m = d.memory();
    for count in [usize::MAX, usize::MAX / 2, 1 << 40, 1 << 33] {
        assert!(
            matches!(m.alloc_array::<u8>(count), Err(MemoryError::Limit { .. })),
            "{count:#x}"
        );
        assert!(m.alloc_array::<u64>(count).is_err(), "{count:#x}");
    }
    let mut held = Vec::new();
    while let Ok(a) = m.alloc_array::<u8>(64 << 20) {
        held.push(a);
        assert!(held.len() < 100, "the heap limit is 1 GiB");
    }
    assert!(!held.is_empty());
    drop(held);
    m.alloc_array::<u8>(64 << 20)?;
    Ok(())
}

#[test]
fn a_reset_takes_allocations_and_old_guards_do_no_harm() -> Result<(), Error> {
    let d = basic();
    let m = d.memory();
    let old = m.put_slice(&[0xAAu8; 64])?;
    d.reset()?;
    let fresh = m.put_slice(&[0xBBu8; 64])?;
    drop(old);
    let other = m.put_slice(&[0xCCu8; 64])?;
    assert_ne!(
        fresh.ptr(),
        other.ptr(),
        "the old guard must not free what came later"
    );
    assert_eq!(fresh.to_vec()?, vec![0xBBu8; 64]);
    Ok(())
}

#[test]
fn many_threads_allocate_and_free() {
    let d = basic();
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let m = d.memory();
            s.spawn(move || {
                for i in 0..2000usize {
                    let a = m.put_slice(&vec![t; i % 200 + 1]).unwrap();
                    assert_eq!(a.to_vec().unwrap(), vec![t; i % 200 + 1]);
                }
            });
        }
    });
}

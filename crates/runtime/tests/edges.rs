//! What a module can hand to gates that no compiler would: other stacks, other stubs; and what it runs, compared with what was verified.

mod support;

use ringfence_isa::{identifier, window};
use ringfence_runtime::{CallError, Domain, DomainOptions, FaultKind, LoadOptions, Module};
use support::elf::{File, Symbol};
use support::{build, build_file, call, domain, fault, imports, module};

fn edges() -> Domain {
    let out = build_file("edges.s", &["--no-rewrite", "--import=host_add"]);
    let edges = Module::open(&out, &LoadOptions::default()).expect("module");
    let _ = std::fs::remove_file(out);
    Domain::new(&[module(), edges], imports(), &DomainOptions::default()).expect("domain")
}

#[test]
fn a_data_stack_that_is_not_the_lanes_ends_the_call() {
    let d = edges();
    let base = d.as_ref().base();
    let own = call(&d, "stack_address", &[]).unwrap() & !15;
    assert_eq!(call(&d, "wander", &[own]).unwrap(), 5, "the lane's own");
    // Another thread's is in the window, and mapped.
    let others = std::thread::scope(|s| {
        let address = s.spawn(|| call(&d, "stack_address", &[]).unwrap());
        address.join().unwrap()
    });
    let here = 0_u64;
    let heap = d.as_ref().alloc(4096, 16).unwrap();
    let data = d.symbol("counter").expect("an object");
    let wrong = [
        0,
        base,
        heap + 2048,
        data,
        others & !15,
        own + (16 << 20),
        base + 0xFFFF_FFF0,
    ];
    for sp in wrong {
        let f = fault(&d, "wander", &[sp]);
        assert_eq!(f.kind, FaultKind::DataStack, "{sp:#x}");
        d.reset().unwrap();
        assert_eq!(call(&d, "call_out", &[2, 3]).unwrap(), 6, "{sp:#x}");
    }
    // Of an address elsewhere the lower half counts: it is a place of the window's.
    for sp in [(&raw const here) as u64 & !15, !15, own ^ 1 << 47] {
        match call(&d, "wander", &[sp]) {
            Ok(sum) => assert_eq!(sum, 5, "{sp:#x}"),
            Err(CallError::Fault(f)) => assert_eq!(f.kind, FaultKind::DataStack, "{sp:#x}"),
            Err(e) => panic!("{e:?}"),
        }
        if d.faulted() {
            d.reset().unwrap();
        }
    }
    assert_eq!(here, 0);
}

/// Every stub of the page that each window has, and addresses where others have theirs.
#[test]
fn stubs_that_are_not_bound_are_errors() {
    let d = domain();
    let base = d.as_ref().base();
    let names = ["host_add", "host_call", "host_enter", "host_stack", "host_scale"];
    let bound = names.map(|name| d.import_address(name).expect("the module imports it"));
    let in_page = 4096 / window::STUB_SIZE;
    let mut unbound = 0;
    for number in 0..in_page {
        let at = base + u64::from(window::stub_at(number));
        let result = call(&d, "through", &[at, 2, 3]);
        if bound.contains(&at) || number < window::STUB_FIRST_IMPORT {
            // The host's own, and the runtime's: what they do with such arguments is their tests' business.
            assert!(!matches!(&result, Err(CallError::Fault(f)) if f.kind == FaultKind::BadTarget));
        } else {
            assert!(
                matches!(&result, Err(CallError::Fault(f)) if f.kind == FaultKind::Unbound(number)),
                "{number}: {result:?}"
            );
            unbound += 1;
        }
        if d.faulted() {
            d.reset().unwrap();
        }
    }
    assert_eq!(unbound, in_page - window::STUB_FIRST_IMPORT - names.len() as u32);
    // Between two stubs, and where only windows with more imports have any.
    for at in [
        window::stub_at(20) + 8,
        window::stub_at(20) + 16,
        window::stub_at(in_page),
        window::stub_at(window::STUB_COUNT - 1),
    ] {
        let f = fault(&d, "through", &[base + u64::from(at), 2, 3]);
        assert_eq!(f.kind, FaultKind::BadTarget, "{at:#x}");
        d.reset().unwrap();
    }
    assert_eq!(call(&d, "call_out", &[2, 3]).unwrap(), 6);
}

/// A module with more text than is kept as a copy.
fn large() -> Vec<u8> {
    let mut text = identifier::MARKER_HEAD.to_vec();
    text.extend(identifier::FUNCTION.to_le_bytes());
    text.extend([0xB8, 42, 0, 0, 0, 0xC3]);
    text.resize(100 << 10, 0xCC);
    let mut file = File {
        text,
        strings: b"\0function\0".to_vec(),
        ..File::default()
    };
    let mut function = Symbol::object(1, 0x1000);
    function.info = 1 << 4 | 2;
    file.symbols = vec![function];
    file.bytes()
}

/// The text that the kernel has mapped is verified once more: a small one, which was a copy when it was verified, and a large one, which
/// was the sealed file.
#[test]
fn what_is_mapped_was_verified() {
    let compiled = {
        let out = build("plugin", &["--import=add,host_add", "--import-data=counter"]);
        let bytes = std::fs::read(&out).expect("the module");
        let _ = std::fs::remove_file(out);
        bytes
    };
    for (name, bytes, least) in [("small", compiled, 100), ("large", large(), 100 << 10)] {
        let added = Module::from_bytes(name, &bytes, &LoadOptions::default()).expect("module");
        let mut options = DomainOptions::default();
        options.module_limit = u64::MAX;
        options.memory_limit = u64::MAX;
        let d = support::domain_with(&options);
        d.add("m", &added).unwrap();
        let base = d.as_ref().base();
        let segments = added.segments();
        let text = segments
            .iter()
            .find(|s| s.kind == ringfence_verify::SegmentKind::Text)
            .expect("text");
        let first = added
            .exports()
            .iter()
            .find(|e| e.kind == ringfence_runtime::ExportKind::Function);
        let first = first.expect("a function");
        let place = d.entry_in("m", &first.name).unwrap().address() - u64::from(first.offset);
        let mut mapped = vec![0; text.len as usize];
        d.as_ref()
            .read(place + u64::from(text.offset), &mut mapped)
            .unwrap();
        let all: Vec<_> = segments
            .iter()
            .map(|s| ringfence_verify::Segment {
                start: s.offset,
                len: s.len,
                kind: s.kind,
            })
            .collect();
        let image = ringfence_verify::Image {
            text: &mapped,
            text_address: text.offset,
            segments: &all,
            image_offset: Some((place - base) as u32),
        };
        let entries = added
            .exports()
            .iter()
            .filter(|e| e.kind == ringfence_runtime::ExportKind::Function);
        let entries: Vec<u32> = entries.map(|e| e.offset).collect();
        let report = ringfence_verify::verify(&image, &entries, &ringfence_verify::Rules::default());
        let report = report.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(report.functions().len() >= entries.len(), "{name}");
        assert!(mapped.len() >= least, "{name}: {} bytes of text", mapped.len());
    }
}

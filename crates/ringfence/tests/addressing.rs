//! By which forms of operands code may reach memory: what hosts refuse, when and with which words.

mod support;

use ringfence::{
    Addressing, Backend, Code, CodeError, Domain, DomainError, DomainOptions, Imports, LoadError,
    LoadOptions, Module, ModuleError,
};
use support::from_text;

/// A load that is worth the form through `r14`, wherever that may be used: it leads to the address of another.
const LOAD: &str = "long load(long **p) { return *p[1]; }\n";

fn any() -> Module {
    from_text(LOAD, &["-O2", "-nostdlib"])
}

fn segment() -> Module {
    from_text(LOAD, &["-O2", "-nostdlib", "--addressing=segment"])
}

fn only_segment(backend: Backend) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.addressing = Addressing::Segment;
    options.backend = backend;
    options
}

fn domain(module: &Module, options: &DomainOptions) -> Result<Domain, DomainError> {
    Domain::instantiate(std::slice::from_ref(module), Imports::new(), options)
}

#[test]
fn the_compiler_makes_both_and_the_verifier_tells_them_apart() {
    assert_eq!(any().addressing(), Some(Addressing::Any));
    assert_eq!(segment().addressing(), Some(Addressing::Segment));
}

#[test]
fn loading_refuses_and_tells_where() {
    let mut options = LoadOptions::default();
    options.addressing = Addressing::Segment;
    let error = Module::from_bytes("m.rf", any().original(), &options).expect_err("goes through r14");
    assert!(matches!(error, LoadError::Rejected { .. }), "{error}");
    let text = error.to_string();
    for part in ["rule 1", "in load", "--addressing=segment"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    Module::from_bytes("m.rf", segment().original(), &options).expect("has gs only");
}

#[test]
fn a_domain_takes_only_what_its_option_says() {
    for backend in [Backend::Window, Backend::Process] {
        let options = only_segment(backend);
        let error = domain(&any(), &options).expect_err("goes through r14");
        assert!(matches!(error, DomainError::Addressing { .. }), "{error}");
        assert!(error.to_string().contains("--addressing=segment"), "{error}");
        let domain = domain(&segment(), &options).expect("has gs only");
        let four = domain.memory().put_slice(&[4_i64]).expect("memory");
        let words = [3, four.ptr().address()];
        let words = domain.memory().put_slice(&words).expect("memory");
        let load = domain.func::<(u64,), i64>("load").expect("the function");
        let loaded = load.call(words.ptr().address()).expect("a call");
        assert_eq!(loaded.into_inner_unchecked(), 4);
    }
    domain(&any(), &DomainOptions::default()).expect("by default it takes both");
}

#[test]
fn the_option_holds_for_what_comes_later() {
    // movl %edi, %r11d; movq 8(%r14,%r11), %rax; ret, and movq %gs:8(%edi), %rax; ret
    let through: &[u8] = &[0x41, 0x89, 0xFB, 0x4B, 0x8B, 0x44, 0x1E, 0x08, 0xC3];
    let gs: &[u8] = &[0x65, 0x67, 0x48, 0x8B, 0x47, 0x08, 0xC3];
    let domain = domain(&segment(), &only_segment(Backend::Window)).expect("has gs only");
    let error = domain.add_module("other", &any()).expect_err("goes through r14");
    assert!(matches!(error, ModuleError::Addressing { .. }), "{error}");
    domain.add_module("other", &segment()).expect("has gs only");
    match domain.add_code::<(u64,), i64>(
        "through",
        &Code {
            bytes: through,
            entry: 0,
        },
    ) {
        Err(CodeError::Rejected { reason, .. }) => assert!(reason.contains("rule 1"), "{reason}"),
        other => panic!("{:?}", other.map(drop)),
    }
    domain
        .add_code::<(u64,), i64>("gs", &Code { bytes: gs, entry: 0 })
        .expect("has gs only");
}

//! What back ends have, asked of them; and what tests do on one that lacks what they need.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ringfence::{
    Backend, Code, Domain, DomainError, DomainOptions, Error, Feature, Group, Imports, LimitHit, LoadError,
    LoadOptions, Module, OnFailure, OnLimit, Region, Rights, Signature, Snapshot, SnapshotError, Unsupported,
};

/// What a test returns when it has nothing more to do.
pub trait Done {
    fn done() -> Self;
}
impl Done for () {
    fn done() {}
}
impl<E> Done for Result<(), E> {
    fn done() -> Self {
        Ok(())
    }
}

/// For a test that needs these features: on a back end that lacks one, its answer is the typed error that the page's table says, and
/// there is nothing else to test.
#[macro_export]
macro_rules! needs {
    ($($feature:ident),+) => {
        fn here() {}
        if support::features::lacks(std::any::type_name_of_val(&here), &[$(ringfence::Feature::$feature),+]) {
            return support::features::Done::done();
        }
    };
}

/// Names the file in which tests note that they were left out, which `scripts/test_backends.sh` compares with `tests/backends.txt`.
const LEFT_OUT: &str = "RINGFENCE_TEST_LEFT_OUT";

/// Whether the back end that the tests run on lacks one of these, having said so. `here` is a function in the test.
pub fn lacks(here: &str, features: &[Feature]) -> bool {
    let backend = super::backend();
    let missing: Vec<_> = features.iter().filter(|f| !backend.offers(**f)).collect();
    for &&feature in &missing {
        assert_eq!(ask(backend, feature), Err(Unsupported { feature, backend }));
        let test = here.strip_suffix("::here").expect("a function in a test");
        if let Ok(file) = std::env::var(LEFT_OUT) {
            let mut file = std::fs::File::options().append(true).open(file).expect(LEFT_OUT);
            // One write: other programs write too.
            file.write_all(format!("{backend} {test}: {}\n", feature.name()).as_bytes())
                .unwrap();
        }
    }
    !missing.is_empty()
}

pub fn options(backend: Backend) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.backend = backend;
    options
}

/// An ordinary shared object, made of some text by an ordinary compiler.
pub fn shared(text: &str, flags: &[&str]) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("plain-{}-{number}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, output) = (
        directory.join(format!("{name}.c")),
        directory.join(format!("{name}.so")),
    );
    std::fs::write(&source, text).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let status = Command::new("gcc")
        .args(["-O1", "-g", "-shared", "-fPIC", "-I", include])
        .args(flags)
        .arg("-o")
        .args([&output, &source])
        .status()
        .expect("gcc");
    assert!(status.success());
    std::fs::remove_file(source).unwrap();
    output
}

pub fn unfenced(path: &Path) -> Result<Module, LoadError> {
    let mut load = LoadOptions::default();
    load.backend = Backend::None;
    Module::open_with(path, &load)
}

pub fn plain(text: &str, flags: &[&str]) -> Module {
    let path = shared(text, flags);
    let module = unfenced(&path).expect("a shared object");
    std::fs::remove_file(path).unwrap();
    module
}

pub fn basic(backend: Backend) -> Module {
    match backend {
        Backend::None => {
            let source = std::fs::read_to_string(super::source("basic")).unwrap();
            plain(&source, &["-Wno-all"])
        }
        _ => super::module("basic"),
    }
}

/// What a back end answers when it is asked for the feature.
pub fn ask(backend: Backend, feature: Feature) -> Result<(), Unsupported> {
    let module = basic(backend);
    let make = |imports: Imports, options: &DomainOptions| {
        let made = Domain::instantiate(std::slice::from_ref(&module), imports, options);
        match made {
            Ok(domain) => Ok(domain),
            Err(DomainError::Unsupported(e)) => Err(e),
            Err(e) => panic!("{backend}, {feature:?}: {e}"),
        }
    };
    let usual = options(backend);
    let domain = || make(super::basic_imports(), &usual).expect("a plain domain");
    match feature {
        // Nothing to ask: a crash would end this process, a handler might wait for itself, a jump over Rust's functions may not be
        // (`tests/api/backends.c` jumps), and maps and processes are the module's to ask for (`file_maps.rs`, `processes.rs` of the command).
        Feature::Faults | Feature::Unwind | Feature::Handlers | Feature::FileMaps | Feature::Processes => {
            backend.require(feature)
        }
        Feature::Interrupt => domain().interrupt(),
        Feature::Pauses => domain().pause_time().and_then(|()| domain().resume_time()),
        Feature::Limits => {
            let mut limited = usual.clone();
            limited.call_limit = Some(5);
            make(super::basic_imports(), &limited)?;
            domain().set_time_limit(Some(std::time::Duration::from_secs(1)))
        }
        Feature::OnLimit => {
            let imports = super::basic_imports().on_limit(|_, _: &LimitHit| OnLimit::Keep);
            make(imports, &usual).map(drop)
        }
        Feature::Words => {
            let arena = ringfence::Arena::new(4096).expect("an arena");
            if backend == Backend::None {
                return make(super::basic_imports().arena(&arena), &usual).map(drop);
            }
            let mut accepting = ringfence::LoadOptions::default();
            accepting.allow_words = true;
            let compiler = ["-nostdlib", "--isolation=words"];
            let module = super::from_text_with("int f(void) { return 1; }\n", &compiler, &accepting);
            match Domain::instantiate(&[module], Imports::new().arena(&arena), &usual) {
                Ok(_) => Ok(()),
                Err(DomainError::Unsupported(e)) => Err(e),
                Err(e) => panic!("{backend}, {feature:?}: {e}"),
            }
        }
        Feature::Policy => {
            let imports = super::basic_imports().policy(std::sync::Arc::new(ringfence::NoPolicy));
            make(imports, &usual).map(drop)
        }
        Feature::Plain => {
            extern "C" fn sum(a: i32, b: i32) -> i32 {
                a + b
            }
            let signature = Signature {
                ints: 2,
                int_results: 1,
                ..Signature::NOTHING
            };
            // SAFETY: a C function of that type, sound for all numbers that are passed here, and there for ever.
            let imports =
                unsafe { super::basic_imports().plain("host_add", sum as *const () as *const _, signature) };
            let domain = make(imports, &usual)?;
            let call = domain.func::<(i32, i32), i32>("call_host_add").unwrap();
            assert_eq!(call.call(2, 3).unwrap(), 6);
            Ok(())
        }
        Feature::Grants => {
            let imports = super::basic_imports().slot("other", Signature::NOTHING, OnFailure::Tell);
            make(imports, &usual)?;
            let imports = super::basic_imports().export("other", &domain(), "add", Signature::NOTHING);
            make(imports, &usual).map(drop)
        }
        Feature::Regions => {
            let region = Region::new(4096).unwrap();
            match (
                region.give(&domain(), Rights::Read),
                Group::new(false).admit(&domain()),
            ) {
                (Ok(()), Ok(())) => Ok(()),
                (Err(ringfence::RegionError::Unsupported(e)), Err(_)) => Err(e),
                other => panic!("{other:?}"),
            }
        }
        Feature::Code => match domain().add_code::<(), ()>("x", &Code { bytes: &[], entry: 0 }) {
            Err(ringfence::CodeError::Unsupported(e)) => Err(e),
            Err(ringfence::CodeError::Empty { .. }) => Ok(()),
            other => panic!("{other:?}"),
        },
        Feature::Modules => match domain().remove_module("x") {
            Err(ringfence::ModuleError::Unsupported(e)) => Err(e),
            Err(ringfence::ModuleError::Unknown { .. }) => Ok(()),
            other => panic!("{other:?}"),
        },
        Feature::Checkpoints => match domain().checkpoint() {
            Err(SnapshotError::Unsupported(e)) => Err(e),
            Ok(()) => Ok(()),
            other => panic!("{other:?}"),
        },
        Feature::Snapshots => match Snapshot::new(|| Ok(domain()), |_| Ok::<(), Error>(())) {
            Err(SnapshotError::Domain(DomainError::Unsupported(e))) => Err(e),
            Ok(_) => Ok(()),
            Err(other) => panic!("{other}"),
        },
        Feature::Confinement => domain().confinement().map(drop),
        Feature::Caller => caller(backend, &domain),
        Feature::Fence => {
            let fenced = Module::open(super::build("basic", &[])).expect("the module loads");
            match Domain::instantiate(&[fenced], super::basic_imports(), &usual) {
                Err(DomainError::NotFor { backend, .. }) => Err(Unsupported { feature, backend }),
                other => other.map(drop).map_err(|e| panic!("{e}")),
            }
        }
        other => panic!("{other:?} has no question yet"),
    }
}

/// Whether a plain C function finds out who calls it. Where it does not, it is told of nobody.
fn caller(backend: Backend, domain: &dyn Fn() -> Domain) -> Result<(), Unsupported> {
    static SEEN: AtomicU64 = AtomicU64::new(u64::MAX);
    extern "C" fn seen(a: i32, _b: i32) -> i32 {
        SEEN.store(ringfence::dynamic::current_tag(), Ordering::Relaxed);
        a
    }
    let signature = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    // SAFETY: a C function of that type, sound for all numbers, and there for ever.
    let imports =
        unsafe { super::basic_imports().plain("host_add", seen as *const () as *const _, signature) };
    let asking = Domain::instantiate(&[basic(backend)], imports, &options(backend)).expect("a plain domain");
    asking.set_tag(4711);
    domain().set_tag(1147);
    let call = asking.func::<(i32, i32), i32>("call_host_add").unwrap();
    call.call(2, 3).unwrap();
    assert_eq!(ringfence::dynamic::current_tag(), 0, "nobody calls any more");
    match SEEN.load(Ordering::Relaxed) {
        4711 => Ok(()),
        0 => Err(Unsupported {
            feature: Feature::Caller,
            backend,
        }),
        other => panic!("{other}"),
    }
}

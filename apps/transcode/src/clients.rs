//! Clients, each with a runtime of its own for its functions.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use hyper::StatusCode;
use ringfence::{CallError, Caller, FaultKind, Ptr};
use ringfence_functions::{BuiltIns, Compiled, FunctionError, Kind, Runtime, Value, compile};
use sha2::{Digest, Sha256};

use crate::codec::{Limits, domain_options};
use crate::failure::Failure;
use crate::picture::Picture;
use crate::prelude;
use crate::request::{Step, is_name};

/// The functions that every client has at first, by their names.
pub(crate) const STANDARD: [(&str, &str); 5] = [
    ("crop", include_str!("../functions/crop.c")),
    ("grey", include_str!("../functions/grey.c")),
    ("quantise", include_str!("../functions/quantise.c")),
    ("scale", include_str!("../functions/scale.c")),
    ("watermark", include_str!("../functions/watermark.c")),
];

/// How often a picture is begun again because another one of the same client has ended the runtime's calls.
const TRIES: usize = 3;

thread_local! {
    /// Memory that goes with the picture that this thread is working on.
    static ROOMS: RefCell<Vec<Ptr<()>>> = const { RefCell::new(Vec::new()) };
}

/// What a text may call.
fn built_ins() -> BuiltIns {
    BuiltIns::new().func("room", |caller: &Caller<'_>, length: u64| {
        let length = usize::try_from(length).ok();
        let made = length.and_then(|n| caller.memory().alloc_array::<u8>(n.max(1)).ok());
        made.map_or(Ptr::NULL, |room| {
            let at = room.leak().cast::<()>();
            ROOMS.with_borrow_mut(|rooms| rooms.push(at));
            at
        })
    })
}

/// Somebody with functions.
pub(crate) struct Client {
    number: u64,
    name: String,
    runtime: Runtime,
    /// The texts as they came, and what they all come to.
    texts: Mutex<Texts>,
    /// Calls have it together; who resets the runtime has it alone.
    calls: RwLock<()>,
    text_limit: usize,
    functions_limit: usize,
    pixels_limit: u64,
}

#[derive(Default)]
struct Texts {
    all: BTreeMap<String, String>,
    version: [u8; 32],
}

impl Texts {
    /// The standard functions, in a runtime that has none.
    fn begin(&mut self, runtime: &Runtime) -> Result<(), FunctionError> {
        for (name, text) in STANDARD {
            runtime.create(name, &prelude::with(text))?;
            self.all.insert(name.to_owned(), text.to_owned());
        }
        self.changed();
        Ok(())
    }

    fn changed(&mut self) {
        let mut sum = Sha256::new();
        for (name, text) in &self.all {
            // Names have no zeros, and lengths keep texts apart.
            sum.update(name);
            sum.update([0]);
            sum.update((text.len() as u64).to_le_bytes());
            sum.update(text);
        }
        self.version = sum.finalize().into();
    }
}

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Created,
    Replaced,
}

impl Client {
    fn new(
        number: u64,
        name: &str,
        limits: &Limits,
        text_limit: u64,
        functions_limit: usize,
    ) -> Result<Self, FunctionError> {
        let mut texts = Texts::default();
        let mut options = domain_options(limits);
        // A client cannot ask for it, and what it costs to enter is little beside a picture.
        options.x87 = true;
        let runtime = Runtime::new(built_ins(), &options)?;
        texts.begin(&runtime)?;
        Ok(Client {
            number,
            name: name.to_owned(),
            runtime,
            texts: Mutex::new(texts),
            calls: RwLock::new(()),
            text_limit: usize::try_from(text_limit).unwrap_or(usize::MAX),
            functions_limit,
            pixels_limit: limits.pixels,
        })
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all its functions come to: pictures that were made by others of them are others.
    pub fn version(&self) -> [u8; 32] {
        self.texts().version
    }

    /// The names of its functions, and how each is declared.
    pub fn functions(&self) -> Vec<(String, String)> {
        let names: Vec<String> = self.texts().all.keys().cloned().collect();
        let declared = names.into_iter().filter_map(|name| {
            let function = self.runtime.lookup(&name).ok()?;
            let declaration = function.prototype().declaration(&name);
            Some((name, declaration))
        });
        declared.collect()
    }

    /// A function's text, as it came.
    pub fn text(&self, name: &str) -> Option<String> {
        self.texts().all.get(name).cloned()
    }

    /// Gives the client a function, or another text for one that it has. Calls that run finish with the old one.
    pub fn put(&self, name: &str, text: &str) -> Result<Put, Failure> {
        if !is_name(name) {
            let message = "a function's name has letters, digits and _, 64 at most";
            return Err(Failure::new(StatusCode::BAD_REQUEST, message));
        }
        if text.len() > self.text_limit {
            let message = format!("the text has more than {} bytes (--text-limit)", self.text_limit);
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let compiled = compiled(text)?;
        check_type(name, &compiled)?;
        let mut texts = self.texts();
        let old = texts.all.get(name).cloned();
        if old.is_none() && texts.all.len() >= self.functions_limit {
            let message = format!(
                "there are {} functions already (--functions-limit)",
                self.functions_limit
            );
            return Err(Failure::new(StatusCode::INSUFFICIENT_STORAGE, message));
        }
        let told = |e: FunctionError| Failure::of_function(name, &e);
        match &old {
            None => self.runtime.create_compiled(name, compiled).map_err(told)?,
            Some(old) => match self.runtime.replace_compiled(name, compiled) {
                // Other parameters: another function, of the same name.
                Err(FunctionError::Type { name: which, .. }) if which == name => {
                    self.exchange(name, old, text)?
                }
                replaced => replaced.map_err(told)?,
            },
        };
        texts.all.insert(name.to_owned(), text.to_owned());
        texts.changed();
        Ok(if old.is_none() {
            Put::Created
        } else {
            Put::Replaced
        })
    }

    /// Deletes a function and creates another one of its name. If that cannot be, the old one is there again.
    fn exchange(&self, name: &str, old: &str, text: &str) -> Result<ringfence_functions::Func, Failure> {
        let told = |e: FunctionError| Failure::of_function(name, &e);
        self.runtime.delete(name).map_err(told)?;
        self.runtime.create(name, &prelude::with(text)).map_err(|e| {
            if let Err(e) = self.runtime.create(name, &prelude::with(old)) {
                Failure::internal(&format_args!("client {}: {name} is gone: {e}", self.name));
            }
            told(e)
        })
    }

    /// Takes a function away.
    pub fn delete(&self, name: &str) -> Result<(), Failure> {
        let mut texts = self.texts();
        if !texts.all.contains_key(name) {
            return Err(Failure::new(
                StatusCode::NOT_FOUND,
                format!("there is no function {name}"),
            ));
        }
        self.runtime
            .delete(name)
            .map_err(|e| Failure::of_function(name, &e))?;
        texts.all.remove(name);
        texts.changed();
        Ok(())
    }

    /// Takes all functions of the client's own away. Memory and static data are as they were at first.
    pub fn begin_again(&self) -> Result<(), Failure> {
        let _alone = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        let mut texts = self.texts();
        for name in std::mem::take(&mut texts.all).keys() {
            self.runtime
                .delete(name)
                .map_err(|e| Failure::of_function(name, &e))?;
        }
        let begun = self.runtime.reset().and_then(|()| texts.begin(&self.runtime));
        begun.map_err(|e| Failure::internal(&e))
    }

    /// Whether all functions are there and take these arguments.
    pub fn check(&self, steps: &[Step]) -> Result<(), Failure> {
        for step in steps {
            let told = |e: FunctionError| Failure::of_function(&step.name, &e);
            let function = self.runtime.lookup(&step.name).map_err(told)?;
            function.check(&arguments(step, 0)).map_err(told)?;
        }
        Ok(())
    }

    /// Leads a picture through functions.
    pub fn apply(&self, steps: &[Step], picture: Picture) -> Result<Picture, Failure> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let (name, error) = {
                let _together = self.calls.read().unwrap_or_else(PoisonError::into_inner);
                match self.try_apply(steps, &picture) {
                    Ok(picture) => return Ok(picture),
                    Err(Stopped::Answered(failure)) => return Err(failure),
                    Err(Stopped::Failed(name, error)) => (name, error),
                }
            };
            self.mend();
            let others = match &error {
                FunctionError::Call(CallError::Fault(fault)) => fault.kind == FaultKind::Elsewhere,
                FunctionError::Call(CallError::Faulted { .. }) => true,
                _ => false,
            };
            if !others || tries == 0 {
                return Err(Failure::of_function(&name, &error));
            }
        }
    }

    /// Puts the runtime right after a call that has failed, when nobody is in it.
    fn mend(&self) {
        let _alone = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        if self.runtime.domain().faulted()
            && let Err(e) = self.runtime.reset()
        {
            Failure::internal(&format_args!(
                "client {}: its runtime was not reset: {e}",
                self.name
            ));
        }
    }

    fn try_apply(&self, steps: &[Step], picture: &Picture) -> Result<Picture, Stopped> {
        // Freed at the end, unless the runtime has failed: then a reset frees them.
        let _rooms = Rooms(&self.runtime);
        let memory = self.runtime.memory();
        let full = |e: ringfence::MemoryError| {
            Stopped::Answered(Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!(
                    "the picture does not fit into what is left of the functions' memory: {e}; if functions keep it, DELETE /functions \
                     takes all away"
                ),
            ))
        };
        let pixels = memory.put_slice(&picture.pixels).map_err(full)?;
        let raw = memory.put(picture.raw(pixels.ptr())).map_err(full)?;
        for step in steps {
            let name = &step.name;
            let failed = |e: FunctionError| match e {
                FunctionError::Call(_) => Stopped::Failed(name.clone(), e),
                e => Stopped::Answered(Failure::of_function(name, &e)),
            };
            let function = self.runtime.lookup(name).map_err(failed)?;
            let given = arguments(step, raw.ptr().address());
            let result = match function.call(&given).map_err(failed)? {
                Value::Int(n) => n,
                Value::Unsigned(n) => n as i64,
                _ => 0,
            };
            Failure::of_result(name, result).map_err(Stopped::Answered)?;
        }
        let last = steps.last().map_or("", |step| &step.name);
        let answered = |status, why: &dyn std::fmt::Display| {
            Stopped::Answered(Failure::new(status, format!("function {last}: {why}")))
        };
        let unreadable = |_| {
            let why = "the pixels that it left are not in its memory";
            answered(StatusCode::INTERNAL_SERVER_ERROR, &why)
        };
        // Its numbers are checked where they are used.
        let made = raw.read().map_err(unreadable)?.into_inner_unchecked();
        let made = Picture::read(memory, &made, self.pixels_limit).map_err(unreadable)?;
        made.ok_or_else(|| {
            let why = format!(
                "it left no picture: width and height from 1, {} pixels at most, 1, 3 or 4 channels",
                self.pixels_limit
            );
            answered(StatusCode::INTERNAL_SERVER_ERROR, &why)
        })
    }
}

/// What a function is called with: the picture comes first.
fn arguments(step: &Step, picture: u64) -> Vec<Value> {
    let mut all = vec![Value::Pointer(picture)];
    all.extend(&step.arguments);
    all
}

/// Why there is no picture.
enum Stopped {
    /// The runtime is as it was.
    Answered(Failure),
    /// A call of this function has failed.
    Failed(String, FunctionError),
}

/// Frees what functions have asked of `room`, when the picture is made.
struct Rooms<'a>(&'a Runtime);

impl Drop for Rooms<'_> {
    fn drop(&mut self) {
        let rooms = ROOMS.take();
        if !self.0.domain().faulted() {
            for at in rooms {
                // A function has freed it already, perhaps.
                let _ = self.0.memory().free(at);
            }
        }
    }
}

/// Compiles a client's text; places in errors are those of the text itself.
fn compiled(text: &str) -> Result<Compiled, Failure> {
    compile(&prelude::with(text)).map_err(|mut errors| {
        for error in &mut errors.0 {
            error.line = error.line.saturating_sub(prelude::lines());
        }
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, errors.to_string())
    })
}

/// Whether pictures can go through the function.
fn check_type(name: &str, compiled: &Compiled) -> Result<(), Failure> {
    let Some(function) = compiled.exports.iter().find(|e| e.name == name) else {
        let e = FunctionError::NotDefined {
            name: name.to_owned(),
        };
        return Err(Failure::of_function(name, &e));
    };
    let fits = match &function.params[..] {
        [Kind::Pointer, others @ ..] => others
            .iter()
            .all(|k| matches!(k, Kind::Bool | Kind::Int(..) | Kind::Float(4 | 8))),
        _ => false,
    };
    if fits && matches!(function.result, Kind::Void | Kind::Bool | Kind::Int(..)) {
        return Ok(());
    }
    let message = format!(
        "{name} has to be declared as `int {name}(struct picture *)`, with numbers as further parameters if it has some"
    );
    Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, message))
}

/// All clients, by their keys.
pub(crate) struct Clients {
    /// By what a key comes to, so that how long a look takes tells nothing of keys.
    by_key: HashMap<[u8; 32], Arc<Client>>,
    /// Whoever has no key: the standard functions, and no others.
    pub nobody: Arc<Client>,
}

impl Clients {
    pub fn new(
        keys: &[(String, String)],
        limits: &Limits,
        text_limit: u64,
        functions_limit: usize,
    ) -> Result<Self, FunctionError> {
        let client =
            |number, name: &str| Client::new(number, name, limits, text_limit, functions_limit).map(Arc::new);
        let mut by_key = HashMap::new();
        for (number, (name, key)) in (1..).zip(keys) {
            by_key.insert(Sha256::digest(key).into(), client(number, name)?);
        }
        Ok(Clients {
            by_key,
            nobody: client(0, "nobody")?,
        })
    }

    /// Whose key it is.
    pub fn find(&self, key: &str) -> Option<&Arc<Client>> {
        let sum: [u8; 32] = Sha256::digest(key).into();
        self.by_key.get(&sum)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn client() -> Client {
        let limits = Limits {
            time: Duration::from_secs(10),
            memory: 64 << 20,
            pixels: 1 << 20,
        };
        Client::new(1, "test", &limits, 1000, 8).expect("a client")
    }

    fn step(name: &str, arguments: &[i64]) -> Step {
        Step {
            name: name.to_owned(),
            arguments: arguments.iter().map(|&n| Value::Int(n)).collect(),
        }
    }

    fn picture(width: u32, height: u32) -> Picture {
        let pixels = (0..width * height * 3).map(|i| (i * 7) as u8).collect();
        Picture {
            width,
            height,
            channels: 3,
            pixels,
        }
    }

    #[test]
    fn pictures_go_through_the_standard_functions() {
        let client = client();
        let steps = [
            step("crop", &[1, 1, 4, 3]),
            step("scale", &[8, 9]),
            step("grey", &[]),
            step("quantise", &[2]),
        ];
        let made = client.apply(&steps, picture(10, 10)).expect("a picture");
        assert_eq!(
            (made.width, made.height, made.channels, made.pixels.len()),
            (8, 9, 1, 72)
        );
        assert!(
            made.pixels.iter().all(|&p| p == 0 || p == 255),
            "{:?}",
            made.pixels
        );
        let before = client.runtime.domain().memory_used();
        for _ in 0..50 {
            client.apply(&steps, picture(100, 100)).expect("a picture");
        }
        assert!(
            client.runtime.domain().memory_used() <= before + (1 << 20),
            "rooms are freed"
        );
    }

    #[test]
    fn errors_have_the_places_of_the_text() {
        let client = client();
        let failure = client
            .put("f", "int f(struct picture *p)\n{\n\treturn q;\n}\n")
            .expect_err("q");
        assert_eq!(failure.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            failure.message.starts_with("3:9: error: unknown name `q`"),
            "{}",
            failure.message
        );
        for (text, part) in [
            ("int g(struct picture *p) { return 0; }", "defines no function f"),
            (
                "int f(int n) { return n; }",
                "has to be declared as `int f(struct picture *)`",
            ),
            (
                "int f(struct picture *p) { return there(p); } int there(struct picture *);",
                "there",
            ),
        ] {
            let failure = client.put("f", text).expect_err(text);
            assert_eq!(
                failure.status,
                StatusCode::UNPROCESSABLE_ENTITY,
                "{}",
                failure.message
            );
            assert!(failure.message.contains(part), "{}", failure.message);
        }
        assert_eq!(client.text("f"), None);
    }

    #[test]
    fn functions_are_created_replaced_and_deleted() {
        let client = client();
        let first = client.version();
        let one = "int f(struct picture *p) { p->width = 1; return 0; }";
        assert_eq!(client.put("f", one).unwrap(), Put::Created);
        assert_ne!(client.version(), first);
        let wider = "int f(struct picture *p, int n) { p->width = n; return 0; }";
        assert_eq!(client.put("f", wider).unwrap(), Put::Replaced);
        let made = client.apply(&[step("f", &[3])], picture(5, 5)).unwrap();
        assert_eq!((made.width, made.pixels.len()), (3, 45));
        // One that cannot be linked leaves the old one.
        let missing = "int other(int); int f(struct picture *p) { return other(1); }";
        client.put("f", missing).expect_err("there is no other");
        assert!(client.apply(&[step("f", &[3])], picture(5, 5)).is_ok());
        client.delete("f").unwrap();
        assert_eq!(client.version(), first);
        let gone = client.apply(&[step("f", &[3])], picture(5, 5)).expect_err("gone");
        assert_eq!(gone.status, StatusCode::NOT_FOUND);
        assert_eq!(
            client.delete("f").expect_err("gone").status,
            StatusCode::NOT_FOUND
        );
    }

    #[test]
    fn a_failed_function_is_named_and_others_go_on() {
        let client = client();
        client
            .put("wild", "int wild(struct picture *p) { return *(int *)16; }")
            .unwrap();
        client
            .put(
                "lies",
                "int lies(struct picture *p) { p->height = 1 << 30; return 0; }",
            )
            .unwrap();
        client
            .put("no", "int no(struct picture *p) { return 7; }")
            .unwrap();
        for (name, status, part) in [
            (
                "wild",
                StatusCode::INTERNAL_SERVER_ERROR,
                "function wild: bad read",
            ),
            (
                "lies",
                StatusCode::INTERNAL_SERVER_ERROR,
                "function lies: it left no picture",
            ),
            ("no", StatusCode::UNPROCESSABLE_ENTITY, "it returned 7"),
        ] {
            let failure = client.apply(&[step(name, &[])], picture(5, 5)).expect_err(name);
            assert_eq!(failure.status, status, "{}", failure.message);
            assert!(failure.message.contains(part), "{}", failure.message);
            assert!(
                client.apply(&[step("grey", &[])], picture(5, 5)).is_ok(),
                "after {name}"
            );
        }
    }
}

//! The libraries, in pooled domains: one for each request, like new.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use ringfence::dynamic::Argument;
use ringfence::{
    Backend, Caller, Domain, DomainError, DomainOptions, Imports, LoadError, LoadOptions, Module, Pool, Ptr,
    Untrusted,
};
use ringfence_functions::Value;
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::input::Input;
use crate::output::Output;
use crate::picture::{Picture, Raw};
use crate::request::{Format, Step};
use crate::turns::Turn;

/// Most bytes that come in one step, either way; the module's buffers have 64 KiB, a row of pixels may have more.
const STEP: usize = 1 << 20;

/// What a request brings to its domain: where bytes come from and go to.
pub(crate) struct Way {
    pub input: Input,
    pub output: Output,
    pub turn: Turn,
    /// Why the input failed.
    failure: Option<Failure>,
}

impl Way {
    pub fn new(input: Input, output: Output, turn: Turn) -> Self {
        Way {
            input,
            output,
            turn,
            failure: None,
        }
    }
}

type Place = Arc<Mutex<Option<Way>>>;

fn lock(place: &Place) -> MutexGuard<'_, Option<Way>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A domain, and where the host's functions find what belongs to its request.
struct Member {
    domain: Domain,
    place: Place,
}

impl ringfence::Member for Member {
    fn domain(&self) -> &Domain {
        &self.domain
    }
}

/// How a step of the module ended: the numbers of `module/codec.h`.
mod status {
    pub const DONE: i32 = 0;
    pub const MALFORMED: i32 = 1;
    pub const UNKNOWN: i32 = 2;
    pub const TOO_LARGE: i32 = 3;
    pub const NO_MEMORY: i32 = 4;
    pub const NO_INPUT: i32 = 5;
    pub const NO_OUTPUT: i32 = 6;
}

/// Decoders and encoders.
pub(crate) struct Codec {
    pool: Pool<Member>,
    backend: Backend,
    /// The module's name, for messages.
    name: String,
    /// What the module's bytes come to.
    pub version: [u8; 32],
    pixels_limit: u64,
    memory_limit: u64,
}

/// The domains' limits.
pub(crate) struct Limits {
    pub time: Duration,
    pub memory: u64,
    pub pixels: u64,
}

/// Stacks for decoders, encoders and functions: none needs more, and there is one for each thread that has come by.
const DATA_STACK: u32 = 1 << 20;

/// Heap that a domain keeps for its next picture: one of 2000 × 1333, decoded at half its size, takes 3.2 MB.
const IDLE_HEAP: u64 = 8 << 20;

/// The options of domains that do a client's work.
pub(crate) fn domain_options(limits: &Limits) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.time_limit = Some(limits.time);
    options.memory_limit = limits.memory;
    options.data_stack = DATA_STACK;
    options.idle_heap = IDLE_HEAP;
    options
}

/// What the server uses of the module.
const EXPORTS: [&str; 7] = [
    "transcode_decode",
    "transcode_format",
    "transcode_encode",
    "transcode_picture",
    "transcode_room",
    "transcode_message",
    "transcode_clear",
];

/// The module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The file is no module.
    #[error("{0}; apps/transcode/build.sh builds the module, --module names it")]
    Load(#[from] LoadError),
    /// It is somebody else's module.
    #[error("{module} is no module of apps/transcode/build.sh: it has no {name}")]
    Foreign {
        /// The file.
        module: String,
        /// What it does not export.
        name: &'static str,
    },
    /// No domain can be made of it.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl Codec {
    /// Loads the module, and makes `ready` domains.
    pub fn new(
        module: &std::path::Path,
        backend: Backend,
        limits: &Limits,
        ready: usize,
        most: usize,
    ) -> Result<Self, CodecError> {
        let mut load = LoadOptions::default();
        load.backend = backend;
        let loaded = Module::open_with(module, &load)?;
        let missing = |name: &&&str| !loaded.exports().iter().any(|e| e.name == **name);
        if let Some(name) = EXPORTS.iter().find(missing) {
            let module = module.display().to_string();
            return Err(CodecError::Foreign { module, name });
        }
        let mut options = match backend {
            // It has no limits.
            Backend::None => DomainOptions::default(),
            _ => domain_options(limits),
        };
        options.backend = backend;
        let name = module
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let version = Sha256::digest(loaded.original()).into();
        let pool = Pool::new(most, move || {
            let place = Place::default();
            let domain = Domain::instantiate(std::slice::from_ref(&loaded), imports(&place), &options)?;
            Ok(Member { domain, place })
        });
        pool.fill(ready)?;
        Ok(Codec {
            pool,
            backend,
            name,
            version,
            pixels_limit: limits.pixels,
            memory_limit: limits.memory,
        })
    }

    /// Whether functions come as text; else those of the module are called.
    pub fn takes_text(&self) -> bool {
        self.backend == Backend::Window
    }

    /// How many domains wait.
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// A clean domain for a request. If there is none, the request has back what it brought.
    pub fn pass(&self, way: Way) -> Result<Pass<'_>, Box<(Way, Failure)>> {
        match self.pool.take_out() {
            Ok(member) => {
                *lock(&member.place) = Some(way);
                Ok(Pass {
                    codec: self,
                    member: Some(member),
                })
            }
            Err(e) => Err(Box::new((way, Failure::internal(&e)))),
        }
    }
}

/// The functions that the module calls.
fn imports(place: &Place) -> Imports {
    let (reads, writes) = (place.clone(), place.clone());
    Imports::new()
        .func(
            "transcode_read",
            move |caller: &Caller<'_>, into: Ptr<u8>, room: u64| -> Result<i64, ringfence::Error> {
                let mut way = lock(&reads);
                let Some(way) = way.as_mut() else { return Ok(-1) };
                let room = usize::try_from(room).unwrap_or(STEP).min(STEP);
                match caller.wait(|| way.input.read(room, &way.turn)) {
                    Ok(bytes) => {
                        caller.memory().write_slice(into, &bytes)?;
                        Ok(bytes.len() as i64)
                    }
                    Err(failure) => {
                        way.failure = Some(failure);
                        Ok(-1)
                    }
                }
            },
        )
        .func(
            "transcode_write",
            move |caller: &Caller<'_>, from: Ptr<u8>, length: u64| -> Result<i32, ringfence::Error> {
                let mut way = lock(&writes);
                let Some(way) = way.as_mut() else { return Ok(1) };
                let (mut from, mut left) = (from, length);
                while left > 0 {
                    let some = left.min(STEP as u64);
                    // Any bytes may be sent.
                    let bytes = caller
                        .memory()
                        .read_vec(from, some as usize)?
                        .into_inner_unchecked();
                    if caller.wait(|| way.output.write(bytes, &way.turn)).is_err() {
                        return Ok(1);
                    }
                    from = from.wrapping_add(some);
                    left -= some;
                }
                Ok(0)
            },
        )
}

/// A request's domain. It goes back when this is dropped, and is made like new.
pub(crate) struct Pass<'a> {
    codec: &'a Codec,
    /// `None` only while it is dropped.
    member: Option<Member>,
}

impl Pass<'_> {
    fn member(&self) -> &Member {
        self.member.as_ref().expect("there until this is dropped")
    }

    fn domain(&self) -> &Domain {
        &self.member().domain
    }

    /// Decodes the input, smaller if it has to fit into `width` times `height`. In which format it came.
    pub fn decode(&self, width: u32, height: u32) -> Result<Format, Failure> {
        let decode = self.domain().func::<(u32, u32, u64), i32>("transcode_decode");
        let decode = decode.map_err(|e| Failure::internal(&e))?;
        let ended = decode.call(width, height, self.codec.pixels_limit);
        self.check(ended)?;
        let at = self.object::<i32>("transcode_format")?;
        let format = self.domain().memory().read::<i32>(at);
        let format = format.map_err(|e| Failure::internal(&e))?;
        format
            .validate(|n| Format::of_number(n).ok_or(n))
            .map_err(|n| Failure::internal(&format_args!("{}: format {n}", self.codec.name)))
    }

    /// Encodes the picture; what comes goes to the output.
    pub fn encode(&self, format: Format, quality: u32) -> Result<(), Failure> {
        let encode = self.domain().func::<(i32, u32), i32>("transcode_encode");
        let encode = encode.map_err(|e| Failure::internal(&e))?;
        self.check(encode.call(format as i32, quality))
    }

    /// The picture, as the host's.
    pub fn picture(&self) -> Result<Picture, Failure> {
        let memory = self.domain().memory();
        let raw = memory.read::<Raw>(self.object::<Raw>("transcode_picture")?);
        // Its numbers are checked where they are used.
        let raw = raw.map_err(|e| Failure::internal(&e))?.into_inner_unchecked();
        let picture = Picture::read(memory, &raw, self.codec.pixels_limit);
        let picture = picture.map_err(|e| self.failed(&e))?;
        picture.ok_or_else(|| self.failed(&"it made no picture"))
    }

    /// Puts another picture in its place.
    pub fn put(&self, picture: &Picture) -> Result<(), Failure> {
        let room = self.domain().func::<(u64,), Ptr<u8>>("transcode_room");
        let room = room.map_err(|e| Failure::internal(&e))?;
        let at = room.call(picture.pixels.len() as u64);
        let at = at.map_err(|e| Failure::of_call(&self.codec.name, &e))?;
        // The memory functions check it.
        let at = at.into_inner_unchecked();
        if at.is_null() {
            return Err(self.no_memory());
        }
        let memory = self.domain().memory();
        let object = self.object::<Raw>("transcode_picture")?;
        memory
            .write_slice(at, &picture.pixels)
            .and_then(|()| memory.write(object, picture.raw(at)))
            .map_err(|e| self.failed(&e))
    }

    /// Calls a function of the module: where no text comes.
    pub fn apply(&self, step: &Step) -> Result<(), Failure> {
        let known = crate::clients::STANDARD
            .iter()
            .any(|(name, _)| *name == step.name);
        let found = known.then(|| self.domain().function(&step.name).ok()).flatten();
        let function = found.ok_or_else(|| {
            let message = format!(
                "there is no function {} (--backend {})",
                step.name, self.codec.backend
            );
            Failure::new(StatusCode::NOT_FOUND, message)
        })?;
        let mut arguments = vec![Argument::Int(self.object::<Raw>("transcode_picture")?.address())];
        for value in &step.arguments {
            match *value {
                Value::Int(n) => arguments.push(Argument::Int(n as u64)),
                _ => {
                    let message = format!("{} takes whole numbers", step.name);
                    return Err(Failure::new(StatusCode::BAD_REQUEST, message));
                }
            }
        }
        let done = function.call(arguments);
        let done = done.map_err(|e| Failure::of_call(&self.codec.name, &e))?;
        // Those of the module all return `int`.
        Failure::of_result(&step.name, i64::from(done.int as i32))
    }

    fn object<T>(&self, name: &str) -> Result<Ptr<T>, Failure> {
        let found = self.domain().object::<T>(name);
        found.ok_or_else(|| Failure::internal(&format_args!("{} has no {name}", self.codec.name)))
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{}: {why}", self.codec.name),
        )
    }

    fn no_memory(&self) -> Failure {
        Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the picture needs more than {} bytes (--memory-limit)",
                self.codec.memory_limit
            ),
        )
    }

    /// What the end of a step means.
    fn check(&self, ended: Result<Untrusted<i32>, ringfence::CallError>) -> Result<(), Failure> {
        let ended = ended.map_err(|e| Failure::of_call(&self.codec.name, &e))?;
        // Numbers that are none of these are the last line.
        let code = match ended.into_inner_unchecked() {
            status::DONE => return Ok(()),
            status::NO_INPUT => {
                let why = lock(&self.member().place)
                    .as_mut()
                    .and_then(|way| way.failure.take());
                return Err(why.unwrap_or_else(|| self.failed(&"it says that its input failed")));
            }
            status::NO_OUTPUT => {
                return Err(Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "nobody takes the picture",
                ));
            }
            status::NO_MEMORY => return Err(self.no_memory()),
            status::MALFORMED => StatusCode::UNPROCESSABLE_ENTITY,
            status::UNKNOWN => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            status::TOO_LARGE => {
                let message = format!(
                    "{}: more than {} (--pixels-limit)",
                    self.message()?,
                    self.codec.pixels_limit
                );
                return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            other => return Err(self.failed(&format_args!("it answered {other}"))),
        };
        Err(Failure::new(code, self.message()?))
    }

    /// What the library said, in letters that harm nobody.
    fn message(&self) -> Result<String, Failure> {
        let at = self.object::<u8>("transcode_message")?;
        let text = self.domain().memory().read_c_string(at, 200);
        let text = text.map_err(|e| self.failed(&e))?.into_inner_unchecked();
        let plain = |&b: &u8| if (0x20..0x7f).contains(&b) { b as char } else { '?' };
        Ok(text.iter().map(plain).collect())
    }

    /// Runs `f` with what the request brought.
    pub fn with_way<T>(&self, f: impl FnOnce(&mut Way) -> T) -> T {
        f(lock(&self.member().place)
            .as_mut()
            .expect("there until this ends"))
    }

    /// Gives the domain back, and with it what the request brought.
    pub fn end(mut self) -> Way {
        let way = lock(&self.member().place).take();
        self.give_back();
        way.expect("nobody else takes it")
    }

    fn give_back(&mut self) {
        let Some(member) = self.member.take() else { return };
        *lock(&member.place) = None;
        // What the libraries have allocated, no reset takes away there.
        if self.codec.backend == Backend::None
            && let Ok(clear) = member.domain.func::<(), ()>("transcode_clear")
        {
            // There is nothing to be done about a failure: it would have ended the process.
            let _ = clear.call();
        }
        self.codec.pool.give(member);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

//! The libraries in instances of a WebAssembly module, one for each request: what `apps/transcode/src/codec.rs` does with domains.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use ringfence::{Backend, DomainOptions};
use ringfence_functions::Value;
use sha2::{Digest, Sha256};
use wasmtime::{
    AsContextMut, Caller, Config, Engine, InstanceAllocationStrategy, InstancePre, Linker, Memory, Module,
    PoolingAllocationConfig, Store, StoreLimits, StoreLimitsBuilder, Trap, Val, WasmParams,
};

use crate::failure::Failure;
use crate::input::Input;
use crate::output::Output;
use crate::picture::Picture;
use crate::request::{Format, Step};
use crate::turns::Turn;

/// Most bytes that come in one step, either way.
const STEP: u32 = 1 << 20;

/// How often time limits are looked at: an epoch of Wasmtime's.
const EPOCH: Duration = Duration::from_millis(10);

/// What a request brings: where bytes come from and go to.
pub(crate) struct Way {
    pub input: Input,
    pub output: Output,
    pub turn: Turn,
}

impl Way {
    pub fn new(input: Input, output: Output, turn: Turn) -> Self {
        Way { input, output, turn }
    }
}

/// What belongs to an instance.
struct Host {
    way: Way,
    /// Why the input failed.
    failure: Option<Failure>,
    /// The number with which the module ended its step before its time.
    stopped: Option<i32>,
    limits: StoreLimits,
    memory: Option<Memory>,
    /// When the call has to be at its end.
    until: Instant,
}

/// What is compiled once, for all requests.
type Ready = InstancePre<Host>;

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

/// The domains' limits; here those of instances.
pub(crate) struct Limits {
    pub time: Duration,
    pub memory: u64,
    pub pixels: u64,
}

/// The options of the clients' runtimes, which take no text here.
pub(crate) fn domain_options(limits: &Limits) -> DomainOptions {
    let mut options = DomainOptions::default();
    options.time_limit = Some(limits.time);
    options.memory_limit = limits.memory;
    options
}

/// The module cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}; apps/transcode/wasmtime/build.sh builds the module, --module names it")]
pub struct CodecError(#[from] wasmtime::Error);

/// Decoders and encoders.
pub(crate) struct Codec {
    module: Ready,
    /// The module's name, for messages.
    name: String,
    /// How many instances may still be made.
    free: AtomicUsize,
    limits: Limits,
    /// What the module's bytes come to.
    pub version: [u8; 32],
}

impl Codec {
    /// Compiles the module; instances come from a pool of Wasmtime's.
    pub fn new(
        module: &std::path::Path,
        _backend: Backend,
        limits: &Limits,
        _ready: usize,
        most: usize,
    ) -> Result<Self, CodecError> {
        let bytes = std::fs::read(module).map_err(wasmtime::Error::from)?;
        let mut pool = PoolingAllocationConfig::default();
        let count = u32::try_from(most).unwrap_or(u32::MAX);
        pool.total_core_instances(count)
            .total_memories(count)
            .total_tables(count);
        pool.max_memory_size(usize::try_from(limits.memory).unwrap_or(usize::MAX).min(1 << 32));
        let mut config = Config::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        config.epoch_interruption(true);
        let engine = Engine::new(&config)?;
        let compiled = Module::new(&engine, &bytes)?;
        let mut linker = Linker::new(&engine);
        imports(&mut linker)?;
        linker.define_unknown_imports_as_traps(&compiled)?;
        let ready = linker.instantiate_pre(&compiled)?;
        let name = module
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let ticking = engine.weak();
        std::thread::spawn(move || {
            while let Some(engine) = ticking.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(EPOCH);
            }
        });
        Ok(Codec {
            module: ready,
            name,
            free: AtomicUsize::new(most),
            limits: Limits { ..*limits },
            version: Sha256::digest(&bytes).into(),
        })
    }

    /// Functions do not come as text.
    pub fn takes_text(&self) -> bool {
        false
    }

    /// How many instances may still be made.
    pub fn waiting(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// An instance for a request. If there is none, the request has back what it brought.
    pub fn pass(&self, way: Way) -> Result<Pass<'_>, Box<(Way, Failure)>> {
        let memory = usize::try_from(self.limits.memory).unwrap_or(usize::MAX);
        let host = Host {
            way,
            failure: None,
            stopped: None,
            limits: StoreLimitsBuilder::new().memory_size(memory).build(),
            memory: None,
            until: Instant::now(),
        };
        let mut store = Store::new(self.module.module().engine(), host);
        store.limiter(|host| &mut host.limits);
        allow(&mut store, self.limits.time);
        match begin(&self.module, &mut store) {
            Ok(instance) => {
                self.free.fetch_sub(1, Ordering::Relaxed);
                Ok(Pass {
                    codec: self,
                    store: Some(RefCell::new(store)),
                    instance,
                })
            }
            Err(e) => Err(Box::new((store.into_data().way, Failure::internal(&e)))),
        }
    }
}

/// An instance whose libc is ready.
fn begin(module: &Ready, store: &mut Store<Host>) -> wasmtime::Result<wasmtime::Instance> {
    let instance = module.instantiate(&mut *store)?;
    let memory = instance.get_memory(&mut *store, "memory");
    store.data_mut().memory = memory;
    if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut *store, "_initialize") {
        initialize.call(&mut *store, ())?;
    }
    Ok(instance)
}

/// So long a call may take from now on.
fn allow(store: &mut Store<Host>, time: Duration) {
    store.data_mut().until = Instant::now() + time;
    store.set_epoch_deadline(epochs(time));
}

/// Epochs that end behind `time`, for the first has begun already.
fn epochs(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(EPOCH.as_nanos())).map_or(u64::MAX / 2, |n| n + 1)
}

/// Runs what may wait, which does not count for the time limit.
fn waiting<T>(caller: &mut Caller<'_, Host>, f: impl FnOnce(&mut Host) -> T) -> T {
    let host = caller.data_mut();
    let begun = Instant::now();
    let done = f(host);
    let now = Instant::now();
    host.until += now - begun;
    let left = host.until.saturating_duration_since(now);
    caller.as_context_mut().set_epoch_deadline(epochs(left));
    done
}

/// The functions that the module calls.
fn imports(linker: &mut Linker<Host>) -> wasmtime::Result<()> {
    linker.func_wrap(
        "env",
        "transcode_read",
        |mut caller: Caller<'_, Host>, into: u32, room: u32| -> wasmtime::Result<i32> {
            let room = room.min(STEP) as usize;
            let read = waiting(&mut caller, |host| host.way.input.read(room, &host.way.turn));
            match read {
                Ok(bytes) => {
                    let memory = caller.data().memory.expect("the instance was begun");
                    memory.write(&mut caller, into as usize, &bytes)?;
                    Ok(bytes.len() as i32)
                }
                Err(failure) => {
                    caller.data_mut().failure = Some(failure);
                    Ok(-1)
                }
            }
        },
    )?;
    linker.func_wrap(
        "env",
        "transcode_write",
        |mut caller: Caller<'_, Host>, from: u32, length: u32| -> wasmtime::Result<i32> {
            let memory = caller.data().memory.expect("the instance was begun");
            let end = from as usize + length as usize;
            let all = memory.data(&caller).get(from as usize..end);
            let pieces: Vec<Vec<u8>> = all
                .ok_or_else(|| wasmtime::Error::msg("what is written lies outside of the memory"))?
                .chunks(STEP as usize)
                .map(<[u8]>::to_vec)
                .collect();
            for bytes in pieces {
                let written = waiting(&mut caller, |host| host.way.output.write(bytes, &host.way.turn));
                if written.is_err() {
                    return Ok(1);
                }
            }
            Ok(0)
        },
    )?;
    linker.func_wrap(
        "env",
        "transcode_stop",
        |mut caller: Caller<'_, Host>, number: i32| -> wasmtime::Result<()> {
            caller.data_mut().stopped = Some(number);
            Err(wasmtime::Error::msg("the step has given up"))
        },
    )?;
    Ok(())
}

/// A request's instance, which ends with it.
pub(crate) struct Pass<'a> {
    codec: &'a Codec,
    /// `None` only while it ends. It and its instance are used by one thread.
    store: Option<RefCell<Store<Host>>>,
    instance: wasmtime::Instance,
}

impl Pass<'_> {
    fn store(&self) -> std::cell::RefMut<'_, Store<Host>> {
        self.store
            .as_ref()
            .expect("there until this is dropped")
            .borrow_mut()
    }

    /// Decodes the input, smaller if it has to fit into `width` times `height`. In which format it came.
    pub fn decode(&self, width: u32, height: u32) -> Result<Format, Failure> {
        let most = u32::try_from(self.codec.limits.pixels).unwrap_or(u32::MAX);
        self.step("transcode_decode", (width, height, most))?;
        let [format] = self.numbers("transcode_format")?;
        Format::of_number(format).ok_or_else(|| self.failed(&format_args!("format {format}")))
    }

    /// Encodes the picture; what comes goes to the output.
    pub fn encode(&self, format: Format, quality: u32) -> Result<(), Failure> {
        self.step("transcode_encode", (format as i32, quality))
    }

    /// Not here: pictures stay in their instance.
    pub fn picture(&self) -> Result<Picture, Failure> {
        Err(self.failed(&"functions do not come as text"))
    }

    /// Not here either.
    pub fn put(&self, _picture: &Picture) -> Result<(), Failure> {
        Err(self.failed(&"functions do not come as text"))
    }

    /// Calls a function of the module.
    pub fn apply(&self, step: &Step) -> Result<(), Failure> {
        let known = crate::clients::STANDARD
            .iter()
            .any(|(name, _)| *name == step.name);
        let mut store = self.store();
        let found = known
            .then(|| self.instance.get_func(&mut *store, &step.name))
            .flatten();
        let function = found.ok_or_else(|| {
            Failure::new(
                StatusCode::NOT_FOUND,
                format!("there is no function {}", step.name),
            )
        })?;
        let wanted = function.ty(&*store).params().len() - 1;
        if step.arguments.len() != wanted {
            let message = format!("{} takes {wanted} arguments", step.name);
            return Err(Failure::new(StatusCode::BAD_REQUEST, message));
        }
        let mut arguments = vec![Val::I32(self.address(&mut store, "transcode_picture")?)];
        for value in &step.arguments {
            match *value {
                Value::Int(n) => arguments.push(Val::I32(n as i32)),
                _ => {
                    let message = format!("{} takes whole numbers", step.name);
                    return Err(Failure::new(StatusCode::BAD_REQUEST, message));
                }
            }
        }
        let mut result = [Val::I32(0)];
        allow(&mut store, self.codec.limits.time);
        let called = function.call(&mut *store, &arguments, &mut result);
        called.map_err(|e| self.trapped(&e))?;
        let [result] = result;
        let result = result
            .i32()
            .ok_or_else(|| self.failed(&format_args!("{} returns no int", step.name)))?;
        Failure::of_result(&step.name, i64::from(result))
    }

    /// Calls one of the module's steps.
    fn step<P: WasmParams>(&self, name: &str, params: P) -> Result<(), Failure> {
        let mut store = self.store();
        let function = self.instance.get_typed_func::<P, i32>(&mut *store, name);
        let function = function.map_err(|e| Failure::internal(&e))?;
        allow(&mut store, self.codec.limits.time);
        let ended = function.call(&mut *store, params);
        let stopped = store.data_mut().stopped.take();
        let failure = store.data_mut().failure.take();
        drop(store);
        let code = match (ended, stopped) {
            (Ok(number), _) | (Err(_), Some(number)) => number,
            (Err(e), None) => return Err(self.trapped(&e)),
        };
        let code = match code {
            status::DONE => return Ok(()),
            status::NO_INPUT => {
                return Err(failure.unwrap_or_else(|| self.failed(&"it says that its input failed")));
            }
            status::NO_OUTPUT => {
                return Err(Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "nobody takes the picture",
                ));
            }
            status::NO_MEMORY => {
                let message = format!(
                    "the picture needs more than {} bytes (--memory-limit)",
                    self.codec.limits.memory
                );
                return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            status::TOO_LARGE => {
                let message = format!(
                    "{}: more than {} (--pixels-limit)",
                    self.message()?,
                    self.codec.limits.pixels
                );
                return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            status::MALFORMED => StatusCode::UNPROCESSABLE_ENTITY,
            status::UNKNOWN => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            other => return Err(self.failed(&format_args!("it answered {other}"))),
        };
        Err(Failure::new(code, self.message()?))
    }

    /// Where an object of the module is.
    fn address(&self, store: &mut Store<Host>, name: &str) -> Result<i32, Failure> {
        let global = self.instance.get_global(&mut *store, name);
        let address = global.and_then(|global| global.get(&mut *store).i32());
        address.ok_or_else(|| Failure::internal(&format_args!("the module has no {name}")))
    }

    /// Numbers of an object.
    fn numbers<const N: usize>(&self, name: &str) -> Result<[i32; N], Failure> {
        let mut numbers = [0; N];
        let mut bytes = vec![0; 4 * N];
        self.read(name, &mut bytes)?;
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
            *number = i32::from_le_bytes(bytes.try_into().expect("four"));
        }
        Ok(numbers)
    }

    fn read(&self, name: &str, into: &mut [u8]) -> Result<(), Failure> {
        let mut store = self.store();
        let at = self.address(&mut store, name)?.cast_unsigned() as usize;
        let memory = store.data().memory.expect("the instance was begun");
        memory.read(&*store, at, into).map_err(|e| Failure::internal(&e))
    }

    /// What the library said, in letters that harm nobody.
    fn message(&self) -> Result<String, Failure> {
        let mut text = [0; 200];
        self.read("transcode_message", &mut text)?;
        let plain = |&b: &u8| if (0x20..0x7f).contains(&b) { b as char } else { '?' };
        Ok(text.iter().take_while(|&&b| b != 0).map(plain).collect())
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{}: {why}", self.codec.name),
        )
    }

    fn trapped(&self, error: &wasmtime::Error) -> Failure {
        match error.downcast_ref::<Trap>() {
            Some(Trap::Interrupt) => {
                let message = format!("{}: it took too long", self.codec.name);
                Failure::new(StatusCode::GATEWAY_TIMEOUT, message)
            }
            _ => self.failed(&error.root_cause()),
        }
    }

    /// Runs `f` with what the request brought.
    pub fn with_way<T>(&self, f: impl FnOnce(&mut Way) -> T) -> T {
        f(&mut self.store().data_mut().way)
    }

    /// Ends the instance; what the request brought is left.
    pub fn end(mut self) -> Way {
        let store = self.store.take().expect("nobody else takes it");
        store.into_inner().into_data().way
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.store = None;
        self.codec.free.fetch_add(1, Ordering::Relaxed);
    }
}

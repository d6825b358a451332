//! Ordinary shared objects as a domain.

use crate::Module;
use crate::imports::{Table, table};
use crate::library::Library;
use ringfence_calls::{Pointer, Then, peer};
use ringfence_core::{
    Backend, Call, CallError, DomainError, DomainOptions, DomainRef, Ended, ExportKind, Feature, Given,
    HostError, Instance, LimitHit, MemoryError, OutFrame, Reporting, Returned, Signature, Space, SpawnError,
    Syscall, Unsupported, Usage, thread,
};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How many words of stack arguments a call may have.
const MOST_WORDS: usize = 128;

/// Bytes of a spawned thread's stack.
const STACK: usize = 2 << 20;

/// Ordinary shared objects that were loaded together.
pub struct Domain(Arc<Inner>);

pub(crate) struct Inner {
    me: Weak<Inner>,
    name: String,
    libraries: Vec<Library>,
    reporting: Reporting,
    pub(crate) imports: Table,
    /// Function pointers by function and words on the stack.
    thunks: Mutex<BTreeMap<(u64, u8), Pointer>>,
    /// A call was given up: no more of them until the next reset.
    closed: Arc<AtomicBool>,
    /// How.
    first: Arc<Mutex<Option<CallError>>>,
    faults: AtomicU64,
    resets: AtomicU64,
    /// Whether destructors have run since the last reset.
    ended: AtomicBool,
    /// What the host has allocated.
    allocations: Mutex<BTreeMap<u64, Layout>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Domain {
    /// Loads a private copy of each module, gives them each other's exports and the host's functions, and runs constructors.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn new(
        modules: &[Module],
        given: &Given,
        options: &DomainOptions,
        reporting: Reporting,
    ) -> Result<Domain, DomainError> {
        if options.any_set() {
            Backend::None.require(Feature::Limits)?;
        }
        let Some(first) = modules.first() else {
            return Err(DomainError::Layout {
                reason: "no module was given".to_owned(),
            });
        };
        let wanted = || modules.iter().flat_map(|m| &m.0.object.undefined);
        let mut failed = Ok(());
        let inner = Arc::new_cyclic(|me| {
            let made = Self::load(me, modules, given, reporting, wanted().map(|u| &*u.name));
            let (libraries, imports) = made.unwrap_or_else(|e| {
                failed = Err(e);
                Default::default()
            });
            Inner {
                me: me.clone(),
                name: first.name().to_owned(),
                libraries,
                reporting,
                imports,
                thunks: Mutex::default(),
                closed: Arc::default(),
                first: Arc::default(),
                faults: AtomicU64::new(0),
                resets: AtomicU64::new(0),
                // Until constructors have run.
                ended: AtomicBool::new(true),
                allocations: Mutex::default(),
            }
        });
        failed?;
        inner.construct()?;
        Ok(Domain(inner))
    }

    fn load<'a>(
        me: &Weak<Inner>,
        modules: &[Module],
        given: &Given,
        reporting: Reporting,
        wanted: impl Iterator<Item = &'a str>,
    ) -> Result<(Vec<Library>, Table), DomainError> {
        let imports = table(me, reporting, &given.functions, wanted)?;
        let exported = |name: &str| {
            let all = modules.iter().flat_map(Module::exports);
            all.into_iter()
                .any(|e| e.name == name && e.kind != ExportKind::ThreadLocal)
        };
        let mut libraries = Vec::with_capacity(modules.len());
        for module in modules {
            libraries.push(Library::open(module, |name| {
                imports.find(name).is_some() || exported(name)
            })?);
        }
        let address_of = |name: &str| {
            let exported = libraries.iter().find_map(|l: &Library| l.symbol(name));
            exported.or_else(|| imports.find(name))
        };
        for library in &libraries {
            library.fill(address_of)?;
        }
        for library in &mut libraries {
            library.keep()?;
        }
        Ok((libraries, imports))
    }
}

impl Inner {
    /// The call that is in progress on this thread has failed.
    pub(crate) fn fail(&self, error: CallError) {
        lock(&self.first).get_or_insert_with(|| error.clone());
        self.closed.store(true, Ordering::Release);
        if !matches!(error, CallError::Exit(_)) {
            self.faults.fetch_add(1, Ordering::Relaxed);
        }
        (self.reporting.fail)(error);
    }

    fn pointer(&self, function: u64, words: u8) -> Result<*const c_void, HostError> {
        let mut thunks = lock(&self.thunks);
        if let Some(known) = thunks.get(&(function, words)) {
            return Ok(known.code());
        }
        let (fail, first) = (self.reporting.fail, self.first.clone());
        // SAFETY: the host says what is there and with what it may be called: that is what this back end is.
        let made = unsafe {
            Pointer::thunk(
                self.reporting,
                function,
                words,
                self.closed.clone(),
                Arc::new(move |_| {
                    let first = lock(&first).clone().map(Box::new);
                    fail(CallError::Faulted { first });
                    Then::Return
                }),
            )
        }?;
        let code = made.code();
        thunks.insert((function, words), made);
        Ok(code)
    }

    fn call(&self, function: u64, call: &Call<'_>) -> Result<Returned, CallError> {
        let given = call.stack.len();
        let words = u8::try_from(given).ok().filter(|_| given <= MOST_WORDS);
        let words = words.ok_or(CallError::Arguments {
            given,
            limit: MOST_WORDS,
        })?;
        let code = self
            .pointer(function, words)
            .map_err(|e| CallError::Lane(e.to_string()))?;
        let mut frame = OutFrame::new(self);
        frame.ints = call.ints;
        frame.vectors = call.floats.map(|x| [x.to_bits(), 0]);
        frame.rax = 8;
        // SAFETY: as in `pointer`.
        let returned = unsafe { ringfence_calls::call(code, &frame, call.stack) };
        match (self.reporting.take)() {
            None => Ok(returned),
            Some(error) => Err(error),
        }
    }

    fn construct(&self) -> Result<(), DomainError> {
        for library in &self.libraries {
            for function in library.constructors() {
                // As the linker does: arguments and environment.
                self.call(function, &Call::default())
                    .map_err(|source| DomainError::Init {
                        module: library.module.name().to_owned(),
                        source: Box::new(source),
                    })?;
            }
        }
        self.ended.store(false, Ordering::Release);
        Ok(())
    }

    fn destruct(&self) -> Result<(), DomainError> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        for library in self.libraries.iter().rev() {
            for function in library.destructors() {
                self.call(function, &Call::default())
                    .map_err(|source| DomainError::Fini {
                        module: library.module.name().to_owned(),
                        source: Box::new(source),
                    })?;
            }
        }
        Ok(())
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        self.libraries.iter().find_map(|l| l.symbol(name))
    }

    fn free_all(&self) {
        for (at, layout) in std::mem::take(&mut *lock(&self.allocations)) {
            // SAFETY: made by `alloc` with this layout.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // As `dlclose` does; those that were registered with `atexit` must not be called when the code is gone.
        self.0.closed.store(false, Ordering::Release);
        let _ = self.0.destruct();
        let _ = (self.0.reporting.take)();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.free_all();
    }
}

impl Space for Inner {
    fn base(&self) -> u64 {
        0
    }

    fn size(&self) -> u64 {
        u64::MAX
    }

    fn translate(&self, pointer: u64) -> u64 {
        pointer
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn resets(&self) -> u64 {
        self.resets.load(Ordering::Acquire)
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        peer::read(None, address, to)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        peer::write(None, address, from)
    }

    fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        if !align.is_power_of_two() || align > ringfence_isa::PAGE {
            return Err(MemoryError::Alignment { align });
        }
        let used = self.memory_used();
        let over = MemoryError::Limit {
            wanted: len,
            used,
            limit: u64::MAX,
        };
        let layout = Layout::from_size_align(len.max(1) as usize, align as usize).map_err(|_| over)?;
        // SAFETY: the size is not 0.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() {
            return Err(over);
        }
        lock(&self.allocations).insert(at as u64, layout);
        Ok(at as u64)
    }

    fn free(&self, address: u64, resets: Option<u64>) -> Result<(), MemoryError> {
        let mut allocations = lock(&self.allocations);
        if resets.is_some_and(|resets| resets != self.resets()) {
            return Ok(());
        }
        let layout = allocations
            .remove(&address)
            .ok_or(MemoryError::NotAllocated { address })?;
        // SAFETY: made by `alloc` with this layout.
        unsafe { std::alloc::dealloc(address as *mut u8, layout) };
        Ok(())
    }

    fn memory_used(&self) -> u64 {
        lock(&self.allocations).values().map(|l| l.size() as u64).sum()
    }

    fn memory_call(&self, _call: &Syscall) -> Option<i64> {
        None
    }

    fn ending(&self) -> bool {
        false
    }

    /// Nothing here can end a call: [`Instance::interrupt`] says so.
    fn interrupt(&self) {}

    fn limit_reached(&self, _hit: &LimitHit) -> Option<u64> {
        None
    }

    fn find(&self, module: Option<&str>, name: &str) -> Option<u64> {
        match module {
            None => self.symbol(name),
            // None was added.
            Some(_) => None,
        }
    }

    fn spawn(&self, function: u64, argument: u64, ended: Ended) -> Result<(), SpawnError> {
        let domain = self.me.upgrade().ok_or(CallError::Gone)?;
        if !domain.libraries.iter().any(|l| l.has_code(function)) {
            return Err(SpawnError::NoEntry(function));
        }
        let run = move || ended(domain.call(function, &Call::ints(&[argument])).map(drop));
        thread::spawn(c"ringfence-spawn", STACK, run)
            .map_err(|e| CallError::Lane(format!("no thread: {e}")))?;
        Ok(())
    }

    fn own(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
}

impl Instance for Domain {
    fn backend(&self) -> Backend {
        Backend::None
    }

    fn space(&self) -> DomainRef<'_> {
        DomainRef::of(&*self.0)
    }

    fn function(&self, name: &str) -> Result<u64, DomainError> {
        let name = || name.to_owned();
        let exports = || self.0.libraries.iter().flat_map(|l| l.module.exports());
        match exports().find(|e| e.name == name()) {
            Some(e) if e.kind == ExportKind::Function => self
                .0
                .symbol(&e.name)
                .ok_or(DomainError::NoExport { name: name() }),
            Some(_) => Err(DomainError::NotFunction { name: name() }),
            None => Err(DomainError::NoExport { name: name() }),
        }
    }

    fn function_at(&self, address: u64) -> Result<u64, DomainError> {
        match self.0.libraries.iter().any(|l| l.has_code(address)) {
            true => Ok(address),
            false => Err(DomainError::NoEntry { address }),
        }
    }

    fn call(&self, function: u64, call: &mut Call<'_>) -> Result<Returned, CallError> {
        self.0.call(function, call)
    }

    fn thunk(&self, function: u64, signature: &Signature) -> Result<*const c_void, DomainError> {
        Ok(self.0.pointer(function, signature.stack)?)
    }

    fn interrupt(&self) -> Result<(), Unsupported> {
        Backend::None.require(Feature::Interrupt)
    }

    fn faulted(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), Unsupported> {
        match limit {
            None => Ok(()),
            Some(_) => Backend::None.require(Feature::Limits),
        }
    }

    /// Data is as it was, and constructors run again. What the objects have allocated by themselves stays allocated.
    fn reset(&self) -> Result<(), DomainError> {
        let inner = &*self.0;
        // Destructors end what constructors began in libraries that stay as they are. One that fails does not keep the rest
        // from being put back.
        inner.closed.store(false, Ordering::Release);
        let _ = inner.destruct();
        let _ = (inner.reporting.take)();
        inner.resets.fetch_add(1, Ordering::AcqRel);
        inner.free_all();
        for library in &inner.libraries {
            library.restore()?;
        }
        *lock(&inner.first) = None;
        inner.closed.store(false, Ordering::Release);
        inner.construct()
    }

    fn recycle(&self) -> Result<(), DomainError> {
        self.reset()
    }

    fn run_destructors(&self) -> Result<(), DomainError> {
        self.0.destruct()
    }

    /// Threads have no stacks of their own here.
    fn trim(&self) -> Result<usize, HostError> {
        Ok(0)
    }

    fn set_tag(&self, _tag: u64) {}

    fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        usage.memory = self.0.memory_used();
        usage.faults = self.0.faults.load(Ordering::Relaxed);
        usage.resets = self.0.resets();
        usage
    }
}

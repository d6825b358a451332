//! Domains: running instances of modules.

use crate::error::{CallError, DomainError, HostError, MemoryError};
use crate::fault;
use crate::gate::{self, RawCall, kind, vectors};
use crate::imports::{Binding, Closure, Imports, OutFrame, Verdict};
use crate::lane::{Import, Lane, Slot, Target, attention};
use crate::memory::Memory;
use crate::module::{ExportKind, Module};
use crate::policy::{Answer, NoPolicy, Policy, Syscall};
use crate::relocate::{Layout, Linker, Used};
use crate::thunk::Thunk;
use crate::window::Window;
use crate::{guarded, host, relocate, signal, sys, watchdog, world};
use ringfence_isa::{PAGE, window};
use ringfence_verify::SegmentKind;
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How deeply host and domains may call each other on one lane.
pub const MAX_NESTING: u32 = 100;

/// How many words of stack arguments a call may have.
pub const MAX_STACK_WORDS: usize = 128;

/// What stands above a lane's thread pointer: room for a libc's own thread data.
const ABOVE_THREAD_POINTER: u64 = PAGE;

/// Limits of a domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DomainOptions {
    /// Most bytes of heap, anonymous maps and host allocations together.
    pub heap_limit: u64,
    /// Bytes of data stack a lane has; at most 15 MiB.
    pub data_stack: u32,
    /// Bytes of control stack a lane has.
    pub control_stack: u32,
    /// How long a call may take, time in host functions included. `None`: for ever.
    pub time_limit: Option<Duration>,
    /// How many threads may be in the domain, at most 63.
    pub max_lanes: u32,
    /// How many processors the domain is told of.
    pub processors: u32,
}

impl Default for DomainOptions {
    fn default() -> Self {
        DomainOptions {
            heap_limit: 1 << 30,
            data_stack: 8 << 20,
            control_stack: 1 << 20,
            time_limit: None,
            max_lanes: window::LANE_COUNT,
            processors: 1,
        }
    }
}

impl DomainOptions {
    fn check(&self) -> Result<(), DomainError> {
        let bad = |option, reason: &str| {
            Err(DomainError::Option {
                option,
                reason: reason.into(),
            })
        };
        if !(1..=window::LANE_COUNT).contains(&self.max_lanes) {
            return bad("max_lanes", "must be 1 to 63");
        }
        if !(64 << 10..=15 << 20).contains(&self.data_stack) || !self.data_stack.is_multiple_of(PAGE as u32) {
            return bad("data_stack", "must be whole pages, 64 KiB to 15 MiB");
        }
        if !(16 << 10..=1 << 30).contains(&self.control_stack)
            || !self.control_stack.is_multiple_of(PAGE as u32)
        {
            return bad("control_stack", "must be whole pages, 16 KiB to 1 GiB");
        }
        if self.time_limit.is_some_and(|t| t.is_zero()) {
            return bad("time_limit", "must not be zero");
        }
        Ok(())
    }
}

/// What a gate must know of a C function's type to pass exactly what it uses. Everything else is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Integer arguments in registers, 0 to 6.
    pub ints: u8,
    /// Vector arguments in registers, 0 to 8.
    pub floats: u8,
    /// Words of stack arguments.
    pub stack: u8,
    /// Integer registers of the result, 0 to 2.
    pub int_results: u8,
    /// Vector registers of the result, 0 to 2.
    pub float_results: u8,
    /// x87 registers of the result, 0 to 2 (`long double`).
    pub x87_results: u8,
    /// Takes a variable number of arguments: `al` counts the vector ones.
    pub variadic: bool,
}

impl Signature {
    /// Not known: all argument and result registers are passed as they are, none from the stack.
    pub const UNKNOWN: Signature = Signature {
        ints: 6,
        floats: 8,
        stack: 0,
        int_results: 2,
        float_results: 2,
        x87_results: 2,
        variadic: true,
    };
}

/// Arguments of a call in the raw form. Unused ones are 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// `rdi rsi rdx rcx r8 r9`.
    pub ints: [u64; 6],
    /// `xmm0` to `xmm7`, low halves.
    pub floats: [f64; 8],
    /// Arguments on the stack.
    pub stack: &'a [u64],
}

impl Call<'_> {
    /// Integer arguments only, up to six.
    ///
    /// # Panics
    /// If there are more than six.
    #[must_use]
    pub fn ints(args: &[u64]) -> Self {
        let mut ints = [0; 6];
        ints[..args.len()].copy_from_slice(args);
        Call {
            ints,
            ..Default::default()
        }
    }
}

/// Result registers after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Returned {
    /// `rax`.
    pub rax: u64,
    /// `rdx`.
    pub rdx: u64,
    /// `xmm0`, low half.
    pub xmm0: f64,
    /// `xmm1`, low half.
    pub xmm1: f64,
    /// `st0` in its 80-bit format (`long double` results), zero-padded.
    pub st0: [u8; 16],
}

/// A running instance. Cheap to clone; it goes when the last clone, [`Entry`] included, is dropped.
#[derive(Clone)]
pub struct Domain(Arc<Shared>);

/// A borrowed domain, as host functions and policies see it.
#[derive(Clone, Copy)]
pub struct DomainRef<'a>(&'a Inner);

/// A function of a domain.
#[derive(Clone)]
pub struct Entry {
    domain: Domain,
    target: Arc<Target>,
}

/// Lanes and what is left of lanes.
#[derive(Default)]
pub(crate) struct LaneSet {
    pub lanes: Vec<*mut Lane>,
    /// Slots without a lane, used before.
    pub free: Vec<Slot>,
    /// Slots below this number were used.
    pub next: u32,
}

// SAFETY: lanes are never unmapped; what is not atomic in them is written by their owner under the world's lock.
unsafe impl Send for LaneSet {}

pub(crate) struct Inner {
    pub index: u32,
    window: ManuallyDrop<Window>,
    pub layout: Layout,
    pub options: DomainOptions,
    imports: Vec<Import>,
    used: Vec<Used>,
    policy: Arc<dyn Policy>,
    lanes: Mutex<LaneSet>,
    memory: Mutex<Memory>,
    faulted: AtomicBool,
    resets: AtomicU64,
    tag: AtomicU64,
    pub time_limit: AtomicU64,
    thunks: Mutex<HashMap<(u64, Signature), Thunk>>,
    /// Writable pages as they are after relocation.
    pristine: Vec<(u64, Box<[u8]>)>,
    uses_vectors: bool,
    uses_x87: bool,
    mappings: u64,
}

// SAFETY: raw pointers in it are to lanes and import tables; see `LaneSet` and `Import`.
unsafe impl Send for Inner {}
// SAFETY: as above; everything mutable is behind locks or atomic.
unsafe impl Sync for Inner {}

impl Inner {
    pub(crate) fn base(&self) -> u64 {
        self.window.base()
    }

    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    pub(crate) fn lanes(&self) -> MutexGuard<'_, LaneSet> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn faulted(&self) -> bool {
        self.faulted.load(Ordering::Acquire)
    }

    pub(crate) fn name(&self) -> &str {
        self.layout.placed.first().map_or("", |p| p.module.name())
    }

    fn thread_pointer_offset(&self) -> u64 {
        let align = u64::from(self.layout.tls_align).max(64);
        (8 + u64::from(self.layout.tls_len)).next_multiple_of(align)
    }

    /// Size of the part of a slot that is mapped for the thread block.
    pub(crate) fn thread_area(&self) -> u64 {
        sys::page_up(self.thread_pointer_offset() + ABOVE_THREAD_POINTER)
    }

    /// Fills a fresh thread block at a slot's start.
    pub(crate) fn write_thread_block(&self, start: u64) {
        let tp = start + self.thread_pointer_offset();
        let put = |at: u64, value: u64| {
            // SAFETY: in the lane's own pages, which are mapped writable.
            let _ = unsafe { guarded::copy(at as *mut u8, (&raw const value).cast(), 8) };
        };
        put(start, tp);
        put(tp, tp);
        for p in &self.layout.placed {
            let Some(tls) = p.module.0.parsed.tls else {
                continue;
            };
            let from = self.base() + u64::from(p.offset) + u64::from(tls.start);
            let to = tp - u64::from(p.tls);
            // SAFETY: from the module's own data to the lane's own pages, both in our window.
            let _ = unsafe { guarded::copy(to as *mut u8, from as *const u8, tls.file_len as usize) };
        }
    }

    /// From now on the domain refuses calls, and calls in progress end.
    pub(crate) fn set_faulted(&self, by: Option<*const Lane>) {
        let set = self.lanes();
        self.faulted.store(true, Ordering::Release);
        let mut kick = false;
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's.
            let lane = unsafe { &*lane };
            lane.attention.fetch_or(attention::FAULTED, Ordering::AcqRel);
            if by != Some(&raw const *lane) && lane.active() {
                lane.expired
                    .store(lane.sequence.load(Ordering::Acquire), Ordering::Release);
                lane.attention.fetch_or(attention::ELSEWHERE, Ordering::AcqRel);
                kick = true;
            }
        }
        drop(set);
        if kick {
            let _ = watchdog::wake();
        }
    }

    fn closure(&self, number: usize) -> Option<&Arc<Closure>> {
        let used = self
            .used
            .get(number.checked_sub(window::STUB_FIRST_IMPORT as usize)?)?;
        match &used.binding {
            Binding::Closure(f) => Some(f),
            _ => None,
        }
    }

    fn target(&self, entry: u64, flags: u32, words: u32, x87: u32, gate: u64) -> Target {
        Target {
            index: AtomicU64::new(u64::from(self.index) * 8),
            base: self.base(),
            entry,
            flags,
            words,
            x87: if self.uses_x87 { x87 } else { 0 },
            pad: 0,
            gate,
            domain: std::ptr::from_ref(self).cast(),
        }
    }

    /// What the gate needs to call `entry` with a given signature.
    pub(crate) fn target_for(&self, entry: u64, s: &Signature) -> Target {
        let floats = s.floats > 0 || s.variadic;
        let mut flags = 0;
        if !self.uses_vectors {
            flags |= gate::flag::NO_VECTORS;
        }
        if avx() {
            flags |= gate::flag::AVX;
        }
        if floats {
            flags |= gate::flag::KEEP_ARGUMENTS;
        }
        let gate = if self.uses_x87 {
            gate::__rf_in_x87 as *const () as u64
        } else if s.stack > 0 || s.variadic {
            gate::__rf_in_full as *const () as u64
        } else if !self.uses_vectors {
            gate::__rf_in_bare as *const () as u64
        } else if !floats && avx() {
            gate::__rf_in_zero as *const () as u64
        } else {
            gate::__rf_in_full as *const () as u64
        };
        self.target(entry, flags, s.stack.into(), s.x87_results.into(), gate)
    }

    fn find(&self, name: &str) -> Option<(u64, ExportKind, usize, u32)> {
        self.layout.placed.iter().enumerate().find_map(|(i, p)| {
            let inner = &p.module.0;
            let export = &inner.exports[*inner.by_name.get(name)?];
            let address = self.base() + u64::from(p.offset) + u64::from(export.offset);
            Some((address, export.kind, i, export.offset))
        })
    }
}

fn avx() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// What the handles of a domain share. A host function may drop the last handle while the call that it serves goes on
/// (raw thunks hold none): then the gate still needs the domain, and it stays for ever.
pub(crate) struct Shared(ManuallyDrop<Box<Inner>>);

impl std::ops::Deref for Shared {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.0.retire() {
            // SAFETY: dropped once, here; nobody is inside, and nobody can enter any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl Inner {
    /// Gives back what is shared with other domains. False if a thread is inside.
    fn retire(&mut self) -> bool {
        for thunk in self
            .thunks
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
        {
            thunk.kill();
        }
        crate::supervisor::forget(self.base());
        let mut world = world::lock_plain();
        let set = std::mem::take(&mut *self.lanes());
        if !set.lanes.is_empty() {
            // A thread may be in a gate, past the look at its thunk. First nobody can get further, then nobody is in.
            for &lane in &set.lanes {
                // SAFETY: lanes in the list are this domain's.
                unsafe { (*lane).attention.fetch_or(attention::FAULTED, Ordering::AcqRel) };
            }
            watchdog::barrier();
        }
        let inside = set.lanes.iter().any(|&l| {
            // SAFETY: lanes in the list are this domain's.
            unsafe { (*l).active() }
        });
        if inside {
            // A thread is inside although nobody owns the domain any more. Nothing is unmapped or freed.
            return false;
        }
        for &lane in &set.lanes {
            // SAFETY: nobody is inside, and nobody enters: there is no owner.
            unsafe {
                let slot = (*lane).slot;
                world::revoke(&mut world, self.index, lane);
                slot.unmap_control();
            }
        }
        for slot in &set.free {
            slot.unmap_control();
        }
        world.give_index(self.index);
        drop(world);
        host::give_mappings(self.mappings);
        // SAFETY: dropped once, here; nobody is inside.
        unsafe { ManuallyDrop::drop(&mut self.window) };
        true
    }
}

impl Domain {
    /// Makes a domain of one module or several linked together, and runs their constructors.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn new(modules: &[Module], imports: Imports, options: &DomainOptions) -> Result<Domain, DomainError> {
        options.check()?;
        host::check()?;
        signal::install()?;
        let layout = relocate::place(modules)?;
        let mappings = layout
            .placed
            .iter()
            .map(|p| p.module.0.parsed.loads.len() as u64 * 2 + 1)
            .sum();
        host::take_mappings(mappings)?;
        let made = Self::build(layout, imports, options, mappings);
        if made.is_err() {
            host::give_mappings(mappings);
        }
        let domain = made?;
        domain.construct()?;
        Ok(domain)
    }

    fn build(
        layout: Layout,
        imports: Imports,
        options: &DomainOptions,
        mappings: u64,
    ) -> Result<Domain, DomainError> {
        let window = Window::new(options.processors)?;
        let base = window.base();
        for p in &layout.placed {
            map_image(p, base)?;
        }
        let mut linker = Linker::new(&layout, &imports);
        let pristine = relocate_all(&layout, &mut linker, base)?;
        let used = std::mem::take(&mut linker.used);
        let uses_vectors = layout.placed.iter().any(|p| p.module.report().uses_vector);
        let uses_x87 = layout.placed.iter().any(|p| p.module.report().uses_x87);
        let table = import_table(&used, uses_vectors, uses_x87)?;
        let index = world::lock_plain().take_index()?;
        let inner = Inner {
            index,
            window: ManuallyDrop::new(window),
            layout,
            options: options.clone(),
            imports: table,
            used,
            policy: imports.policy.unwrap_or_else(|| Arc::new(NoPolicy)),
            lanes: Mutex::default(),
            memory: Mutex::new(Memory::new(base, options.heap_limit)),
            faulted: AtomicBool::new(false),
            resets: AtomicU64::new(0),
            tag: AtomicU64::new(0),
            time_limit: AtomicU64::new(nanoseconds(options.time_limit)),
            thunks: Mutex::default(),
            pristine,
            uses_vectors,
            uses_x87,
            mappings,
        };
        Ok(Domain(Arc::new(Shared(ManuallyDrop::new(Box::new(inner))))))
    }

    /// Runs the modules' constructors, in the order in which the modules were given.
    fn construct(&self) -> Result<(), DomainError> {
        for p in &self.0.layout.placed {
            for &offset in &p.module.0.parsed.constructors {
                let failed = |source| DomainError::Init {
                    module: p.module.name().into(),
                    source: Box::new(source),
                };
                if !p.module.0.is_entry(offset) {
                    return Err(failed(CallError::Lane(
                        "a constructor is no function's entry".into(),
                    )));
                }
                let entry = self.entry_at(self.0.base() + u64::from(p.offset) + u64::from(offset));
                entry.call(&mut Call::default()).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn entry_at(&self, address: u64) -> Entry {
        let signature = Signature {
            stack: 1,
            ..Signature::UNKNOWN
        };
        Entry {
            domain: self.clone(),
            target: Arc::new(self.0.target_for(address, &signature)),
        }
    }

    /// Finds an exported function.
    ///
    /// # Errors
    /// [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn entry(&self, name: &str) -> Result<Entry, DomainError> {
        match self.0.find(name) {
            None => Err(DomainError::NoExport { name: name.into() }),
            Some((address, ExportKind::Function, module, offset))
                if self.0.layout.placed[module].module.0.is_entry(offset) =>
            {
                Ok(self.entry_at(address))
            }
            Some(_) => Err(DomainError::NotFunction { name: name.into() }),
        }
    }

    /// The function that starts at `address`: what a function pointer that the domain hands out stands for.
    ///
    /// # Errors
    /// [`DomainError::NoEntry`] if the verifier knows no function that starts there.
    pub fn entry_by_address(&self, address: u64) -> Result<Entry, DomainError> {
        let offset = address.wrapping_sub(self.0.base());
        let known = self.0.layout.placed.iter().any(|p| {
            let start = u64::from(p.offset);
            let image = &p.module.0;
            offset >= start
                && offset - start < u64::from(image.parsed.image_len)
                && image.is_entry((offset - start) as u32)
        });
        if known {
            Ok(self.entry_at(address))
        } else {
            Err(DomainError::NoEntry { address })
        }
    }

    /// A number of the host's own that [`current_tag`] finds again. 0 at first.
    pub fn set_tag(&self, tag: u64) {
        self.0.tag.store(tag, Ordering::Relaxed);
    }

    /// Address of an exported variable or function.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.0
            .find(name)
            .filter(|f| f.1 != ExportKind::ThreadLocal)
            .map(|f| f.0)
    }

    /// The borrowed form, which has the memory operations.
    #[must_use]
    pub fn as_ref(&self) -> DomainRef<'_> {
        DomainRef(&self.0)
    }

    /// Restores the pristine image: data, heap, stacks; runs constructors again. Host allocations are gone.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress.
    pub fn reset(&self) -> Result<(), DomainError> {
        let inner = &*self.0;
        {
            let mut world = world::lock_plain();
            let mut set = inner.lanes();
            // First nobody can enter, then nobody is in.
            for &lane in &set.lanes {
                // SAFETY: lanes in the list are this domain's.
                unsafe { (*lane).attention.fetch_or(attention::FAULTED, Ordering::AcqRel) };
            }
            watchdog::barrier();
            // SAFETY: as above.
            let busy = set
                .lanes
                .iter()
                .filter(|l| unsafe { (***l).active() && (***l).poisoned.load(Ordering::Acquire) == 0 });
            let lanes = busy.count();
            if lanes > 0 {
                if !inner.faulted() {
                    for &lane in &set.lanes {
                        // SAFETY: as above.
                        unsafe { (*lane).attention.fetch_and(!attention::FAULTED, Ordering::AcqRel) };
                    }
                }
                return Err(DomainError::Busy { lanes });
            }
            inner.policy.reset();
            // Before anything is restored: whoever holds something of the old state must not use it on the new one.
            inner.resets.fetch_add(1, Ordering::AcqRel);
            restore(inner)?;
            let poisoned: Vec<*mut Lane> = {
                // SAFETY: as above.
                set.lanes
                    .iter()
                    .copied()
                    .filter(|l| unsafe { (**l).poisoned.load(Ordering::Acquire) != 0 })
                    .collect()
            };
            for lane in poisoned {
                set.lanes.retain(|&l| l != lane);
                // SAFETY: the frames on this lane are never returned to: the domain has faulted since. The control
                // stack is not given back, because the lane's thread may still be between two checks.
                unsafe { world::revoke(&mut world, inner.index, lane) };
            }
            for &lane in &set.lanes {
                // SAFETY: nobody is in the lane.
                unsafe {
                    (*lane).slot.refresh(inner, true)?;
                    (*lane).rewind();
                }
            }
            inner.faulted.store(false, Ordering::Release);
            for &lane in &set.lanes {
                // SAFETY: as above.
                let attention = unsafe { &(*lane).attention };
                let reserve = attention.load(Ordering::Relaxed) & attention::RESERVE_OPEN;
                attention.store(attention::WAKE | reserve, Ordering::Release);
            }
        }
        self.construct()
    }

    /// Ends all calls in progress with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted). From any thread.
    pub fn interrupt(&self) {
        let mut any = false;
        for &lane in &self.0.lanes().lanes {
            // SAFETY: lanes in the list are this domain's.
            let lane = unsafe { &*lane };
            if lane.active() {
                lane.expired
                    .store(lane.sequence.load(Ordering::Acquire), Ordering::Release);
                lane.attention.fetch_or(attention::INTERRUPT, Ordering::AcqRel);
                any = true;
            }
        }
        if any {
            let _ = watchdog::wake();
        }
    }

    /// Whether the domain refuses calls until it is reset.
    #[must_use]
    pub fn faulted(&self) -> bool {
        self.0.faulted()
    }

    /// The time limit of calls that start from now on.
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        let limit = nanoseconds(limit);
        let set = self.0.lanes();
        self.0.time_limit.store(limit, Ordering::Relaxed);
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's.
            unsafe {
                (*lane).limit.store(limit, Ordering::Relaxed);
                (*lane).attention.fetch_or(attention::WAKE, Ordering::AcqRel);
            }
        }
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("name", &self.0.name())
            .finish_non_exhaustive()
    }
}

fn nanoseconds(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1))
}

fn map_image(p: &relocate::Placed, base: u64) -> Result<(), HostError> {
    let inner = &p.module.0;
    let image = base + u64::from(p.offset);
    for load in &inner.parsed.loads {
        let prot = match load.kind {
            SegmentKind::Text => libc::PROT_READ | libc::PROT_EXEC,
            SegmentKind::ReadOnly => libc::PROT_READ,
            SegmentKind::Data => libc::PROT_READ | libc::PROT_WRITE,
        };
        let (start, file_end, end) = (
            load.page_start(),
            load.file_page_end().max(load.page_start()),
            load.page_end(),
        );
        // SAFETY: inside our own fresh window.
        unsafe {
            if file_end > start {
                let len = u64::from(file_end - start);
                sys::map_file(image + u64::from(start), len, prot, &inner.file, start.into())?;
            }
            if end > file_end {
                sys::map_anonymous(image + u64::from(file_end), u64::from(end - file_end), prot, true)?;
            }
        }
    }
    Ok(())
}

/// Addresses of pages and what they hold before the domain runs.
type PristinePages = Vec<(u64, Box<[u8]>)>;

/// Writes all relocations, makes read-only what is to be, and keeps copies of the writable pages that have any.
fn relocate_all(layout: &Layout, linker: &mut Linker<'_>, base: u64) -> Result<PristinePages, DomainError> {
    let mut pristine = Vec::new();
    for (number, p) in layout.placed.iter().enumerate() {
        let parsed = &p.module.0.parsed;
        let image = base + u64::from(p.offset);
        let relro = parsed.relro.unwrap_or((0, 0));
        let mut pages: Vec<u64> = Vec::new();
        for relocation in &parsed.relocations {
            let value = linker.value(number, relocation, base)?;
            let at = image + u64::from(relocation.offset);
            // SAFETY: the parser checked that the eight bytes lie in a data segment, which is mapped writable.
            unsafe { (at as *mut u64).write_unaligned(value) };
            for page in [sys::page_down(at), sys::page_down(at + 7)] {
                let offset = (page - image) as u32;
                if !(relro.0..relro.1).contains(&offset) && pages.last() != Some(&page) {
                    pages.push(page);
                }
            }
        }
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            // SAFETY: a mapped page of the module's data.
            let bytes = unsafe { std::slice::from_raw_parts(page as *const u8, sys::PAGE) };
            pristine.push((page, bytes.into()));
        }
        if relro.1 > relro.0 {
            // SAFETY: whole pages of the module's data, nobody inside.
            unsafe {
                sys::protect(
                    image + u64::from(relro.0),
                    (relro.1 - relro.0).into(),
                    libc::PROT_READ,
                )?
            };
        }
    }
    Ok(pristine)
}

/// Puts data and heap back as they were after relocation.
fn restore(inner: &Inner) -> Result<(), HostError> {
    for p in &inner.layout.placed {
        let parsed = &p.module.0.parsed;
        let image = inner.base() + u64::from(p.offset);
        for load in parsed.loads.iter().filter(|l| l.kind == SegmentKind::Data) {
            let (start, end) = (load.page_start(), load.page_end());
            let (a, b) = match parsed.relro {
                Some((a, b)) if a >= start && b <= end => (a, b),
                _ => (start, start),
            };
            // SAFETY: nobody is inside; read-only pages were never changed and are left alone.
            unsafe {
                sys::drop_pages(image + u64::from(start), (a - start).into())?;
                sys::drop_pages(image + u64::from(b), (end - b).into())?;
            }
        }
    }
    for (page, bytes) in &inner.pristine {
        // SAFETY: a mapped, writable page of a module's data.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *page as *mut u8, bytes.len()) };
    }
    inner.memory().clear()
}

/// What the gate out needs for every stub of a window.
fn import_table(used: &[Used], uses_vectors: bool, uses_x87: bool) -> Result<Vec<Import>, DomainError> {
    let x87_kind = if uses_x87 { kind::X87 } else { 0 };
    let avx = if avx() { vectors::AVX } else { 0 };
    let clear = |floats: u8| match (uses_vectors, floats, avx) {
        (false, ..) => vectors::NONE,
        (true, 0, vectors::AVX) => vectors::ZERO,
        (true, 0, _) => vectors::GENERAL | avx,
        (true, 1, _) => vectors::GENERAL | vectors::KEEP_0 | avx,
        (true, ..) => vectors::GENERAL | vectors::KEEP_0 | vectors::KEEP_1 | avx,
    };
    let keep = |yes: bool| if yes { u64::MAX } else { 0 };
    let closure = |floats| Import {
        function: 0,
        rax_mask: u64::MAX,
        rdx_mask: u64::MAX,
        kind: kind::CLOSURE | x87_kind,
        vectors: clear(floats),
        x87: 0,
        pad: 0,
    };
    let plain = |function: u64, s: &Signature, extra: u32| Import {
        function,
        rax_mask: keep(s.int_results > 0),
        rdx_mask: keep(s.int_results > 1),
        kind: x87_kind | extra,
        vectors: clear(s.float_results),
        x87: s.x87_results.into(),
        pad: 0,
    };
    let mut table: Vec<Import> = (0..window::STUB_FIRST_IMPORT).map(|_| closure(0)).collect();
    for stub in [window::stub::SETJMP, window::stub::LONGJMP] {
        table[stub as usize].kind = kind::JUMP;
        table[stub as usize].rdx_mask = 0;
    }
    gate::HAS_AVX.store(avx, Ordering::Relaxed);
    for import in used {
        table.push(match &import.binding {
            Binding::Plain { function, signature } => plain(*function as u64, signature, 0),
            Binding::Closure(_) => closure(2),
            Binding::Domain {
                domain,
                export,
                signature,
            } => {
                let thunk = domain.entry(export)?.thunk(*signature);
                plain(thunk as u64, signature, kind::DOMAIN)
            }
        });
    }
    Ok(table)
}

/// Called by the gate out for everything that is not a plain function. 0: the domain goes on; 1: the call in ends.
pub(crate) unsafe extern "C" fn dispatch(frame: *mut OutFrame) -> u32 {
    // SAFETY: the gate passes its own frame and lane.
    let (frame, lane) = unsafe { (&mut *frame, &*(*frame).lane.cast::<Lane>()) };
    let domain = lane.domain();
    let number = (frame.import as usize - domain.imports.as_ptr() as usize) / size_of::<Import>();
    let verdict = if number < window::STUB_FIRST_IMPORT as usize {
        runtime_stub(domain, number as u32, frame)
    } else {
        let Some(f) = domain.closure(number) else {
            return end(lane, frame, Err(number as u32));
        };
        let call = std::panic::AssertUnwindSafe(|| f(frame));
        match std::panic::catch_unwind(call) {
            Ok(verdict) => Some(verdict),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|s| (*s).to_string())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "panic".into());
                Some(Verdict::Fail(format!("a host function panicked: {text}")))
            }
        }
    };
    match verdict {
        Some(Verdict::Return) => 0,
        Some(verdict) => end(lane, frame, Ok(verdict)),
        None => end(lane, frame, Err(number as u32)),
    }
}

fn end(lane: &Lane, frame: &OutFrame, why: Result<Verdict, u32>) -> u32 {
    fault::end_call(lane, frame, why);
    1
}

/// The runtime's own stubs. `None`: not bound.
fn runtime_stub(domain: &Inner, number: u32, frame: &mut OutFrame) -> Option<Verdict> {
    use window::stub;
    match number {
        stub::SYSCALL => {
            let [a, b, c, _, e, f] = frame.ints;
            let call = Syscall {
                number: frame.rax,
                args: [a, b, c, frame.r10, e, f],
            };
            let policy = std::panic::AssertUnwindSafe(|| domain.policy.syscall(&DomainRef(domain), &call));
            Some(match std::panic::catch_unwind(policy) {
                Ok(Answer::Return(value)) => {
                    frame.result[0] = value as u64;
                    Verdict::Return
                }
                Ok(Answer::Exit(status)) => Verdict::Exit(status),
                Ok(Answer::Abort(reason)) => Verdict::Abort(reason),
                Ok(Answer::OutOfMemory) => Verdict::OutOfMemory,
                Err(_) => Verdict::Fail("the policy panicked".into()),
            })
        }
        stub::ABORT => Some(Verdict::Abort(frame.ints[0] as i32)),
        stub::EXIT => Some(Verdict::Exit(frame.ints[0] as i32)),
        _ => None,
    }
}

impl<'a> DomainRef<'a> {
    pub(crate) fn of(inner: &'a Inner) -> Self {
        DomainRef(inner)
    }

    /// The window's base.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.0.base()
    }

    /// Whether the calling thread's call into this domain has to end: its time is up, or it was interrupted. The gate
    /// ends it when the host function returns; host functions that wait look here every few milliseconds.
    #[must_use]
    pub fn ending(&self) -> bool {
        // SAFETY: no arguments.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        let ending = attention::TIME | attention::INTERRUPT | attention::ELSEWHERE;
        self.0.lanes().lanes.iter().any(|&lane| {
            // SAFETY: lanes are never unmapped; only atomics are used.
            let lane = unsafe { &*lane };
            lane.tid.load(Ordering::Relaxed) == tid
                && lane.attention.load(Ordering::Acquire) & ending != 0
                && lane.expired.load(Ordering::Acquire) == lane.sequence.load(Ordering::Acquire)
        })
    }

    /// What the domain means by `pointer`: its low half in this window.
    #[must_use]
    pub fn translate(&self, pointer: u64) -> u64 {
        self.base() | (pointer & 0xFFFF_FFFF)
    }

    /// Name of the domain's first module.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.0.name()
    }

    /// How often the domain was reset: what was allocated before the last time is gone.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.0.resets.load(Ordering::Acquire)
    }

    /// Frees what [`alloc`](Self::alloc) gave when the domain had been reset `resets` times, and does nothing if it has
    /// been reset since.
    pub fn free_unless_reset(&self, address: u64, resets: u64) {
        let mut memory = self.0.memory();
        if self.resets() == resets && address.wrapping_sub(self.base()) < window::SIZE {
            let _ = memory.free(address as u32);
        }
    }

    /// Whether both are the same domain.
    #[must_use]
    pub fn is(&self, domain: &Domain) -> bool {
        std::ptr::eq(self.0, &raw const **domain.0)
    }

    fn check(&self, address: u64, len: usize) -> Result<(), MemoryError> {
        let len = len as u64;
        let offset = address.wrapping_sub(self.base());
        if offset < window::SIZE && len <= window::SIZE - offset {
            return Ok(());
        }
        Err(MemoryError::Outside { address, len })
    }

    /// Copies out of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        self.check(address, to.len())?;
        signal::thread_ready();
        // SAFETY: `to` is ours, the other range lies in the window; faults become a result.
        match unsafe { guarded::copy(to.as_mut_ptr(), address as *const u8, to.len()) } {
            0 => Ok(()),
            _ => Err(MemoryError::Unmapped {
                address,
                len: to.len() as u64,
            }),
        }
    }

    /// Copies into the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.check(address, from.len())?;
        signal::thread_ready();
        // SAFETY: `from` is ours, the other range lies in the window; faults become a result.
        match unsafe { guarded::copy(address as *mut u8, from.as_ptr(), from.len()) } {
            0 => Ok(()),
            _ => Err(MemoryError::Unmapped {
                address,
                len: from.len() as u64,
            }),
        }
    }

    /// Copies a C string of at most `limit` bytes out of the domain, without the NUL.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`]; also when there is no NUL within the limit.
    pub fn read_c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, MemoryError> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < limit {
            // Up to the page's end: what lies behind may not be mapped.
            let len = ((PAGE - at % PAGE) as usize).min(limit - text.len());
            let old = text.len();
            text.resize(old + len, 0);
            self.read(at, &mut text[old..])?;
            if let Some(nul) = text[old..].iter().position(|&b| b == 0) {
                text.truncate(old + nul);
                return Ok(text);
            }
            at += len as u64;
        }
        Err(MemoryError::Unmapped {
            address,
            len: limit as u64,
        })
    }

    /// Allocates zeroed memory in the domain, for the host to pass data in. Its bookkeeping is out of the domain's reach.
    ///
    /// # Errors
    /// [`MemoryError::Limit`], [`MemoryError::Alignment`].
    pub fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        let (offset, fresh) = self.0.memory().alloc(len, align)?;
        let address = self.base() + u64::from(offset);
        if !fresh {
            signal::thread_ready();
            // SAFETY: in the window; a fault becomes a result.
            if unsafe { guarded::fill(address as *mut u8, 0, len as usize) } != 0 {
                return Err(MemoryError::Unmapped { address, len });
            }
        }
        Ok(address)
    }

    /// Frees what [`alloc`](Self::alloc) gave.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let unknown = MemoryError::NotAllocated { address };
        if address.wrapping_sub(self.base()) >= window::SIZE {
            return Err(unknown);
        }
        self.0.memory().free(address as u32).map(|_| ()).ok_or(unknown)
    }

    /// Bytes of heap, anonymous maps and host allocations in use.
    #[must_use]
    pub fn memory_used(&self) -> u64 {
        self.0.memory().used()
    }

    /// Performs the call if it is one of `brk mmap munmap mprotect madvise` on the domain's own anonymous memory.
    #[must_use]
    pub fn memory_call(&self, call: &Syscall) -> Option<Answer> {
        crate::memory::system_call(&mut self.0.memory(), self.base(), call).map(Answer::Return)
    }
}

impl Entry {
    /// The domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Address of the function.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.target.entry
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, call: &mut Call<'_>) -> Result<Returned, CallError> {
        if call.stack.len() > MAX_STACK_WORDS {
            return Err(CallError::Arguments {
                given: call.stack.len(),
                limit: MAX_STACK_WORDS,
            });
        }
        let t = &*self.target;
        let target = self
            .domain
            .0
            .target(t.entry, t.flags, call.stack.len() as u32, 2, t.gate);
        let raw = RawCall {
            ints: call.ints,
            floats: call.floats,
            stack: call.stack.as_ptr(),
            words: call.stack.len() as u64,
        };
        // SAFETY: the entry is one that the verifier knows, the domain lives as long as `self`.
        let returned = unsafe { gate::call(&target, &raw) };
        if last_status() == 0 {
            Ok(returned)
        } else {
            Err(take_error().unwrap_or(CallError::Gone))
        }
    }

    /// A plain C function pointer that calls this entry; arguments and results in C's own registers. When the call fails
    /// the result is 0, [`last_status`] is not 0, and [`take_error`] tells why.
    ///
    /// The pointer is good while the domain lives; afterwards it fails with [`CallError::Gone`].
    ///
    /// # Panics
    /// If there is no memory for another thunk.
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        let inner = &self.domain.0;
        let mut thunks = inner.thunks.lock().unwrap_or_else(PoisonError::into_inner);
        let thunk = thunks.entry((self.target.entry, signature)).or_insert_with(|| {
            let target = inner.target_for(self.target.entry, &signature);
            Thunk::new(target, &signature).expect("memory for a thunk")
        });
        thunk.code()
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("address", &format_args!("{:#x}", self.address()))
            .finish()
    }
}

/// The [tag](Domain::set_tag) of the innermost domain that has called out on this thread; 0 if none has.
#[must_use]
pub fn current_tag() -> u64 {
    // A lane with a call in progress has a domain that stays.
    world::innermost().map_or(0, |lane| lane.domain().tag.load(Ordering::Relaxed))
}

/// Whether the last call through a thunk on this thread failed: 0 means it succeeded.
#[inline]
#[must_use]
pub fn last_status() -> u64 {
    // SAFETY: the calling thread's own words.
    unsafe { (*gate::tls()).status }
}

/// Why the last failed call through a thunk on this thread failed; empties the slot.
#[must_use]
pub fn take_error() -> Option<CallError> {
    fault::take_error()
}

//! Domains: running instances of modules.

use crate::domain::imports::{Binding, Closure, Hook, Imports};
use crate::domain::limits::LimitHook;
use crate::domain::relocate::{Layout, Resolver, Used};
use crate::domain::snapshot::Frozen;
use crate::lanes::gate;
use crate::lanes::lane::{Import, Lane, Target, attention, gone};
use crate::lanes::set::{LaneSet, Lanes};
use crate::lanes::thunk::Thunk;
use crate::lanes::{lane, signal, watchdog, world};
use crate::load::module::{ExportKind, Module};
use crate::load::stubs;
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::looks::Looks;
use crate::os::{clock, host, sys};
use crate::place::memory::Memory;
use crate::place::window::Window;
use crate::words::{Arena, Attached, Held, Learner, Missing};
use image::{import_table, map_image, relocate_all};
use ringfence_core::error::{CallError, DomainError, MemoryError, WordsError};
use ringfence_core::policy::{NoPolicy, SyscallHandler};
use ringfence_core::{DomainId, Grantee, Party, Rights};
use ringfence_isa::{PAGE, window, words};
use ringfence_words::Denied;
use ringfence_words::policy::{self as words_policy, Policy};
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

mod access;
mod added;
pub mod batch;
mod call;
mod code;
mod end;
mod family;
pub(crate) mod fork;
pub mod grant;
mod grants;
mod handles;
mod heap;
mod image;
pub mod imports;
mod instance;
pub(crate) mod limits;
mod quiet;
pub(crate) mod regions;
pub(crate) mod relocate;
mod remap;
mod reset;
mod retire;
mod series;
pub(crate) mod slot;
pub mod snapshot;
mod spawn;
pub(crate) mod stay;
#[cfg(test)]
mod sweep;
mod thread_block;
mod usage;

pub use call::{Entry, current_tag, last_call, last_status, reporting, restore_call, save_call, take_error};
pub use code::Code;
pub(crate) use retire::{Shared, WeakDomain};
pub use ringfence_core::{Call, DomainOptions, DomainRef, Narrow, Returned, Signature, Usage, Width};
use thread_block::thread_area;

/// How deeply host and domains may call each other on one lane.
pub const MAX_NESTING: u32 = 100;

/// How many words of stack arguments a call may have.
pub const MAX_STACK_WORDS: usize = 128;

/// What stands above a lane's thread pointer: room for a libc's own thread data.
const ABOVE_THREAD_POINTER: u64 = PAGE;

/// A running instance. Cheap to clone; it goes when the last clone, [`Entry`] included, is dropped.
pub struct Domain(Arc<Shared>);

/// Function pointers by entry and type.
pub(crate) type Thunks = BTreeMap<(u64, Signature), Thunk>;

pub(crate) struct Inner {
    /// The domain itself, for those who only borrow it.
    me: Weak<Shared>,
    /// How many [`Domain`]s there are, and how many of them threads hold that the domain has asked for ([`Entry::spawn`]).
    handles: AtomicUsize,
    spawned: AtomicUsize,
    pub index: u32,
    window: ManuallyDrop<Window>,
    /// The arena, and the domain's table of rights to it.
    words: Option<Attached>,
    pub layout: Layout,
    pub options: DomainOptions,
    imports: Vec<Import>,
    used: Vec<Used>,
    /// Imports that take functions of other domains, by their place in `imports`.
    slots: BTreeMap<usize, slot::Slot>,
    /// Functions of this domain that others may call.
    granted: Lock<Vec<Weak<grant::Granted>>>,
    hook: Option<Arc<Hook>>,
    on_limit: Option<Arc<LimitHook>>,
    asks_call_status: bool,
    policy: Arc<dyn SyscallHandler>,
    pub lanes: Lanes,
    memory: Lock<Memory>,
    faulted: AtomicBool,
    resets: AtomicU64,
    /// After how many resets its destructors have run.
    ended: AtomicU64,
    pub faults: AtomicU64,
    tag: AtomicU64,
    pub time_limit: AtomicU64,
    /// How often it may fault and be reset.
    fault_limit: AtomicU64,
    /// How many threads may have a lane.
    pub max_lanes: AtomicU32,
    /// How many threads tell the host of a limit, without a call in progress.
    pub stays: AtomicU32,
    thunks: Lock<Thunks>,
    /// Code that came after the domain was made. Locked with the world locked.
    added_code: Lock<code::Added>,
    /// Modules that came after the domain was made. Locked with the world locked.
    family: Lock<added::Family>,
    /// The same, for threads in the domain.
    added: family::Chain,
    /// Whether one of them can learn how its calls of other domains went.
    asks_later: AtomicBool,
    /// What relocations have written to writable data.
    pristine: image::Pristine,
    uses_vectors: bool,
    uses_x87: bool,
    mappings: u64,
    /// What a reset returns to, if it is not the pristine image.
    initial: Lock<Option<Arc<Frozen>>>,
    /// What the last one found.
    looks: Lock<Looks>,
}

// SAFETY: raw pointers in it are to lanes and import tables; see `LaneSet` and `Import`.
unsafe impl Send for Inner {}
// SAFETY: as above; everything mutable is behind locks or atomic.
unsafe impl Sync for Inner {}

impl Inner {
    pub(crate) fn base(&self) -> u64 {
        self.window.base()
    }

    pub(crate) fn words(&self) -> Option<&Attached> {
        self.words.as_ref()
    }

    pub(crate) fn policy(&self) -> &dyn SyscallHandler {
        &*self.policy
    }

    pub(crate) fn imports(&self) -> &[Import] {
        &self.imports
    }

    pub(crate) fn lanes(&self) -> Locked<'_, LaneSet> {
        self.lanes.lock()
    }

    pub(crate) fn memory(&self) -> Locked<'_, Memory> {
        self.memory.lock()
    }

    pub(crate) fn thunks(&self) -> Locked<'_, Thunks> {
        self.thunks.lock()
    }

    pub(crate) fn faulted(&self) -> bool {
        self.faulted.load(Ordering::SeqCst)
    }

    pub(crate) fn limit_hook(&self) -> Option<&Arc<LimitHook>> {
        self.on_limit.as_ref()
    }

    pub(crate) fn name(&self) -> &str {
        let first = self.layout.placed.first();
        first.map_or("code that was added", |p| p.module.name())
    }

    /// The module whose image holds the window's byte at `offset`, and the offset in that image.
    ///
    /// # Safety
    /// The calling thread has a call in progress in the domain, or holds the world's lock, until it is done with the result.
    pub(crate) unsafe fn image_at(&self, offset: u64) -> Option<(&relocate::Placed, u32)> {
        self.layout.find(offset).or_else(|| {
            // SAFETY: the caller's promise.
            unsafe { self.added.iter() }.find_map(|p| Some((p, p.inside(offset)?)))
        })
    }

    /// From now on the domain refuses calls, and calls in progress end. Allocates and waits for nothing.
    pub(crate) fn set_faulted(&self, by: Option<*const Lane>) {
        // Sequentially consistent, as what a new lane does: it is in the table before it looks here.
        self.faulted.store(true, Ordering::SeqCst);
        let mut kick = false;
        self.lanes.each(|lane| {
            lane.attention.fetch_or(attention::FAULTED, Ordering::AcqRel);
            if by != Some(&raw const *lane) && lane.active() {
                lane.expired
                    .store(lane.sequence.load(Ordering::Acquire), Ordering::Release);
                lane.attention.fetch_or(attention::ELSEWHERE, Ordering::AcqRel);
                kick = true;
            }
        });
        if kick {
            watchdog::nudge();
        }
    }

    /// Ends all calls in progress.
    pub(crate) fn interrupt(&self) {
        let mut any = false;
        for &lane in &self.lanes().lanes {
            // SAFETY: lanes in the list are this domain's.
            let lane = unsafe { &*lane };
            if lane.active() {
                lane.expired
                    .store(lane.sequence.load(Ordering::Acquire), Ordering::Release);
                lane.attention.fetch_or(attention::INTERRUPT, Ordering::AcqRel);
                any = true;
            }
        }
        if any && watchdog::wake().is_err() {
            watchdog::instead();
        }
    }

    /// The host function behind a stub; `None` if it is none.
    pub(crate) fn closure(&self, number: usize) -> Option<&Arc<Closure>> {
        let used = self
            .used
            .get(number.checked_sub(window::STUB_FIRST_IMPORT as usize)?)?;
        match &used.binding {
            Binding::Closure(f) => Some(f),
            _ => None,
        }
    }

    /// Whether code in the window may leave something in the x87 unit.
    pub(crate) fn uses_x87(&self) -> bool {
        self.uses_x87
    }

    /// What the gate needs for a call of unknown type with so many words of arguments on the stack.
    pub(crate) fn target_of_words(&self, entry: u64, words: u32, revoked: u32) -> Target {
        let signature = Signature {
            stack: 1,
            ..Signature::UNKNOWN
        };
        Target {
            words,
            x87: if self.uses_x87 { 2 } else { 0 },
            ..self.target_for(entry, &signature, revoked)
        }
    }

    /// What the gate needs to call `entry` with a given signature. `revoked`: what callers are told once it has lost its index.
    pub(crate) fn target_for(&self, entry: u64, s: &Signature, revoked: u32) -> Target {
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
        Target {
            index: AtomicU64::new(u64::from(self.index) * 8),
            base: self.base(),
            entry,
            flags,
            words: s.stack.into(),
            x87: if self.uses_x87 { s.x87_results.into() } else { 0 },
            revoked: AtomicU32::new(revoked),
            gate,
            domain: std::ptr::from_ref(self).cast(),
        }
    }

    fn find(&self, name: &str) -> Option<(u64, ExportKind, usize, u32)> {
        self.layout.placed.iter().enumerate().find_map(|(i, p)| {
            let inner = &p.module.0;
            let export = inner.export(name)?;
            let address = self.base() + u64::from(p.offset) + u64::from(export.offset);
            Some((address, export.kind, i, export.offset))
        })
    }
}

impl Lane {
    /// The domain of a lane that somebody uses.
    pub(crate) fn domain(&self) -> &Inner {
        // SAFETY: a lane that somebody uses has a live domain.
        unsafe { &*self.domain.cast::<Inner>() }
    }
}

fn avx() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

impl Domain {
    /// Makes a domain of one module or several together, and runs their constructors. All of it together has
    /// [`DomainOptions::time_limit`].
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn new(modules: &[Module], imports: Imports, options: &DomainOptions) -> Result<Domain, DomainError> {
        let begun = options.time_limit.map(|_| clock::now());
        let domain = Self::prepare(modules, imports, options)?;
        domain.construct(begun)?;
        Ok(domain)
    }

    /// A domain whose constructors have not run.
    fn prepare(modules: &[Module], imports: Imports, options: &DomainOptions) -> Result<Domain, DomainError> {
        options.check()?;
        let _looked = sys::Looked::now()?;
        host::begin()?;
        fork::install()?;
        signal::install()?;
        signal::check_installed();
        modules.iter().try_for_each(|m| m.check_addressing(options))?;
        modules
            .iter()
            .try_for_each(|m| m.check_isolation(imports.arena.is_some()))?;
        let layout = relocate::place(modules, options.extensible)?;
        let rest = u64::from(window::LANE_BERTH) - thread_area(&layout, options);
        if u64::from(options.data_stack) + DATA_STACK_GAP > rest {
            return Err(DomainError::Option {
                option: "data_stack",
                reason: format!(
                    "must be at most {} bytes here, for the modules' thread-local variables lie below it",
                    (rest - DATA_STACK_GAP) & !(sys::PAGE as u64 - 1)
                ),
            });
        }
        let mut mappings = layout.placed.iter().map(image::mappings).sum();
        host::take_mappings(mappings)?;
        let made = Self::build(layout, imports, options, &mut mappings);
        if made.is_err() {
            host::give_mappings(mappings);
        }
        made
    }

    fn build(
        layout: Layout,
        imports: Imports,
        options: &DomainOptions,
        mappings: &mut u64,
    ) -> Result<Domain, DomainError> {
        let images: Vec<_> = layout.placed.iter().map(relocate::Placed::listed).collect();
        let data = layout.placed.iter().map(image::data_len).sum();
        if data > options.memory_limit {
            return Err(DomainError::Memory(MemoryError::Limit {
                wanted: data,
                used: 0,
                limit: options.memory_limit,
            }));
        }
        let checks = imports.arena.as_ref().is_some_and(Arena::checks_heaps);
        let window = match imports.arena {
            None => Window::new(options.processors, &images)?,
            Some(_) => Window::wide(options.processors, &images, checks)?,
        };
        let base = window.base();
        let name = layout.placed.first().map_or("", |p| p.module.name());
        // SAFETY: a window that was made wide, and is nobody's yet.
        let attach = |arena: &Arena| unsafe { Attached::new(arena, base, checks, name) };
        let words = imports.arena.as_ref().map(attach).transpose()?;
        let fresh = words.as_ref().and_then(Attached::fresh);
        let heap_end = match words {
            None => window::HEAP_END,
            Some(_) => words::HEAP_END,
        };
        for p in &layout.placed {
            map_image(p, base, || Ok(()))?;
        }
        let mut linker = Resolver::new(&layout, &imports);
        let pristine = relocate_all(&layout, &mut linker, base)?;
        if options.extensible {
            linker.bind_rest()?;
        }
        let used = std::mem::take(&mut linker.used);
        let asks_call_status = linker.asks_call_status;
        image::map_stubs(&layout, base, stubs::start(used.len()), mappings)?;
        let uses_vectors = options.extensible || layout.placed.iter().any(|p| p.module.report().uses_vector);
        let uses_x87 = options.x87 || layout.placed.iter().any(|p| p.module.report().uses_x87);
        let (table, slots) = import_table(&used, uses_vectors, uses_x87)?;
        let index = world::lock_plain().take_index()?;
        let inner = |me: &Weak<Shared>| Inner {
            me: me.clone(),
            handles: AtomicUsize::new(0),
            spawned: AtomicUsize::new(0),
            index,
            window: ManuallyDrop::new(window),
            words,
            layout,
            options: options.clone(),
            imports: table,
            used,
            slots,
            granted: Lock::new(Rank::Granted, Vec::new()),
            hook: imports.hook,
            on_limit: imports.limits,
            asks_call_status,
            policy: imports.policy.unwrap_or_else(|| Arc::new(NoPolicy)),
            lanes: Lanes::new(
                options.call_limit,
                options.processor_time.map(|t| nanoseconds(Some(t))),
                options.cancel.clone(),
            )
            .with_fresh(fresh),
            memory: Lock::new(
                Rank::Memory,
                Memory::new(base, options.memory_limit, data).ending(heap_end),
            ),
            faulted: AtomicBool::new(false),
            resets: AtomicU64::new(0),
            ended: AtomicU64::new(u64::MAX),
            faults: AtomicU64::new(0),
            tag: AtomicU64::new(0),
            time_limit: AtomicU64::new(nanoseconds(options.time_limit)),
            fault_limit: AtomicU64::new(options.fault_limit.unwrap_or(u64::MAX)),
            max_lanes: AtomicU32::new(options.max_lanes),
            stays: AtomicU32::new(0),
            thunks: Lock::new(Rank::Thunks, Thunks::default()),
            added_code: Lock::new(Rank::Code, code::Added::default()),
            family: Lock::new(Rank::Family, added::Family::default()),
            added: family::Chain::default(),
            asks_later: AtomicBool::new(false),
            pristine,
            uses_vectors,
            uses_x87,
            mappings: *mappings,
            initial: Lock::new(Rank::Checkpoint, None),
            looks: Lock::new(Rank::Looks, Looks::default()),
        };
        Ok(Domain::of(Arc::new_cyclic(|me| {
            Shared(ManuallyDrop::new(Box::new(inner(me))))
        })))
    }

    /// Runs the modules' constructors, in the order in which the modules were given. Their time began at `begun`, or begins now.
    fn construct(&self, begun: Option<u64>) -> Result<(), DomainError> {
        let any = |p: &relocate::Placed| !p.module.0.parsed.constructors.is_empty();
        if self.0.layout.placed.iter().any(any) && self.0.lanes().next == 0 {
            // Whether there is room for the stacks that they need: said here, the reason is no constructor's failure.
            host::take_mappings(lane::MAPPINGS)?;
            host::give_mappings(lane::MAPPINGS);
        }
        let series = series::Series::since(self, begun);
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
                series.call(&entry).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn entry_at(&self, address: u64) -> Entry {
        Entry {
            domain: self.clone(),
            target: Arc::new(self.0.target_of_words(address, 0, gone::DOMAIN)),
            handles: None,
        }
    }

    /// Finds an exported function: of the modules that the domain was made of, of those that were added since, or one that was
    /// added.
    ///
    /// # Errors
    /// [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn entry(&self, name: &str) -> Result<Entry, DomainError> {
        match self.0.find(name) {
            None => self.entry_in_added(name).unwrap_or_else(|| {
                self.find_code(name)
                    .map_err(|_| DomainError::NoExport { name: name.into() })
            }),
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
        let found = self.0.layout.find(offset);
        if found.is_some_and(|(placed, inside)| placed.module.0.is_entry(inside)) {
            return Ok(self.entry_at(address));
        }
        self.added_at(address)
            .or_else(|| self.code_at(address))
            .ok_or(DomainError::NoEntry { address })
    }

    /// Whether this is the only handle: no other clone and no [`Entry`] of it is left.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// A number of the host's own that [`current_tag`] finds again. 0 at first.
    pub fn set_tag(&self, tag: u64) {
        self.0.tag.store(tag, Ordering::Relaxed);
    }

    /// Address of an exported variable or function.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.as_ref().find(None, name)
    }

    /// The address by which the domain's own code calls a host function that the domain was made with: one that its first
    /// modules need, or any with [`DomainOptions::extensible`]. For code that comes later.
    #[must_use]
    pub fn import_address(&self, name: &str) -> Option<u64> {
        let number = self.0.used.iter().position(|used| used.name == name)?;
        let stub = window::STUB_FIRST_IMPORT + number as u32;
        Some(self.0.base() + u64::from(window::stub_at(stub)))
    }

    /// The borrowed form, which has the memory operations.
    #[must_use]
    pub fn as_ref(&self) -> DomainRef<'_> {
        DomainRef::of(&**self.0)
    }

    /// Ends all calls in progress with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted). From any thread.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// The arena that it was made with, and its number there.
    ///
    /// # Errors
    /// [`WordsError::NoArena`].
    pub fn arena(&self) -> Result<(&Arena, DomainId), WordsError> {
        let attached = self.0.words().ok_or(WordsError::NoArena)?;
        Ok((&attached.arena, attached.id))
    }

    /// What the domain may do from now on with `len` bytes at `address` of its [`Arena`]: whole words of 4 bytes of one object. With
    /// [`Rights::Write`](crate::Rights::Write) it may read them, too. A fault or a reset takes no rights away.
    ///
    /// # Errors
    /// As for [`Arena::give`].
    pub fn give_words(&self, address: u64, len: u64, rights: Rights) -> Result<(), WordsError> {
        let (arena, id) = self.arena()?;
        arena.give(Party::Host, Grantee::Domain(id), address, len, rights)
    }

    /// A call of `function` begins with these arguments: the domain gets what the policy says, until what is returned is dropped.
    ///
    /// # Errors
    /// [`WordsError::Policy`]; [`WordsError::NoObject`] if an argument, or a pointer in an object, leads to none; [`WordsError::Tables`].
    pub fn enter_words(
        &self,
        policy: &Policy,
        function: &str,
        arguments: &[u64],
    ) -> Result<Held, WordsError> {
        let attached = self.0.words().ok_or(WordsError::NoArena)?;
        attached.enter(policy, function, arguments)
    }

    /// Arguments of a call that the policy says are copied, with their lengths.
    ///
    /// # Errors
    /// [`WordsError::NoArena`]; [`WordsError::Policy`]: too many bytes.
    pub fn copied_words(
        &self,
        policy: &Policy,
        function: &str,
        arguments: &[u64],
    ) -> Result<Vec<words_policy::Copy>, WordsError> {
        let attached = self.0.words().ok_or(WordsError::NoArena)?;
        attached.copies(policy, function, arguments)
    }

    /// From now on the domain is denied nothing of its arena, and what its calls touch is noted, until what is returned is dropped.
    /// `signatures` has the functions' parameters. While another domain learns it waits, or fails.
    ///
    /// # Errors
    /// [`WordsError::NoArena`]; [`WordsError::Learning`] if it does not wait.
    pub fn learn_words(&self, signatures: &Policy, wait: bool) -> Result<Learner, WordsError> {
        let attached = self.0.words().ok_or(WordsError::NoArena)?;
        let learner = attached.learn(signatures.clone(), wait);
        learner.ok_or(WordsError::Learning)
    }

    /// What the arena's rules know of an access that was denied.
    ///
    /// # Errors
    /// [`WordsError::NoArena`].
    pub fn denied_words(
        &self,
        address: u64,
        len: u64,
        write: bool,
        missing: Missing<'_>,
    ) -> Result<Denied, WordsError> {
        let attached = self.0.words().ok_or(WordsError::NoArena)?;
        let mut denied = attached.denied(address, len, write, missing);
        let first = attached.arena.range().start + denied.first;
        denied.heap = self.0.heap_story(first, write);
        Ok(denied)
    }

    /// What is known of a `free` or `realloc` of a checked heap's that ended a call with these words, in lines. Nothing after a reset.
    #[must_use]
    pub fn misused_words(&self, why: &str) -> Option<Vec<String>> {
        self.0.heap_misuse(why)
    }

    /// What the domain may do with the word of its [`Arena`] at `address`.
    #[must_use]
    pub fn word_rights(&self, address: u64) -> Rights {
        self.0.words().map_or(Rights::None, |words| words.rights(address))
    }

    /// Whether the domain refuses calls until it is reset.
    #[must_use]
    pub fn faulted(&self) -> bool {
        self.0.faulted()
    }

    /// The time limit of calls that start from now on.
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        let limit = nanoseconds(limit);
        if limit != 0 {
            // Ahead of need; if it cannot be, the next call says so.
            let _ = watchdog::start();
        }
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

/// What is inaccessible between a lane's thread block and its data stack at least, so that a stack's end is a fault.
const DATA_STACK_GAP: u64 = 64 << 10;

fn nanoseconds(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX).max(1))
}

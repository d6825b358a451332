//! Modules that come to a living domain under a name, and go again.
//!
//! A module was verified when it was loaded, and its text is a sealed file. What keeps the rules while other threads run in the
//! domain (`docs/security/life.md` has the argument):
//!
//! * *Adding*: its place was inaccessible before. Data and what is relocated come first, the text last: nobody can pass the
//!   check of an indirect jump on data there. Its labels have numbers of their own in the whole process; so no module can be twice in
//!   a window.
//! * *Removing*: as for added code, at a moment in which no other thread is in the domain, and when nothing on the
//!   calling thread's control stack leads into it. Then inaccessible memory lies over it.
//! * *Using the place again*: only once the calls that were in progress (the calling thread's own) have ended.
//!
//! Constructors and destructors are ordinary calls, without any lock held; [`State`] keeps others from meddling meanwhile.

use super::family::{Added, Chain};
use super::handles::Handles;
use super::quiet::Grave;
use super::series::Series;
use super::{Domain, Inner, image};
use crate::domain::relocate::{GAP, Placed, Resolver};
use crate::lanes::signal;
use crate::lanes::world;
use crate::load::module::Module;
use crate::load::stubs;
use crate::os::lock::Locked;
use crate::os::{clock, guarded, host, sys};
use crate::place::header::{Header, Listed};
use crate::place::room::Room;
use ringfence_core::error::{CallError, DomainError, HostError, MemoryError, ModuleError};
use ringfence_isa::window;
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod find;
mod remove;

/// What may be done with a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its constructors run: nobody finds it.
    Coming,
    Live,
    /// Its destructors run: no module needs it any more.
    Leaving,
    /// A constructor failed, and others were in the domain. It goes at the next opportunity.
    Dead,
}

struct Member {
    name: String,
    added: Arc<Added>,
    state: State,
}

/// What was added to a domain. Locked with the world locked.
#[derive(Default)]
pub(crate) struct Family {
    /// In the order in which they came.
    members: Vec<Member>,
    /// Free places for images; made at the first need.
    room: Option<Room>,
    graves: Vec<Grave<(u32, u32)>>,
    /// Places where mapping an image failed half way, and which could not be made inaccessible yet.
    left: Vec<(u32, u32)>,
    /// Bytes of images, graves included.
    used: u64,
    /// Where the list of images is changed, since the first module came.
    header: Option<Header>,
    /// How often that was.
    changes: u32,
    /// What threads may look at that hold no lock: poisoned lanes' when the domain was reset.
    retired: Vec<Chain>,
}

impl Family {
    /// Whether the window's header is in a file.
    pub(super) fn has_header(&self) -> bool {
        self.header.is_some()
    }

    fn index(&self, added: &Arc<Added>) -> Option<usize> {
        self.members.iter().position(|m| Arc::ptr_eq(&m.added, added))
    }

    /// By name, unless it is dead.
    fn named(&self, name: &str) -> Option<&Member> {
        self.members
            .iter()
            .find(|m| m.name == name && m.state != State::Dead)
    }

    fn live(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| m.state == State::Live)
    }

    /// An image was mapped at a place, perhaps a part of it, and is not to be there. Other threads can have seen its data: one that
    /// took some of it for a function's marker, and has not jumped yet, must not find another module's text there.
    fn leave(&mut self, domain: &Inner, at: u32, len: u32) {
        self.used += u64::from(len);
        self.left.push((at, len));
        self.hide(domain);
    }

    /// Makes inaccessible what was left; its place waits for the calls that are in progress now.
    fn hide(&mut self, domain: &Inner) {
        let graves = &mut self.graves;
        self.left.retain(|&(at, len)| {
            let address = domain.base() + u64::from(at);
            // SAFETY: a place for an image, without text.
            let hidden =
                unsafe { sys::map_anonymous(address, u64::from(len) - GAP, libc::PROT_NONE, true) }.is_ok();
            if hidden {
                graves.push(Grave::of_all((at, len), domain));
            }
            !hidden
        });
    }

    /// Makes places free whose calls have ended.
    fn bury(&mut self, domain: &Inner) {
        self.hide(domain);
        let (Some(room), used) = (&mut self.room, &mut self.used) else {
            return;
        };
        self.graves.retain(|grave| {
            let waits = grave.waits();
            if !waits {
                let (at, len) = grave.what;
                room.give(at, len);
                *used -= u64::from(len);
            }
            waits
        });
    }

    /// The free room behind the modules that the domain was made of.
    fn room(&mut self, domain: &Inner) -> &mut Room {
        self.room.get_or_insert_with(|| {
            let last = domain.layout.placed.last();
            let end = last.map_or(window::IMAGES.into(), |last| {
                u64::from(last.offset) + u64::from(last.module.0.parsed.image_len) + GAP
            });
            let end = sys::page_up(end).min(window::ARENA.into()) as u32;
            Room::new(end, window::ARENA - end)
        })
    }

    /// A place for thread-local variables in what lanes keep: its distance below the thread pointer.
    fn thread_local(&self, domain: &Inner, len: u32, align: u32) -> Option<u32> {
        if align > domain.layout.tls_align.max(64) {
            return None;
        }
        let mut taken: Vec<(u32, u32)> = self
            .members
            .iter()
            .filter_map(|m| Some((m.added.placed.tls, m.added.placed.module.0.parsed.tls?.len)))
            .collect();
        taken.sort_unstable();
        let mut low = domain.layout.tls_len;
        let fits = |low: u32| low.checked_add(len)?.checked_next_multiple_of(align);
        for (end, len) in taken {
            if fits(low)? <= end - len {
                break;
            }
            low = end;
        }
        fits(low).filter(|&end| end <= domain.layout.tls_len + domain.options.thread_local_room())
    }

    /// What the header lists, with the modules that the domain was made of.
    fn images(&self, domain: &Inner) -> Vec<Listed> {
        let own = domain.layout.placed.iter();
        own.chain(self.members.iter().map(|m| &m.added.placed))
            .map(Placed::listed)
            .collect()
    }

    /// Before [`list`](Self::list), which cannot fail.
    fn ready(&mut self, domain: &Inner) -> Result<(), HostError> {
        match &mut self.header {
            Some(header) => header.ready()?,
            none => *none = Some(Header::new(domain.base(), stubs::start(domain.used.len()))?),
        }
        Ok(())
    }

    /// Brings the header's list of images in line with the modules that there are.
    fn list(&mut self, domain: &Inner) {
        self.changes = self.changes.wrapping_add(1);
        let changes = (domain.layout.placed.len() as u32).wrapping_add(self.changes);
        let images = self.images(domain);
        let header = self
            .header
            .as_mut()
            .expect("whoever changes the list was ready to");
        header.list(&images, changes);
    }

    /// Whether code in the window can learn how its calls of other domains went.
    fn tell_status(&self, domain: &Inner) {
        let asks = self.members.iter().any(|m| m.added.asks_call_status);
        domain.asks_later.store(asks, Ordering::Release);
    }
}

impl Inner {
    fn family(&self) -> Locked<'_, Family> {
        self.family.lock()
    }

    /// Whether there are modules that came later. With the world locked.
    pub(super) fn has_added(&self) -> bool {
        !self.family().members.is_empty()
    }

    /// Bytes of images that were added. With the world locked.
    pub(super) fn added_bytes(&self) -> u64 {
        self.family().used
    }
}

fn registers(domain: &Inner, name: &str, module: &Module) -> Result<(), ModuleError> {
    let report = module.report();
    let (what, remedy) = if report.uses_vector && !domain.uses_vectors {
        ("vector", "set DomainOptions::extensible")
    } else if report.uses_x87 && !domain.uses_x87 {
        ("x87", "set DomainOptions::x87")
    } else {
        return Ok(());
    };
    Err(ModuleError::Registers {
        name: name.into(),
        what,
        remedy,
    })
}

/// Writes a module's relocations; its text is not mapped yet.
fn relocate(domain: &Inner, placed: &Placed, values: &[(u32, u64)]) -> Result<(), HostError> {
    let address = domain.base() + u64::from(placed.offset);
    for (offset, value) in values {
        let at = address + u64::from(*offset);
        // SAFETY: the parser checked that the eight bytes lie in a data segment. Other threads of the domain may write there
        // already, to their own harm: nothing is read back.
        if unsafe { guarded::copy(at as *mut u8, (&raw const *value).cast(), 8) } != 0 {
            return Err(HostError::Os {
                what: "relocating a module",
                source: std::io::Error::from_raw_os_error(libc::ENOMEM),
            });
        }
    }
    image::protect_relocated(placed, domain.base())
}

impl Domain {
    /// Adds a module to the living domain under a name, and runs its constructors. From any thread, while others run in
    /// the domain.
    ///
    /// Its imports are looked for among the exports of the domain's modules (those that it was made of, then those that were added, in
    /// the order in which they came), then among the runtime's own functions, then among the host functions that have stubs: those that
    /// the first modules need, or all that the domain was made with if [`DomainOptions::extensible`](crate::DomainOptions::extensible) is set. Modules of a domain call each other
    /// directly, without a gate. What is there already is not resolved again: it reaches the new functions through addresses,
    /// which the host hands out ([`Entry::address`], [`DomainRef::find`](crate::domain::DomainRef::find)).
    ///
    /// The host finds its exports by [`entry`](Self::entry), behind those of the modules before it, or by
    /// [`entry_in`](Self::entry_in). It stays until it is removed or the domain is reset: a reset removes all that was added.
    /// [Checkpoints](Self::checkpoint) and snapshots refuse domains with such modules.
    ///
    /// # Errors
    /// [`ModuleError`]. Nothing has changed then, except that a constructor which fails by a fault leaves the domain faulted.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence_runtime::{Call, Domain, Module};
    /// # fn example(domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// let plugin = Module::open("plugin.rf", &Default::default())?;
    /// domain.add("plugin", &plugin)?;
    /// let run = domain.entry_in("plugin", "run")?;
    /// run.call(&mut Call::ints(&[1]))?;
    /// domain.remove("plugin")?;
    /// # Ok(()) }
    /// ```
    pub fn add(&self, name: &str, module: &Module) -> Result<(), ModuleError> {
        host::begin()?;
        let begun = Some(clock::now());
        let inner = &*self.0;
        registers(inner, name, module)?;
        let added = match self.place(name, module) {
            // More than it was: the host may decide so, once.
            Err(ModuleError::Memory(MemoryError::Limit { wanted, used, limit }))
                if inner.raise_memory(wanted, used, limit) =>
            {
                self.place(name, module)?
            }
            other => other?,
        };
        if let Err(source) = self.run(&added, &module.0.parsed.constructors, &Series::since(self, begun)) {
            self.take_back(&added);
            return Err(ModuleError::Init {
                name: name.into(),
                source: Box::new(source),
            });
        }
        let _world = world::lock().ok_or(ModuleError::Handler)?;
        let mut family = inner.family();
        match family.index(&added) {
            Some(index) => {
                family.members[index].state = State::Live;
                Ok(())
            }
            // A reset came in between.
            None => Err(ModuleError::Init {
                name: name.into(),
                source: Box::new(CallError::Removed),
            }),
        }
    }

    /// Maps a module, without running anything.
    fn place(&self, name: &str, module: &Module) -> Result<Arc<Added>, ModuleError> {
        let inner = &*self.0;
        let parsed = &module.0.parsed;
        signal::thread_ready();
        let refused = |_| ModuleError::Addressing { name: name.into() };
        module.check_addressing(&inner.options).map_err(refused)?;
        let refused = |_| ModuleError::Isolation { name: name.into() };
        module.check_isolation(inner.words().is_some()).map_err(refused)?;
        let _world = world::lock().ok_or(ModuleError::Handler)?;
        let mut family = inner.family();
        if inner.faulted() {
            return Err(ModuleError::Faulted);
        }
        family.reap(inner);
        family.bury(inner);
        let own = || name.to_string();
        if family.named(name).is_some() {
            return Err(ModuleError::Exists { name: own() });
        }
        let there = inner.layout.placed.iter();
        if there
            .chain(family.members.iter().map(|m| &m.added.placed))
            .any(|p| Arc::ptr_eq(&p.module.0, &module.0))
        {
            return Err(ModuleError::Twice { name: own() });
        }

        let size = sys::page_up(parsed.image_len.into()) + GAP;
        let (used, limit) = (family.used, inner.options.module_limit);
        let full = ModuleError::Full {
            name: own(),
            wanted: size,
            used,
            limit,
        };
        if size > limit.saturating_sub(used) {
            return Err(full);
        }
        let tls = match parsed.tls {
            None => 0,
            Some(t) => {
                family
                    .thread_local(inner, t.len, t.align)
                    .ok_or_else(|| ModuleError::ThreadLocal {
                        name: own(),
                        wanted: t.len,
                        align: t.align,
                    })?
            }
        };
        // The limit is below 4 GiB wherever the window has room.
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let Some(offset) = family.room(inner).take(size) else {
            return Err(full);
        };
        let placed = Placed {
            module: module.clone(),
            offset,
            tls,
        };
        let mut touched = false;
        let made = self.place_at(&mut family, name, placed, size, &mut touched);
        match &made {
            Ok(_) => family.used += u64::from(size),
            Err(_) if touched => family.leave(inner, offset, size),
            Err(_) => family.room(inner).give(offset, size),
        }
        made
    }

    fn place_at(
        &self,
        family: &mut Family,
        name: &str,
        placed: Placed,
        size: u32,
        touched: &mut bool,
    ) -> Result<Arc<Added>, ModuleError> {
        let inner = &*self.0;
        let module = placed.module.clone();
        let (values, needs, asks_call_status) = {
            let others: Vec<_> = family.live().map(|m| &m.added.placed).collect();
            let first = inner.layout.placed.len();
            let number = first + others.len();
            let all = inner.layout.placed.iter().chain(others.iter().copied());
            let mut linker = Resolver::later(all.chain([&placed]).collect(), &inner.used);
            let mut values = host::vec(module.0.parsed.relocations.len())?;
            for relocation in &module.0.parsed.relocations {
                let value =
                    linker
                        .value(number, relocation, inner.base())
                        .map_err(|source| ModuleError::Link {
                            name: name.into(),
                            source: Box::new(source),
                        })?;
                values.push((relocation.offset, value));
            }
            let needs = linker.needs.range(first..number);
            let needs = needs.map(|&i| others[i - first].offset).collect();
            (values, needs, linker.asks_call_status)
        };
        let data = image::data_len(&placed);
        let added = Arc::new(Added {
            size,
            data,
            mappings: image::mappings(&placed),
            needs,
            asks_call_status,
            handles: Arc::<Handles>::default(),
            ended: 0.into(),
            placed,
        });
        family.ready(inner)?;
        inner.memory().charge(data)?;
        if let Err(e) = host::take_mappings(added.mappings) {
            inner.memory().discharge(data);
            return Err(e.into());
        }
        // The text comes last: before it nobody can be there.
        *touched = true;
        let mapped = image::map_image(&added.placed, inner.base(), || {
            relocate(inner, &added.placed, &values)?;
            self.fill_thread_locals(&added);
            Ok(())
        });
        if let Err(e) = mapped {
            inner.memory().discharge(data);
            host::give_mappings(added.mappings);
            return Err(e.into());
        }
        inner.added.push(&added);
        family.members.push(Member {
            name: name.into(),
            added: added.clone(),
            state: State::Coming,
        });
        family.list(inner);
        family.tell_status(inner);
        Ok(added)
    }

    /// Gives the lanes that there are its thread-local variables.
    fn fill_thread_locals(&self, added: &Added) {
        if added.placed.module.0.parsed.tls.is_none() {
            return;
        }
        let inner = &*self.0;
        let set = inner.lanes();
        // SAFETY: lanes in the list are this domain's, and their berths are not changed while it is locked.
        let used = set.lanes.iter().map(|&lane| unsafe { (*lane).berth });
        for berth in used.chain(set.free.iter().copied()) {
            inner.write_thread_local(&added.placed, berth.start(inner.base()));
        }
    }

    /// Calls some of a module's functions.
    fn run(&self, added: &Arc<Added>, functions: &[u32], series: &Series<'_>) -> Result<(), CallError> {
        for &offset in functions {
            if !added.placed.module.0.is_entry(offset) {
                return Err(CallError::Lane(
                    "a constructor or destructor is no function's entry".into(),
                ));
            }
            let entry = {
                let _world = world::lock().ok_or(CallError::Inside)?;
                self.entry_of_added(added, offset)
            };
            series.call(&entry)?;
        }
        Ok(())
    }

    /// Runs the destructors that have not run.
    fn end_added(&self, added: &Arc<Added>, series: &Series<'_>) -> Result<(), CallError> {
        for destructor in added.to_end().collect::<Vec<_>>() {
            let ended = self.run(added, &[destructor], series);
            // What did not begin runs at the next try.
            if ended.is_ok() || self.0.faulted() {
                added.ended.fetch_add(1, Ordering::Relaxed);
            }
            ended?;
        }
        Ok(())
    }

    /// Runs the destructors of all modules that were added, the last one's first.
    pub(super) fn end_all_added(&self, series: &Series<'_>) -> Result<(), DomainError> {
        let all: Vec<_> = {
            let _world = world::lock_plain();
            let family = self.0.family();
            family.live().map(|m| (m.name.clone(), m.added.clone())).collect()
        };
        for (name, added) in all.into_iter().rev() {
            self.end_added(&added, series)
                .map_err(|source| DomainError::Fini {
                    module: name,
                    source: Box::new(source),
                })?;
        }
        Ok(())
    }
}

//! Objects of the host's that modules reach word for word, as far as rights go (`--isolation=words`).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;
use ringfence_core::work::Budget;
use ringfence_core::{DomainId, Feature, Grantee, GroupId, Party, Rights, WordsError};
use ringfence_runtime as runtime;
use ringfence_words::TypeId;
use ringfence_words::policy::{Policy, structure};

use crate::value::{Arguments, Return, Value, for_each_arity};
use crate::{Access, CallError, Domain, DomainError, Error, FaultKind, Func, Imports, Untrusted};

/// The rights of a call by a policy: see [`Domain::enter_words`].
pub use ringfence_runtime::Held as HeldWords;

/// Memory of the host's for objects that domains can be given rights to, word for word: 4 bytes.
///
/// Its addresses mean the same to host and domains: a pointer goes to a module as it is, and so do pointers inside objects. Cheap to clone.
///
/// # Examples
/// ```no_run
/// use ringfence::{Arena, Domain, DomainOptions, Imports, LoadOptions, Module, Rights};
///
/// let mut options = LoadOptions::default();
/// options.allow_words = true;
/// let module = Module::open_with("driver.rf", &options)?;
/// let arena = Arena::new(1 << 20)?;
/// let domain = Domain::new(&module, Imports::new().arena(&arena))?;
/// let packet = arena.put([[0_u32; 4]; 9])?;
/// // 32 of 144 bytes.
/// domain.give_words(packet.address(), 32, Rights::Write)?;
/// let fill = domain.func::<(u64,), i32>("fill")?;
/// fill.call(packet.address())?;
/// println!("{:?}", packet.read());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arena(pub(crate) runtime::Arena);

impl Arena {
    /// An arena for up to `len` bytes of objects, at most 490 MiB. What is not used takes no memory.
    ///
    /// # Errors
    /// [`WordsError::Length`], [`WordsError::Host`].
    pub fn new(len: u64) -> Result<Self, WordsError> {
        runtime::Arena::new(len).map(Self)
    }

    /// The same, where tables of rights take at most `tables` bytes, and the rules behind them as many: a byte for each byte of the arena
    /// in which a domain was given anything, in pages. [`new`](Self::new) lets them take 64 MiB and 16 times the arena.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn limited(len: u64, tables: u64) -> Result<Self, WordsError> {
        runtime::Arena::limited(len, tables).map(Self)
    }

    /// Domains that are made with the arena from now on have *checked heaps*: what their libc allocates are objects of the arena that they
    /// own. Running over a block's end, a use after free, and reading words that were never written are denied, and the report
    /// ([`Domain::explain_words`]) tells who has allocated the block. Freeing what is no block ends the call with
    /// [`FaultKind::Host`], of which the same report tells more.
    ///
    /// It is for finding mistakes: each allocation is a call of the runtime, and the first write to each word costs a fault. A reset frees
    /// all blocks. Blocks of more than 1 MiB, those that have to be aligned to more than 16, and more than 65,536 are not checked.
    pub fn check_heaps(&self) {
        self.0.check_heaps();
    }

    /// A value on the stack, say, as an object for as long as a call needs it: copied in now, and out when what is returned is dropped.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Arena, Domain, Rights};
    /// # fn example(arena: &Arena, domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut point = [3_u32, 4];
    /// let lent = arena.lend(&mut point)?;
    /// domain.give_words(lent.address(), 8, Rights::Write)?;
    /// domain.func::<(u64,), ()>("mirror")?.call(lent.address())?;
    /// drop(lent);
    /// println!("{point:?}");
    /// # Ok(()) }
    /// ```
    pub fn lend<'a, T: Pod>(&self, value: &'a mut T) -> Result<Lent<'a, T>, WordsError> {
        Ok(Lent {
            object: self.put(*value)?,
            value,
        })
    }

    /// An object with this value. No domain has rights to it.
    ///
    /// # Errors
    /// [`WordsError::Full`]; [`WordsError::Length`] for a value that needs more than an alignment of 16.
    pub fn put<T: Pod>(&self, value: T) -> Result<InArena<T>, WordsError> {
        let len = size_of::<T>() as u64;
        if align_of::<T>() > 16 {
            return Err(WordsError::Length { len, most: 16 });
        }
        let object = InArena {
            arena: self.clone(),
            address: self.0.alloc(len)?,
            value: PhantomData,
        };
        object.write(value);
        Ok(object)
    }

    /// A place for `len` bytes, zeroed, at a multiple of 16, until [`free`](Self::free). No domain has rights to it.
    ///
    /// # Errors
    /// [`WordsError::Full`], [`WordsError::Length`].
    pub fn alloc(&self, len: u64) -> Result<u64, WordsError> {
        self.0.alloc(len)
    }

    /// A place for an object of a structure that the policy knows, `request` for `struct request`: reports name its fields.
    ///
    /// # Errors
    /// As for [`alloc`](Self::alloc); [`WordsError::Policy`]: there is no such structure.
    pub fn alloc_as(&self, policy: &WordsPolicy, structure: &str) -> Result<u64, WordsError> {
        let layout = policy.0.structure(structure);
        let layout = layout.ok_or_else(|| {
            WordsError::Policy(format!("the policy has no struct {structure}: declare it there"))
        })?;
        let kind = self
            .0
            .name_type(&format!("struct {structure}"), Some(layout.clone()));
        self.0.alloc_for(Party::Host, layout.size, kind)
    }

    /// A place for `len` bytes, zeroed, that `owner` owns: it may read and write it, may give rights to it away, and takes it along when it
    /// goes.
    ///
    /// # Errors
    /// As for [`alloc`](Self::alloc); [`WordsError::NoArena`], [`WordsError::OtherArena`].
    pub fn alloc_owned(&self, owner: &Domain, len: u64) -> Result<u64, WordsError> {
        self.0.alloc_for(self.party(Some(owner))?, len, TypeId(0))
    }

    /// Takes a place back. All domains lose their rights to it first.
    ///
    /// # Errors
    /// [`WordsError::NoObject`]: none begins there, or a block of a [checked heap](Self::check_heaps), which its module frees.
    /// [`WordsError::InUse`] while calls by a policy have rights to it.
    /// [`WordsError::Inside`]: it is gone, but its place stays empty until the thread that did not answer has come out.
    pub fn free(&self, address: u64) -> Result<(), WordsError> {
        self.0.free(Party::Host, address)
    }

    /// As [`free`](Self::free), at the wish of a domain: only what it owns.
    ///
    /// # Errors
    /// As for [`free`](Self::free), and [`WordsError::NotOwner`].
    pub fn free_as(&self, actor: &Domain, address: u64) -> Result<(), WordsError> {
        self.0.free(self.party(Some(actor))?, address)
    }

    /// What a domain, or all members of a group, may do from now on with `len` bytes at `address`: whole words of 4 bytes of one object. What
    /// was given of these words to the same one before is replaced. Where rights are taken away, no access is in progress any more that
    /// would need them.
    ///
    /// # Errors
    /// [`WordsError::Misaligned`], [`WordsError::NoObject`], [`WordsError::OtherArena`], [`WordsError::Tables`], [`WordsError::Inside`].
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Arena, Domain, Rights};
    /// # fn example(arena: &Arena, domain: &Domain, another: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// let packet = arena.alloc(144)?;
    /// arena.give(domain, packet, 32, Rights::Write)?;
    /// let readers = arena.group(false)?;
    /// arena.give(&readers, packet, 144, Rights::Read)?;
    /// readers.admit(another)?;
    /// arena.revoke(packet, 144)?; // gone for all of them
    /// # Ok(()) }
    /// ```
    pub fn give<'a>(
        &self,
        to: impl Into<Recipient<'a>>,
        address: u64,
        len: u64,
        rights: Rights,
    ) -> Result<(), WordsError> {
        let to = self.grantee(to.into())?;
        self.0.give(Party::Host, to, address, len, rights)
    }

    /// As [`give`](Self::give), at the wish of a domain, which owns the object, or gives up what it was given itself.
    ///
    /// # Errors
    /// As for [`give`](Self::give), and [`WordsError::NotOwner`].
    pub fn give_as<'a>(
        &self,
        giver: &Domain,
        to: impl Into<Recipient<'a>>,
        address: u64,
        len: u64,
        rights: Rights,
    ) -> Result<(), WordsError> {
        let to = self.grantee(to.into())?;
        self.0.give(self.party(Some(giver))?, to, address, len, rights)
    }

    /// Takes all that was given of `len` bytes at `address` back: from all domains, groups and calls in progress. What its owner has stays.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn revoke(&self, address: u64, len: u64) -> Result<(), WordsError> {
        self.0.revoke(Party::Host, address, len)
    }

    /// As [`revoke`](Self::revoke), at the wish of the domain that owns the object.
    ///
    /// # Errors
    /// As for [`give_as`](Self::give_as).
    pub fn revoke_as(&self, actor: &Domain, address: u64, len: u64) -> Result<(), WordsError> {
        self.0.revoke(self.party(Some(actor))?, address, len)
    }

    /// What a domain may do with the word at `address`, all taken together.
    ///
    /// # Errors
    /// [`WordsError::NoArena`], [`WordsError::OtherArena`].
    pub fn rights_of(&self, domain: &Domain, address: u64) -> Result<Rights, WordsError> {
        self.id(domain).map(|_| domain.word_rights(address))
    }

    /// A group of domains that get rights together; domains join an open one by themselves. It ends when it is dropped.
    ///
    /// # Errors
    /// [`WordsError::Tables`].
    pub fn group(&self, open: bool) -> Result<WordsGroup, WordsError> {
        let id = self.0.add_group(Party::Host, open)?;
        Ok(WordsGroup {
            arena: self.clone(),
            id,
        })
    }

    /// The words that tables of rights, and the rules behind them, take, in bytes.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.0.tables()
    }

    /// Its addresses: where objects are.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<u64> {
        self.0.range()
    }

    /// Who has what: a line for each domain with its rights by bytes from the arena's start, a line for each group; `most` runs of each.
    #[must_use]
    pub fn overview(&self, most: usize) -> String {
        self.0.overview(most)
    }

    fn id(&self, domain: &Domain) -> Result<DomainId, WordsError> {
        let domain = domain.0.window(Feature::Words);
        let domain = domain.map_err(|_| WordsError::NoArena)?;
        let (arena, id) = domain.arena()?;
        arena.is(&self.0).then_some(id).ok_or(WordsError::OtherArena)
    }

    fn party(&self, domain: Option<&Domain>) -> Result<Party, WordsError> {
        domain.map_or(Ok(Party::Host), |d| self.id(d).map(Party::Domain))
    }

    fn grantee(&self, to: Recipient<'_>) -> Result<Grantee, WordsError> {
        match to.0 {
            Ok(domain) => self.id(domain).map(Grantee::Domain),
            Err(group) if group.arena.0.is(&self.0) => Ok(Grantee::Group(group.id)),
            Err(_) => Err(WordsError::OtherArena),
        }
    }
}

/// Who is given rights: a domain, or a group.
pub struct Recipient<'a>(Result<&'a Domain, &'a WordsGroup>);

impl<'a> From<&'a Domain> for Recipient<'a> {
    fn from(domain: &'a Domain) -> Self {
        Self(Ok(domain))
    }
}

impl<'a> From<&'a WordsGroup> for Recipient<'a> {
    fn from(group: &'a WordsGroup) -> Self {
        Self(Err(group))
    }
}

/// Domains that get rights to words of an [`Arena`] together. What is given to it costs nothing before somebody is in it.
pub struct WordsGroup {
    arena: Arena,
    id: GroupId,
}

impl WordsGroup {
    /// Lets a domain in.
    ///
    /// # Errors
    /// [`WordsError::OtherArena`], [`WordsError::Tables`].
    pub fn admit(&self, domain: &Domain) -> Result<(), WordsError> {
        self.arena.0.admit(Party::Host, self.arena.id(domain)?, self.id)
    }

    /// A domain comes in by itself, if the group is open.
    ///
    /// # Errors
    /// [`WordsError::Closed`], and as for [`admit`](Self::admit).
    pub fn join(&self, domain: &Domain) -> Result<(), WordsError> {
        let id = self.arena.id(domain)?;
        self.arena.0.admit(Party::Domain(id), id, self.id)
    }

    /// Takes a domain out.
    ///
    /// # Errors
    /// [`WordsError::NotMember`], [`WordsError::OtherArena`], [`WordsError::Inside`].
    pub fn expel(&self, domain: &Domain) -> Result<(), WordsError> {
        self.arena.0.expel(Party::Host, self.arena.id(domain)?, self.id)
    }

    /// All members of `inner`, now and later, get what this group is given, too.
    ///
    /// # Errors
    /// [`WordsError::Circle`], [`WordsError::OtherArena`], [`WordsError::Tables`].
    pub fn admit_group(&self, inner: &WordsGroup) -> Result<(), WordsError> {
        self.same(inner)?;
        self.arena.0.admit_group(Party::Host, inner.id, self.id)
    }

    /// Takes a group out.
    ///
    /// # Errors
    /// [`WordsError::NotMember`], [`WordsError::OtherArena`], [`WordsError::Inside`].
    pub fn expel_group(&self, inner: &WordsGroup) -> Result<(), WordsError> {
        self.same(inner)?;
        self.arena.0.expel_group(Party::Host, inner.id, self.id)
    }

    fn same(&self, other: &WordsGroup) -> Result<(), WordsError> {
        match other.arena.0.is(&self.arena.0) {
            true => Ok(()),
            false => Err(WordsError::OtherArena),
        }
    }
}

impl Drop for WordsGroup {
    fn drop(&mut self) {
        // Nobody else ends it.
        let _ = self.arena.0.end_group(Party::Host, self.id);
    }
}

impl fmt::Debug for WordsGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WordsGroup({})", self.id.0)
    }
}

/// What functions of an interface may touch of the objects that they are called with, a line for each: `docs/words.md` has the language.
#[derive(Clone, Debug)]
pub struct WordsPolicy(Arc<Policy>);

impl WordsPolicy {
    /// Reads a policy that declares its structures itself.
    ///
    /// # Errors
    /// [`WordsError::Policy`]: the first mistake, with line, column and a caret.
    ///
    /// # Examples
    /// ```
    /// use ringfence::WordsPolicy;
    ///
    /// let policy = WordsPolicy::parse(
    ///     "struct request 144 { uri @0 char*; cb @16 1[48] }\n\
    ///      handle(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing",
    /// )?;
    /// assert!(WordsPolicy::parse("handle(req: struct request) reads req").is_err());
    /// # let _ = policy;
    /// # Ok::<(), ringfence::WordsError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, WordsError> {
        let parsed = Policy::parse(text, |_| None);
        parsed
            .map(|p| Self(Arc::new(p)))
            .map_err(|e| WordsError::Policy(e.to_string()))
    }

    /// The same, with layouts from the debug information of `file`. That decides what is granted: take a file of the host's own, never the
    /// module that is to be held.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn with_layouts(text: &str, file: &[u8]) -> Result<Self, WordsError> {
        let known = |name: &str| {
            let mut budget = Budget::new(1 << 24, 64 << 20);
            structure::of(file, name, &mut budget).ok().flatten()
        };
        let parsed = Policy::parse(text, known);
        parsed
            .map(|p| Self(Arc::new(p)))
            .map_err(|e| WordsError::Policy(e.to_string()))
    }
}

/// An object in an [`Arena`], which owns it. Domains with rights may read and change it at any time.
pub struct InArena<T: Pod> {
    arena: Arena,
    address: u64,
    value: PhantomData<T>,
}

impl<T: Pod> InArena<T> {
    /// Its address: what goes to a module, and into other objects as a pointer.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// A copy of the value, as it is now. Where a domain writes meanwhile, parts are old and parts are new.
    #[must_use]
    pub fn read(&self) -> T {
        fence(Ordering::Acquire);
        // SAFETY: an object of the arena, aligned for the type, of which every pattern of bits is a value; others may write it, so
        // it is not read as what nobody else changes.
        unsafe { (self.address as *const T).read_volatile() }
    }

    /// Changes the value.
    pub fn write(&self, value: T) {
        // SAFETY: as in `read`; nobody has a reference to it.
        unsafe { (self.address as *mut T).write_volatile(value) };
        fence(Ordering::Release);
    }
}

impl<T: Pod> Drop for InArena<T> {
    fn drop(&mut self) {
        // It is there: nobody else frees it but by its address.
        let _ = self.arena.free(self.address);
    }
}

impl<T: Pod> fmt::Debug for InArena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InArena({:#x})", self.address)
    }
}

/// A value that is in an [`Arena`] for a while: see [`Arena::lend`].
#[derive(Debug)]
pub struct Lent<'a, T: Pod> {
    object: InArena<T>,
    value: &'a mut T,
}

impl<T: Pod> Lent<'_, T> {
    /// The copy's address: what goes to a module.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.object.address()
    }
}

impl<T: Pod> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        *self.value = self.object.read();
    }
}

impl Imports {
    /// Gives the arena whose objects the domain may get rights to. All the domain's modules are then of `--isolation=words`.
    #[must_use]
    pub fn arena(self, arena: &Arena) -> Self {
        Self(self.0.arena(&arena.0), self.1)
    }
}

impl Domain {
    /// What the domain may do from now on with `len` bytes at `address` of its [`Arena`]: as [`Arena::give`]. A fault or a reset takes no
    /// rights away.
    ///
    /// # Errors
    /// As for [`Arena::give`]; [`WordsError::NoArena`].
    pub fn give_words(&self, address: u64, len: u64, rights: Rights) -> Result<(), WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        domain.give_words(address, len, rights)
    }

    /// What the domain may do with the word of its [`Arena`] at `address`.
    #[must_use]
    pub fn word_rights(&self, address: u64) -> Rights {
        let domain = self.0.window(Feature::Words);
        domain.map_or(Rights::None, |domain| domain.word_rights(address))
    }

    /// A function that gets rights by a policy: those that it needs of the objects that it is called with, for as long as the call runs. They
    /// are gone when it has returned, or failed.
    ///
    /// # Errors
    /// As for [`func`](Self::func).
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Arena, Domain, WordsPolicy};
    /// # fn example(arena: &Arena, domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = WordsPolicy::parse("fill(to: bytes, n: number) writes to[n]; keeps nothing")?;
    /// let fill = domain.func_by::<(u64, u64), ()>("fill", &policy)?;
    /// let object = arena.alloc(64)?;
    /// fill.call(object, 32)?;
    /// # Ok(()) }
    /// ```
    pub fn func_by<A: Arguments, R: Return>(
        &self,
        name: &str,
        policy: &WordsPolicy,
    ) -> Result<FuncBy<A, R>, DomainError> {
        Ok(FuncBy {
            func: self.func(name)?,
            domain: self.clone(),
            name: name.into(),
            policy: policy.clone(),
        })
    }

    /// From now on the domain is denied nothing of its arena, and what its calls touch is noted, until what is returned is dropped: so a policy
    /// is found that a run needs. `signatures` has the functions' parameters, `handle(req: struct request, n: number)`, and structures. One
    /// domain in a process learns at a time; another waits.
    ///
    /// The fence holds as ever; rights to words do not. It is for a module that was let into the arena anyway.
    ///
    /// # Errors
    /// [`WordsError::NoArena`].
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence::{Arena, Domain, WordsPolicy};
    /// # fn example(arena: &Arena, domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// let signatures = WordsPolicy::parse("fill(to: bytes, n: number)")?;
    /// let fill = domain.func::<(u64, u64), ()>("fill")?;
    /// let object = arena.alloc(64)?;
    /// let mut learner = domain.learn_words(&signatures)?;
    /// learner.call("fill", &[object, 32], || fill.call(object, 32))?;
    /// println!("{}", learner.policy()?); // fill(to: bytes, n: number) writes to[32]; keeps nothing
    /// # Ok(()) }
    /// ```
    pub fn learn_words(&self, signatures: &WordsPolicy) -> Result<WordsLearner, WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        Ok(WordsLearner {
            learner: domain.learn_words(&signatures.0, true)?,
            declarations: signatures.0.declarations(),
        })
    }

    /// The same, which does not wait.
    ///
    /// # Errors
    /// As for [`learn_words`](Self::learn_words), and [`WordsError::Learning`] if another domain learns.
    pub fn try_learn_words(&self, signatures: &WordsPolicy) -> Result<WordsLearner, WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        Ok(WordsLearner {
            learner: domain.learn_words(&signatures.0, false)?,
            declarations: signatures.0.declarations(),
        })
    }

    /// For calls whose policy says `copied` of parameters: their arguments that do not lead into the arena are copied to objects there, whose
    /// addresses take their place.
    ///
    /// # Errors
    /// As for [`enter_words`](Self::enter_words); [`WordsError::Full`].
    ///
    /// # Safety
    /// Pointers among the arguments that the policy says are copied lead to as many readable bytes as it says, writable ones if it lets
    /// the function write them, until what is returned is dropped.
    pub unsafe fn copy_words(
        &self,
        policy: &WordsPolicy,
        function: &str,
        arguments: &mut [u64],
    ) -> Result<CopiedWords, WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        let copies = domain.copied_words(&policy.0, function, arguments)?;
        let mut copied = CopiedWords {
            arena: Arena(domain.arena()?.0.clone()),
            copies: Vec::new(),
        };
        for copy in copies {
            let from = arguments[copy.argument];
            let object = copied.arena.alloc(copy.len)?;
            let len = copy.len as usize;
            // SAFETY: a new object of the arena, and the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, object as *mut u8, len) };
            arguments[copy.argument] = object;
            let back = copy.back.then_some(from);
            copied.copies.push((object, len, back));
        }
        Ok(copied)
    }

    /// What is known of an access that ended a call: who, where in the source, which field of whose object, the rights that were there, and, if
    /// the call was one by a policy, the line that this lacks; or of the block of a [checked heap](Arena::check_heaps) that was freed in
    /// error. `None` for other errors. In several lines. A reset forgets blocks, so ask before. It reads debug information, which takes
    /// some tens of milliseconds.
    #[must_use]
    pub fn explain_words(
        &self,
        error: &CallError,
        call: Option<(&WordsPolicy, &str, &[u64])>,
    ) -> Option<String> {
        self.explain_denied(error, call)
            .or_else(|| match &error.fault()?.kind {
                FaultKind::Host(why) => {
                    let domain = self.0.window(Feature::Words).ok()?;
                    domain.misused_words(why).map(|lines| lines.join("\n  "))
                }
                _ => None,
            })
    }

    fn explain_denied(
        &self,
        error: &CallError,
        call: Option<(&WordsPolicy, &str, &[u64])>,
    ) -> Option<String> {
        let CallError::Fault(fault) = error else {
            return None;
        };
        let FaultKind::Denied {
            address,
            access,
            len,
            rights,
        } = fault.kind
        else {
            return None;
        };
        let domain = self.0.window(Feature::Words).ok()?;
        let missing = call.map(|(policy, function, arguments)| (&*policy.0, function, arguments));
        let len = u64::from(len.max(1));
        let mut denied = domain
            .denied_words(address, len, access == Access::Write, missing)
            .ok()?;
        // As they were then: by now the call, and its rights, are gone.
        denied.rights = rights;
        denied.module = fault.domain.clone();
        // The first frame of which the source is known: the libc's functions have none.
        let frames = fault.backtrace();
        let known = frames.iter().position(|frame| frame.file.is_some());
        if let Some(frame) = frames.into_iter().nth(known.unwrap_or(0)) {
            denied.line = frame.file.zip(frame.line);
            denied.function = frame.function;
        }
        Some(denied.to_string())
    }

    /// A call of `function` with these arguments (pointers and numbers as they are in registers) is about to begin: what the policy says is
    /// given until what is returned is dropped. For calls that are made another way than by [`func_by`](Self::func_by).
    ///
    /// # Errors
    /// [`WordsError::Policy`]: the policy says nothing of the function, or a pointer leads elsewhere than into the arena;
    /// [`WordsError::NoObject`]: to no object, or over its end; [`WordsError::Tables`].
    pub fn enter_words(
        &self,
        policy: &WordsPolicy,
        function: &str,
        arguments: &[u64],
    ) -> Result<HeldWords, WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        domain.enter_words(&policy.0, function, arguments)
    }
}

/// Arguments that were copied for a call: see [`Domain::copy_words`].
#[derive(Debug)]
pub struct CopiedWords {
    arena: Arena,
    /// Object, length, and where it goes back to.
    copies: Vec<(u64, usize, Option<u64>)>,
}

impl CopiedWords {
    /// The call has returned: what the function may have written goes back. After a call that failed drop it instead.
    pub fn back(self) {
        for &(object, len, to) in &self.copies {
            if let Some(to) = to {
                // SAFETY: the promise of who copied.
                unsafe { std::ptr::copy_nonoverlapping(object as *const u8, to as *mut u8, len) };
            }
        }
    }
}

impl Drop for CopiedWords {
    fn drop(&mut self) {
        for &(object, ..) in &self.copies {
            // Ours; should a thread not answer, its place waits.
            let _ = self.arena.free(object);
        }
    }
}

/// What a domain's calls touch of its arena: see [`Domain::learn_words`].
#[derive(Debug)]
pub struct WordsLearner {
    learner: runtime::Learner,
    declarations: String,
}

impl WordsLearner {
    /// Makes a call of `function` with these arguments (pointers and numbers as they are in registers), which `call` is, and notes what it
    /// touched.
    pub fn call<T>(&mut self, function: &str, arguments: &[u64], call: impl FnOnce() -> T) -> T {
        self.learner.call(function, arguments, call)
    }

    /// The policy that the calls needed, to be read and then used: structures, a line for each function, and a comment for each that touched
    /// what its parameters do not lead to.
    ///
    /// # Errors
    /// [`WordsError::Policy`]: a call made more different accesses than are noted, 65,536.
    pub fn policy(&self) -> Result<String, WordsError> {
        Ok(self.declarations.clone() + &self.learner.text()?)
    }
}

/// A function that gets rights by a policy: see [`Domain::func_by`].
pub struct FuncBy<A, R> {
    func: Func<A, R>,
    domain: Domain,
    name: String,
    policy: WordsPolicy,
}

impl<A, R> fmt::Debug for FuncBy<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FuncBy")
            .field(&self.name)
            .field(&self.func)
            .finish()
    }
}

macro_rules! call_by {
    ($($t:ident)*) => {
        impl<R: Return, $($t: Value),*> FuncBy<($($t,)*), R> {
            /// Calls the function, with the rights that its policy says for as long as it runs.
            ///
            /// # Errors
            /// [`Error::Words`] if these are not to be had, and then nothing is called; [`Error::Denied`] if it touches more; [`Error::Call`].
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub fn call(&self, $($t: $t),*) -> Result<Untrusted<R>, Error> {
                let arguments = [$($t.to_bits()),*];
                let held = self.domain.enter_words(&self.policy, &self.name, &arguments)?;
                let result = self.func.call($($t),*);
                drop(held);
                result.map_err(|source| {
                    let call = Some((&self.policy, &*self.name, &arguments[..]));
                    match self.domain.explain_denied(&source, call) {
                        Some(report) => Error::Denied { report, source },
                        None => source.into(),
                    }
                })
            }
        }
    };
}
for_each_arity!(call_by);

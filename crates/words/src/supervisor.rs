//! Who may do what to which word: the one place where these rules live.

use crate::bits::{CHUNK, chunks, filled, mask, of_word};
use crate::error::Error;
use crate::layer::{Layer, Room};
use crate::members::{Members, Source};
use crate::object::{Object, TypeId};
use crate::objects::{Entry, HOST, Objects, Place};
use crate::overview::Overview;
use crate::sink::Sink;
use crate::tell::{change, lower_all, raise, unraise};
use ringfence_core::{DomainId, Grantee, Party, Rights};
use std::ops::Range;

mod calls;
mod groups;

pub use calls::Call;

/// Bytes of a word.
pub const WORD: u64 = 4;
/// Most words of an arena: 4 GiB.
pub const MOST_WORDS: u32 = 1 << 30;

/// Who may do what to which word of an arena. It tells what changes to a [`Sink`].
///
/// 1. Words belong to *objects*, which do not overlap. An object has one owner, the host or a domain, until it is freed. A domain may
///    read and write what it owns.
/// 2. Words of one object are *exported* to a domain or a group: the rights that those words had there are replaced. Only the host and
///    the owner export; a domain itself may lower what was exported to it.
/// 3. A *call* may bring rights along, which end with it, however it ends.
/// 4. A domain's effective rights are the greatest of what it owns, what was exported to it and its groups, and what its calls have.
/// 5. A group has one owner, the host or a domain. Only the host and that owner admit and expel members, domains and other groups; any
///    domain may join an open group, and every member may leave. What is exported to a group costs nothing in a domain's table
///    before that joins. Groups do not contain each other.
/// 6. Freeing an object takes all rights to it back, everywhere. It is refused while calls have rights to it. A domain that ends leaves
///    its groups; what it owns is freed, groups that it owns end.
///
/// An operation either succeeds or changes nothing. None locks or makes a system call; two threads need a lock around it.
///
/// ```
/// use ringfence_words::{DomainId, Grantee, Listed, Party, Rights, Supervisor, TypeId};
///
/// let mut words = Supervisor::new(Listed::default(), 1 << 20, 1 << 20);
/// let driver = DomainId(1);
/// words.add_domain(driver)?;
/// let packet = words.words(0x1000, 144)?;
/// words.allocate(Party::Host, packet.clone(), TypeId(0))?;
/// let part = words.words(0x1020, 32)?;
/// words.export(Party::Host, part.clone(), Rights::Write, Grantee::Domain(driver))?;
/// assert_eq!(words.rights(driver, part.start), Rights::Write);
/// assert_eq!(words.rights(driver, part.end), Rights::None);
/// words.free(Party::Host, packet.start)?;
/// assert!(words.sink().rights.is_empty());
/// # Ok::<(), ringfence_words::Error>(())
/// ```
#[derive(Debug)]
pub struct Supervisor<S> {
    sink: S,
    words: u32,
    room: Room,
    objects: Objects,
    members: Members,
    next_call: u64,
    /// Slots of domains with calls that have rights.
    called: Vec<u32>,
}

impl<S: Sink> Supervisor<S> {
    /// For an arena of so many bytes, at most 4 GiB, whose tables are kept by `sink`. The supervisor's own take at most `limit` bytes.
    pub fn new(sink: S, bytes: u64, limit: usize) -> Supervisor<S> {
        Supervisor {
            sink,
            words: u32::try_from(bytes / WORD).map_or(MOST_WORDS, |n| n.min(MOST_WORDS)),
            room: Room::new(limit),
            objects: Objects::default(),
            members: Members::default(),
            next_call: 0,
            called: Vec::new(),
        }
    }

    /// What keeps the tables.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// What keeps the tables.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Bytes that the supervisor's own tables take.
    pub fn memory(&self) -> usize {
        self.room.used()
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.objects.count()
    }

    /// The words of bytes, counted from the arena's start.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Misaligned`], [`Error::Outside`].
    pub fn words(&self, start: u64, len: u64) -> Result<Range<u32>, Error> {
        let end = start.saturating_add(len);
        if len == 0 {
            return Err(Error::Empty(start..end));
        }
        if !start.is_multiple_of(WORD) || !len.is_multiple_of(WORD) {
            return Err(Error::Misaligned { start, end });
        }
        if end > u64::from(self.words) * WORD {
            return Err(self.outside(start..end));
        }
        Ok((start / WORD) as u32..(end / WORD) as u32)
    }

    fn outside(&self, bytes: Range<u64>) -> Error {
        let size = u64::from(self.words) * WORD;
        Error::Outside { bytes, size }
    }

    fn check(&self, words: &Range<u32>) -> Result<(), Error> {
        let bytes = u64::from(words.start) * WORD..u64::from(words.end) * WORD;
        match words.start < words.end {
            false => Err(Error::Empty(bytes)),
            true if words.end > self.words => Err(self.outside(bytes)),
            true => Ok(()),
        }
    }

    fn owner(&self, entry: &Entry) -> Party {
        let domain = self.members.domains.get(entry.owner);
        domain.map_or(Party::Host, |d| Party::Domain(d.id))
    }

    fn shown(&self, entry: &Entry) -> Object {
        Object {
            words: entry.start..entry.end,
            owner: self.owner(entry),
            kind: entry.kind,
        }
    }

    fn slot(&self, party: Party) -> Result<u32, Error> {
        match party {
            Party::Host => Ok(HOST),
            Party::Domain(id) => self.members.domain(id),
        }
    }

    fn entitled(actor: Party, owner: Party) -> Result<(), Error> {
        match actor == Party::Host || actor == owner {
            true => Ok(()),
            false => Err(Error::NotOwner { owner }),
        }
    }

    /// The object that a word belongs to.
    pub fn object(&self, word: u32) -> Option<Object> {
        self.objects.at(word).map(|o| self.shown(o))
    }

    /// What a domain may do with a word. None for domains and words that do not exist.
    pub fn rights(&self, domain: DomainId, word: u32) -> Rights {
        let Ok(slot) = self.members.domain(domain) else {
            return Rights::None;
        };
        let bits = |d| self.members.effective(d, word / CHUNK);
        of_word(self.members.domains.get(slot).map_or(0, bits), word)
    }

    /// What was itself exported to a domain or group.
    pub fn exported(&self, grantee: Grantee, word: u32) -> Rights {
        let layer = self.source(grantee).ok().and_then(|s| self.members.source(s));
        layer.map_or(Rights::None, |l| l.rights(word))
    }

    fn source(&self, grantee: Grantee) -> Result<Source, Error> {
        Ok(match grantee {
            Grantee::Domain(id) => Source::Domain(self.members.domain(id)?),
            Grantee::Group(id) => Source::Group(self.members.group(id)?),
        })
    }

    /// A new domain, without rights.
    ///
    /// # Errors
    /// [`Error::SameDomain`].
    pub fn add_domain(&mut self, id: DomainId) -> Result<(), Error> {
        self.members.add_domain(id)
    }

    /// A domain has ended (rule 6), its calls with it. The sink is not told of what it loses itself: its table goes with it.
    ///
    /// # Errors
    /// [`Error::NoDomain`]; [`Error::InUse`] if calls of other domains have rights to what it owns.
    pub fn remove_domain(&mut self, id: DomainId) -> Result<(), Error> {
        let slot = self.members.domain(id)?;
        let owned = self.owned_by(slot);
        for object in &owned {
            self.idle(object, Some(slot))?;
        }
        self.called.retain(|&d| d != slot);
        for object in owned {
            self.take_back(&object, Some(slot));
        }
        let groups: Vec<u32> = self
            .members
            .groups
            .iter()
            .filter(|(_, g)| g.owner == Party::Domain(id))
            .map(|(n, _)| n)
            .collect();
        self.members.remove_domain(slot, &mut self.room);
        for group in groups {
            self.dissolve(group);
        }
        Ok(())
    }

    /// The objects that a domain owns.
    pub fn owned(&self, id: DomainId) -> Vec<Object> {
        let owned = self.members.domain(id).map(|slot| self.owned_by(slot));
        owned.unwrap_or_default().iter().map(|o| self.shown(o)).collect()
    }

    fn owned_by(&self, slot: u32) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        let used = self
            .members
            .source(Source::Owned(slot))
            .into_iter()
            .flat_map(Layer::used);
        for part in used {
            let mut word = part.start * CHUNK;
            let end = part.end * CHUNK;
            while word < end {
                match self.objects.first_in(&(word..end)) {
                    Some(o) => {
                        word = o.end;
                        if o.owner == slot && found.last().is_none_or(|l| l.start != o.start) {
                            found.push(o.clone());
                        }
                    }
                    None => break,
                }
            }
        }
        found
    }

    /// A new object of these words.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Outside`], [`Error::Overlaps`], [`Error::NoDomain`], [`Error::Memory`], [`Error::Table`].
    pub fn allocate(&mut self, owner: Party, words: Range<u32>, kind: TypeId) -> Result<(), Error> {
        self.check(&words)?;
        let slot = self.slot(owner)?;
        if let Some(there) = self.objects.first_in(&words) {
            return Err(Error::Overlaps {
                there: self.shown(there),
                wanted: words,
            });
        }
        let entry = Entry {
            start: words.start,
            end: words.end,
            owner: slot,
            kind,
            given: 0,
        };
        let start = words.start;
        self.objects.add(entry, &mut self.room)?;
        if slot != HOST {
            let owned = self.put(Source::Owned(slot), &words, Rights::Write);
            if owned.is_err() {
                self.objects.remove(start, &mut self.room);
            }
            return owned;
        }
        Ok(())
    }

    /// The object that begins with this word is gone: nobody has rights to it any more.
    ///
    /// # Errors
    /// [`Error::Nobodys`], [`Error::Inside`], [`Error::NotOwner`]; [`Error::InUse`] while calls have rights to it: let them end, or
    /// [`revoke`](Self::revoke) those first.
    pub fn free(&mut self, actor: Party, start: u32) -> Result<(), Error> {
        self.members.party(actor)?;
        let object = self.objects.at(start).ok_or(Error::Nobodys { word: start })?;
        if object.start != start {
            return Err(Error::Inside {
                word: start,
                object: self.shown(object),
            });
        }
        Self::entitled(actor, self.owner(object))?;
        let object = object.clone();
        self.idle(&object, None)?;
        self.take_back(&object, None);
        Ok(())
    }

    /// Whether no calls have rights to the object, those of one domain aside.
    fn idle(&self, object: &Entry, aside: Option<u32>) -> Result<(), Error> {
        let (mut calls, mut domain) = (0, None);
        for &slot in self.called.iter().filter(|&&d| Some(d) != aside) {
            let Some(d) = self.members.domains.get(slot) else {
                continue;
            };
            let mut last = None;
            for held in d
                .held
                .iter()
                .filter(|h| h.words.start < object.end && object.start < h.words.end)
            {
                calls += usize::from(last != Some(held.call));
                last = Some(held.call);
                domain = Some(d.id);
            }
        }
        match domain {
            None => Ok(()),
            Some(domain) => Err(Error::InUse {
                object: self.shown(object),
                domain,
                calls,
            }),
        }
    }

    /// Takes all rights to an object from all, and the object away. One domain's table is gone already.
    fn take_back(&mut self, object: &Entry, gone: Option<u32>) {
        let words = object.start..object.end;
        if object.owner != HOST {
            self.put_less(Source::Owned(object.owner), &words, Rights::None, gone);
        }
        self.take_exports(object.given, &words, gone);
        self.objects.remove(object.start, &mut self.room);
    }

    /// Takes what was exported of words back from those that an object's bits tell. One domain's table is gone already.
    fn take_exports(&mut self, given: u64, words: &Range<u32>, gone: Option<u32>) {
        let mut left = given;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            for slot in (bit..self.members.domains.len()).step_by(64) {
                self.put_less(Source::Domain(slot), words, Rights::None, gone);
            }
            for slot in (63 - bit..self.members.groups.len()).step_by(64) {
                self.put_less(Source::Group(slot), words, Rights::None, gone);
            }
        }
    }

    /// Words of one object get these rights in a domain or group, in the place of those that were exported to it before. A domain may
    /// lower what was exported to itself; all else is the host's and the owner's.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Outside`], [`Error::Nobodys`], [`Error::Beyond`], [`Error::NotOwner`], [`Error::NoDomain`],
    /// [`Error::NoGroup`], [`Error::Memory`], [`Error::Table`].
    #[inline]
    pub fn export(
        &mut self,
        actor: Party,
        words: Range<u32>,
        rights: Rights,
        to: Grantee,
    ) -> Result<(), Error> {
        let source = self.source(to)?;
        let Some(place) = self.exportable(actor, &words) else {
            return self.export_of_others(actor, words, rights, to, source);
        };
        // Also if the table fails below: where nothing stands, nothing is taken back.
        if let Some(object) = self.objects.get_mut(place) {
            object.given |= source.bit();
        }
        self.put(source, &words, rights)
    }

    /// A domain may lower what it was given; there is nothing else that is not the host's or the owner's.
    #[cold]
    fn export_of_others(
        &mut self,
        actor: Party,
        words: Range<u32>,
        rights: Rights,
        to: Grantee,
        source: Source,
    ) -> Result<(), Error> {
        match self.refusal(actor, &words) {
            Error::NotOwner { .. } if self.gives_up(actor, &words, rights, to, source) => {
                self.put(source, &words, rights)
            }
            refusal => Err(refusal),
        }
    }

    /// The object that words are of, if they are of one and the actor may export it.
    #[inline]
    fn exportable(&self, actor: Party, words: &Range<u32>) -> Option<Place> {
        let slot = self.slot(actor).ok()?;
        if words.start >= words.end || words.end > self.words {
            return None;
        }
        let place = self.objects.find(words.start)?;
        let object = self.objects.get(place)?;
        (words.end <= object.end && (slot == HOST || slot == object.owner)).then_some(place)
    }

    /// Why the actor may not export words.
    #[cold]
    fn refusal(&self, actor: Party, words: &Range<u32>) -> Error {
        let refused = || -> Result<Error, Error> {
            self.check(words)?;
            self.members.party(actor)?;
            let object = self.objects.at(words.start);
            let object = object.ok_or(Error::Nobodys { word: words.start })?;
            if words.end > object.end {
                return Err(Error::Beyond {
                    wanted: words.clone(),
                    object: self.shown(object),
                });
            }
            Ok(Error::NotOwner {
                owner: self.owner(object),
            })
        };
        refused().unwrap_or_else(|e| e)
    }

    /// Whether it is a domain that gives up what it has.
    fn gives_up(
        &self,
        actor: Party,
        words: &Range<u32>,
        rights: Rights,
        to: Grantee,
        source: Source,
    ) -> bool {
        let Some(layer) = self.members.source(source) else {
            return false;
        };
        matches!((actor, to), (Party::Domain(a), Grantee::Domain(t)) if a == t)
            && chunks(words).all(|c| filled(rights) & mask(c, words) & !layer.get(c) == 0)
    }

    /// Takes all that was exported of an object, in words or as a whole, back from all domains and groups, and from calls in progress.
    /// What its owner has stays.
    ///
    /// # Errors
    /// As for [`export`](Self::export).
    pub fn revoke(&mut self, actor: Party, words: Range<u32>) -> Result<(), Error> {
        if self.exportable(actor, &words).is_none() {
            return Err(self.refusal(actor, &words));
        }
        for slot in self.called.clone() {
            let held = |m: &Members| m.domains.get(slot).map_or(0, |d| d.held.len());
            for at in (0..held(&self.members)).rev() {
                self.drop_held(slot, at, Some(&words));
            }
        }
        self.forget_uncalled();
        let given = self.objects.at(words.start).map_or(0, |o| o.given);
        self.take_exports(given, &words, None);
        Ok(())
    }

    /// Sets what a source gives to words, and tells the tables of all that have it.
    #[inline]
    fn put(&mut self, source: Source, words: &Range<u32>, rights: Rights) -> Result<(), Error> {
        match self.put_alike(source, words, rights) {
            Some(done) => done,
            None => self.put_any(source, words, rights),
        }
    }

    /// The same where it is nearly always: a domain's own words, to which nothing else gives it rights, and which had the same so far.
    #[inline]
    fn put_alike(&mut self, source: Source, words: &Range<u32>, rights: Rights) -> Option<Result<(), Error>> {
        let Source::Domain(slot) = source else { return None };
        let domain = self.members.domains.get(slot)?;
        let others = |chunk| self.members.others(domain, source, chunk) & mask(chunk, words);
        if chunks(words).any(|chunk| others(chunk) != 0) {
            return None;
        }
        let domain = self.members.domains.get_mut(slot)?;
        let before = domain.given.exchange(words, rights)?;
        if rights > before {
            if let Err(why) = self.sink.raise(domain.id, words.clone(), rights) {
                self.sink.lower(domain.id, words.clone(), before);
                domain.given.set(words, filled(before));
                return Some(Err(Error::Table {
                    domain: domain.id,
                    why,
                }));
            }
        } else if rights < before {
            self.sink.lower(domain.id, words.clone(), rights);
        }
        Some(Ok(()))
    }

    fn put_any(&mut self, source: Source, words: &Range<u32>, rights: Rights) -> Result<(), Error> {
        let Self { members, room, .. } = self;
        if rights != Rights::None {
            let Some(layer) = members.source_mut(source) else {
                return Ok(());
            };
            if layer.reserve(words, room).is_err() {
                self.trim();
                let Self { members, room, .. } = self;
                members
                    .source_mut(source)
                    .map_or(Ok(()), |l| l.reserve(words, room))?;
            }
        }
        let Self { sink, members, .. } = self;
        let mut single = [0];
        let having = members.having(source, &mut single);
        let mut lowers = false;
        for (n, &slot) in having.iter().enumerate() {
            let Some(domain) = members.domains.get(slot) else {
                continue;
            };
            match raise(
                sink,
                domain.id,
                words,
                change(members, domain, source, words, rights),
            ) {
                Ok(less) => lowers |= less,
                Err(e) => {
                    for domain in having[..=n].iter().filter_map(|&s| members.domains.get(s)) {
                        unraise(
                            sink,
                            domain.id,
                            chunks(words),
                            change(members, domain, source, words, rights),
                        );
                    }
                    return Err(e);
                }
            }
        }
        if lowers {
            lower_all(sink, members, having, source, words, rights);
        }
        if let Some(layer) = members.source_mut(source) {
            layer.set(words, filled(rights));
        }
        Ok(())
    }

    /// The same where nothing is raised. One domain's table is gone already.
    fn put_less(&mut self, source: Source, words: &Range<u32>, rights: Rights, gone: Option<u32>) {
        let Self { sink, members, .. } = self;
        let mut single = [0];
        let having = members.having(source, &mut single);
        let left = having.iter().filter(|&&s| Some(s) != gone);
        lower_all(sink, members, left, source, words, rights);
        if let Some(layer) = members.source_mut(source) {
            layer.set(words, filled(rights));
        }
    }

    /// Drops tables in which nothing stands any more. Done by itself when the limit is reached.
    pub fn trim(&mut self) {
        let Self { members, room, .. } = self;
        for (_, d) in members.domains.iter_mut() {
            d.owned.trim(room);
            d.given.trim(room);
        }
        for (_, g) in members.groups.iter_mut() {
            g.given.trim(room);
        }
    }

    /// What domains and groups have: each domain's effective rights, each group with members and exports. At most `most` runs of words each.
    /// Printed, it is a line for each.
    pub fn overview(&self, most: usize) -> Overview {
        crate::overview::look(&self.members, most)
    }
}

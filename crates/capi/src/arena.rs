//! Arenas: objects that domains reach word for word, groups, policies of interfaces.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use ringfence::{Arena, Domain, HeldWords, Rights, WordsError, WordsGroup, WordsLearner, WordsPolicy};

use crate::arenas::{ARENAS, arena};
use crate::arguments::{Place, bad_handle, not_null, number, pointer, text};
use crate::error::{border, status};
use crate::function::{self, Value};
use crate::handles::Table;
use crate::objects;
use crate::region::{rights, write_out};
use crate::status::{Failure, Status};

static GROUPS: Table<Arc<WordsGroup>> = Table::new(0x5AD);
static POLICIES: Table<WordsPolicy> = Table::new(0x5AE);
static CALLS: Table<Arc<HeldWords>> = Table::new(0x5AF);

static LEARNERS: Table<Arc<Learner>> = Table::new(0x5B0);

struct Learner {
    domain: Domain,
    learner: Mutex<WordsLearner>,
}

fn learner(handle: *const c_void) -> Result<Arc<Learner>, Failure> {
    LEARNERS
        .get(number(handle))
        .map_err(|_| bad_handle("learner of an arena", handle))
}

fn group(handle: *const c_void) -> Result<Arc<WordsGroup>, Failure> {
    GROUPS
        .get(number(handle))
        .map_err(|_| bad_handle("group of an arena", handle))
}

fn policy(handle: *const c_void) -> Result<WordsPolicy, Failure> {
    POLICIES
        .get(number(handle))
        .map_err(|_| bad_handle("policy of an arena", handle))
}

impl From<WordsError> for Failure {
    fn from(e: WordsError) -> Self {
        let status = match &e {
            WordsError::Length { .. }
            | WordsError::Misaligned { .. }
            | WordsError::NoArena
            | WordsError::OtherArena => Status::ERROR_ARGUMENT,
            WordsError::NoObject { .. } => Status::ERROR_RANGE,
            WordsError::NotOwner { .. }
            | WordsError::Closed(_)
            | WordsError::NotMember(_)
            | WordsError::Circle { .. } => Status::ERROR_RIGHTS,
            WordsError::NoGroup(_) => Status::ERROR_HANDLE,
            WordsError::InUse { .. } | WordsError::Inside | WordsError::Learning => Status::ERROR_BUSY,
            WordsError::Policy(_) => Status::ERROR_TEXT,
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

/// See the header.
///
/// # Safety
/// `arena` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_create(length: u64, tables: u64, arena: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let arena = unsafe { Place::new(arena, "arena") }?;
        let made = match tables {
            0 => Arena::new(length)?,
            tables => Arena::limited(length, tables)?,
        };
        objects::hand_out(&ARENAS, made, "arena", &arena)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&ARENAS, handle, "arena"))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_check_heaps(handle: *mut c_void) -> Status {
    status(|| {
        arena(handle)?.check_heaps();
        Ok(())
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_alloc(handle: *mut c_void, owner: *mut c_void, length: usize) -> *mut c_void {
    border(
        |_| ptr::null_mut(),
        || {
            let arena = arena(handle)?;
            let address = match objects::actor(owner)? {
                None => arena.alloc(length as u64)?,
                Some(owner) => arena.alloc_owned(&owner.domain, length as u64)?,
            };
            Ok(pointer(address))
        },
    )
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_free(handle: *mut c_void, actor: *mut c_void, object: *mut c_void) -> Status {
    status(|| {
        let (arena, actor) = (arena(handle)?, objects::actor(actor)?);
        if object.is_null() {
            return Ok(());
        }
        let freed = match actor {
            None => arena.free(object as u64),
            Some(actor) => arena.free_as(&actor.domain, object as u64),
        };
        freed.map_err(|e| match e {
            WordsError::NoObject { .. } => Failure::new(Status::ERROR_FREE, e.to_string()),
            other => other.into(),
        })
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_give(
    handle: *mut c_void,
    actor: *mut c_void,
    domain: *mut c_void,
    address: *const c_void,
    length: usize,
    number: i32,
) -> Status {
    status(|| {
        let (arena, to, rights) = (arena(handle)?, objects::domain(domain)?, rights(number)?);
        let (address, length) = (address as u64, length as u64);
        Ok(match objects::actor(actor)? {
            None => arena.give(&to.domain, address, length, rights),
            Some(actor) => arena.give_as(&actor.domain, &to.domain, address, length, rights),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_give_group(
    handle: *mut c_void,
    actor: *mut c_void,
    to: *mut c_void,
    address: *const c_void,
    length: usize,
    number: i32,
) -> Status {
    status(|| {
        let (arena, to, rights) = (arena(handle)?, group(to)?, rights(number)?);
        let (address, length) = (address as u64, length as u64);
        Ok(match objects::actor(actor)? {
            None => arena.give(&*to, address, length, rights),
            Some(actor) => arena.give_as(&actor.domain, &*to, address, length, rights),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_revoke(
    handle: *mut c_void,
    actor: *mut c_void,
    address: *const c_void,
    length: usize,
) -> Status {
    status(|| {
        let (arena, address, length) = (arena(handle)?, address as u64, length as u64);
        Ok(match objects::actor(actor)? {
            None => arena.revoke(address, length),
            Some(actor) => arena.revoke_as(&actor.domain, address, length),
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_rights(handle: *mut c_void, domain: *mut c_void, address: *const c_void) -> i32 {
    border(
        |_| -1,
        || {
            let (arena, object) = (arena(handle)?, objects::domain(domain)?);
            let rights: Rights = arena.rights_of(&object.domain, address as u64)?;
            Ok(rights as i32)
        },
    )
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_overview(
    handle: *mut c_void,
    most: usize,
    to: *mut c_char,
    capacity: usize,
) -> usize {
    match arena(handle) {
        // SAFETY: the caller's promise.
        Ok(arena) => unsafe { write_out(to, capacity, || arena.overview(most)) },
        Err(e) => border(|_| 0, || Err(e)),
    }
}

/// See the header.
///
/// # Safety
/// `group` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_group_create(
    handle: *mut c_void,
    open: i32,
    group: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let group = unsafe { Place::new(group, "group") }?;
        let made = arena(handle)?.group(open != 0)?;
        objects::hand_out(&GROUPS, Arc::new(made), "group of an arena", &group)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_group_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&GROUPS, handle, "group of an arena"))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_group_admit(
    handle: *mut c_void,
    actor: *mut c_void,
    domain: *mut c_void,
) -> Status {
    status(|| {
        let (group, object) = (group(handle)?, objects::domain(domain)?);
        Ok(match actor {
            none if none.is_null() => group.admit(&object.domain),
            itself if itself == domain => group.join(&object.domain),
            _ => {
                let message = "a domain joins by itself, or the host (NULL) admits it";
                return Err(Failure::new(Status::ERROR_RIGHTS, message));
            }
        }?)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_group_expel(handle: *mut c_void, domain: *mut c_void) -> Status {
    status(|| Ok(group(handle)?.expel(&objects::domain(domain)?.domain)?))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_group_admit_group(handle: *mut c_void, inner: *mut c_void) -> Status {
    status(|| Ok(group(handle)?.admit_group(&*group(inner)?)?))
}

/// See the header.
///
/// # Safety
/// `source` is null or a string, `policy` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_policy_create(source: *const c_char, policy: *mut *mut c_void) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let policy = unsafe { Place::new(policy, "policy") }?;
        // SAFETY: the caller's promise.
        let made = WordsPolicy::parse(unsafe { text(source, "text") }?)?;
        objects::hand_out(&POLICIES, made, "policy of an arena", &policy)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_policy_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&POLICIES, handle, "policy of an arena"))
}

/// A failure, with what the arena knows of the access that was denied, if that is why.
fn explained(failure: Failure, domain: &Domain, call: (&WordsPolicy, &str, &[u64])) -> Failure {
    let report = failure
        .outcome()
        .and_then(|e| domain.explain_words(e, Some(call)));
    match report {
        Some(report) => failure.with(&report),
        None => failure,
    }
}

/// See the header.
///
/// # Safety
/// `learner` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_learner_create(
    signatures: *mut c_void,
    domain: *mut c_void,
    learner: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let learner = unsafe { Place::new(learner, "learner") }?;
        let (signatures, object) = (policy(signatures)?, objects::domain(domain)?);
        let made = Learner {
            domain: object.domain.clone(),
            learner: Mutex::new(object.domain.try_learn_words(&signatures)?),
        };
        objects::hand_out(&LEARNERS, Arc::new(made), "learner of an arena", &learner)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_learner_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&LEARNERS, handle, "learner of an arena"))
}

/// See the header.
///
/// # Safety
/// As `rf_domain_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_learner_call(
    handle: *mut c_void,
    name: *const c_char,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let learning = learner(handle)?;
        // SAFETY: the caller's promise, for all three.
        unsafe {
            let name = text(name, "name")?;
            let callee = learning.domain.function(name)?;
            let integers = function::integers(arguments, count)?;
            let mut learner = learning.learner.try_lock().map_err(|_| {
                Failure::new(Status::ERROR_BUSY, "another call of the learner is in progress")
            })?;
            learner.call(name, &integers, || {
                function::call(&callee, arguments, count, result)
            })
        }
    })
}

/// See the header.
///
/// # Safety
/// `to` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_learner_policy(
    handle: *mut c_void,
    to: *mut c_char,
    capacity: usize,
) -> usize {
    let policy = || {
        let learning = learner(handle)?;
        let busy = || Failure::new(Status::ERROR_BUSY, "a call of the learner is in progress");
        let learner = learning.learner.try_lock().map_err(|_| busy())?;
        Ok(learner.policy()?)
    };
    match policy() {
        // SAFETY: the caller's promise.
        Ok(policy) => unsafe { write_out(to, capacity, || policy) },
        Err(e) => border(|_| 0, || Err(e)),
    }
}

/// See the header.
///
/// # Safety
/// As `rf_domain_call`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_policy_call(
    handle: *mut c_void,
    domain: *mut c_void,
    name: *const c_char,
    arguments: *const Value,
    count: usize,
    result: *mut Value,
) -> Status {
    status(|| {
        let (policy, object) = (policy(handle)?, objects::domain(domain)?);
        // SAFETY: the caller's promise, for all three.
        unsafe {
            let name = text(name, "name")?;
            let callee = object.domain.function(name)?;
            let mut integers = function::integers(arguments, count)?;
            let before = integers.clone();
            let copied = object.domain.copy_words(&policy, name, &mut integers)?;
            let held = object.domain.enter_words(&policy, name, &integers)?;
            let mut list: Vec<Value> = match count {
                0 => Vec::new(),
                _ => std::slice::from_raw_parts(arguments, count).to_vec(),
            };
            for (value, (now, was)) in list.iter_mut().zip(integers.iter().zip(&before)) {
                if now != was {
                    value.point(*now);
                }
            }
            let called = function::call(&callee, list.as_ptr(), count, result);
            drop(held);
            match called {
                Ok(()) => copied.back(),
                Err(failure) => {
                    let call = (&policy, name, &integers[..]);
                    return Err(explained(failure, &object.domain, call));
                }
            }
            Ok(())
        }
    })
}

/// See the header.
///
/// # Safety
/// `name` is null or a string, `arguments` null or has `count` numbers, `call` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rf_arena_call_create(
    handle: *mut c_void,
    domain: *mut c_void,
    name: *const c_char,
    arguments: *const u64,
    count: usize,
    call: *mut *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller's promise.
        let call = unsafe { Place::new(call, "call") }?;
        let (policy, object) = (policy(handle)?, objects::domain(domain)?);
        if count > 0 {
            not_null(arguments, "arguments")?;
        }
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name") }?;
        let list = match count {
            0 => &[][..],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(arguments, count) },
        };
        let held = object.domain.enter_words(&policy, name, list)?;
        objects::hand_out(&CALLS, Arc::new(held), "call of an arena", &call)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rf_arena_call_destroy(handle: *mut c_void) -> Status {
    status(|| objects::remove(&CALLS, handle, "call of an arena"))
}

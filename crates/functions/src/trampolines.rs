//! Trampolines: what functions are called through, so that those who call them need not know that they were replaced or deleted.
//!
//! Each function has a word in the runtime's memory that holds where its code is, and a few instructions that jump there. Their
//! address stays. All of it lies inside the fence: a function that writes to the words of others misleads itself and them, and
//! nobody else. Trampolines come in blocks, which are verified as any code:
//!
//! ```text
//!     nopl    0x629AFFFF(%rax,%rax,1)    marker
//!     movl    $NUMBER, %r10d             for a deleted function's place, which tells who was called
//!     movl    %gs:WORD, %r11d            where the code is
//!     ...                                the checked jump
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use ringfence::dynamic::Function;
use ringfence::{Code, CodeError, Domain, Ptr};
use ringfence_isa::{identifier, sequence};

use crate::FunctionError;
use crate::places::Places;
use crate::value::Prototype;

/// The host function that a deleted function's place calls.
pub(crate) const DELETED: &str = "rf_deleted";

/// Trampolines of the first block. Each further one has twice as many as the one before, up to [`MOST_IN_BLOCK`].
const FIRST: u32 = 16;
const MOST_IN_BLOCK: u32 = 512;

/// As many functions can be in a runtime, deleted ones included that somebody holds.
pub(crate) const LIMIT: usize = 65_536;

/// Bytes of a trampoline's code: a cache line.
const STEP: usize = 64;

/// At how many places a block is tried whose address looks like an identifier.
const TRIES: usize = 4;

/// A function of the runtime, as those hold it who call it.
pub(crate) struct Trampoline {
    pub(crate) name: Arc<str>,
    pub(crate) prototype: Prototype,
    pub(crate) number: u32,
    /// Which time the runtime was made or reset; [`DEAD`] once the function is deleted.
    state: AtomicU64,
    /// The instructions that jump to it.
    entry: RwLock<Function>,
    /// Where the runtime's texts are, to tell of faults.
    pub(crate) places: Places,
}

const DEAD: u64 = 0;

impl Trampoline {
    pub(crate) fn new(
        name: &str,
        prototype: Prototype,
        place: Place,
        state: u64,
        places: &Places,
    ) -> Trampoline {
        Trampoline {
            name: name.into(),
            prototype,
            number: place.number,
            state: AtomicU64::new(state),
            entry: RwLock::new(place.entry),
            places: places.clone(),
        }
    }

    /// The number of the present life of the runtime, if the function is there.
    #[inline]
    pub(crate) fn state(&self) -> Result<u64, FunctionError> {
        match self.state.load(Ordering::Acquire) {
            DEAD => Err(self.deleted()),
            state => Ok(state),
        }
    }

    #[cold]
    fn deleted(&self) -> FunctionError {
        FunctionError::Deleted {
            name: self.name.to_string(),
        }
    }

    pub(crate) fn entry(&self) -> Function {
        self.entry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn address(&self) -> u64 {
        self.entry().address()
    }

    pub(crate) fn kill(&self) {
        self.state.store(DEAD, Ordering::Release);
    }

    /// The runtime was made anew.
    pub(crate) fn renew(&self, entry: Function, state: u64) {
        *self.entry.write().unwrap_or_else(PoisonError::into_inner) = entry;
        if self.state.load(Ordering::Acquire) != DEAD {
            self.state.store(state, Ordering::Release);
        }
    }
}

/// A trampoline's number, and what jumps through it.
pub(crate) struct Place {
    pub(crate) number: u32,
    pub(crate) entry: Function,
}

/// Names of functions by the numbers of their trampolines, for those who call deleted ones.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<u32, Arc<str>>>>);

impl Names {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, number: u32, name: &Arc<str>) {
        self.lock().insert(number, name.clone());
    }

    pub(crate) fn clear(&self, number: u32) {
        self.lock().remove(&number);
    }

    /// What a call of a deleted function fails with.
    pub(crate) fn called(&self, number: u32) -> CalledDeleted {
        let name = self.lock().get(&number).map(ToString::to_string);
        CalledDeleted(name.unwrap_or_else(|| format!("number {number}")))
    }
}

/// A function that was deleted was called from another one.
#[derive(Debug, thiserror::Error)]
#[error("the function {0} was deleted")]
pub(crate) struct CalledDeleted(pub(crate) String);

/// A block of trampolines.
struct Block {
    first: u32,
    /// The words.
    words: Ptr<u64>,
    /// Where the code of its first trampoline is.
    code: u64,
}

/// All trampolines of a runtime.
#[derive(Default)]
pub(crate) struct Trampolines {
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// How many there are, used or not.
    count: u32,
    /// Where calls of deleted functions lead.
    nowhere: u64,
}

impl Trampolines {
    /// The first trampolines of a runtime that was just made or reset.
    pub(crate) fn new(domain: &Domain) -> Result<Trampolines, FunctionError> {
        let stub = domain.import_address(DELETED)?.address();
        let mut code = identifier::marker(identifier::FUNCTION).to_vec();
        code.extend([0x44, 0x89, 0xD7]); // movl %r10d, %edi
        jump(
            &mut code,
            &[&[0x41, 0xBB], &(stub as u32).to_le_bytes()[..]].concat(),
        );
        let nowhere = domain.add_code_dynamic(
            DELETED,
            &Code {
                bytes: &code,
                entry: 0,
            },
        )?;
        Ok(Trampolines {
            nowhere: nowhere.address(),
            ..Trampolines::default()
        })
    }

    /// A trampoline that nobody uses, which leads nowhere yet.
    pub(crate) fn take(&mut self, domain: &Domain) -> Result<Place, FunctionError> {
        if self.free.is_empty() {
            self.grow(domain)?;
        }
        let number = self.free.pop().expect("a block has trampolines");
        let place = self.place(domain, number);
        if place.is_err() {
            self.free.push(number);
        }
        place
    }

    pub(crate) fn place(&self, domain: &Domain, number: u32) -> Result<Place, FunctionError> {
        let block = self.block(number);
        let at = block.code + u64::from(number - block.first) * STEP as u64;
        let entry = domain.function_at(at)?;
        Ok(Place { number, entry })
    }

    pub(crate) fn give(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Makes trampolines up to this number, all of them used: after a reset, as there were before.
    pub(crate) fn regrow(&mut self, domain: &Domain, other: &Trampolines) -> Result<(), FunctionError> {
        while self.count < other.count {
            self.grow(domain)?;
        }
        self.free = other.free.clone();
        Ok(())
    }

    fn block(&self, number: u32) -> &Block {
        let after = self.blocks.partition_point(|b| b.first <= number);
        &self.blocks[after - 1]
    }

    /// Calls of a trampoline lead to `code` from now on. Calls that have begun stay where they are.
    pub(crate) fn lead(&self, domain: &Domain, number: u32, code: u64) -> Result<(), FunctionError> {
        let block = self.block(number);
        let word = block.words.wrapping_add(u64::from(number - block.first));
        Ok(domain.memory().write(word, code)?)
    }

    /// Calls of a trampoline fail from now on.
    pub(crate) fn lead_nowhere(&self, domain: &Domain, number: u32) -> Result<(), FunctionError> {
        self.lead(domain, number, self.nowhere)
    }

    fn grow(&mut self, domain: &Domain) -> Result<(), FunctionError> {
        let count = match self.blocks.len() {
            0 => FIRST,
            _ => self.count.min(MOST_IN_BLOCK),
        };
        if self.count as usize + count as usize > LIMIT {
            return Err(FunctionError::Full { limit: LIMIT });
        }
        let memory = domain.memory();
        let mut refused = Vec::new();
        for _ in 0..TRIES {
            let words = memory.put_slice(&vec![self.nowhere; count as usize])?;
            let code = block(self.count, count, words.ptr().address() as u32);
            let name = format!("trampolines from {}", self.count);
            match domain.add_code_dynamic(
                &name,
                &Code {
                    bytes: &code,
                    entry: 0,
                },
            ) {
                Ok(entry) => {
                    self.blocks.push(Block {
                        first: self.count,
                        words: words.leak(),
                        code: entry.address(),
                    });
                    self.free.extend((self.count..self.count + count).rev());
                    self.count += count;
                    return Ok(());
                }
                // An address that looks like an identifier: another place, while this one is kept.
                Err(CodeError::Rejected { .. }) => refused.push(words),
                Err(e) => return Err(e.into()),
            }
        }
        Err(FunctionError::Place {
            name: "trampolines".into(),
        })
    }
}

/// The code of trampolines whose words are at this offset in the window.
fn block(first: u32, count: u32, words: u32) -> Vec<u8> {
    let mut code = Vec::with_capacity(count as usize * STEP);
    for i in 0..count {
        code.extend(identifier::marker(identifier::FUNCTION));
        code.extend([0x41, 0xBA]); // movl $NUMBER, %r10d
        code.extend((first + i).to_le_bytes());
        let load = [0x65, 0x67, 0x44, 0x8B, 0x1C, 0x25]; // movl %gs:WORD, %r11d
        jump(&mut code, &[&load[..], &(words + 8 * i).to_le_bytes()].concat());
        code.resize(code.len().next_multiple_of(STEP), 0xCC);
    }
    code
}

/// What loads `r11`, and the checked jump.
fn jump(code: &mut Vec<u8>, load: &[u8]) {
    // An identifier stands where markers cannot have one: not at 4 (mod 8).
    while (code.len() + load.len() + sequence::ID_OFFSET) % 8 == 4 {
        code.push(0x90);
    }
    code.extend(load);
    code.extend(sequence::AND);
    code.extend(sequence::CMP);
    code.extend(identifier::FUNCTION.to_le_bytes());
    code.extend(sequence::CMOV);
    code.extend(sequence::ADD);
    code.extend(sequence::JMP);
}

//! Calls in batches: one crossing, and a loop inside the domain that calls a function once for each element of arrays there.
//!
//! The loop is code that comes to the living domain as any other ([`Domain::add_code`]): [`stub`] makes it for the types of a
//! batch, and the verifier judges it. Nothing here is trusted for more than calling it with the right numbers.

use super::{Call, Code, Domain, DomainRef, Entry};
use ringfence_core::Instance;
use ringfence_core::error::{CallError, CodeError, MemoryError};
use ringfence_isa::window;

mod stub;

/// The type of an array's elements, or of a value that all elements get: what the loop reads and writes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 8 bits, signed.
    I8,
    /// 8 bits.
    U8,
    /// 16 bits, signed.
    I16,
    /// 16 bits.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits.
    U32,
    /// 64 bits: an integer or a pointer.
    Word,
    /// `float`.
    F32,
    /// `double`.
    F64,
}

impl Element {
    /// Bytes of one.
    #[must_use]
    pub const fn size(self) -> u64 {
        1 << self.scale()
    }

    const fn scale(self) -> u8 {
        match self {
            Element::I8 | Element::U8 => 0,
            Element::I16 | Element::U16 => 1,
            Element::I32 | Element::U32 | Element::F32 => 2,
            Element::Word | Element::F64 => 3,
        }
    }

    const fn floats(self) -> bool {
        matches!(self, Element::F32 | Element::F64)
    }
}

/// An argument of all calls of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// An element of the array at this address for each call.
    Each(Element, u64),
    /// The same bits for all, extended as the calling convention wants it.
    Same(Element, u64),
}

impl Column {
    const fn element(self) -> Element {
        match self {
            Column::Each(element, _) | Column::Same(element, _) => element,
        }
    }

    const fn word(self) -> u64 {
        match self {
            Column::Each(_, word) | Column::Same(_, word) => word,
        }
    }
}

/// Why a batch was not called, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// An array is not in the domain's window, or there is no memory for the batch. Nothing was called.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The loop could not be brought to the domain. Nothing was called.
    #[error("the loop of a batch: {0}")]
    Code(#[from] CodeError),
    /// More arguments than pass in registers, or more elements than a window holds. Nothing was called.
    #[error(
        "a batch takes up to six integers, up to eight floating-point numbers, and less than 2³² elements"
    )]
    Shape,
    /// The call ended before the last element.
    #[error("{}{source}", at(*.element))]
    Call {
        /// Which element's call it was, as the domain's memory tells: a hostile module can make it any below the number of elements.
        /// Results of those before it have been stored. `None` if none was called.
        element: Option<u64>,
        /// What happened.
        source: CallError,
    },
}

fn at(element: Option<u64>) -> String {
    element.map_or(String::new(), |n| format!("element {n}: "))
}

/// What stands in the word that tells the element before the first call.
const NONE: u32 = u32::MAX;

/// Memory of the domain that goes again, whatever happens.
struct Progress<'a> {
    memory: DomainRef<'a>,
    at: u64,
    resets: u64,
}

impl<'a> Progress<'a> {
    fn new(memory: DomainRef<'a>) -> Result<Self, MemoryError> {
        let resets = memory.resets();
        let at = memory.alloc(16, 16)?;
        let progress = Progress { memory, at, resets };
        memory.write(at, &NONE.to_le_bytes())?;
        Ok(progress)
    }

    fn read(&self, count: u64) -> Option<u64> {
        let mut word = [0; 4];
        self.memory.read(self.at, &mut word).ok()?;
        let element = u64::from(u32::from_le_bytes(word));
        (element != u64::from(NONE)).then(|| element.min(count - 1))
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.memory.free_unless_reset(self.at, self.resets);
    }
}

impl Entry {
    /// Calls the function `count` times, from element 0 on, each time with one element of each array, and stores what it returns in
    /// the array `results`. Arrays lie in the domain's window. It is one call: limits hold for all elements together, and where one
    /// fails the others behind it are not called. A wrong type gives wrong numbers and nothing worse.
    ///
    /// The first batch of some types brings a loop of about 200 bytes to the domain, which counts against
    /// [`DomainOptions::code_limit`](crate::DomainOptions::code_limit), goes with a reset, and is code that was added (checkpoints and
    /// snapshots refuse it; [`Domain::code_names`] has it).
    ///
    /// # Errors
    /// [`BatchError`].
    pub fn call_batch(
        &self,
        count: u64,
        columns: &[Column],
        results: Option<(Element, u64)>,
    ) -> Result<(), BatchError> {
        if count >= u64::from(NONE) || !stub::fits(columns) {
            return Err(BatchError::Shape);
        }
        if count == 0 {
            return Ok(());
        }
        let base = self.domain.0.base();
        let arrays = columns.iter().filter_map(|column| match *column {
            Column::Each(element, address) => Some((element, address)),
            Column::Same(..) => None,
        });
        for (element, address) in arrays.chain(results) {
            let (offset, len) = (address.wrapping_sub(base), count * element.size());
            if offset >= window::SIZE || len > window::SIZE - offset {
                return Err(MemoryError::Outside { address, len }.into());
            }
        }
        let stub = self
            .domain
            .batch_stub(columns, results.map(|(element, _)| element))?;
        let progress = Progress::new(self.domain.space())?;
        let mut words = [0; stub::MOST + 1];
        words[0] = progress.at;
        for (word, column) in words[1..].iter_mut().zip(columns) {
            *word = column.word();
        }
        let mut ints = [0; 6];
        ints[..3].copy_from_slice(&[
            count,
            self.target.entry,
            results.map_or(0, |(_, address)| address),
        ]);
        let mut call = Call {
            ints,
            stack: &words[..=columns.len()],
            ..Call::default()
        };
        match stub.call(&mut call) {
            Ok(_) => Ok(()),
            Err(source) => Err(BatchError::Call {
                element: progress.read(count),
                source,
            }),
        }
    }
}

impl Domain {
    /// The loop for these types, which comes to the domain with its first batch.
    fn batch_stub(&self, columns: &[Column], result: Option<Element>) -> Result<Entry, CodeError> {
        let name = stub::name(columns, result);
        match self.find_code(&name) {
            Err(CodeError::Unknown { .. }) => {}
            found => return found,
        }
        let bytes = stub::code(columns, result);
        let code = Code {
            bytes: &bytes,
            entry: 0,
        };
        match self.add_code(&name, &code) {
            // Another thread was faster.
            Err(CodeError::Exists { .. }) => self.find_code(&name),
            added => added,
        }
    }
}

//! The loop of a batch, as machine code.
//!
//! ```text
//!     edi = how many elements, esi = the function, edx = the array of results; on the data stack the address of the word that
//!     tells the element, then an address or a value for each column
//!
//!     push rbx, rbp, r12, r13
//!     xorl %ebx, %ebx                      the element
//!     movl %edi, %ebp ; movl %esi, %r12d ; movl %edx, %r13d
//! 1:  movl %gs:(%r15d), %eax ; movl %ebx, %gs:(%eax)
//!     movl %gs:8(%r15d), %eax ; movslq %gs:(%eax,%ebx,4), %rdi      for each column its own load
//!     movl %r12d, %r11d ; (the checked call)
//!     movl %eax, %gs:(%r13d,%ebx,4)                                 as wide as the result
//!     incl %ebx ; cmpl %ebp, %ebx ; jb 1b
//!     pop r13, r12, rbp, rbx ; ret
//! ```

use super::{Column, Element};
use ringfence_isa::{identifier, sequence};

/// Most columns: what passes in registers.
pub(super) const MOST: usize = 14;

/// `rdi rsi rdx rcx r8 r9`.
const INTS: [u8; 6] = [7, 6, 2, 1, 8, 9];
const FLOATS: u8 = 8;

/// Whether all columns pass in registers.
pub(super) fn fits(columns: &[Column]) -> bool {
    let floats = columns.iter().filter(|c| c.element().floats()).count();
    floats <= FLOATS.into() && columns.len() - floats <= INTS.len()
}

/// A name that code of other batches does not have, nor any export.
pub(super) fn name(columns: &[Column], result: Option<Element>) -> String {
    let letter = |element: Element| char::from(b'a' + element as u8);
    let mut name = String::from("batch of ");
    for column in columns {
        name.push(letter(column.element()));
        if matches!(column, Column::Same(..)) {
            name.push('=');
        }
    }
    name.push(' ');
    name.extend(result.map(letter));
    name
}

const GS_32: [u8; 2] = [0x65, 0x67];
const EAX: u8 = 0;
const EBX: u8 = 3;
/// `code` keeps the array of results there.
const R13: u8 = 13;

/// An instruction's opcode with what stands before it: a mandatory prefix or 66, and REX.W.
struct Op(&'static [u8], bool, &'static [u8]);

const LOAD_32: Op = Op(&[], false, &[0x8B]);

const fn load(element: Element) -> Op {
    match element {
        Element::I8 => Op(&[], true, &[0x0F, 0xBE]),
        Element::U8 => Op(&[], false, &[0x0F, 0xB6]),
        Element::I16 => Op(&[], true, &[0x0F, 0xBF]),
        Element::U16 => Op(&[], false, &[0x0F, 0xB7]),
        Element::I32 => Op(&[], true, &[0x63]),
        Element::U32 => LOAD_32,
        Element::Word => Op(&[], true, &[0x8B]),
        Element::F32 => Op(&[0xF3], false, &[0x0F, 0x10]),
        Element::F64 => Op(&[0xF2], false, &[0x0F, 0x10]),
    }
}

const fn store(element: Element) -> Op {
    match element {
        Element::I8 | Element::U8 => Op(&[], false, &[0x88]),
        Element::I16 | Element::U16 => Op(&[0x66], false, &[0x89]),
        Element::I32 | Element::U32 => Op(&[], false, &[0x89]),
        Element::Word => Op(&[], true, &[0x89]),
        Element::F32 => Op(&[0xF3], false, &[0x0F, 0x11]),
        Element::F64 => Op(&[0xF2], false, &[0x0F, 0x11]),
    }
}

#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Prefixes, REX, opcode. `low`: the bits of REX besides those of the operation and of `register`.
    fn head(&mut self, op: &Op, register: u8, low: u8) -> &mut Self {
        self.put(&GS_32).put(op.0);
        let rex = u8::from(op.1) << 3 | register >> 3 << 2 | low;
        if rex != 0 {
            self.put(&[0x40 | rex]);
        }
        self.put(op.2)
    }

    /// `op %gs:8*word(%r15d), %register`
    fn word(&mut self, op: &Op, register: u8, word: u8) -> &mut Self {
        let displacement = (8 * u32::from(word)).to_le_bytes();
        self.head(op, register, 1)
            .put(&[0x87 | (register & 7) << 3])
            .put(&displacement)
    }

    /// `op %gs:(%base,%ebx,size), %register`, the base being `eax` or `r13d`.
    fn element(&mut self, op: &Op, register: u8, base: u8, scale: u8) -> &mut Self {
        let register_bits = (register & 7) << 3;
        let sib = scale << 6 | EBX << 3 | base & 7;
        match base {
            // Without a displacement it would be none at all.
            R13 => self.head(op, register, 1).put(&[0x44 | register_bits, sib, 0]),
            _ => self.head(op, register, 0).put(&[0x04 | register_bits, sib]),
        }
    }
}

/// The loop.
pub(super) fn code(columns: &[Column], result: Option<Element>) -> Vec<u8> {
    let mut text = Text::default();
    text.put(&[0x53, 0x55, 0x41, 0x54, 0x41, 0x55]);
    text.put(&[0x31, 0xDB, 0x89, 0xFD, 0x41, 0x89, 0xF4, 0x41, 0x89, 0xD5]);
    let again = text.0.len();
    text.word(&LOAD_32, EAX, 0).put(&GS_32).put(&[0x89, 0x18]);
    let (mut ints, mut floats) = (INTS.into_iter(), 0..FLOATS);
    for (column, word) in columns.iter().zip(1..) {
        let element = column.element();
        let register = match element.floats() {
            true => floats.next(),
            false => ints.next(),
        };
        let register = register.expect("the columns fit");
        match (column, element) {
            (Column::Each(..), _) => {
                text.word(&LOAD_32, EAX, word)
                    .element(&load(element), register, EAX, element.scale())
            }
            (Column::Same(..), Element::F32 | Element::F64) => text.word(&load(element), register, word),
            (Column::Same(..), _) => text.word(&load(Element::Word), register, word),
        };
    }
    // An identifier stands where markers cannot have one: not at 4 (mod 8).
    while (text.0.len() + 3 + sequence::ID_OFFSET) % 8 == 4 {
        text.put(&[0x90]);
    }
    text.put(&[0x45, 0x89, 0xE3])
        .put(&sequence::AND)
        .put(&sequence::CMP)
        .put(&identifier::FUNCTION.to_le_bytes())
        .put(&sequence::CMOV)
        .put(&sequence::ADD)
        .put(&sequence::CALL);
    if let Some(element) = result {
        text.element(&store(element), 0, R13, element.scale());
    }
    text.put(&[0xFF, 0xC3, 0x39, 0xEB, 0x0F, 0x82]);
    let back = again as i32 - (text.0.len() as i32 + 4);
    text.put(&back.to_le_bytes());
    text.put(&[0x41, 0x5D, 0x41, 0x5C, 0x5D, 0x5B, 0xC3]);
    text.0
}

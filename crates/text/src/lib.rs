//! Compiles functions from text: C without its preprocessor, to machine code that Ringfence's verifier accepts, in
//! microseconds. `docs/text.md` says what it takes and what not.
//!
//! The compiler is not trusted: whatever comes of a text, the verifier judges it. What it does guarantee is that it comes
//! back: it runs in the host on texts from strangers, so nesting, tokens, instructions and memory are bounded, and it has no
//! `unsafe` and no panics.
//!
//! ```
//! let compiled = ringfence_text::compile("long twice(long n) { return 2 * n; }").unwrap();
//! assert_eq!(compiled.exports[0].name, "twice");
//!
//! let errors = ringfence_text::compile("long twice(long n) { return 2 * m; }").unwrap_err();
//! assert_eq!(errors.0[0].message, "unknown name `m`");
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alloc;
mod ast;
mod compiled;
mod emit;
mod error;
mod extended;
mod fuse;
mod hoist;
mod ir;
mod layout;
mod lex;
mod live;
mod lower;
mod object;
mod parse;
mod types;

use ast::Unit;
pub use compiled::{Collides, Compiled, DataFix, Export, Import, Kind, Place, Source, Target};
use error::Notes;
pub use error::{Error, Errors};
use lex::Tokens;
pub use object::NoObject;
use types::Ty;

/// Most bytes of a text.
pub const TEXT: usize = 1 << 20;

/// Most bytes of code.
const CODE: usize = 16 << 20;

/// Code is a multiple of the size of a cache line, so that loops keep their places in lines wherever it is added.
const LINE: usize = 64;

/// How often a text is placed anew whose distances look like an identifier.
const TRIES: usize = 8;

/// Compiles a text.
///
/// # Errors
/// All that is wrong with it, as far as it can be told apart.
pub fn compile(text: &str) -> Result<Compiled, Errors> {
    let bytes = text.as_bytes();
    let mut notes = Notes::default();
    let (tokens, unit) = parse(bytes, &mut notes);
    if notes.none()
        && let Some(compiled) = generate(bytes, &tokens, &unit, &mut notes)
    {
        return Ok(compiled);
    }
    Err(notes.finish(bytes))
}

fn parse(text: &[u8], notes: &mut Notes) -> (Tokens, Unit) {
    if text.len() > TEXT {
        let message = format!("the text has more than {TEXT} bytes");
        notes.last(0, message, Some("split it"));
    }
    // Of a text that is too long nothing is read.
    let read = if notes.none() { text } else { &[] };
    let tokens = lex::lex(read, notes);
    let unit = parse::parse(read, &tokens, notes);
    (tokens, unit)
}

/// What a text of declarations says of the functions that it declares and does not define.
///
/// # Errors
/// As for [`compile`].
///
/// # Examples
/// ```
/// let functions = ringfence_text::prototypes("typedef unsigned u32; double scale(u32 n, double by);").unwrap();
/// assert_eq!(functions[0].name, "scale");
/// assert_eq!(functions[0].result, ringfence_text::Kind::Float(8));
/// ```
pub fn prototypes(text: &str) -> Result<Vec<Import>, Errors> {
    let bytes = text.as_bytes();
    let mut notes = Notes::default();
    let (tokens, unit) = parse(bytes, &mut notes);
    if !notes.none() {
        return Err(notes.finish(bytes));
    }
    let declared = unit.funcs.iter().filter(|f| f.body.is_none());
    Ok(declared
        .filter_map(|f| import(bytes, &tokens, &unit, f))
        .collect())
}

fn generate(text: &[u8], tokens: &Tokens, unit: &Unit, notes: &mut Notes) -> Option<Compiled> {
    let mut functions = Vec::new();
    for (number, func) in unit.funcs.iter().enumerate() {
        let Some(body) = func.body else { continue };
        let Ok(mut f) = lower::lower(unit, number as u32, body, notes) else {
            continue;
        };
        let uses = live::clean(&mut f);
        hoist::hoist(&mut f);
        fuse::fuse(&mut f, &uses);
        match live::intervals(&f) {
            Ok(live) => {
                let registers = alloc::allocate(&f, &live);
                layout::arrange(&mut f);
                functions.push((number, f, registers));
            }
            Err(live::TooLarge) => {
                notes.note(
                    func.at,
                    1,
                    "this function is too involved".into(),
                    Some("divide it"),
                );
            }
        }
    }
    if !notes.none() {
        return None;
    }
    for salt in 0..TRIES {
        let mut out = emit::Output::new();
        let mut starts = vec![0; unit.funcs.len()];
        for (number, f, registers) in &functions {
            starts[*number] = emit::function(f, registers, unit.funcs[*number].at, salt, &mut out);
            if out.asm.code.len() > CODE {
                notes.last(
                    unit.funcs[*number].at,
                    format!("the code has more than {CODE} bytes"),
                    Some("split the text"),
                );
                return None;
            }
        }
        for (at, func) in std::mem::take(&mut out.funcs) {
            out.patch(at, starts[func as usize].wrapping_sub(at + 4));
        }
        // What is added next begins as this does.
        let end = out.asm.code.len().next_multiple_of(LINE);
        out.asm.code.resize(end, 0xCC);
        if !emit::collides(&out.asm.code, 0, out.asm.code.len()) {
            return Some(finish(text, tokens, unit, out, &starts));
        }
    }
    notes.last(
        0,
        "no way was found to encode this text".into(),
        Some("change it a little"),
    );
    None
}

fn kind(unit: &Unit, ty: Ty) -> Kind {
    let size = unit.types.size(ty) as u8;
    match () {
        () if ty.is_void() => Kind::Void,
        () if ty == Ty::BOOL => Kind::Bool,
        () if ty.is_int() => Kind::Int(size, ty.signed()),
        () if ty.is_float() => Kind::Float(size),
        () if unit.types.is_record(ty) => Kind::Record,
        () => Kind::Pointer,
    }
}

/// A function as those see it who call it.
fn import(text: &[u8], tokens: &Tokens, unit: &Unit, func: &ast::Func) -> Option<Import> {
    let sig = unit.types.sig(func.ty)?;
    Some(Import {
        name: tokens.name(text, func.name).to_string(),
        params: sig.params.iter().map(|&ty| kind(unit, ty)).collect(),
        result: kind(unit, sig.ret),
        variadic: sig.variadic,
    })
}

fn finish(text: &[u8], tokens: &Tokens, unit: &Unit, out: emit::Output, starts: &[u32]) -> Compiled {
    let mut compiled = Compiled {
        code: out.asm.code,
        code_data: out.asm.data,
        code_imports: out.imports,
        source: Source {
            places: out.places,
            functions: Vec::new(),
            text: text.into(),
        },
        ..Compiled::default()
    };
    for (number, func) in unit.funcs.iter().enumerate() {
        if func.body.is_some() {
            let len = tokens.name(text, func.name).len() as u32;
            compiled.source.functions.push((func.at, len));
        }
        let exported = func.body.is_some() && !func.internal;
        if !exported && func.import.is_none() {
            continue;
        }
        let Some(function) = import(text, tokens, unit, func) else {
            continue;
        };
        if !exported {
            compiled.imports.push(function);
        } else {
            compiled.exports.push(Export {
                name: function.name,
                offset: starts[number],
                params: function.params,
                result: function.result,
            });
        }
    }
    for global in unit.globals.iter().filter(|g| g.defined) {
        let end = global.offset as usize + unit.types.size(global.ty) as usize;
        let at = global.offset as usize;
        compiled.data.resize(end.max(compiled.data.len()), 0);
        if let Some(bytes) = &global.bytes {
            let len = bytes.len().min(end - at);
            compiled.data[at..at + len].copy_from_slice(&bytes[..len]);
        }
        for &(offset, target, add) in &global.addresses {
            let (to, base) = match target {
                ast::Target::Global(g) => (Target::Data, i64::from(unit.globals[g as usize].offset)),
                ast::Target::Func(f) => match unit.funcs[f as usize].import {
                    Some(import) => (Target::Import(import), 0),
                    None => (Target::Code, i64::from(starts[f as usize])),
                },
            };
            compiled.data_fixes.push(DataFix {
                at: global.offset + offset,
                to,
                offset: base.wrapping_add(add),
            });
        }
    }
    compiled
}

//! A text in the runtime: its code at a place, with its data.

use std::borrow::Cow;
use std::sync::Arc;

use ringfence::{Code, CodeError, Domain, Ptr};
use ringfence_text::Compiled;

use crate::FunctionError;
use crate::places::Places;
use crate::trampolines::Trampoline;

/// At how many places the data of a text are tried at which its addresses look like identifiers.
const TRIES: u64 = 4;

/// Code and data of a text, at their places.
pub(crate) struct Piece {
    /// What the domain has the code under.
    name: String,
    /// Where the code begins.
    pub(crate) code: u64,
    data: Option<Ptr<u8>>,
    pub(crate) compiled: Arc<Compiled>,
}

/// A text, and what it is linked with.
pub(crate) struct Unit {
    /// What its imports are, in their order.
    pub(crate) imports: Vec<Import>,
    /// Its functions, in the order of the exports.
    pub(crate) trampolines: Vec<Arc<Trampoline>>,
    pub(crate) piece: Piece,
}

/// What an import of a text is.
#[derive(Clone)]
pub(crate) enum Import {
    /// A function of the host's, at this address of the domain.
    BuiltIn(u64),
    /// Another function of the runtime's, which stays as long as this one wants to call it.
    Trampoline(Arc<Trampoline>),
}

impl Import {
    fn address(&self) -> u64 {
        match self {
            Import::BuiltIn(address) => *address,
            Import::Trampoline(trampoline) => trampoline.address(),
        }
    }
}

impl Piece {
    /// Brings the compiled text of `function` to the domain, as number `number`.
    pub(crate) fn link(
        domain: &Domain,
        places: &Places,
        function: &str,
        number: u64,
        compiled: &Arc<Compiled>,
        imports: &[Import],
    ) -> Result<Piece, FunctionError> {
        let imports: Vec<u64> = imports.iter().map(Import::address).collect();
        let name = format!("function {number}");
        let memory = domain.memory();
        let room = match compiled.data.len() {
            0 => None,
            len => Some(memory.alloc_array::<u8>(len + (Compiled::ALIGN * TRIES) as usize)?),
        };
        let start = room.as_ref().map_or(0, |room| room.ptr().address());
        let start = start.next_multiple_of(Compiled::ALIGN);
        let tries = if room.is_some() { TRIES } else { 1 };
        for data in (0..tries).map(|i| start + i * Compiled::ALIGN) {
            let Ok(bytes) = compiled.link_code(data, &imports) else {
                continue;
            };
            let entry = compiled.exports.first().map_or(0, |e| e.offset);
            let added = domain
                .add_code_dynamic(&name, &Code { bytes: &bytes, entry })
                .map_err(|e| given_for(function, e))?;
            let code = added.address() - u64::from(entry);
            if room.is_some() {
                // Data without addresses are copied once.
                let bytes = match compiled.data_fixes.is_empty() {
                    true => Cow::Borrowed(&compiled.data),
                    false => Cow::Owned(compiled.link_data(data, code, &imports)),
                };
                if let Err(e) = memory.write_slice(Ptr::from_address(data), &bytes) {
                    let _ = domain.remove_code(&name);
                    return Err(e.into());
                }
            }
            places.add(code, compiled);
            return Ok(Piece {
                name,
                code,
                data: room.map(|room| room.leak()),
                compiled: compiled.clone(),
            });
        }
        Err(FunctionError::Place {
            name: function.to_owned(),
        })
    }

    /// Takes it away, if nobody is in it.
    pub(crate) fn unlink(&self, domain: &Domain, places: &Places) -> Result<(), CodeError> {
        match domain.remove_code(&self.name) {
            // A reset has.
            Ok(()) | Err(CodeError::Unknown { .. }) => {}
            Err(e) => return Err(e),
        }
        places.remove(self.code);
        if let Some(data) = self.data {
            // A text that frees its own data has done so.
            let _ = domain.memory().free(data);
        }
        Ok(())
    }
}

/// The error with the name that the host gave, in place of the one that the domain has the code under.
fn given_for(function: &str, mut error: CodeError) -> CodeError {
    if let CodeError::Rejected { name, .. }
    | CodeError::Empty { name }
    | CodeError::Registers { name, .. }
    | CodeError::Features { name, .. } = &mut error
    {
        function.clone_into(name);
    }
    error
}

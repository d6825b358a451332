//! What a worker is told before it begins: a memory file that the host writes once.

use crate::wire::{Reader, Writer};
use ringfence_core::DomainOptions;
use ringfence_core::error::HostError;

/// Both sides are of one build.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup<'a> {
    /// Options by their place in the table.
    pub numbers: Vec<Option<u64>>,
    /// Names and files, which are as large as their authors like: nobody copies them but into the memory file.
    pub modules: Vec<(String, &'a [u8])>,
    pub allow_integrity: bool,
    /// Names of host functions, by their numbers.
    pub imports: Vec<String>,
    pub policy: bool,
    pub on_limit: bool,
    /// Nanoseconds.
    pub spin: u64,
    /// Where the window lies.
    pub base: u64,
}

impl<'a> Setup<'a> {
    pub(crate) fn options(&self) -> DomainOptions {
        let mut options = DomainOptions::default();
        for (row, number) in DomainOptions::TABLE.iter().zip(&self.numbers) {
            // The worker's domain has a window, whatever the host calls it.
            if let Some(number) = number.filter(|_| row.name != "backend") {
                // Checked by the host.
                let _ = row.set(&mut options, number);
            }
        }
        options
    }

    /// # Errors
    /// [`HostError::NoMemory`]: what is written is as large as the modules' files.
    pub(crate) fn write(&self) -> Result<Vec<u8>, HostError> {
        let names = self
            .imports
            .iter()
            .chain(self.modules.iter().map(|(name, _)| name));
        let names: usize = names.map(|name| name.len() + 16).sum();
        let files: usize = self.modules.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut room = Vec::new();
        // Once: growing would ask for the files' size again.
        room.try_reserve_exact(files + names + 16 * self.numbers.len() + 256)
            .map_err(|_| HostError::NoMemory)?;
        let mut w = Writer(room);
        w.text(VERSION).number(self.numbers.len() as u64);
        for n in &self.numbers {
            w.number(u64::from(n.is_some())).number(n.unwrap_or(0));
        }
        w.number(self.modules.len() as u64);
        for (name, bytes) in &self.modules {
            w.text(name).bytes(bytes);
        }
        w.number(self.imports.len() as u64);
        for name in &self.imports {
            w.text(name);
        }
        w.number(self.allow_integrity.into())
            .number(self.policy.into())
            .number(self.on_limit.into())
            .number(self.spin)
            .number(self.base);
        Ok(w.0)
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<Setup<'a>, String> {
        let mut r = Reader(bytes);
        let version = r.text();
        if version != VERSION {
            return Err(format!(
                "the worker is of version {VERSION}, the library of {version}"
            ));
        }
        let list = |r: &mut Reader<'a>| 0..r.number().min(1 << 20);
        Ok(Setup {
            numbers: list(&mut r)
                .map(|_| {
                    let there = r.number() != 0;
                    let n = r.number();
                    there.then_some(n)
                })
                .collect(),
            modules: list(&mut r).map(|_| (r.text(), r.bytes())).collect(),
            imports: list(&mut r).map(|_| r.text()).collect(),
            allow_integrity: r.number() != 0,
            policy: r.number() != 0,
            on_limit: r.number() != 0,
            spin: r.number(),
            base: r.number(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_comes_back() {
        let setup = Setup {
            numbers: vec![None, Some(7)],
            modules: vec![("m".into(), &[1, 2, 3])],
            allow_integrity: true,
            imports: vec!["a".into(), "b".into()],
            policy: false,
            on_limit: true,
            spin: 5,
            base: 6 << 32,
        };
        let written = setup.write().unwrap();
        assert_eq!(Setup::read(&written), Ok(setup));
        assert!(Setup::read(b"").is_err());
    }
}

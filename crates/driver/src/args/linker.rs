//! Words of the command line that are meant for ld.

use super::{Invocation, Item, Language};

impl Invocation {
    /// Words meant for ld: libraries among them are looked up like any other, and those that would undo what a
    /// module is are left out.
    pub(super) fn linker_words(&mut self, words: Vec<String>, pending: &mut bool) {
        let mut it = words.into_iter().peekable();
        while let Some(w) = it.next() {
            // An option whose argument came in a `-Wl` of its own.
            if std::mem::take(pending) {
                self.linker_pair_end(w, pending);
                continue;
            }
            match w.as_str() {
                "-z" | "-rpath" | "-rpath-link" | "-soname" | "-h" | "-u" | "-e" | "--undefined"
                | "--entry" | "-Map" | "--version-script" | "--dynamic-list" | "-T" | "--defsym"
                | "--wrap" | "--dynamic-linker" | "-I" | "-L" | "-l" => {
                    self.items.push(Item::Flag(w));
                    match it.next() {
                        Some(v) => self.linker_pair_end(v, pending),
                        None => *pending = true,
                    }
                }
                "--no-undefined" | "-pie" | "--pie" | "-static" | "-Bstatic" | "-Bdynamic" | "-dn"
                | "-dy" | "-no-pie" | "--export-dynamic" | "-E" | "--relax" | "-call_shared"
                | "-non_shared" => {}
                a if a.starts_with("-l") => self.items.push(Item::Library(a[2..].to_owned())),
                a if a.starts_with("-L") => self.library_dirs.push(a[2..].to_owned()),
                a if a.starts_with("--unresolved-symbols") || a.starts_with("--dynamic-linker") => {}
                a if a.starts_with('-') => self.items.push(Item::Flag(format!("-Wl,{a}"))),
                a => self.items.push(Item::Input {
                    path: a.to_owned(),
                    language: Language::Linker,
                }),
            }
        }
    }

    fn linker_pair_end(&mut self, value: String, pending: &mut bool) {
        *pending = false;
        let Some(Item::Flag(name)) = self.items.pop() else {
            return;
        };
        match (name.as_str(), value.as_str()) {
            (
                "-z",
                "defs" | "undefs" | "execstack" | "nognustack" | "lazy" | "norelro" | "noseparate-code"
                | "text" | "notext",
            )
            | ("--dynamic-linker" | "-I", _) => {}
            ("-l", _) => self.items.push(Item::Library(value)),
            ("-L", _) => self.library_dirs.push(value),
            _ => self.items.push(Item::Flag(format!("-Wl,{name},{value}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Front;
    use super::*;

    #[test]
    fn linker_words_are_paired_and_filtered() {
        let line = "-Wl,-z,defs -Wl,-rpath -Wl,/x -Wl,--gc-sections -Wl,-lfoo -Xlinker -z -Xlinker relro";
        let words = line.split_whitespace().map(str::to_owned).collect();
        let inv = Invocation::parse(Front::C, words).unwrap();
        assert_eq!(
            inv.items,
            [
                Item::Flag("-Wl,-rpath,/x".into()),
                Item::Flag("-Wl,--gc-sections".into()),
                Item::Library("foo".into()),
                Item::Flag("-Wl,-z,relro".into())
            ]
        );
    }
}

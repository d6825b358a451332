//! Options of gcc that cannot work in a fenced build, and why. Taking them without a word would make modules that do
//! something else than they say.

use crate::error::Error;

/// Options as they are written, up to a `*`, and the reason.
const REFUSED: &[(&[&str], &str)] = &[
    (&["-m32", "-mx32", "-m16"], "modules are 64-bit code"),
    (
        &["-pg", "-p", "-mfentry"],
        "profiling by calls reads return addresses, which are out of a module's reach; perf can see modules \
         (docs/debugging.md)",
    ),
    (
        &["-finstrument-functions"],
        "it passes return addresses, which are out of a module's reach",
    ),
    (
        &[
            "-fprofile-arcs",
            "-ftest-coverage",
            "--coverage",
            "-coverage",
            "-fprofile-generate*",
        ],
        "there is no library that writes the counts; compile natively to collect a profile, -fprofile-use works",
    ),
    (
        &["-fsplit-stack"],
        "the data stack is one piece; its size is the domain's to choose",
    ),
    (
        &["-mcmodel=large", "-mcmodel=medium", "-mcmodel=kernel"],
        "a module is smaller than 2 GiB, for which the default is right",
    ),
    (
        &["-mabi=ms"],
        "libc and gates call by the System V convention; single functions may have the attribute ms_abi",
    ),
    (
        &["-fopenmp", "-fopenacc", "-ftree-parallelize-loops=*"],
        "a domain has no threads of its own, and there is no libgomp; -fopenmp-simd works",
    ),
    (&["-fgnu-tm"], "transactional memory has no run-time library here"),
    (&["-masm=intel"], "the rewriter reads AT&T syntax, gcc's default"),
    (
        &["-gstabs*", "-gxcoff*", "-gvms*"],
        "debug information has to be DWARF (-g)",
    ),
    (
        &["-mindirect-branch=thunk*", "-mfunction-return=thunk*"],
        "a thunk changes its return address, which is out of a module's reach; indirect jumps are checked anyway",
    ),
];

/// Why `arg` is refused, if it is.
pub(super) fn why(arg: &str) -> Option<&'static str> {
    let same = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => arg.starts_with(start),
        None => arg == pattern,
    };
    REFUSED
        .iter()
        .find(|(options, _)| options.iter().any(|o| same(o)))
        .map(|(_, why)| *why)
}

/// Sanitizers need a run-time library, but for those that trap.
pub(super) fn sanitizers(compile: &[String]) -> Result<(), Error> {
    const LIBRARY: &[&str] = &[
        "address",
        "kernel-address",
        "hwaddress",
        "kernel-hwaddress",
        "thread",
        "leak",
        "pointer-compare",
        "pointer-subtract",
    ];
    let traps = compile
        .iter()
        .any(|f| f == "-fsanitize-undefined-trap-on-error" || f.starts_with("-fsanitize-trap"));
    for option in compile {
        let Some(list) = option.strip_prefix("-fsanitize=") else {
            continue;
        };
        if !traps || list.split(',').any(|s| LIBRARY.contains(&s)) {
            return Err(Error::Unsupported {
                option: option.clone(),
                why: "there is no run-time library for it; -fsanitize=undefined works with \
                      -fsanitize-undefined-trap-on-error, and --check finds accesses outside of the window",
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Front, Invocation};

    fn parse(line: &str) -> Result<Invocation, Error> {
        Invocation::parse(Front::C, line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_reason() {
        for (options, why) in REFUSED {
            for option in *options {
                let option = option.replace('*', "1");
                let text = parse(&format!("-c a.c {option}")).unwrap_err().to_string();
                assert!(text.starts_with(&option) && text.contains(why), "{text}");
            }
        }
    }

    #[test]
    fn their_relatives_are_not() {
        let harmless = "-m64 -mcmodel=small -mabi=sysv -fopenmp-simd -mindirect-branch=keep -gdwarf-4 -masm=att \
                        -fprofile-use -ftree-parallelize-loops";
        for option in harmless.split_whitespace() {
            assert!(parse(&format!("-c a.c {option}")).is_ok(), "{option}");
        }
    }

    #[test]
    fn sanitizers_may_trap() {
        assert!(parse("-fsanitize=address -c a.c").is_err());
        assert!(parse("-fsanitize=undefined -c a.c").is_err());
        assert!(parse("-fsanitize=undefined -c a.c -fsanitize-undefined-trap-on-error").is_ok());
        assert!(parse("-fsanitize=undefined,address -c a.c -fsanitize-undefined-trap-on-error").is_err());
    }
}

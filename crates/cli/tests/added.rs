//! `--add`: several modules in one domain, which call each other directly.

mod common;

use common::Dir;

/// A directory with modules that need no libc.
fn modules() -> Dir {
    let d = Dir::new();
    let build = |name: &str, flags: &str, text: &str| {
        d.write(&format!("{name}.c"), text);
        d.sh(&format!("$RF cc -O1 -g -nostdlib {flags} -o {name}.rf {name}.c"))
            .ok();
    };
    build(
        "main",
        "",
        "int counter = 1; int next(int x) { return x + counter; } int who(void) { return 1; }",
    );
    build(
        "twice",
        "--import=next --import-data=counter",
        "extern int counter; int next(int); int twice(int x) { return 2 * next(x); } int who(void) { return 2; }\n\
         __attribute__((constructor)) static void begin(void) { counter = 10; }",
    );
    build(
        "four",
        "--import=twice",
        "int twice(int); int four(int x) { return twice(twice(x)); }",
    );
    build(
        "bad",
        "",
        "__attribute__((constructor)) static void begin(void) { *(volatile int *)8 = 1; } int f(void) { return 0; }",
    );
    build(
        "p",
        "",
        "int counter = 3; int next(int x) { return x + counter; } int __rf_main(int argc, char **argv, char **envp, unsigned long *auxv) { return counter; }",
    );
    d
}

#[test]
fn modules_of_a_domain_call_each_other() {
    let d = modules();
    let all = "--add twice=twice.rf --add four=four.rf";
    for (command, printed) in [
        ("call main.rf next 5", "6"),
        ("call --add twice=twice.rf main.rf next 5", "15"),
        ("call --add twice=twice.rf main.rf twice 5", "30"),
        (&format!("call {all} main.rf four 5"), "80"),
        // The first that has the name; or the one that was asked for.
        (&format!("call {all} main.rf who"), "1"),
        (&format!("call {all} --in twice main.rf who"), "2"),
        // A file may come twice: as two modules.
        (
            "call --add a=twice.rf --add b=twice.rf --in b main.rf twice 1",
            "22",
        ),
    ] {
        let ran = d.sh(&format!("$RF {command}")).ok();
        assert_eq!(ran.out.trim(), printed, "{command}");
    }
    d.sh("$RF run p.rf").fails(3, &[]);
    d.sh("$RF run --add twice=twice.rf p.rf").fails(10, &[]);
}

#[test]
fn what_cannot_be_added_is_told() {
    let d = modules();
    for (command, status, said) in [
        ("call --add twice main.rf next 5", 2, &["NAME=FILE"][..]),
        (
            "call --add a=twice.rf --add a=four.rf main.rf next 5",
            2,
            &["--add a is given twice"],
        ),
        (
            "run --add a=twice.rf --add a=four.rf p.rf",
            125,
            &["--add a is given twice"],
        ),
        ("call --add a=none.rf main.rf next 5", 2, &["none.rf"]),
        ("run --add a=none.rf p.rf", 125, &["none.rf"]),
        (
            "call --in a main.rf next 5",
            2,
            &["--in a: no module is added under this name"],
        ),
        ("call --add a=twice.rf --in a main.rf next 5", 2, &["next"]),
        // In the order in which they come.
        (
            "call --add four=four.rf --add twice=twice.rf main.rf four 5",
            125,
            &["--add: four: four.rf needs twice"],
        ),
        (
            "run --add four=four.rf p.rf",
            125,
            &["--add: four: four.rf needs twice"],
        ),
        (
            "call --add bad=bad.rf main.rf next 5",
            139,
            &["--add bad: a constructor failed", "bad write at"],
        ),
        (
            "run --add bad=bad.rf p.rf",
            139,
            &["--add bad: a constructor failed", "begin"],
        ),
    ] {
        d.sh(&format!("$RF {command}")).fails(status, said);
    }
}

#[test]
fn what_a_domain_has_used_is_printed() {
    let d = modules();
    let ran = d.sh("$RF call --usage --add twice=twice.rf main.rf next 5").ok();
    assert_eq!(ran.out.trim(), "15");
    assert!(
        ran.err.contains("calls 2, faults 0, descriptors 0"),
        "{}",
        ran.err
    );
    let ran = d.sh("$RF call --backend process --usage main.rf next 5 || true");
    let held = "ringfence: a process of its own; system call filter: yes, namespaces: ";
    assert!(ran.err.contains(held), "{}", ran.err);
    d.sh("$RF run --usage p.rf </dev/null")
        .fails(3, &["ringfence: memory ", "calls 1, faults 0, descriptors 3"]);
}

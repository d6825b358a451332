//! Random programs: each gives the same results here and with gcc.
//!
//! They use all arithmetic types, structures, unions, arrays, pointers, all statements, static data and calls, by pointer too, and
//! nothing that C leaves undefined but overflow, which gcc is told to wrap. `csmith.rs` has those of another generator.

mod support;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Machine, Outcome};

const INTS: [&str; 9] = [
    "signed char",
    "unsigned char",
    "short",
    "unsigned short",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "_Bool",
];

struct Maker {
    state: u64,
    out: String,
    /// Variables that can be read and written: names, and whether they are floats.
    names: Vec<(String, bool)>,
    /// Functions that can be called: name, and how many parameters.
    functions: Vec<(String, usize)>,
    /// The number of a function that calls itself and changes nothing.
    recursive: Option<usize>,
    depth: usize,
    labels: usize,
}

impl Maker {
    fn next(&mut self, below: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % below
    }

    fn pick(&mut self, float: bool) -> String {
        let list: Vec<String> = self
            .names
            .iter()
            .filter(|n| n.1 == float)
            .map(|n| n.0.clone())
            .collect();
        let n = self.next(list.len());
        list[n].clone()
    }

    fn constant(&mut self) -> String {
        match self.next(6) {
            0 => format!("{}", self.next(4)),
            1 => format!("{}", self.next(300) as i64 - 150),
            2 => format!("{}u", self.next(1 << 31)),
            3 => format!("{}L", (self.next(1 << 31) as i64) << self.next(32)),
            4 => format!("0x{:x}", 1u64 << self.next(64)),
            _ => format!("{}", 1 << self.next(20)),
        }
    }

    /// An expression with an integer value.
    fn int(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.next(3) == 0 {
                self.constant()
            } else {
                self.pick(false)
            };
        }
        let (a, b) = (self.int(depth - 1), self.int(depth / 2));
        match self.next(28) {
            27 if self.recursive.is_some() => {
                let k = self.recursive.unwrap_or_default();
                format!("r{k}((int)({a} & 7), {b}, {})", self.int(0))
            }
            0 => format!("({a} + {b})"),
            1 => format!("({a} - {b})"),
            2 => format!("({a} * {b})"),
            3 => format!("({a} & {b})"),
            4 => format!("({a} | {b})"),
            5 => format!("({a} ^ {b})"),
            6 => format!("({a} << ({b} & 15))"),
            7 => format!("({a} >> ({b} & 31))"),
            // No division by 0, and none of the least number by -1.
            8 => format!("({a} / (({b} & 1023) + 1))"),
            9 => format!("({a} % (({b} & 255) + 1))"),
            10 => format!("((unsigned long){a} / ({b} | 1))"),
            11 => format!("({a} / {})", 1 + self.next(1000)),
            12 => format!("({a} % {})", 1 << self.next(12)),
            13 => format!("({a} {} {b})", ["<", ">", "<=", ">=", "==", "!="][self.next(6)]),
            14 => format!("({a} && {b})"),
            15 => format!("({a} || !{b})"),
            16 => format!("({a} ? {b} : {})", self.int(depth / 2)),
            17 => format!("({}){a}", INTS[self.next(9)]).replacen('(', "((", 1) + ")",
            18 => format!("({} {a})", ["-", "~", "!", "+"][self.next(4)]),
            19 => format!("g[{a} & 7]"),
            20 => {
                let (x, y) = (self.float(depth / 2), self.float(0));
                format!("({x} {} {y})", ["<", ">", "<=", ">=", "==", "!="][self.next(6)])
            }
            24 => format!("m[{b} & 7]"),
            25 => format!(
                "(u[{b} & 7] {} {})",
                ["<", ">", "==", "&"][self.next(4)],
                self.next(256)
            ),
            26 => {
                let (v, low) = (self.pick(false), self.next(100) as i64 - 50);
                let high = low + self.next(100) as i64;
                match self.next(2) {
                    0 => format!("((int){v} >= {low} && (int){v} <= {high})"),
                    _ => format!("({v} < {low} || {v} > {high})"),
                }
            }
            21 => {
                let x = self.float(depth - 1);
                format!("whole({x})")
            }
            _ => format!("s.{}", ["a", "b", "c", "d", "e", "f"][self.next(6)]),
        }
    }

    fn float(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.next(3) {
                0 => format!("{}.{}", self.next(1000), self.next(100)),
                1 => format!("{}.5f", self.next(100)),
                _ => self.pick(true),
            };
        }
        let a = self.float(depth - 1);
        match self.next(10) {
            6 => format!("ext[{} & 3]", self.int(0)),
            7 => format!("((long double){})", self.int(depth / 2)),
            8 => format!("({a} * {})", self.long_double()),
            0 => format!("({a} + {})", self.float(depth / 2)),
            1 => format!("({a} - {})", self.float(depth / 2)),
            2 => format!("({a} * {})", self.float(depth / 2)),
            3 => format!("({a} / ({} + 1.5))", self.int(1)),
            4 => {
                format!("({}){}", ["float", "double"][self.next(2)], self.int(depth / 2))
                    .replacen('(', "((", 1)
                    + ")"
            }
            5 => format!("(- {a})"),
            _ => format!("({} ? {a} : {})", self.int(1), self.float(0)),
        }
    }

    /// A constant of `long double`, or an expression of such.
    fn long_double(&mut self) -> String {
        match self.next(4) {
            0 => format!("{}.{}L", self.next(1000), self.next(10_000)),
            1 => format!("0x1.{:x}p{}L", self.next(1 << 31), self.next(40) as i64 - 20),
            2 => format!("{}e{}L", 1 + self.next(1 << 20), self.next(40) as i64 - 20),
            _ => {
                let (a, op, b) = (
                    self.long_double(),
                    ["+", "-", "*", "/"][self.next(4)],
                    self.next(99),
                );
                format!("({a} {op} {b}.7L)")
            }
        }
    }

    fn line(&mut self, text: &str) {
        let depth = self.depth;
        writeln!(self.out, "{}{text}", "\t".repeat(depth)).unwrap();
    }

    fn block(&mut self, budget: usize) {
        self.depth += 1;
        for _ in 0..1 + self.next(3) {
            self.stmt(budget);
        }
        self.depth -= 1;
    }

    fn stmt(&mut self, budget: usize) {
        let kind = if budget == 0 { self.next(8) } else { self.next(28) };
        let (e, f) = (self.int(3), self.int(1));
        match kind {
            0 | 1 => {
                let v = self.pick(false);
                self.line(&format!("{v} = {e};"));
            }
            2 => {
                let v = self.pick(false);
                let op = ["+", "-", "*", "&", "|", "^"][self.next(6)];
                self.line(&format!("{v} {op}= {e};"));
            }
            3 => {
                let (v, x) = (self.pick(true), self.float(3));
                self.line(&format!("{v} = {x};"));
            }
            4 => self.line(&format!("g[{f} & 7] {}= {e};", ["", "+", "^"][kind % 3])),
            5 => {
                let field = ["a", "b", "c", "d", "e", "f"][self.next(6)];
                let op = ["", "+", "-"][self.next(3)];
                self.line(&format!("s.{field} {op}= {e};"));
            }
            6 => {
                let (array, op) = (
                    ["m", "u"][self.next(2)],
                    ["", "+", "-", "&", "|", "^"][self.next(6)],
                );
                self.line(&format!("{array}[{f} & 7] {op}= {e};"));
            }
            7 => {
                let (v, w) = (self.pick(false), self.pick(false));
                let op = ["", "+", "-", "|"][self.next(4)];
                self.line(&format!("if ({e}) {v} {op}= {w};"));
            }
            14 | 15 => {
                self.line(&format!("if ({e}) {{"));
                self.block(budget - 1);
                if self.next(2) == 0 {
                    self.line("} else {");
                    self.block(budget - 1);
                }
                self.line("}");
            }
            16 => {
                // Out of everything that is between, and never back.
                let label = format!("l{}", self.labels);
                self.labels += 1;
                self.line(&format!("if ({e}) goto {label};"));
                self.block(budget - 1);
                self.line(&format!("{label}: ;"));
            }
            17 | 18 => {
                let i = format!("i{}", self.labels);
                self.labels += 1;
                let n = 1 + self.next(6);
                let how = ["continue", "break"][self.next(2)];
                self.line(&format!("{{ int {i} = {n};"));
                self.line(["do {", &*format!("while ({i}-- > 0) {{")][kind - 17]);
                self.block(budget - 1);
                self.line(&format!("\tif ({f}) {how};"));
                self.block(budget - 1);
                self.line(["} while (--", "}"][kind - 17]);
                if kind == 17 {
                    self.line(&format!("{i} > 0);"));
                }
                self.line("}");
            }
            19 => {
                let (v, op) = (self.pick(false), ["", "+", "-", "^"][self.next(4)]);
                self.line(&format!(
                    "{{ long *here = &g[{f} & 7], *end = g + 8; *here {op}= {e}; {v} = *here + (end - here); while (here < end) *here++ -= 3; }}"
                ));
            }
            20 => {
                let (v, w) = (self.pick(false), self.next(4));
                self.line(&format!(
                    "{{ union {{ unsigned all; short half[2]; unsigned char one[4]; }} w; w.all = {e}; {v} = w.one[{w}] + w.half[{f} & 1]; }}"
                ));
            }
            21 => {
                let (v, op) = (self.pick(false), ["", "+", "|"][self.next(3)]);
                let (row, column) = (self.next(3), self.next(5));
                self.line(&format!("z[(unsigned)({f}) % 3][{column}] {op}= {e};"));
                self.line(&format!("{v} ^= z[{row}][(unsigned)({f}) % 5];"));
            }
            22 => {
                let (v, ty, first) = (self.pick(false), INTS[self.next(9)], self.constant());
                self.line(&format!(
                    "{{ static {ty} kept = {first}; kept += {e}; {v} -= kept; }}"
                ));
            }
            23 => {
                let (v, b) = (self.pick(false), self.int(1));
                self.line(&format!("{v} = choose[{f} & 3]({e}, {b});"));
            }
            24 => {
                let (v, w) = (self.pick(false), self.pick(false));
                let op = ["", "+", "-", "^"][self.next(4)];
                self.line(&format!("{v} = ({w} {op}= {e}, {w} + {f});"));
            }
            25 => {
                let (v, n) = (self.pick(false), self.next(5) as i64 - 2);
                self.line(&format!("switch ((signed char)({e})) {{ case {n}: {v}++;"));
                self.line(&format!(
                    "default: {v} = {f}; break; case {}: {v}--; case {}L: {v} |= 4; }}",
                    n + 1,
                    n + 9
                ));
            }
            26 => {
                let (x, op) = (self.float(2), ["", "+", "-", "*"][self.next(4)]);
                self.line(&format!("ext[{f} & 3] {op}= {x};"));
            }
            27 => {
                let (v, x, op) = (
                    self.pick(true),
                    self.long_double(),
                    ["+", "-", "*", "/"][self.next(4)],
                );
                let step = ["++", "--"][self.next(2)];
                self.line(&format!("ext[{f} & 3] = {v}{step}; {v} {op}= {x};"));
            }
            8 | 9 => {
                let i = format!("i{}", self.labels);
                self.labels += 1;
                let n = 1 + self.next(6);
                self.line(&format!("for (int {i} = 0; {i} < {n}; {i}++) {{"));
                self.block(budget - 1);
                let how = ["continue", "break"][self.next(2)];
                self.line(&format!("\tif ({f}) {how};"));
                self.block(budget - 1);
                self.line("}");
            }
            10 => {
                self.line(&format!("switch ({e} & 7) {{"));
                for case in 0..self.next(8) {
                    self.line(&format!("case {case}:"));
                    self.block(budget - 1);
                    if self.next(2) == 0 {
                        self.line("\tbreak;");
                    }
                }
                self.line("default: ;\n}");
            }
            11 => {
                let v = self.pick(false);
                self.line(&format!(
                    "{{ struct s old = s; swap(&s, &t); s.a = {e}; {v} = old.b + same(s).c; }}"
                ));
            }
            // On its own, since it is open whether other operands are read before or after a call.
            12 if !self.functions.is_empty() => {
                let n = self.next(self.functions.len());
                let (v, (name, count)) = (self.pick(false), self.functions[n].clone());
                let args: Vec<String> = (0..count).map(|_| self.int(1)).collect();
                self.line(&format!("{v} = {name}({});", args.join(", ")));
            }
            _ => {
                let v = self.pick(false);
                let (n, op) = (self.next(8), ["++", "--"][self.next(2)]);
                self.line(&format!("g[{n}] += {v}{op};"));
            }
        }
    }

    /// A function that calls itself, at most some hundred times.
    fn recursive(&mut self, number: usize) {
        let ty = ["int", "long", "unsigned", "short"][self.next(4)];
        let (p, q) = (INTS[self.next(9)], INTS[self.next(9)]);
        self.names = ["p", "q", "n"].map(|n| (n.to_string(), false)).to_vec();
        self.names.push(("half".into(), true));
        self.recursive = None;
        let (end, add) = (self.int(2), self.int(1));
        let [a, b, c] = [(); 3].map(|()| self.int(1));
        let again = format!("r{number}(n - 1, {a}, {b})");
        let twice = format!("r{number}(n - 2, {c}, {a})");
        let value = match self.next(5) {
            0 => again,
            1 => format!("{add} + {again}"),
            2 => format!("{again} + {twice}"),
            3 => format!("q & 1 ? {again} : {twice}"),
            _ => format!("{again} * 3 ^ {twice}"),
        };
        let text = match self.next(3) {
            0 => format!("return n <= 0 ? {end} : {value};"),
            1 => format!("if (n <= 0) return {end}; q += {add}; return {value};"),
            _ => format!("while (n > 0) {{ if (p & 1) return {value}; p = p + 1; n--; }} return {end};"),
        };
        writeln!(
            self.out,
            "static {ty} r{number}(int n, {p} p, {q} q) {{ {text} }}"
        )
        .unwrap();
        self.recursive = Some(number);
    }

    fn function(&mut self, number: usize) {
        let count = self.next(9);
        let floats: Vec<bool> = (0..count).map(|_| self.next(6) == 0).collect();
        let types = ["long double", "double", "long double"];
        let params: Vec<String> = floats
            .iter()
            .enumerate()
            .map(|(i, float)| match float {
                true => format!("{} p{i}", types[self.next(3)]),
                false => format!("{} p{i}", INTS[self.next(9)]),
            })
            .collect();
        let params = if count == 0 {
            "void".into()
        } else {
            params.join(", ")
        };
        let result = INTS[self.next(9)];
        self.recursive(number);
        writeln!(self.out, "static {result} f{number}({params})\n{{").unwrap();
        self.names = (0..count).map(|i| (format!("p{i}"), floats[i])).collect();
        for i in 0..2 + self.next(6) {
            let (ty, value) = (INTS[self.next(9)], self.constant());
            writeln!(self.out, "\t{ty} v{i} = {value};").unwrap();
            self.names.push((format!("v{i}"), false));
        }
        // Members that are values of their own, unless something points to them.
        let (a, b, c) = (self.next(100), self.next(1000), self.next(100));
        let members = "int a; long b; signed char c; unsigned short d; double e;";
        writeln!(self.out, "\tstruct q {{ {members} }} q = {{ {a}, {b}, {c} }};").unwrap();
        let members = ["q.a", "q.b", "q.c", "q.d"];
        self.names.extend(members.map(|m| (m.to_string(), false)));
        if self.next(3) == 0 {
            writeln!(self.out, "\tstruct q *at = &q;").unwrap();
            self.names.push(("at->b".into(), false));
        }
        self.names.push(("q.e".into(), true));
        writeln!(
            self.out,
            "\tstruct {{ int a; long double b; }} y = {{ 1, 0.1L }};"
        )
        .unwrap();
        self.names.push(("y.a".into(), false));
        self.names.push(("y.b".into(), true));
        for i in 0..1 + self.next(4) {
            let (ty, value) = (["float", "double", "long double"][self.next(3)], self.next(100));
            writeln!(self.out, "\t{ty} x{i} = {value}.25;").unwrap();
            self.names.push((format!("x{i}"), true));
        }
        self.block(2);
        self.block(2);
        let mut result = self.int(2);
        for (name, float) in self.names.clone() {
            result = if float {
                format!("{result} + whole({name}) + exact({name})")
            } else {
                format!("{result} * 31 + {name}")
            };
        }
        writeln!(self.out, "\treturn {result};\n}}").unwrap();
        self.functions.push((format!("f{number}"), count));
        // Old ones are forgotten, so that the number of calls does not explode.
        if self.functions.len() > 2 {
            self.functions.remove(0);
        }
    }
}

const HEAD: &str = "
struct s { int a; unsigned b : 5; signed char c; int d : 11; long e; unsigned short f; };
static struct s s = { 1, 2, 3, 4, 5, 6 }, t = { 7, 8, 9, 10, 11, 12 };
static long g[8] = { 1, -2, 3 };
static int m[8] = { 4, 5, -6 };
static unsigned char u[8] = { 7, 8, 200 };
static short z[3][5] = { { 1, 2 }, [2] = { 9, -9 } };
static double half = 0.5;
static long double ext[4] = { 1, -0.1L, 3e5L, 1 / 3.0L };
static int add(int a, int b) { return a + b; }
static int less(int a, int b) { return a < b ? a : b; }
static int mix(int a, int b) { return a ^ b << 3; }
static int (*const choose[4])(int, int) = { add, &less, mix, add };
static long whole(double x) { return x > -1e9 && x < 1e9 ? (long)(x * 16) : 77; }
static long exact(long double x) { union { long double x; long bits[2]; } u; u.x = x; return x > -1e9 && x < 1e9 ? u.bits[0] : 78; }
static void swap(struct s *a, struct s *b) { struct s x = *a; *a = *b; *b = x; }
static struct s same(struct s x) { x.c++; return x; }
";

/// A program with so many functions, and one that calls each with its number.
fn program(seed: u64, count: usize) -> String {
    let mut maker = Maker {
        state: seed,
        out: HEAD.into(),
        names: Vec::new(),
        functions: Vec::new(),
        recursive: None,
        depth: 0,
        labels: 0,
    };
    let mut calls = String::new();
    for number in 0..count {
        maker.function(number);
        let params = maker.functions.last().unwrap().1;
        let args: Vec<String> = (0..params)
            .map(|i| format!("(b >> {i}) * {}", 7 * i as i64 - 9))
            .collect();
        writeln!(calls, "case {number}: r = f{number}({}); break;", args.join(", ")).unwrap();
    }
    let sum = "for (int i = 0; i < 8; i++) r = r * 31 + g[i] + m[i] * 3 + u[i]; for (int i = 0; i < 15; i++) r = r * 31 + z[i / 5][i % 5]; for (int i = 0; i < 4; i++) r = r * 31 + exact(ext[i]); r ^= s.a + s.b * 3 + s.c * 5 + s.d * 7 + s.e * 11 + s.f * 13 + t.e;";
    maker.out
        + &format!(
            "long test(long a, long b)\n{{\n\tlong r = 0;\n\tswitch (a) {{\n{calls}\t}}\n\t{sum}\n\treturn r;\n}}\n"
        )
}

/// Functions of a program, and programs that gcc compiles at once: starting it takes longer than a program does.
const FUNCTIONS: usize = 4;
const AT_ONCE: u64 = 30;

/// Without what only costs gcc time: it takes most of a program's.
const FLAGS: [&str; 4] = [
    "-O0",
    "-fwrapv",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
];

/// What each program's calls give with gcc.
fn by_gcc(programs: &[String], arguments: &[[i64; 2]]) -> Vec<Vec<Outcome>> {
    let mut names: Vec<String> = "s t g m u z ext exact half add less mix choose whole swap same test"
        .split(' ')
        .map(str::to_owned)
        .collect();
    names.extend((0..FUNCTIONS).flat_map(|n| [format!("f{n}"), format!("r{n}")]));
    let (mut all, mut main) = (String::from("int printf(const char *, ...);\n"), String::new());
    for (number, text) in programs.iter().enumerate() {
        for name in &names {
            writeln!(all, "#undef {name}\n#define {name} {name}_{number}").unwrap();
        }
        all += text;
        for [a, b] in arguments {
            writeln!(main, "printf(\"%ld\\n\", test_{number}({a}, {b}L));").unwrap();
        }
    }
    let text = format!("{all}\nint main(void) {{\n{main}return 0; }}\n");
    let output = support::gcc(&text, &FLAGS).expect("it ends");
    let outcomes: Vec<Outcome> = output
        .lines()
        .map(|l| Outcome::Value(l.parse().unwrap()))
        .collect();
    outcomes
        .chunks(arguments.len())
        .map(<[Outcome]>::to_vec)
        .collect()
}

/// Compares the programs from one seed to another.
fn compare(machine: &Machine, seeds: std::ops::Range<u64>) {
    let programs: Vec<String> = seeds.clone().map(|seed| program(seed, FUNCTIONS)).collect();
    let arguments: Vec<[i64; 2]> = (0..FUNCTIONS as i64)
        .flat_map(|n| [[n, 5], [n, -123_456_789_012]])
        .collect();
    let expected = by_gcc(&programs, &arguments);
    assert_eq!(expected.len(), programs.len());
    for ((seed, text), expected) in seeds.zip(&programs).zip(expected) {
        let compiled = ringfence_text::compile(text).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let outcomes = machine.calls(&compiled, "test", &arguments);
        let wrong = expected.iter().zip(&outcomes).position(|(a, b)| a != b);
        if let Some(n) = wrong {
            let file = support::scratch().join(format!("random-{seed}.c"));
            std::fs::write(&file, text).unwrap();
            let ([a, b], place) = (arguments[n], file.display());
            panic!(
                "seed {seed}: test({a}, {b}) is {:?}, not {:?}; the text is in {place}",
                outcomes[n], expected[n]
            );
        }
        assert_eq!(outcomes.len(), expected.len());
    }
}

#[test]
fn random_programs_do_what_gcc_makes_them_do() {
    let number = |name: &str, usual: u64| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(usual)
    };
    let first = number("RINGFENCE_TEXT_SEED", 1);
    let end = first + number("RINGFENCE_TEXT_ROUNDS", 60);
    let next = AtomicU64::new(first);
    let work = || {
        let machine = Machine::new();
        loop {
            let from = next.fetch_add(AT_ONCE, Ordering::Relaxed);
            if from >= end {
                return;
            }
            compare(&machine, from..end.min(from + AT_ONCE));
        }
    };
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        (0..count).for_each(|_| {
            scope.spawn(work);
        });
    });
    println!("{} random programs do the same", end - first);
}

//! Constants of `long double`: what is computed while compiling is what gcc computes, to the last bit.

mod support;

use std::fmt::Write as _;
use support::{Machine, Outcome};

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn digits(&mut self, most: u64) -> String {
        (0..=self.below(most))
            .map(|_| char::from(b'0' + self.below(10) as u8))
            .collect()
    }

    /// A constant of any size, or of a moderate one.
    fn constant(&mut self, moderate: bool) -> String {
        let (decimal, binary) = if moderate { (20, 60) } else { (5000, 16_500) };
        let power = self.below(2 * decimal) as i64 - decimal as i64;
        let two = self.below(2 * binary) as i64 - binary as i64;
        match self.below(6) {
            0 => format!("{}.{}L", self.digits(20), self.digits(30)),
            1 => format!("{}.{}e{power}L", self.digits(3), self.digits(40)),
            2 => format!("{}E{power:+}l", self.digits(25)),
            3 => format!("0x{:x}.{:x}p{two}L", self.below(1 << 31), self.below(1 << 31)),
            4 => format!(
                "0x.{:x}{:08x}{:08x}P{two}L",
                self.below(99),
                self.below(1 << 31),
                self.below(1 << 31)
            ),
            _ => format!("{}.L", self.digits(18)),
        }
    }

    fn expression(&mut self) -> String {
        let moderate = self.below(2) == 0;
        let (a, b) = (self.constant(moderate), self.constant(moderate));
        match self.below(12) {
            0 => a,
            1 => format!("-{a}"),
            2 => format!("{a} + {b}"),
            3 => format!("{a} - {b}"),
            4 | 5 => format!("{a} * {b}"),
            6 | 7 => format!("{a} / {b}"),
            8 => format!("(double){a}"),
            9 => format!("(float){a} + (long double)0.1 - 0.7f"),
            10 => format!("({a} < {b}) + ({a} >= {b}) * 2 + ({a} == {a}) * 4 + ({a} != {b}) * 8 + !{a}"),
            _ => {
                let (x, y) = (self.below(1 << 31), self.below(1 << 31));
                format!(
                    "(long)({x}.{y}L * -3) + (unsigned long)({x}e9L / {}) + {y}u",
                    1 + self.below(9)
                )
            }
        }
    }
}

#[test]
fn constants_are_those_of_gcc() {
    const COUNT: usize = 4000;
    let mut random = Random(5);
    let mut text = String::from("static const long double list[] = {\n");
    let mut list: Vec<String> = (0..COUNT).map(|_| random.expression()).collect();
    // Halves between two numbers, with and without something behind; the largest, the least, and what is beyond.
    let half = "1.00000000000000000005421010862427522170037264004349708557128906250";
    list.extend([
        half.to_owned() + "L",
        half.to_owned() + "1L",
        half.to_owned() + &"0".repeat(13_000) + "1L",
    ]);
    list.extend(
        [
            half.to_owned() + &"0".repeat(13_000) + "L",
            "9".repeat(14_000) + "e-10000L",
        ]
        .map(|s| s),
    );
    for known in [
        "0x1.fffffffffffffffep16383L",
        "0x1.ffffffffffffffffp16383L",
        "0x1p-16445L",
        "0x1p-16446L",
        "0x1.8p-16446L",
        "0x0.fffffffffffffffep-16382L",
        "0x0.ffffffffffffffffp-16382L",
        "1.18973149535723176502126385303097021e4932L",
        "1.18973149535723176505e4932L",
        "3.64519953188247460253e-4951L",
        "1.82259976594123730126e-4951L",
        "1e5000L",
        "1e-5000L",
        "0e99999999999L",
        "1e-99999999999L",
        "1e99999999999L",
        "0x1.0000000000000001p0L",
        "0x1.0000000000000003p0L",
        "0x1.00000000000000010000000000000000000000001p0L",
        "(double)0x1.00000000000008p0L",
        "(double)0x1.000000000000080001p0L",
        "(float)0x1.000001p0L",
        "(float)0x1.0000010000000001p0L",
        "1.0L / 0 - 1",
        "-1 / 0.0L",
        "0 * -1.0L",
        "(double)0x1p-1080L",
    ] {
        list.push(known.to_owned());
    }
    for expression in &list {
        writeln!(text, "{expression},").unwrap();
    }
    text.push_str(
        "};
long test(long n, long half)
{
	union { long double x; unsigned long m[2]; } u = { .m = { 0, 0 } };
	u.x = list[n];
	return half ? u.m[1] & 0xffff : u.m[0];
}
",
    );
    let main = format!(
        "#include <stdio.h>\nint main(void) {{ for (int i = 0; i < {}; i++) printf(\"%ld\\n%ld\\n\", test(i, 0), test(i, 1)); return 0; }}",
        list.len()
    );
    let expected = support::gcc(&format!("{text}{main}"), &[]).expect("it ends");
    let compiled = ringfence_text::compile(&text).unwrap_or_else(|e| panic!("{e}"));
    let arguments: Vec<[i64; 2]> = (0..list.len() as i64).flat_map(|n| [[n, 0], [n, 1]]).collect();
    let outcomes = Machine::new().calls(&compiled, "test", &arguments);
    let mut wrong = Vec::new();
    for (([n, half], outcome), expected) in arguments.iter().zip(&outcomes).zip(expected.lines()) {
        if *outcome != Outcome::Value(expected.parse().unwrap()) {
            wrong.push(format!(
                "{}, half {half}: {outcome:x?}, not {expected}",
                list[*n as usize]
            ));
        }
    }
    assert_eq!(outcomes.len(), arguments.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn constants_that_take_long_are_bounded() {
    let list = "1e-4900L, ".repeat(20_000);
    let errors = ringfence_text::compile(&format!("long double list[] = {{ {list} }};")).unwrap_err();
    let told = errors.to_string();
    assert!(told.contains("too many constants of long double"), "{told}");
    // Of a usual size there may be as many as there is room for.
    let list = "1.25e-3L, ".repeat(80_000);
    assert!(ringfence_text::compile(&format!("long double list[] = {{ {list} }};")).is_ok());
}

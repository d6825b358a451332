//! Batches: one crossing, a call for each element of arrays in the domain's memory.

mod support;

use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use ringfence::dynamic::{self, Element};
use ringfence::{BatchError, CallError, Column, Domain, FaultKind, Imports, MemoryError, Ptr, Value};
use std::time::Duration;
use support::Start;

const SOURCE: &str = r#"
long wide(long a, long b) { return 3 * a + b; }
int narrow(int a, short b, signed char c) { return a + 100 * b + 10000 * c; }
unsigned unsigned_ones(unsigned a, unsigned short b, unsigned char c) { return a + 100 * b + 10000 * c; }
signed char low(int a) { return (signed char)a; }
short half(int a) { return (short)a; }
unsigned char any(_Bool b) { return b ? 7 : 0; }
double scale(double x, float y, int n) { return x * y + n; }
float single(float x, double y) { return x + (float)y; }
double many(long a, double s, long b, float t, long c, double u, long d, double v, long e, double w, long f, double x, double y, float z)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + s + 10 * t + 100 * u + 1000 * v + 1e4 * w + 1e5 * x + 1e6 * y + 1e7 * z;
}
long sum;
void add(long a) { sum += a; }
long total(void) { return sum++; }
int divide(int a, int b) { return a / b; }
long first(long *p) { return *p; }
void forever(int n) { while (n == 5) __asm__ volatile(""); }
long greedy(long a)
{
	long scratch[64];
	for (int i = 0; i < 64; i++) ((volatile long *)scratch)[i] = a + i;
	__asm__ volatile("" : : "r"(scratch) : "rbx", "rbp", "r12", "r13", "memory");
	return ((volatile long *)scratch)[63];
}
"#;

fn domain() -> Domain {
    support::from_text(SOURCE, &["-O2", "-nostdlib"])
        .start(Imports::new())
        .expect("a domain")
}

fn array<T: NoUninit + Zeroable>(domain: &Domain, values: &[T]) -> Ptr<T> {
    domain.memory().put_slice(values).expect("memory").leak()
}

fn results<T: AnyBitPattern + Zeroable>(domain: &Domain, count: usize) -> Ptr<T> {
    domain.memory().alloc_array::<T>(count).expect("memory").leak()
}

fn read<T: AnyBitPattern + Value>(domain: &Domain, at: Ptr<T>, count: usize) -> Vec<T> {
    domain
        .memory()
        .read_vec(at, count)
        .expect("memory")
        .into_inner_unchecked()
}

/// The element whose call failed, and its fault.
fn failed(error: &BatchError) -> (Option<u64>, &FaultKind) {
    match error {
        BatchError::Call {
            element,
            source: CallError::Fault(fault),
        } => (*element, &fault.kind),
        _ => panic!("{error}"),
    }
}

#[test]
fn each_element_gets_its_own_arguments_and_results_are_stored() {
    needs!(Code);
    let d = domain();
    let a: Vec<i64> = (0..1000).map(|n| n * 1_000_000_007).collect();
    let b: Vec<i64> = (0..1000).map(|n| -n).collect();
    let wide = d.func::<(i64, i64), i64>("wide").expect("wide");
    let to = results::<i64>(&d, 1001);
    wide.call_batch(
        1000,
        (Column::Each(array(&d, &a)), Column::Each(array(&d, &b))),
        to,
    )
    .expect("a batch");
    let got = read(&d, to, 1001);
    for n in 0..1000 {
        assert_eq!(got[n], 3 * a[n] + b[n], "element {n}");
    }
    assert_eq!(got[1000], 0, "nothing is stored behind the end");
    // A value for all, and an array that is read and written.
    wide.call_batch(1000, (Column::Each(to), Column::Same(-5)), to)
        .expect("in place");
    assert_eq!(read(&d, to, 1000)[7], 3 * (3 * a[7] + b[7]) - 5);
}

#[test]
fn every_type_is_read_and_written_as_wide_as_it_is() {
    needs!(Code);
    let d = domain();
    let (to, of) = (results::<i32>(&d, 4), results::<u32>(&d, 4));
    let ints = array(&d, &[-1_i32, 70_000, 7]);
    let shorts = array(&d, &[-2_i16, i16::MAX, 8]);
    let bytes = array(&d, &[-3_i8, i8::MAX, 9]);
    let narrow = d.func::<(i32, i16, i8), i32>("narrow").expect("narrow");
    narrow
        .call_batch(3, (ints.into(), shorts.into(), bytes.into()), to)
        .expect("a batch");
    assert_eq!(
        read(&d, to, 4),
        [-30_201, 70_000 + 3_276_700 + 1_270_000, 90_807, 0]
    );
    // The same bits without signs.
    let ones = d
        .func::<(u32, u16, u8), u32>("unsigned_ones")
        .expect("unsigned_ones");
    ones.call_batch(
        3,
        (ints.cast().into(), shorts.cast().into(), bytes.cast().into()),
        of,
    )
    .expect("a batch");
    let expected = [
        u32::MAX.wrapping_add(6_553_400 + 2_530_000),
        70_000 + 3_276_700 + 1_270_000,
        90_807,
        0,
    ];
    assert_eq!(read(&d, of, 4), expected);
    ones.call_batch(
        1,
        (Column::Same(u32::MAX), Column::Same(65_534), Column::Same(253)),
        of,
    )
    .expect("the same from values");
    assert_eq!(read(&d, of, 1), expected[..1]);

    // Results that are narrower than their registers, without touching what is beside them.
    let (small, middle) = (array(&d, &[0x55_i8; 4]), array(&d, &[0x5555_i16; 4]));
    let low = d.func::<(i32,), i8>("low").expect("low");
    low.call_batch(3, (ints.into(),), small).expect("a batch");
    assert_eq!(read(&d, small, 4), [-1, 112, 7, 0x55]);
    let half = d.func::<(i32,), i16>("half").expect("half");
    half.call_batch(3, (ints.into(),), middle).expect("a batch");
    assert_eq!(read(&d, middle, 4), [-1, 4464, 7, 0x5555]);
    let truths = array(&d, &[0_u8, 1, 1]);
    let any = d.func::<(bool,), u8>("any").expect("any");
    any.call_batch(3, (truths.cast::<bool>().into(),), small.cast())
        .expect("a batch");
    assert_eq!(read(&d, small, 4), [0, 7, 7, 0x55]);
}

#[test]
fn floats_travel_in_their_own_registers() {
    needs!(Code);
    let d = domain();
    let doubles = array(&d, &[1.5_f64, -2.0, 1e10]);
    let floats = array(&d, &[2.0_f32, 0.5, -1.0]);
    let scale = d.func::<(f64, f32, i32), f64>("scale").expect("scale");
    let to = results::<f64>(&d, 3);
    scale
        .call_batch(3, (doubles.into(), floats.into(), Column::Same(1)), to)
        .expect("a batch");
    assert_eq!(read(&d, to, 3), [4.0, 0.0, -1e10 + 1.0]);
    scale
        .call_batch(3, (Column::Same(3.0), Column::Same(0.25), Column::Same(-1)), to)
        .expect("a batch");
    assert_eq!(read(&d, to, 3), [-0.25; 3]);
    let single = d.func::<(f32, f64), f32>("single").expect("single");
    single
        .call_batch(3, (floats.into(), doubles.into()), floats)
        .expect("in place");
    assert_eq!(read(&d, floats, 3), [3.5, -1.5, 1e10 - 1.0]);
}

#[test]
fn fourteen_arguments_pass_in_registers_and_no_more() {
    needs!(Code);
    use dynamic::Column::{Each, Same};
    let d = domain();
    let many = d.function("many").expect("many");
    let (ints, doubles) = (array(&d, &[1_i64, 2]), array(&d, &[1.0_f64, 2.0]));
    let singles = array(&d, &[1.0_f32, 2.0]);
    let to = results::<f64>(&d, 2);
    let (int, double) = (
        Each(Element::Word, ints.address()),
        Each(Element::F64, doubles.address()),
    );
    let single = Each(Element::F32, singles.address());
    let half = Same(Element::F64, 0.5_f64.to_bits());
    let columns = [
        int, double, int, single, int, double, int, half, int, double, int, half, double, single,
    ];
    let at = Some((Element::F64, to.address()));
    many.call_batch(2, &columns, at).expect("a batch");
    let of = |n: f64| 21.0 * n + n * 1111.0 - n * 1000.0 + 500.0 + 1e4 * n + 5e4 + 1.1e7 * n;
    assert_eq!(read(&d, to, 2), [of(1.0), of(2.0)]);
    for extra in [int, double] {
        let mut more = columns.to_vec();
        more.push(extra);
        assert!(matches!(many.call_batch(2, &more, at), Err(BatchError::Shape)));
    }
}

#[test]
fn a_fault_tells_its_element_and_leaves_the_results_before_it() {
    needs!(Code);
    let d = domain();
    let divide = d.func::<(i32, i32), i32>("divide").expect("divide");
    for bad in [0, 37, 99] {
        let mut by = [2_i32; 100];
        by[bad] = 0;
        let by = array(&d, &by);
        let to = results::<i32>(&d, 100);
        let error = divide
            .call_batch(100, (Column::Same(84), by.into()), to)
            .expect_err("a division by zero");
        assert_eq!(failed(&error), (Some(bad as u64), &FaultKind::Division));
        assert!(
            error.to_string().starts_with(&format!("element {bad}: ")),
            "{error}"
        );
        let got = read(&d, to, 100);
        assert!(
            got[..bad].iter().all(|&n| n == 42) && got[bad..].iter().all(|&n| n == 0),
            "{got:?}"
        );
        // A domain that has faulted takes no call, and no element is told.
        let again = divide.call_batch(100, (Column::Same(84), by.into()), to);
        let refused = matches!(
            again,
            Err(BatchError::Call {
                element: None,
                source: CallError::Faulted { .. }
            })
        );
        assert!(refused, "{again:?}");
        d.reset().expect("a reset");
        let (by, to) = (array(&d, &[3_i32, 4]), results::<i32>(&d, 2));
        divide
            .call_batch(2, (Column::Same(12), by.into()), to)
            .expect("after the reset");
        assert_eq!(read(&d, to, 2), [4, 3]);
    }
}

#[test]
fn what_is_not_in_the_window_is_refused_before_anything_happens() {
    needs!(Code);
    let d = domain();
    let wide = d.func::<(i64, i64), i64>("wide").expect("wide");
    let inside = array(&d, &[1_i64; 4]);
    let host = Ptr::<i64>::from_address((&raw const *"host").cast::<u8>() as u64);
    let end = Ptr::<i64>::from_address(d.memory().base() + (1 << 32) - 16);
    for outside in [host, Ptr::NULL, end] {
        for (a, to) in [(outside, inside), (inside, outside)] {
            let error = wide
                .call_batch(3, (a.into(), Column::Same(0)), to)
                .expect_err("outside");
            assert!(
                matches!(error, BatchError::Memory(MemoryError::Outside { .. })),
                "{error}"
            );
        }
    }
    let most = usize::MAX >> 4;
    let error = wide.call_batch(most, (inside.into(), inside.into()), inside);
    assert!(matches!(error, Err(BatchError::Shape)), "{error:?}");
    wide.call_batch(0, (host.into(), host.into()), host)
        .expect("nothing is nothing");
    assert_eq!(d.usage().faults, 0);
    // An element may be a bad pointer: that is the domain's own fault.
    let pointers = array(&d, &[inside.address(), 16]);
    let first = d.func::<(Ptr<i64>,), i64>("first").expect("first");
    let error = first
        .call_batch(2, (pointers.cast::<Ptr<i64>>().into(),), inside)
        .expect_err("null area");
    assert!(
        matches!(error, BatchError::Call { element: Some(1), .. }),
        "{error}"
    );
}

#[test]
fn a_function_without_result_and_one_that_uses_many_registers() {
    needs!(Code);
    let d = domain();
    let numbers: Vec<i64> = (1..=100).collect();
    let numbers = array(&d, &numbers);
    let add = d.func::<(i64,), ()>("add").expect("add");
    add.call_batch(100, (numbers.into(),), Ptr::NULL)
        .expect("a batch");
    let total = d.func::<(), i64>("total").expect("total");
    assert_eq!(total.call().expect("a call").into_inner_unchecked(), 5050);
    let to = results::<i64>(&d, 100);
    total.call_batch(100, (), to).expect("no arguments");
    assert_eq!(read(&d, to, 100), (5051..5151).collect::<Vec<i64>>());
    let greedy = d.func::<(i64,), i64>("greedy").expect("greedy");
    greedy.call_batch(100, (numbers.into(),), to).expect("a batch");
    assert_eq!(read(&d, to, 100), (64..164).collect::<Vec<i64>>());
}

#[test]
fn limits_hold_for_a_batch_as_for_one_call() {
    needs!(Code);
    let module = support::from_text(SOURCE, &["-O2", "-nostdlib"]);
    let mut options = support::options();
    options.time_limit = Some(Duration::from_millis(30));
    let d = Domain::instantiate(&[module], Imports::new(), &options).expect("a domain");
    let numbers: Vec<i32> = (0..10).collect();
    let forever = d.func::<(i32,), ()>("forever").expect("forever");
    let error = forever
        .call_batch(10, (array(&d, &numbers).into(),), Ptr::NULL)
        .expect_err("it never ends");
    assert_eq!(failed(&error), (Some(5), &FaultKind::TimeLimit));
}

#[test]
fn threads_batch_at_once_and_the_loop_comes_once() {
    needs!(Code);
    let d = domain();
    let wide = d.func::<(i64, i64), i64>("wide").expect("wide");
    std::thread::scope(|scope| {
        for t in 0..4_i64 {
            let (d, wide) = (&d, &wide);
            scope.spawn(move || {
                let (from, to) = (array(d, &[t; 64]), results::<i64>(d, 64));
                for round in 0..50 {
                    wide.call_batch(64, (from.into(), Column::Same(round)), to)
                        .expect("a batch");
                    assert_eq!(read(d, to, 64), [3 * t + round; 64]);
                }
            });
        }
    });
    let code = d.usage().code;
    assert!((1..512).contains(&code), "one loop: {code} bytes");
}

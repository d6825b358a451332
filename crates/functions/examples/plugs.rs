//! The kernel plugins' figures 5 to 8 once more: a null call over the number of its arguments, and what a null
//! function adds to each request of a server.
//!
//!     cargo run --release -p ringfence-functions --example plugs [-- --json FILE]
//!
//! The server is a thread that answers each byte of a connection with a byte; the client is in this process, too.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use ringfence::DomainOptions;
use ringfence_functions::{BuiltIns, Runtime};

#[path = "support/figures.rs"]
mod figures;
use figures::{Figures, Series};

/// Calls in a run, and runs: the shortest counts.
const CALLS: u32 = 100_000;
const RUNS: usize = 31;
/// Requests in a run.
const REQUESTS: usize = 4000;

type Failure = Box<dyn std::error::Error>;

/// Nanoseconds of a call in the shortest run.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let one = |_| {
        let begun = Instant::now();
        (0..CALLS).for_each(|_| call());
        begun.elapsed()
    };
    let best = (0..RUNS).map(one).min().unwrap_or_default();
    best.as_nanos() as f64 / f64::from(CALLS)
}

/// A call with these arguments: by a typed handle, and of a plain function by its pointer.
macro_rules! null_call {
    ($runtime:ident, $($argument:ident)*) => {{
        fn plain($($argument: i64),*) -> i64 {
            $(black_box($argument);)*
            0
        }
        let parameters: &[&str] = &[$(concat!("long ", stringify!($argument))),*];
        let name = format!("null{}", parameters.len());
        let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let func = $runtime.create(&name, &format!("long {name}({list}) {{ return 0; }}"))?;
        let fenced = func.typed::<($(null_call!(@ i64 $argument),)*), i64>()?;
        let pointer: fn($(null_call!(@ i64 $argument)),*) -> i64 = black_box(plain);
        let ours = nanoseconds(|| {
            let _ = black_box(fenced.call($(null_call!(@ 7 $argument)),*));
        });
        let theirs = nanoseconds(|| {
            black_box(pointer($(null_call!(@ 7 $argument)),*));
        });
        (parameters.len() as f64, ours, theirs)
    }};
    (@ $what:tt $argument:ident) => { $what };
}

/// Answers each byte of one connection by a byte, with `plug` in between.
fn serve(listener: &TcpListener, plug: impl Fn()) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut byte = [0];
    while stream.read(&mut byte)? == 1 {
        plug();
        stream.write_all(&byte)?;
    }
    Ok(())
}

/// Microseconds of each request, in order of length.
fn requests(address: std::net::SocketAddr) -> std::io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut byte = [1];
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times.iter().map(Duration::as_secs_f64).map(|s| s * 1e6).collect())
}

/// A run of a server with this plug: microseconds of its requests.
fn served(plug: impl Fn() + Send) -> Result<Vec<f64>, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, plug));
        let times = requests(address)?;
        server.join().map_err(|_| "the server panicked")??;
        Ok(times)
    })
}

/// The middle of some values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn calls(runtime: &Runtime, figures: &mut Figures) -> Result<(), Failure> {
    let found = [
        null_call!(runtime,),
        null_call!(runtime, a),
        null_call!(runtime, a b),
        null_call!(runtime, a b c),
        null_call!(runtime, a b c d),
        null_call!(runtime, a b c d e),
        null_call!(runtime, a b c d e f),
    ];
    let rows = found.map(|(n, ours, theirs)| {
        vec![
            format!("{n}"),
            format!("{ours:.1}"),
            format!("{theirs:.1}"),
            format!("{:.1} ×", ours / theirs),
        ]
    });
    figures.table(
        "null-call-table",
        &[
            "arguments",
            "function from text, ns",
            "plain function by its pointer, ns",
            "ratio",
        ],
        rows.to_vec(),
    );
    figures.chart(
        "null-call",
        [
            "A call of a function that does nothing",
            "arguments",
            "nanoseconds",
        ],
        &[
            Series::new("function from text", found.map(|f| (f.0, f.1))),
            Series::new("plain function", found.map(|f| (f.0, f.2))),
        ],
    );
    Ok(())
}

fn server(runtime: &Runtime, figures: &mut Figures) -> Result<(), Failure> {
    let func = runtime.create("nothing", "void nothing(void) { }")?;
    let fenced = func.typed::<(), ()>()?;
    let plain: fn() = black_box(|| ());
    let ways = ["no function", "plain function", "function from text"];
    let mut found: [[Vec<f64>; 3]; 3] = Default::default();
    // In turns, so that all meet the same machine.
    for _ in 0..9 {
        let runs = [
            served(|| ())?,
            served(plain)?,
            served(|| fenced.call().map(drop).expect("it does nothing"))?,
        ];
        for (found, times) in found.iter_mut().zip(&runs) {
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let values = [mean, times[times.len() / 2], 1e6 / mean];
            found
                .iter_mut()
                .zip(values)
                .for_each(|(list, value)| list.push(value));
        }
    }
    let rows = ways.iter().zip(found).map(|(way, values)| {
        let [mean, middle, rate] = values.map(median);
        vec![
            (*way).to_owned(),
            format!("{mean:.2}"),
            format!("{middle:.2}"),
            format!("{rate:.0}"),
        ]
    });
    figures.table(
        "null-server",
        &[
            "server with",
            "mean latency, µs",
            "median latency, µs",
            "requests/s",
        ],
        rows.collect(),
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let runtime = Runtime::new(BuiltIns::new(), &DomainOptions::default())?;
    let mut figures = Figures::default();
    calls(&runtime, &mut figures)?;
    server(&runtime, &mut figures)?;
    figures.end()
}

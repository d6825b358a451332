//! A module called from Rust: `cargo run --example readme -- basic.rf`

use ringfence::{Domain, Error, Imports, Module};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "basic.rf".into());
    let imports = Imports::new()
        .func("host_add", |a: i32, b: i32| a.wrapping_add(b))
        .func("host_mix", |a: i32, x: f64, b: i64, y: f32| {
            f64::from(a) + x + b as f64 + f64::from(y)
        })
        .func("host_eight", |a: i64, b: i64| a + b)
        .func("host_note", |_text: u64, _length: u64| ());
    let domain = Domain::new(&Module::open(path)?, imports)?;

    let add = domain.func::<(i32, i32), i32>("add")?;
    println!("2 + 3 = {}", add.call(2, 3)?.within(0..=10)?);

    let divide = domain.func::<(i32, i32), i32>("divide")?;
    match divide.call(1, 0) {
        Ok(_) => println!("impossible"),
        Err(error) => println!("{error}"), // would have killed the process
    }

    domain.reset()?;
    println!("7 / 2 = {}", divide.call(7, 2)?.into_inner_unchecked());
    Ok(())
}

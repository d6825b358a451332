//! A module called from Rust: `cargo run --example readme -- readme.rf`

use ringfence::{Error, Imports, Module};

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "readme.rf".into());
    let domain = Module::open(path)?.instantiate(Imports::new())?;

    let add = domain.func::<(i32, i32), i32>("add")?;
    println!("2 + 3 = {}", add.call(2, 3)?.within(0..=10)?);

    let divide = domain.func::<(i32, i32), i32>("divide")?;
    if let Err(error) = divide.call(1, 0) {
        println!("{error}"); // would have killed the process
    }

    domain.reset()?;
    println!("7 / 2 = {}", divide.call(7, 2)?.into_inner_unchecked());
    Ok(())
}

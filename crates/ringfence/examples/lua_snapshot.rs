//! Lua states that start warm: `cargo run --release --example lua_snapshot -- build/modules/lua.rf`
//! (`modules/make.sh build lua` makes it).
//!
//! The same state, with libraries loaded and a script compiled and run, three ways: made anew, returned to by a reset, and
//! taken from a snapshot into new domains. Every answer is checked.

use std::time::Instant;

use ringfence::{Domain, Error, Imports, Module, Pool, Ptr, Snapshot, SnapshotError};

/// Defines what requests call, and a table that takes a while to build. A generator that was seeded with the time could not be in
/// a snapshot.
const SCRIPT: &str = "math.randomseed(1) local t = {} for i = 1, 2000 do t['key' .. i] = i end count = 0 \
    function request(n) count = count + 1 return t['key' .. n] * 2 + count end";

type L = Ptr<()>;

/// Lua with its libraries and the script; where the state is, is the value of the function.
fn warm(lua: &Domain) -> Result<L, Error> {
    let state: L = lua.func::<(), L>("luaL_newstate")?.call()?.into();
    lua.func::<(L,), ()>("luaL_openlibs")?.call(state)?;
    run(lua, state, SCRIPT)?;
    Ok(state)
}

/// Compiles and runs a chunk, and leaves what it returns.
fn run(lua: &Domain, state: L, chunk: &str) -> Result<(), Error> {
    let text = lua.memory().put_c_string(chunk)?;
    let loaded = lua
        .func::<(L, Ptr<u8>), i32>("luaL_loadstring")?
        .call(state, text.ptr())?;
    assert_eq!(loaded, 0, "the chunk compiles");
    let called = lua
        .func::<(L, i32, i32, i32, i64, u64), i32>("lua_pcallk")?
        .call(state, 0, 1, 0, 0, 0)?;
    assert_eq!(called, 0, "the chunk runs");
    Ok(())
}

/// One request: 2 × 1234 and how many there have been.
fn request(lua: &Domain, state: L) -> Result<i64, Error> {
    run(lua, state, "return request(1234)")?;
    let answer = lua
        .func::<(L, i32, u64), i64>("lua_tointegerx")?
        .call(state, -1, 0)?;
    Ok(answer.into_inner_unchecked())
}

fn median(mut f: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut times = Vec::new();
    for _ in 0..41 {
        let start = Instant::now();
        f()?;
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[20])
}

fn main() -> Result<(), Error> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "build/modules/lua.rf".into());
    let module = Module::open(path)?;
    let make = || module.instantiate(Imports::new());

    let anew = median(|| {
        let lua = make()?;
        let state = warm(&lua)?;
        assert_eq!(request(&lua, state)?, 2469);
        Ok(())
    })?;
    println!("made anew, one request, dropped     {anew:9.1} us");

    let lua = make()?;
    let state = warm(&lua)?;
    lua.checkpoint()?;
    let reset = median(|| {
        assert_eq!(request(&lua, state)?, 2469);
        assert_eq!(request(&lua, state)?, 2470);
        Ok(lua.reset()?)
    })?;
    println!("snapshot: two requests, reset       {reset:9.1} us");
    let alone = median(|| Ok(lua.reset()?))?;
    println!("snapshot: reset alone               {alone:9.1} us");

    // Lua seeds its hashes with addresses and the time, unless it is built with another luai_makeseed: two runs differ, and the
    // snapshot is refused rather than guessed.
    let snapshot = match Snapshot::new(make, |lua| warm(lua).map(drop)) {
        Ok(snapshot) => snapshot,
        Err(e @ SnapshotError::Differs { .. }) => {
            println!("snapshot: refused: {e}");
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    };
    println!("snapshot: {snapshot:?}");
    // The windows differ, the offset in them does not.
    let offset = state.address() & 0xFFFF_FFFF;
    let at = |lua: &Domain| Ptr::from_address(lua.memory().base() + offset);
    let fresh = median(|| {
        let lua = snapshot.instantiate(Imports::new())?;
        assert_eq!(request(&lua, at(&lua))?, 2469);
        Ok(())
    })?;
    println!("snapshot: made, one request, dropped   {fresh:9.1} us");
    let pool = Pool::from_snapshot(4, snapshot.clone(), Imports::new);
    let pooled = median(|| {
        let lua = pool.take()?;
        assert_eq!(request(&lua, at(&lua))?, 2469);
        Ok(())
    })?;
    println!("pool of the snapshot: take, one request, give back {pooled:9.1} us");
    let many: Vec<Domain> = (0..50)
        .map(|_| snapshot.instantiate(Imports::new()))
        .collect::<Result<_, _>>()?;
    for lua in &many {
        assert_eq!(request(lua, at(lua))?, 2469);
        assert_eq!(request(lua, at(lua))?, 2470);
    }
    println!("50 domains of the snapshot, each with a state of its own");
    Ok(())
}

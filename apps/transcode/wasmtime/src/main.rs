//! The image server with Wasmtime in the place of the fence: what `apps/transcode/bench.py` compares with.
//!
//! All sources but `codec` are the server's own, so that both differ in nothing else. `apps/transcode/wasmtime/build.sh` makes the
//! module: the same libraries as WebAssembly, without assembly, for that has none. Functions do not come as text; the standard ones
//! are part of the module, as with `--backend process`.

#![allow(dead_code)] // what serves domains has nobody to call it here
#![allow(unreachable_pub)] // parts of a library
#![allow(missing_docs)]

#[path = "../../src/clients.rs"]
mod clients;
mod codec;
#[path = "../../src/failure.rs"]
mod failure;
#[path = "../../src/input.rs"]
mod input;
#[path = "../../src/metrics.rs"]
mod metrics;
#[path = "../../src/options.rs"]
mod options;
#[path = "../../src/output.rs"]
mod output;
#[path = "../../src/picture.rs"]
mod picture;
#[path = "../../src/prelude.rs"]
mod prelude;
#[path = "../../src/request.rs"]
mod request;
#[path = "../../src/server.rs"]
mod server;
#[path = "../../src/store.rs"]
mod store;
#[path = "../../src/turns.rs"]
mod turns;
#[path = "../../src/work.rs"]
mod work;

use std::process::ExitCode;

use clap::Parser;
pub use options::Options;
pub use server::{Server, StartError};

fn main() -> ExitCode {
    let options = Options::parse();
    match Server::start(&options) {
        Ok(server) => {
            println!("listening on http://{}", server.address());
            server.run_until_signal();
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("ringfence-transcode-wasmtime: {e}");
            ExitCode::FAILURE
        }
    }
}

//! `ringfence-transcode`: see `--help` and `docs/transcode.md`.

use std::process::ExitCode;

use clap::Parser;
use ringfence_transcode::{Options, Server};

fn main() -> ExitCode {
    let options = Options::parse();
    match Server::start(&options) {
        Ok(server) => {
            println!("listening on http://{}", server.address());
            server.run_until_signal();
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("ringfence-transcode: {e}");
            ExitCode::FAILURE
        }
    }
}

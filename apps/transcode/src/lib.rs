//! An image server whose decoders, encoders and clients' functions run fenced. `docs/transcode.md` tells how to use it.
//!
//! A picture's way: `server` takes the request, `request` reads what is asked for, `work` leads the picture through `codec` (a pooled
//! domain with the libraries) and through `clients` (a runtime of the client's own, with its functions), and `output` sends what comes.

#![forbid(unsafe_code)]

mod clients;
mod codec;
mod failure;
mod input;
mod metrics;
mod options;
mod output;
mod picture;
mod prelude;
mod request;
mod server;
mod store;
mod turns;
mod work;

pub use options::Options;
pub use server::{Server, StartError};

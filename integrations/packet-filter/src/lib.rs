//! Packet filters as fenced native code.
//!
//! An [`Engine`] makes [`Filter`]s: of expressions as `tcpdump` takes them, and of functions in C that may keep state. A filter
//! looks at many packets in one crossing: they are put into a [`Batch`], which any number of filters may then run over.
//! `docs/packet-filter.md` tells more.
//!
//! ```
//! use ringfence_packet_filter::{Engine, ETHERNET};
//!
//! let engine = Engine::new(&Default::default())?;
//! let arp = engine.function("int filter(const unsigned char *p, unsigned n, unsigned wire) {
//!     return n >= 14 && p[12] == 8 && p[13] == 6;
//! }")?;
//! let mut batch = engine.batch();
//! batch.push(&[0; 60], 60);
//! batch.push(&[&[0; 12][..], &[8, 6], &[0; 28]].concat(), 42);
//! assert_eq!(arp.run(&mut batch)?, [1]);
//! # let _ = ETHERNET;
//! # Ok::<(), ringfence_packet_filter::FilterError>(())
//! ```

#![deny(missing_docs)]

mod batch;
mod blocks;
mod bpf;
pub mod capture;
mod facts;
mod filter;
pub mod live;
pub mod pcap;
mod translate;

pub use batch::Batch;
pub use bpf::{BadProgram, Raw};
pub use filter::{ETHERNET, Engine, Filter, FilterError, RAW_IP};

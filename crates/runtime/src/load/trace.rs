//! Backtraces: addresses, and names that are looked up when somebody asks.

use crate::load::module::Module;
use crate::load::symbolize;
use ringfence_core::{Exceeded, Frame};
use std::sync::{Arc, OnceLock};

/// Backtraces stop after so many frames, inlined ones included.
pub(crate) const MOST_FRAMES: usize = 64;

/// Different modules in one backtrace; frames in further ones have addresses only.
pub(crate) const MOST_MODULES: usize = 8;

/// Where the modules were, and addresses: names are looked up when somebody asks.
pub(crate) struct Trace {
    /// Where the modules were that the addresses are in.
    image: Option<(u64, Module)>,
    more: Vec<(u64, Module)>,
    /// The failed instruction, then return addresses.
    addresses: Vec<u64>,
    /// What somebody has asked for already.
    named: OnceLock<Named>,
}

/// A backtrace with names.
struct Named {
    frames: Vec<Frame>,
    cut: Option<Exceeded>,
}

impl Trace {
    /// The modules that the addresses are in, with where they were: the first, and more, which are rare; and the addresses.
    pub(crate) fn new(image: Option<(u64, Module)>, more: Vec<(u64, Module)>, addresses: Vec<u64>) -> Trace {
        Trace {
            image,
            more,
            addresses,
            named: OnceLock::new(),
        }
    }

    fn named(&self) -> &Named {
        self.named.get_or_init(|| {
            let image_of = |address: u64| {
                self.image.iter().chain(&self.more).find(|(base, module)| {
                    (*base..*base + u64::from(module.0.parsed.image_len)).contains(&address)
                })
            };
            let mut places: Vec<(&Module, Vec<u64>)> = Vec::new();
            // For each address its image, the module's place in `places`, and its own among those of the module.
            let mut parts = Vec::with_capacity(self.addresses.len());
            for (i, &address) in self.addresses.iter().enumerate() {
                parts.push(image_of(address).map(|(base, module)| {
                    // A return address belongs to the call before it.
                    let offset = address - base - u64::from(i > 0);
                    let known = places.iter().position(|(m, _)| Arc::ptr_eq(&m.0, &module.0));
                    let place = known.unwrap_or_else(|| {
                        places.push((module, Vec::new()));
                        places.len() - 1
                    });
                    places[place].1.push(offset);
                    (address - base, place, places[place].1.len() - 1)
                }));
            }
            let (functions, cut) = symbolize::functions(&places);
            let mut frames = Vec::new();
            for (&address, part) in self.addresses.iter().zip(parts) {
                let Some((offset, place, number)) = part else {
                    frames.push(Frame {
                        address,
                        ..Frame::default()
                    });
                    continue;
                };
                for named in &functions[place][number] {
                    frames.push(Frame {
                        address,
                        module: Some(places[place].0.name().into()),
                        offset,
                        function: named.function.clone(),
                        file: named.file.clone(),
                        line: named.line,
                    });
                }
            }
            frames.truncate(MOST_FRAMES);
            Named { frames, cut }
        })
    }
}

impl ringfence_core::Trace for Trace {
    fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    fn frames(&self) -> Vec<Frame> {
        self.named().frames.clone()
    }

    fn cut(&self) -> Option<Exceeded> {
        self.named().cut
    }
}

//! Where texts lie in a runtime, to tell of a fault in which function and line of its text it was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringfence::{Fault, Frame, Trace};
use ringfence_text::Compiled;

/// What frames of a text have as their file.
pub const FILE: &str = "text";

/// Texts by the addresses of their code.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<BTreeMap<u64, Arc<Compiled>>>>);

impl Places {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Compiled>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, code: u64, compiled: &Arc<Compiled>) {
        self.lock().insert(code, compiled.clone());
    }

    pub(crate) fn remove(&self, code: u64) {
        self.lock().remove(&code);
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// The fault, with functions and lines of texts in its frames.
    pub(crate) fn named(&self, fault: &Fault) -> Fault {
        let texts = self.lock();
        let of = |(i, &address): (usize, &u64)| {
            let (code, compiled) = texts.range(..=address).next_back()?;
            // A return address belongs to the call before it.
            let offset = u32::try_from((address - code).checked_sub(u64::from(i > 0))?).ok()?;
            ((offset as usize) < compiled.code.len()).then(|| (address, offset, compiled.clone()))
        };
        let known = fault.addresses().iter().enumerate().filter_map(of).collect();
        let trace = Named {
            fault: fault.clone(),
            known,
        };
        Fault::new(
            fault.kind.clone(),
            fault.registers,
            fault.domain.clone(),
            Arc::new(trace),
        )
    }
}

/// A fault's frames, and which of them are in texts, at which offsets of their code. They are looked up when somebody asks.
struct Named {
    fault: Fault,
    known: Vec<(u64, u32, Arc<Compiled>)>,
}

impl Trace for Named {
    fn addresses(&self) -> &[u64] {
        self.fault.addresses()
    }

    fn frames(&self) -> Vec<Frame> {
        let mut frames = self.fault.backtrace();
        for frame in &mut frames {
            let known = self.known.iter().find(|known| known.0 == frame.address);
            let place = known.and_then(|(_, offset, compiled)| compiled.place(*offset));
            if let Some(place) = place {
                frame.function = Some(place.function);
                frame.file = Some(FILE.to_owned());
                frame.line = Some(place.line);
            }
        }
        frames
    }

    fn cut(&self) -> Option<ringfence::Exceeded> {
        self.fault.cut()
    }
}

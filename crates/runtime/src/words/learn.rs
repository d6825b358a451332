//! Learning a policy from a run: whatever a domain touches of its arena is allowed and noted.

use super::calls::View;
use super::{Arena, Attached};
use crate::lanes::learn::Learning;
use ringfence_core::WordsError;
use ringfence_words::policy::Policy;
use ringfence_words::policy::learn::Recorder;

/// A domain that is denied nothing of its arena, and what its calls touch. One at a time in a process: it is for finding out, not for use.
pub struct Learner {
    arena: Arena,
    learning: Learning,
    recorder: Recorder,
    /// Accesses for which there was no room.
    lost: u64,
}

impl Attached {
    pub(crate) fn learn(&self, signatures: Policy, wait: bool) -> Option<Learner> {
        Some(Learner {
            arena: self.arena.clone(),
            learning: Learning::new(self.view.base, self.arena.0.len.into(), wait)?,
            recorder: Recorder::new(signatures),
            lost: 0,
        })
    }
}

impl Learner {
    /// Makes a call of `function` with these arguments, which `call` is, and notes what it touched. What leads to it is looked for when the
    /// call has ended: pointers that it has changed by then lead elsewhere.
    pub fn call<T>(&mut self, function: &str, arguments: &[u64], call: impl FnOnce() -> T) -> T {
        // What was not in a call.
        self.learning.take();
        let result = call();
        let (touched, lost) = self.learning.take();
        self.lost += lost;
        let state = self.arena.0.state.lock();
        let view = View {
            shared: &self.arena.0,
            state: &state,
        };
        self.recorder.begin(function, arguments);
        for access in touched {
            let address = self.arena.0.host + u64::from(access.at);
            self.recorder
                .access(address, access.len.into(), access.write, &view);
        }
        self.recorder.end();
        result
    }

    /// The policy that the calls needed: a line for each function.
    ///
    /// # Errors
    /// [`WordsError::Policy`]: calls made more different accesses than are noted (65,536 each).
    pub fn text(&self) -> Result<String, WordsError> {
        match self.lost {
            0 => Ok(self.recorder.text()),
            lost => Err(WordsError::Policy(format!(
                "{lost} accesses were not noted: let calls that learn touch less"
            ))),
        }
    }
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner")
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

//! The records of `setjmp` that a lane has. What makes and uses them is in `gates::jump`.

/// What `longjmp` restores.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    /// What stands in the domain's `jmp_buf`.
    pub id: u64,
    /// Low half of the `jmp_buf`'s address.
    pub buffer: u32,
    /// The call in that it belongs to.
    pub host_sp: u64,
    /// The control stack pointer after `setjmp` has returned.
    pub rsp: u64,
    /// Where `setjmp` returns to.
    pub rip: u64,
    /// Where the calling function's return address stands, and what it was.
    pub place: u64,
    pub original: u64,
    /// `rbx rbp r12 r13 r15`.
    pub saved: [u64; 5],
}

/// So many need no memory when they are made: those of a signal handler's calls, which cannot have any.
const AHEAD: usize = 8;

/// The records of a lane, those of outer frames first.
pub(crate) struct Records {
    pub list: Vec<Record>,
    pub next: u64,
}

impl Records {
    /// None, and room for some.
    pub(crate) fn new() -> Records {
        Records {
            list: Vec::with_capacity(AHEAD),
            next: 0,
        }
    }

    /// Whether another one needs memory.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() == self.list.capacity()
    }

    /// Forgets everything: the frames are gone.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    /// The return address that a hook stands for.
    pub(crate) fn original(&self, place: u64) -> Option<u64> {
        // In order of places, which fall: `setjmp` drops all records below the new one's.
        let after = self.list.partition_point(|r| r.place >= place);
        let last = self.list[..after].last().filter(|r| r.place == place)?;
        Some(last.original)
    }

    /// Whether any record leads to an address of a kind: a `longjmp`, or a return that the hook stands for.
    pub(crate) fn mention(&self, kind: impl Fn(u64) -> bool) -> bool {
        self.list.iter().any(|r| kind(r.rip) || kind(r.original))
    }

    /// The hooked places among the words from `low` up to `high`, with what stood there.
    pub(crate) fn hooked(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64)> {
        self.list
            .iter()
            .filter(move |r| (low..high).contains(&r.place))
            .map(|r| (r.place, r.original))
    }

    /// Drops the records of all frames below the one whose return address stands at `place`: they are left.
    pub(crate) fn leave_below(&mut self, place: u64) {
        // Where their return addresses stood may now count as words that the remaining frame has pushed (it may have been
        // deeper then than when it called them): no hook, which is an address of the host's, is left there, and no record
        // that a value pushed in its place could bring back to life.
        for dead in self.list.iter().filter(|r| r.place < place) {
            // SAFETY: between the present stack pointer and the remaining frame, on the lane's control stack.
            unsafe { (dead.place as *mut u64).write(0) };
        }
        self.list.retain(|r| r.place >= place);
    }
}

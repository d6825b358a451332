//! The walk over a function's control-flow graph: one state for each instruction.

use crate::check;
use crate::func::{Function, Mark};
use crate::insn::{Class, direct};
use crate::state::{Mode, State};
use crate::step::{Fail, Step};

/// What the walk found.
pub(crate) struct Walk {
    pub mode: Mode,
    /// The state in front of each instruction; none where control does not come.
    pub states: Vec<Option<State>>,
    /// Calls and other instructions behind which control must not go on.
    pub cut: Vec<bool>,
}

/// A failure and the instruction it happened at.
pub(crate) struct At(pub u32, pub Fail);

/// Finds the first mode in which the function can be rewritten.
pub(crate) fn walk(f: &Function<'_>, handwritten: bool) -> Result<Walk, At> {
    let mut last = None;
    for mode in [Mode::NoData, Mode::Lazy, Mode::Mirror, Mode::AllData] {
        match (Walker {
            step: Step { f, mode, handwritten },
        })
        .run()
        {
            Ok(w) => return Ok(w),
            Err(e) if e.1.retry => last = Some(e),
            Err(e) => return Err(e),
        }
    }
    Err(last.unwrap_or_else(|| {
        At(
            0,
            Fail {
                reason: "no mode fits".to_owned(),
                advice: String::new(),
                retry: false,
            },
        )
    }))
}

struct Walker<'f, 'a> {
    step: Step<'f, 'a>,
}

struct Queue<'f, 'a> {
    f: &'f Function<'a>,
    states: Vec<Option<State>>,
    work: Vec<u32>,
}

impl Queue<'_, '_> {
    fn reach(&mut self, from: u32, to: u32, st: &State) -> Result<(), At> {
        let Some(slot) = self.states.get_mut(to as usize) else {
            return Ok(());
        };
        match slot {
            None => {
                *slot = Some(*st);
                self.work.push(to);
            }
            Some(old) => match old.join(st, self.f.row(to)) {
                Some(new) if new == *old => {}
                Some(new) => {
                    *slot = Some(new);
                    self.work.push(to);
                }
                None => {
                    return Err(At(
                        from,
                        Fail {
                            reason: "two ways to one instruction disagree about the stack".to_owned(),
                            advice: "rewrite the function without it".to_owned(),
                            retry: true,
                        },
                    ));
                }
            },
        }
        Ok(())
    }
}

impl Walker<'_, '_> {
    fn run(&self) -> Result<Walk, At> {
        let f = self.step.f;
        let n = f.codes.len();
        let mut q = Queue {
            f,
            states: vec![None; n],
            work: Vec::new(),
        };
        let mut cut = vec![false; n];
        if n > 0 {
            q.states[0] = Some(State::entry());
            q.work.push(0);
        }
        while let Some(mut i) = q.work.pop() {
            // Straight on as long as nobody has been there.
            while let Some(mut st) = q.states[i as usize] {
                self.step.take(i, &mut st, None).map_err(|e| At(i, e))?;
                let code = &f.codes[i as usize];
                match code.class {
                    Class::Jmp | Class::Jcc => self.edges(i, &st, &mut q)?,
                    Class::Call => {
                        if let Some(pad) = code.pad.and_then(|p| f.find(p, i)) {
                            q.reach(i, pad, &self.unwound(i, &st))?;
                        }
                    }
                    _ => {}
                }
                if !f.falls_through(i) {
                    break;
                }
                let next = i + 1;
                let ends = next as usize >= n;
                // gcc changes the row behind a call only if the call does not return.
                if ends || code.class == Class::Call && f.row_after(i) != f.row(i) {
                    cut[i as usize] = true;
                    break;
                }
                if q.states[next as usize].is_none() {
                    q.states[next as usize] = Some(st);
                } else {
                    q.reach(i, next, &st)?;
                    break;
                }
                i = next;
            }
        }
        Ok(Walk {
            mode: self.step.mode,
            states: q.states,
            cut,
        })
    }

    fn edges(&self, i: u32, st: &State, q: &mut Queue<'_, '_>) -> Result<(), At> {
        let f = self.step.f;
        let insn = &f.codes[i as usize].insn;
        let Some(op) = insn.ops().first() else {
            return Ok(());
        };
        if let Some(name) = direct(insn.star, op) {
            if let Some(to) = f.find(name, i) {
                q.reach(i, to, st)?;
            }
            return Ok(());
        }
        for to in f.targets(i).unwrap_or_default() {
            if f.marks.get(&to) != Some(&Mark::Label) {
                return Err(At(
                    i,
                    Fail {
                        reason: "an indirect jump to a label without endbr64".to_owned(),
                        advice: "compile with -fcf-protection=branch -mcet-switch, or mark the label"
                            .to_owned(),
                        retry: false,
                    },
                ));
            }
            if check::flags_wanted(f, to) {
                return Err(At(
                    i,
                    Fail {
                        reason: check::FLAGS_LOST.to_owned(),
                        advice: "compile with -fno-crossjumping, or compare behind the jump".to_owned(),
                        retry: false,
                    },
                ));
            }
            q.reach(i, to, st)?;
        }
        Ok(())
    }

    /// The state at a landing pad: outgoing arguments are gone.
    fn unwound(&self, i: u32, st: &State) -> State {
        let args = self.step.f.codes[i as usize].args;
        let mut pad = *st;
        if let Some((s, _)) = st.sp {
            pad.sp = Some((s - args, self.step.mode.distance(s - args, st.ctl)));
        }
        pad
    }
}

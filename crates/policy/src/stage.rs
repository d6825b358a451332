//! Objects of the host's, for the kernel to read or fill: copies, since it does not know the domain's rights to words.

use crate::memory::{Memory, zeroed};
use crate::slices::{SLICE, total};
use crate::span::Span;
use crate::sys::Outcome;

/// What the kernel reads or fills, where some of it is copied.
pub struct Stage<'a> {
    memory: Memory<'a>,
    spans: Vec<Span>,
    /// In the spans' order, those that are copies: of what, and the bytes.
    copies: Vec<(Span, Vec<u8>)>,
    fills: bool,
}

impl<'a> Stage<'a> {
    /// Copies what is foreign, up to where the domain's rights end. All of it together is a slice at most.
    pub fn new(memory: Memory<'a>, spans: Vec<Span>, fills: bool) -> Outcome<Stage<'a>> {
        let mut stage = Stage {
            memory,
            spans: Vec::new(),
            copies: Vec::new(),
            fills,
        };
        if !spans.iter().any(|span| span.is_foreign()) {
            stage.spans = spans;
            return Ok(stage);
        }
        let (mut left, wanted) = (SLICE, total(&spans));
        for span in spans {
            if !span.is_foreign() {
                stage.spans.push(span);
                continue;
            }
            left = left.checked_sub(span.len()).ok_or(libc::EMSGSIZE)?;
            let part = memory.reached(span, fills);
            let mut bytes = match fills {
                true => zeroed(part.len() as usize)?,
                false => memory.get_bytes(part.address(), part.len() as usize)?,
            };
            stage
                .spans
                .push(Span::checked(bytes.as_mut_ptr() as u64, part.len()));
            stage.copies.push((part, bytes));
            if part.len() < span.len() {
                break;
            }
        }
        if wanted > 0 && total(&stage.spans) == 0 {
            return Err(libc::EFAULT);
        }
        Ok(stage)
    }

    /// What the kernel is given.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The kernel has moved so many bytes: what it has filled goes where it belongs.
    pub fn moved(self, n: i64) -> Outcome<()> {
        if !self.fills {
            return Ok(());
        }
        let mut left = n as u64;
        let mut copies = self.copies.into_iter().peekable();
        for span in self.spans {
            let filled = span.len().min(left);
            left -= filled;
            let copy = copies.next_if(|(_, bytes)| bytes.as_ptr() as u64 == span.address());
            if let Some((part, bytes)) = copy {
                self.memory.put(part.address(), &bytes[..filled as usize])?;
            }
        }
        Ok(())
    }
}

//! How what the verifier says reads. Nothing here is part of a verdict.

use crate::reason::{Reason, Rule};
use crate::report::{CodeBytes, RegSet, Rejected, Rejection};
use core::fmt;

impl fmt::Debug for RegSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 16] = [
            "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
            "r14", "r15",
        ];
        f.debug_set()
            .entries(
                NAMES
                    .iter()
                    .zip(0u8..)
                    .filter(|(_, n)| self.contains(*n))
                    .map(|(name, _)| name),
            )
            .finish()
    }
}

impl fmt::Debug for CodeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.as_slice().iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:#x}: {}: {} [{:?}]",
            self.offset, self.rule, self.reason, self.bytes
        )
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rejections.first() {
            None => f.write_str("the verifier rejects the code"),
            Some(first) if self.rejections.len() == 1 => write!(f, "the verifier rejects the code: {first}"),
            Some(first) => {
                let more = self.rejections.len() - 1;
                let least = if self.truncated { "at least " } else { "" };
                write!(
                    f,
                    "the verifier rejects the code: {first} (and {least}{more} more)"
                )
            }
        }
    }
}

impl core::error::Error for Rejected {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}", self.0)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

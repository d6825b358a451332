//! The block of thread-local variables that each lane has in the window.

use super::{ABOVE_THREAD_POINTER, DomainOptions, Inner};
use crate::domain::relocate;
use crate::lanes::lane::{Berth, Shape};
use crate::os::looks::Looks;
use crate::os::{guarded, sys};
use ringfence_core::error::HostError;

impl Inner {
    pub(super) fn thread_pointer_offset(&self) -> u64 {
        thread_pointer_offset(&self.layout, &self.options)
    }

    /// Size of the part of a berth that is mapped for the thread block.
    pub(crate) fn thread_area(&self) -> u64 {
        thread_area(&self.layout, &self.options)
    }

    /// Where the domain's lanes are, and how large.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            base: self.base(),
            control_stack: self.options.control_stack,
            data_stack: self.options.data_stack,
            thread_area: self.thread_area(),
        }
    }

    /// Makes a lane's stacks and thread block as good as new; those of a fresh berth need no look. Nobody is in the lane; with the world locked.
    pub(crate) fn refresh(&self, berth: &Berth, used: Option<&mut Looks>) -> Result<(), HostError> {
        if let Some(looks) = used {
            berth.zero(&self.shape(), looks)?;
        }
        self.write_thread_block(berth.start(self.base()));
        Ok(())
    }

    /// Fills a fresh thread block at a berth's start. With the world locked.
    pub(crate) fn write_thread_block(&self, start: u64) {
        if !self.copy_thread_block(start) {
            let tp = start + self.thread_pointer_offset();
            let put = |at: u64, value: u64| {
                // SAFETY: in the lane's own pages, which are mapped writable.
                let _ = unsafe { guarded::copy(at as *mut u8, (&raw const value).cast(), 8) };
            };
            put(start, tp);
            put(tp, tp);
            for p in &self.layout.placed {
                self.write_thread_local(p, start);
            }
        }
        // SAFETY: the world is locked.
        for p in unsafe { self.added.iter() } {
            self.write_thread_local(p, start);
        }
    }

    /// Fills the part of a thread block that belongs to one module.
    pub(super) fn write_thread_local(&self, p: &relocate::Placed, start: u64) {
        let Some(tls) = p.module.0.parsed.tls else { return };
        let to = start + self.thread_pointer_offset() - u64::from(p.tls);
        let from = self.base() + u64::from(p.offset) + u64::from(tls.start);
        // SAFETY: from the module's own data to the lane's own pages, both in our window; the rest of the block is zeroed.
        unsafe {
            let _ = guarded::copy(to as *mut u8, from as *const u8, tls.file_len as usize);
            let rest = (tls.len - tls.file_len) as usize;
            let _ = guarded::fill((to + u64::from(tls.file_len)) as *mut u8, 0, rest);
        }
    }
}

/// From a berth's start to the thread pointer.
pub(super) fn thread_pointer_offset(layout: &relocate::Layout, options: &DomainOptions) -> u64 {
    let align = u64::from(layout.tls_align).max(64);
    let len = layout.tls_len + options.thread_local_room();
    (8 + u64::from(len)).next_multiple_of(align)
}

pub(super) fn thread_area(layout: &relocate::Layout, options: &DomainOptions) -> u64 {
    sys::page_up(thread_pointer_offset(layout, options) + ABOVE_THREAD_POINTER)
}

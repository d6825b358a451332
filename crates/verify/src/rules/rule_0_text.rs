//! Rule 0: where text and segments may lie.

use crate::image::{Image, Segment, SegmentKind};
use crate::notes::NoMemory;
use crate::reason::Reason;
use crate::rejections::Rejections;
use alloc::vec::Vec;
use ringfence_isa::window;

/// Length of the part of a window where images are.
const AREA: u64 = (window::IMAGES_END - window::IMAGES) as u64;

/// The text must start on a page and fit the part of a window where images are.
pub(crate) fn place(image: &Image, rejections: &mut Rejections) {
    if !u64::from(image.text_address).is_multiple_of(ringfence_isa::PAGE) {
        rejections.add(image, 0, 0, Reason::TextMisplaced);
    }
    if u64::from(image.text_address) + image.text.len() as u64 > AREA {
        rejections.add(image, 0, 0, Reason::TextTooLarge);
    }
}

/// The segments must not overlap, and only text may lie where the text is: rule 1 relies on it. Returns them sorted by start, without
/// the empty ones.
pub(crate) fn layout(image: &Image, rejections: &mut Rejections) -> Result<Vec<Segment>, NoMemory> {
    let mut segments = Vec::new();
    segments
        .try_reserve_exact(image.segments.len())
        .map_err(|_| NoMemory)?;
    segments.extend(image.segments.iter().filter(|s| s.len != 0));
    segments.sort_unstable_by_key(|s: &Segment| s.start);
    let text = u64::from(image.text_address);
    let text_end = text + image.text.len() as u64;
    let mut end = 0;
    let mut fits = true;
    for s in &segments {
        let (start, next) = (u64::from(s.start), u64::from(s.start) + u64::from(s.len));
        let hits_text = start < text_end && text < next;
        fits &= end <= start && next <= AREA && (s.kind == SegmentKind::Text || !hits_text);
        end = next;
    }
    if !fits {
        rejections.add(image, 0, 0, Reason::Segments);
    }
    Ok(segments)
}

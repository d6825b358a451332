//! What a domain asks of whoever keeps regions, which stands above domains and names itself here.

use std::sync::OnceLock;

/// What is known of a window, by its base.
pub(crate) struct Keeper {
    /// The window's domain goes, or is recycled: its rights, regions and groups go.
    pub forget: fn(u64),
    /// Whether it has rights to any region.
    pub has_rights: fn(u64) -> bool,
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// Names the keeper, before it gives anybody a right.
pub(crate) fn keep(keeper: Keeper) {
    let _ = KEEPER.set(keeper);
}

/// See [`Keeper::forget`].
pub(super) fn forget(base: u64) {
    if let Some(keeper) = KEEPER.get() {
        (keeper.forget)(base);
    }
}

/// See [`Keeper::has_rights`].
pub(super) fn has_rights(base: u64) -> bool {
    KEEPER.get().is_some_and(|keeper| (keeper.has_rights)(base))
}

//! The names of the layouts that are built in.

use crate::{LAYOUTS, pjrt::Minor};

/// What the names of PJRT's layouts begin with; the version follows.
const PJRT: &str = "pjrt-";

/// The minor of the layout of that name: `pjrt-0.54`.
pub(super) fn pjrt_minor(name: &str) -> Option<Minor> {
    name.strip_prefix(PJRT).and_then(Minor::parse).filter(|minor| minor.is_known())
}

/// All names, for people.
pub(super) fn names() -> String {
    let names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
    format!("{}, {PJRT}{} to {PJRT}{}", names.join(", "), Minor::OLDEST, Minor::NEWEST)
}

//! Generated from `crates/releases/data/jaxlib.json` by `cargo xtask releases`; never edit it.

#[rustfmt::skip]
use super::{
    Deserializer::{Expiring, Leaves, Named, NamedWithDevice, Numbered, Tables, Unnumbered},
    DeviceField::{Both, Short, Wide},
    Release,
    table::row,
};

/// Every release that is known, the oldest first.
#[rustfmt::skip]
pub(super) const RELEASES: &[Release] = &[
    row("0.4.35", (2024, 10, 22), (1, 7, 8), (1, 7, 0), (1, 3, 0), 2, 2, Short, 9, Numbered, 22),
    row("0.6.0", (2025, 4, 17), (1, 10, 4), (1, 9, 5), (1, 8, 8), 2, 2, Short, 9, Numbered, 29),
    row("0.7.0", (2025, 7, 22), (1, 12, 1), (1, 11, 0), (1, 10, 3), 2, 2, Short, 10, Numbered, 29),
    row("0.7.1", (2025, 8, 20), (1, 13, 0), (1, 12, 1), (1, 10, 8), 2, 2, Short, 10, Numbered, 29),
    row("0.7.2", (2025, 9, 16), (1, 13, 0), (1, 12, 1), (1, 10, 9), 2, 2, Short, 10, Numbered, 29),
    row("0.8.0", (2025, 10, 15), (1, 13, 1), (1, 12, 1), (1, 10, 9), 2, 2, Short, 10, Numbered, 29),
    row("0.8.1", (2025, 11, 18), (1, 13, 3), (1, 13, 0), (1, 12, 1), 2, 2, Short, 10, Numbered, 29),
    row("0.8.2", (2025, 12, 18), (1, 13, 5), (1, 13, 1), (1, 13, 0), 5, 3, Both, 10, Unnumbered, 29),
    row("0.8.3", (2026, 1, 29), (1, 13, 5), (1, 13, 1), (1, 13, 0), 5, 3, Both, 10, Unnumbered, 29),
    row("0.9.0", (2026, 1, 20), (1, 13, 7), (1, 13, 4), (1, 13, 0), 6, 3, Both, 10, Named, 29),
    row("0.9.0.1", (2026, 2, 5), (1, 13, 7), (1, 13, 4), (1, 13, 0), 6, 3, Both, 10, Named, 29),
    row("0.9.1", (2026, 3, 2), (1, 13, 8), (1, 13, 4), (1, 13, 1), 6, 3, Wide, 10, Named, 29),
    row("0.9.2", (2026, 3, 18), (1, 14, 0), (1, 13, 7), (1, 13, 4), 8, 3, Wide, 10, NamedWithDevice, 29),
    row("0.10.0", (2026, 4, 16), (1, 16, 0), (1, 13, 9), (1, 13, 7), 10, 3, Wide, 10, Tables, 29),
    row("0.10.1", (2026, 5, 20), (1, 17, 0), (1, 14, 1), (1, 13, 7), 11, 3, Wide, 10, Leaves, 29),
    row("0.10.2", (2026, 6, 17), (1, 17, 0), (1, 15, 0), (1, 13, 7), 11, 3, Wide, 10, Leaves, 29),
    row("0.11.0", (2026, 7, 16), (1, 18, 0), (1, 16, 1), (1, 14, 0), 11, 3, Wide, 10, Leaves, 29),
    row("0.11.1", (2026, 8, 17), (1, 19, 0), (1, 16, 3), (1, 15, 0), 12, 12, Wide, 10, Expiring, 29),
    row("0.11.2", (2026, 9, 17), (1, 20, 0), (1, 18, 0), (1, 16, 2), 12, 12, Wide, 10, Expiring, 29),
    row("0.12.0", (2026, 10, 19), (1, 22, 0), (1, 18, 0), (1, 16, 3), 12, 12, Wide, 10, Expiring, 29),
    row("0.12.0.1", (2026, 10, 21), (1, 22, 0), (1, 18, 0), (1, 16, 3), 12, 12, Wide, 10, Expiring, 29),
];

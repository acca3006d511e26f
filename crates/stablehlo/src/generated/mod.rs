//! Generated from `crates/releases/data` by `cargo xtask releases`; never edit it.

use super::{StableHloVersion, clients::ProxyClient};

impl ProxyClient {
    /// Measured clients, oldest first. The version of their programs depends on the client's
    /// release alone, not on the server.
    #[rustfmt::skip]
    pub const KNOWN: &'static [Self] = &[
        Self::new("jaxlib-0.8.0", StableHloVersion::new(1, 10, 9)),
        Self::new("jaxlib-0.9.1", StableHloVersion::new(1, 13, 1)),
        Self::new("jaxlib-0.10.0", StableHloVersion::new(1, 13, 7)),
        Self::new("jaxlib-0.10.2", StableHloVersion::new(1, 13, 7)),
        Self::new("jaxlib-0.11.1", StableHloVersion::new(1, 15, 0)),
        Self::new("jaxlib-0.12.0.1", StableHloVersion::new(1, 16, 3)),
    ];
}

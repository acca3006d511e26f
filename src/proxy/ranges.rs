//! What a side of the proxy speaks.

use std::fmt;

use crate::version::{Ifrt, ProxyProtocol, VersionRange};

/// What a side of the proxy speaks: an inclusive range of each of the two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranges {
    pub(super) protocol: VersionRange<ProxyProtocol>,
    pub(super) serdes: VersionRange<Ifrt>,
}

impl Ranges {
    /// All that this build speaks.
    #[must_use]
    pub fn supported() -> Self {
        Self { protocol: VersionRange::supported(), serdes: VersionRange::supported() }
    }

    /// The same with another range of the protocol.
    #[must_use]
    pub fn with_protocol(self, protocol: VersionRange<ProxyProtocol>) -> Self {
        Self { protocol, ..self }
    }

    /// The same with another range of the IFRT values.
    #[must_use]
    pub fn with_serdes(self, serdes: VersionRange<Ifrt>) -> Self {
        Self { serdes, ..self }
    }

    /// The range of the protocol.
    #[must_use]
    pub const fn protocol(self) -> VersionRange<ProxyProtocol> {
        self.protocol
    }

    /// The range of the IFRT values.
    #[must_use]
    pub const fn serdes(self) -> VersionRange<Ifrt> {
        self.serdes
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Self::supported()
    }
}

/// `protocol 16..25, serdes 0..6`
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {}, serdes {}", self.protocol, self.serdes)
    }
}

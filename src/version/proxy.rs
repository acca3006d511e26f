//! The two lines of the IFRT proxy, which its client and server negotiate together.
//!
//! A session speaks a version of [`ProxyProtocol`] and writes IFRT values at a version of [`Ifrt`].
//! The crate `serdes-proxy` exchanges the ranges over the network; a program with its own transport
//! needs only this module:
//!
//! ```
//! use serdes::version::{VersionRange, proxy::Ranges};
//!
//! let ours = Ranges::supported();
//! // A peer of another build, by the numbers that it sent.
//! let theirs = Ranges::new(VersionRange::try_from((16, 19))?, VersionRange::try_from((0, 4))?);
//! let agreement = ours.negotiate(theirs)?;
//! assert_eq!((agreement.protocol().number(), agreement.serdes().number()), (19, 4));
//!
//! let older = theirs.with_protocol(VersionRange::try_from((3, 15))?);
//! assert_eq!(
//!     ours.negotiate(older).unwrap_err().to_string(),
//!     "no common proxy_protocol version: ours is 16..25, theirs is 3..15; upgrade the peer"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use super::{AnyVersionAccessor, Ifrt, NegotiationError, ProxyProtocol, Version, VersionRange};

/// The versions that a side of the proxy speaks: an inclusive range for each of the two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranges {
    protocol: VersionRange<ProxyProtocol>,
    serdes: VersionRange<Ifrt>,
}

impl Ranges {
    /// Creates the pair of a range of protocol versions and a range of versions of IFRT values.
    #[must_use]
    pub const fn new(protocol: VersionRange<ProxyProtocol>, serdes: VersionRange<Ifrt>) -> Self {
        Self { protocol, serdes }
    }

    /// Returns all versions that this build speaks.
    #[must_use]
    pub fn supported() -> Self {
        Self { protocol: VersionRange::supported(), serdes: VersionRange::supported() }
    }

    /// Sets the range of the protocol's versions.
    #[must_use]
    pub const fn with_protocol(self, protocol: VersionRange<ProxyProtocol>) -> Self {
        Self { protocol, ..self }
    }

    /// Sets the range of the versions of IFRT values.
    #[must_use]
    pub const fn with_serdes(self, serdes: VersionRange<Ifrt>) -> Self {
        Self { serdes, ..self }
    }

    /// Returns the range of the protocol.
    #[must_use]
    pub const fn protocol(self) -> VersionRange<ProxyProtocol> {
        self.protocol
    }

    /// Returns the range of the IFRT values.
    #[must_use]
    pub const fn serdes(self) -> VersionRange<Ifrt> {
        self.serdes
    }

    /// Returns the highest version of each line that is in both sides' ranges. Both sides get the
    /// same result.
    ///
    /// # Errors
    /// [`NegotiationError`] for a line without a common version, with both of its ranges; the
    /// protocol is checked first.
    pub fn negotiate(self, theirs: Self) -> Result<Agreement, NegotiationError> {
        Ok(Agreement {
            protocol: AnyVersionAccessor::negotiate(self.protocol, theirs.protocol)?,
            serdes: AnyVersionAccessor::negotiate(self.serdes, theirs.serdes)?,
        })
    }
}

impl Default for Ranges {
    fn default() -> Self {
        Self::supported()
    }
}

/// Formats the ranges as in `protocol 16..25, serdes 0..6`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {}, serdes {}", self.protocol, self.serdes)
    }
}

/// The versions that both sides of a session speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Agreement {
    protocol: Version<ProxyProtocol>,
    serdes: Version<Ifrt>,
}

impl Agreement {
    /// Creates the pair of a protocol version and a version of IFRT values.
    #[must_use]
    pub const fn new(protocol: Version<ProxyProtocol>, serdes: Version<Ifrt>) -> Self {
        Self { protocol, serdes }
    }

    /// Returns the version of the protocol.
    #[must_use]
    pub const fn protocol(self) -> Version<ProxyProtocol> {
        self.protocol
    }

    /// Returns the version at which IFRT values are written.
    #[must_use]
    pub const fn serdes(self) -> Version<Ifrt> {
        self.serdes
    }
}

/// Formats the agreement as in `protocol 25, serdes 6`.
impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (protocol, serdes) = (self.protocol.number(), self.serdes.number());
        write!(f, "protocol {protocol}, serdes {serdes}")
    }
}

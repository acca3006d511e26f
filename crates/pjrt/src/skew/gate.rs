//! The version checks that frameworks make before any other call.

use serdes_abi::pjrt::Minor;

/// A framework's check of a plug-in's version before any other call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Exactly the minor that the framework was built with.
    Equal,
    /// This minor or a later one.
    AtLeast(Minor),
}

/// A version of StableHLO: major, minor and patch number.
pub(super) type StableHlo = [u32; 3];

//! Checks of versions that frameworks do before any other call.

use serdes_abi::pjrt::Minor;

/// A framework's check of a plug-in's version before any other call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The very minor that the framework was built with.
    Equal,
    /// That minor or a later one.
    AtLeast(Minor),
}

/// A version of StableHLO: major, minor and patch number.
pub(super) type StableHlo = [u32; 3];

//! What a framework asks of versions before it calls anything.

use serdes_abi::pjrt::Minor;

/// What a framework demands of a plug-in's version before it calls anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The very minor that the framework was built with.
    Equal,
    /// That minor or a later one.
    AtLeast(Minor),
}

/// A version of StableHLO: major, minor and patch number.
pub(super) type StableHlo = [u32; 3];

//! The kinds of shardings of XLA.

/// The kind of an [`OpSharding`](super::OpSharding) or of one of its subgroups
/// (`xla.OpSharding.Type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum OpShardingType {
    /// Every device holds the whole value.
    #[default]
    Replicated,
    /// One device holds the whole value.
    Maximal,
    /// Each element of a tuple has a sharding of its own.
    Tuple,
    /// The value is cut into tiles.
    Tiled,
    /// The program itself defines the part on each device.
    Manual,
    /// Nothing is known.
    Unknown,
    /// Every device holds a summand of the value.
    Unreduced,
}

impl OpShardingType {
    const ALL: [Self; 7] = [
        Self::Replicated,
        Self::Maximal,
        Self::Tuple,
        Self::Tiled,
        Self::Manual,
        Self::Unknown,
        Self::Unreduced,
    ];

    /// Returns the number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the kind with this number of the wire.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|index| Self::ALL.get(index)).copied()
    }

    /// Returns the kind with this word of the notation of HLO.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the word in the notation of HLO.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replicated => "replicated",
            Self::Maximal => "maximal",
            Self::Tuple => "tuple",
            Self::Tiled => "devices",
            Self::Manual => "manual",
            Self::Unknown => "unknown",
            Self::Unreduced => "unreduced",
        }
    }
}

//! The recorded facts about a release.

use std::{
    cmp::Ordering,
    fmt::{self, Display, Formatter},
};

use super::{Day, StableHlo};

/// The way in which `jax.export.deserialize` of a release reads a file. Each variant includes the
/// ones before it, unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Deserializer {
    /// Up to 0.8.1: accepts serialization versions 2 and 3; 16-bit number of devices.
    Numbered,
    /// From 0.8.2: ignores the serialization version; 32-bit number of devices, memory spaces.
    Unnumbered,
    /// From 0.9.0: shardings with named axes.
    Named,
    /// From 0.9.2: meshes may name a device.
    NamedWithDevice,
    /// From 0.10.0: tables of avals, meshes and shardings.
    Tables,
    /// From 0.10.1: counts the leaves of trees; devices have a platform.
    Leaves,
    /// From 0.11.1: refuses files older than six months.
    Expiring,
}

/// The field of a file that holds the number of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceField {
    /// The 16-bit field.
    Short,
    /// Both fields.
    Both,
    /// The 32-bit field.
    Wide,
}

/// A release of jaxlib, with the jax of the same version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Release {
    /// The version, such as `0.10.2`.
    pub version: &'static str,
    /// The day when it was uploaded to PyPI.
    pub day: Day,
    /// Its version of StableHLO.
    pub stablehlo: StableHlo,
    /// The StableHLO that `WEEK_4` stands for, which `jax.export` writes.
    pub week_4: StableHlo,
    /// The StableHLO that `WEEK_12` stands for.
    pub week_12: StableHlo,
    /// The newest serialization version that it knows.
    pub serialization: u16,
    /// The serialization version that it writes.
    pub writes_serialization: u16,
    /// The field into which it writes the number of devices.
    pub writes_devices: DeviceField,
    /// The calling convention version that it writes.
    pub calling_convention: u16,
    /// The way in which it reads files of `jax.export`.
    pub deserializer: Deserializer,
    /// The largest element type number that it knows.
    pub last_dtype: i8,
}

impl Release {
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.version.split('.').map(|number| number.parse().unwrap_or_default())
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Release {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers().cmp(other.numbers())
    }
}

impl Display for Release {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "jaxlib {}", self.version)
    }
}

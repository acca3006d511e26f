//! Kinds of memory, and the memory of a kind of a certain device.

/// A kind of memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The device's own.
    Device,
    /// The host's, from the plug-in's allocator where it has one.
    PinnedHost,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Device, Self::PinnedHost];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::PinnedHost => "pinned_host",
        }
    }
}

/// A kind of memory of a certain device, by the device's place in the list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemorySpace {
    pub(crate) device: usize,
    pub(crate) kind: Kind,
}

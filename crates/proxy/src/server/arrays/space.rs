//! Kinds of memory, and the memory of a kind on a device.

/// A kind of memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The device's own memory.
    Device,
    /// Host memory, from the plug-in's allocator if it has one.
    PinnedHost,
    /// Host memory that the plug-in offers as a kind of its own.
    UnpinnedHost,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Device, Self::PinnedHost, Self::UnpinnedHost];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::PinnedHost => "pinned_host",
            Self::UnpinnedHost => "unpinned_host",
        }
    }

    /// Returns the kind of this name, if there is one.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A kind of memory of a certain device, by the device's position in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MemorySpace {
    pub(crate) device: usize,
    pub(crate) kind: Kind,
}

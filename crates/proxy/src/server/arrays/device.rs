//! A device of a plug-in of either interface, and its memories.
use serdes_stream_executor::Device;

use super::space::Kind;

/// A device of a plug-in of either interface.
#[derive(Debug)]
pub(crate) enum ServedDevice {
    StreamExecutor(Device),
    Pjrt(PjrtDevice),
}

/// A device of a PJRT client.
#[derive(Debug)]
pub(crate) struct PjrtDevice {
    pub(super) default: serdes_pjrt::MemorySpace,
    /// Memories beside the default one whose kind clients know.
    others: Vec<(Kind, serdes_pjrt::MemorySpace)>,
}

impl PjrtDevice {
    pub(super) fn new(device: &serdes_pjrt::Device) -> Result<Self, serdes_pjrt::PjrtError> {
        let default = serdes_pjrt::MemorySpace::of(device)?;
        let own = device.default_memory()?.map(|memory| memory.kind()).transpose()?;
        let mut others = Vec::new();
        for memory in device.memories()? {
            let name = memory.kind()?;
            let kind = Kind::of_name(&name).filter(|kind| *kind != Kind::Device);
            if let Some(kind) = kind.filter(|_| own.as_ref() != Some(&name)) {
                others.push((kind, serdes_pjrt::MemorySpace::of_kind(device, kind.name())?));
            }
        }
        Ok(Self { default, others })
    }

    /// Returns the memory for arrays of a memory kind, or the default memory if the plug-in lacks
    /// the kind.
    pub(crate) fn space(&self, kind: Kind) -> &serdes_pjrt::MemorySpace {
        let own = self.others.iter().find(|(other, _)| *other == kind);
        own.map_or(&self.default, |(_, space)| space)
    }
}

impl ServedDevice {
    /// Returns the kinds of memory that clients see on the device. Every device has pinned memory,
    /// so that clients may use it with any plug-in; the plug-in defines the others.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        Kind::ALL.into_iter().filter(move |kind| match (self, kind) {
            (_, Kind::Device | Kind::PinnedHost) => true,
            (Self::StreamExecutor(_), Kind::UnpinnedHost) => false,
            (Self::Pjrt(device), kind) => device.others.iter().any(|(other, _)| other == kind),
        })
    }
}

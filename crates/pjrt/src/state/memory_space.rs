//! Memories that hold arrays.

use std::fmt;

use crate::{Client, Device, Memory, PjrtError, Target};

/// A memory of a device, or the device itself if its plug-in does not have separate memories.
#[derive(Clone, Debug)]
pub struct MemorySpace {
    client: Client,
    device: Device,
    memory: Option<Memory>,
    device_id: i32,
}

impl MemorySpace {
    /// Returns the default memory of a device.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn of(device: &Device) -> Result<Self, PjrtError> {
        Self::new(device, device.default_memory()?)
    }

    /// Returns the memory of this kind of a device, such as `device` or `pinned_host`.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] if the device has none of this kind; or the plug-in's errors.
    pub fn of_kind(device: &Device, kind: &str) -> Result<Self, PjrtError> {
        let mut kinds = Vec::new();
        for memory in device.memories()? {
            let found = memory.kind()?;
            if found == kind {
                return Self::new(device, Some(memory));
            }
            kinds.push(found);
        }
        Err(PjrtError::InvalidArgument {
            what: "the kind of memory",
            found: kind.to_owned(),
            expected: format!("one that the device has: {}", kinds.join(", ")),
        })
    }

    pub(super) fn new(device: &Device, memory: Option<Memory>) -> Result<Self, PjrtError> {
        let (client, device_id) = (device.client(), device.id()?);
        Ok(Self { client, device: device.clone(), memory, device_id })
    }

    /// Returns the client that owns the device.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the memory, if the plug-in has separate memories.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns the id of the device among the devices of all processes.
    #[must_use]
    pub const fn device_id(&self) -> i32 {
        self.device_id
    }

    /// Returns the memory as a destination of arrays.
    #[must_use]
    pub fn target(&self) -> Target<'_> {
        self.memory.as_ref().map_or(Target::Device(&self.device), Target::Memory)
    }
}

/// Formats as `cpu:0`.
impl fmt::Display for MemorySpace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.client.platform_name(), self.device_id)
    }
}

/// Compares the memory, its device and its client.
impl PartialEq for MemorySpace {
    fn eq(&self, other: &Self) -> bool {
        self.device == other.device && self.memory == other.memory
    }
}

impl Client {
    /// Returns the default memory of each device that this process can use, in the client's order.
    ///
    /// # Errors
    /// As [`Self::addressable_devices`] and [`MemorySpace::of`].
    pub fn memory_spaces(&self) -> Result<Vec<MemorySpace>, PjrtError> {
        self.addressable_devices()?.iter().map(MemorySpace::of).collect()
    }
}

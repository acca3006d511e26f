//! Devices and memory of the supported kinds of plug-ins, for states.

use serdes::ifrt::DeviceId;
use serdes_stream_executor::{Device, DeviceMemory};

use super::pump::{Contents, Memory, Streams};

/// A device to which states are restored: of a StreamExecutor plug-in, or a memory of a PJRT
/// client's device.
///
/// A state describes its arrays the same way for both, so that an array can move from a device of
/// one kind to one of the other. Only this library implements the trait.
pub trait HostedDevice: Clone + Send + Sync + 'static {
    /// Memory of an array on this device.
    type Memory: HostedMemory<Device = Self>;

    /// Returns the id of the device in a state.
    #[doc(hidden)]
    fn device_id(&self) -> DeviceId;
}

/// Memory of an array on a device: of a StreamExecutor plug-in, or an array of a PJRT client. Only
/// this library implements the trait.
pub trait HostedMemory: Memory + 'static {
    /// Returns the streams for this kind of memory.
    #[doc(hidden)]
    fn streams(all: &mut AllStreams) -> &mut Streams<Self>;

    /// Returns the device's description of the array, if it has a type and shape that differ from
    /// `contents`.
    #[doc(hidden)]
    fn other_than(&self, contents: &Contents) -> Option<String>;
}

/// Streams for copies from devices of every kind.
#[derive(Debug)]
pub struct AllStreams {
    stream_executor: Streams<DeviceMemory>,
    pjrt: Streams<serdes_pjrt::Array>,
}

impl AllStreams {
    /// Creates an empty set of streams.
    pub(super) const fn new() -> Self {
        Self { stream_executor: Streams::new(), pjrt: Streams::new() }
    }
}

impl HostedDevice for Device {
    type Memory = DeviceMemory;

    fn device_id(&self) -> DeviceId {
        DeviceId(self.ordinal())
    }
}

impl HostedMemory for DeviceMemory {
    fn streams(all: &mut AllStreams) -> &mut Streams<Self> {
        &mut all.stream_executor
    }

    /// The device only has bytes, without type and shape.
    fn other_than(&self, _: &Contents) -> Option<String> {
        None
    }
}

impl HostedDevice for serdes_pjrt::MemorySpace {
    type Memory = serdes_pjrt::Array;

    fn device_id(&self) -> DeviceId {
        DeviceId(self.device_id())
    }
}

impl HostedMemory for serdes_pjrt::Array {
    fn streams(all: &mut AllStreams) -> &mut Streams<Self> {
        &mut all.pjrt
    }

    fn other_than(&self, contents: &Contents) -> Option<String> {
        let is_same_type = self.element_type().name() == contents.dtype().name();
        let is_same = is_same_type && self.dims() == contents.dims();
        (!is_same).then(|| format!("{}{:?}", self.element_type(), self.dims()))
    }
}

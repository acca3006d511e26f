//! Devices and memory of the kinds of plug-ins that the library hosts, for states.

use serdes::ifrt::DeviceId;
use serdes_stream_executor::{Device, DeviceMemory};

use super::pump::{Contents, Memory, Streams};

/// A device that states are restored onto: one of a StreamExecutor plug-in, or a memory of a device
/// of a PJRT client.
///
/// What a state says of its arrays is the same for both, so that an array goes from a device of one
/// kind to one of the other. Only this library has such devices.
pub trait HostedDevice: Clone + Send + Sync + 'static {
    /// Memory of an array on this device.
    type Memory: HostedMemory<Device = Self>;

    /// Returns the id of the device in a state.
    #[doc(hidden)]
    fn device_id(&self) -> DeviceId;
}

/// Memory of an array on a device: of a StreamExecutor plug-in, or an array of a PJRT client. Only
/// this library implements it.
pub trait HostedMemory: Memory + 'static {
    /// Selects the streams of this kind.
    #[doc(hidden)]
    fn streams(all: &mut AllStreams) -> &mut Streams<Self>;

    /// Returns the description of the array by the device, if it knows type and shape and these
    /// differ from `contents`.
    #[doc(hidden)]
    fn other_than(&self, contents: &Contents) -> Option<String>;
}

/// The streams of one who copies from devices of every kind.
#[derive(Debug)]
pub struct AllStreams {
    stream_executor: Streams<DeviceMemory>,
    pjrt: Streams<serdes_pjrt::Array>,
}

impl AllStreams {
    /// None yet.
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

    /// It is bytes.
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

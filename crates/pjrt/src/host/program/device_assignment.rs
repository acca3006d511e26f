//! The message `xla.DeviceAssignmentProto`: the devices on which a program runs.

use prost::Message;

/// The devices of a program, by computation (which is a partition) and replica.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DeviceAssignmentProto {
    #[prost(int32, tag = "1")]
    pub(super) replica_count: i32,
    #[prost(int32, tag = "2")]
    pub(super) computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    pub(super) computation_devices: Vec<ComputationDevice>,
}

/// The devices of one computation, by replica.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ComputationDevice {
    #[prost(int64, repeated, tag = "1")]
    pub(super) replica_device_ids: Vec<i64>,
}

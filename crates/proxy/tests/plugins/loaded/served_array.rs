//! An array that a client of the proxy creates on both devices of a plug-in.

use serdes::{
    codec::ToProto as _,
    ifrt::{
        DType, DeviceList, HloSharding, MemoryKind, Shape, Sharding,
        xla::{OpSharding, TileAssignment},
    },
    proto::xla::ifrt::proxy::{MakeArrayFromHostBufferRequest, ifrt_request::Request},
    version::SerDesVersion,
};

/// Returns the request to create an array under `handle` from the eight bytes that were sent under
/// the same number: four on each of the devices 7 and 8.
pub(super) fn four_bytes_on_each(handle: u64) -> Request {
    let version = SerDesVersion::current();
    let tiles = OpSharding::tiled(TileAssignment::iota([2], [2], [0]).unwrap());
    let devices = DeviceList::from([7, 8]);
    let sharding = HloSharding::new(devices, MemoryKind::new("device"), tiles).unwrap();
    let request = MakeArrayFromHostBufferRequest {
        dtype: Some(DType::U8.to_proto(version).unwrap()),
        shape: Some(Shape::new([8]).unwrap().to_proto(version).unwrap()),
        sharding: Some(Sharding::from(sharding).to_proto(version).unwrap()),
        host_buffer_handle: handle,
        array_handle: Some(handle),
        ..Default::default()
    };
    Request::MakeArrayFromHostBufferRequest(request)
}

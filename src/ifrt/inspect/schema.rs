//! Where the messages of IFRT keep their versions, and which of their fields hold messages with versions.
//!
//! A test compares this table with the descriptors of `proto/`.

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The message of this name.
    Message(&'static str),
    /// A `Serialized`.
    Serialized,
    /// Bytes that a runtime wrote, those of a `Serialized` as a rule.
    Bytes,
}

/// A field that holds messages with versions: number, name, content.
pub(super) type Field = (u32, &'static str, Content);

/// A message.
#[derive(Debug)]
pub(super) struct Schema {
    /// The full name.
    pub(super) message: &'static str,
    /// The number of the field with the version, if it has one.
    pub(super) version: Option<u32>,
    /// The fields that hold messages with versions.
    pub(super) fields: &'static [Field],
}

impl Schema {
    /// Whether it is the message `name` of `package`.
    pub(super) fn is(&self, package: &str, name: &str) -> bool {
        let own = self.message.strip_prefix(package).and_then(|own| own.strip_prefix('.'));
        own == Some(name)
    }
}

use Content::{Bytes as B, Message as M, Serialized as S};

const DTYPE: Content = M("xla.ifrt.DTypeProto");
const SHAPE: Content = M("xla.ifrt.ShapeProto");
const DYNAMIC_SHAPE: Content = M("xla.ifrt.DynamicShapeProto");
const DEVICES: Content = M("xla.ifrt.DeviceListProto");
const ARRAY_SPEC: Content = M("xla.ifrt.ArraySpecProto");
const LAYOUT: Content = M("xla.ifrt.LayoutProto");
const PARAM: Content = M("xla.ifrt.ShardingParamProto");

const fn schema(message: &'static str, version: u32, fields: &'static [Field]) -> Schema {
    Schema { message, version: Some(version), fields }
}

const fn unversioned(message: &'static str, fields: &'static [Field]) -> Schema {
    Schema { message, version: None, fields }
}

/// All messages that have a version or hold messages that have one.
#[rustfmt::skip]
pub(super) const SCHEMAS: &[Schema] = &[
    schema("xla.ifrt.DTypeProto", 2, &[]),
    schema("xla.ifrt.ShapeProto", 2, &[]),
    schema("xla.ifrt.BoundedDynamicShapeTagProto", 2, &[]),
    schema("xla.ifrt.DynamicShapeProto", 3, &[(1, "shape", SHAPE), (2, "bounded_dynamic_shape_tag", M("xla.ifrt.BoundedDynamicShapeTagProto"))]),
    schema("xla.ifrt.IndexProto", 2, &[]),
    schema("xla.ifrt.IndexDomainProto", 3, &[(1, "origin", M("xla.ifrt.IndexProto")), (2, "shape", SHAPE)]),
    schema("xla.ifrt.DeviceListProto", 2, &[]),
    schema("xla.ifrt.SingleDeviceShardingProto", 3, &[]),
    schema("xla.ifrt.OpaqueShardingProto", 3, &[(1, "devices", DEVICES)]),
    schema("xla.ifrt.ConcreteShardingProto", 7, &[
        (1, "devices", DEVICES), (2, "shape", SHAPE), (3, "shard_shapes", SHAPE),
        (5, "dynamic_shape", DYNAMIC_SHAPE), (6, "shard_dynamic_shapes", DYNAMIC_SHAPE),
    ]),
    schema("xla.ifrt.ConcreteEvenShardingProto", 6, &[(1, "devices", DEVICES), (2, "shape", SHAPE), (3, "shard_shape", SHAPE)]),
    schema("xla.ifrt.ShardingParamProto", 4, &[]),
    schema("xla.ifrt.ShardingParamShardingProto", 4, &[(1, "sharding_param", PARAM), (2, "devices", DEVICES)]),
    schema("xla.ifrt.HloShardingProto", 4, &[(1, "devices", DEVICES)]),
    unversioned("xla.ifrt.ShardingProto", &[(1, "serialized_sharding", S)]),
    schema("xla.ifrt.HloShardingSpecProto", 1, &[]),
    unversioned("xla.ifrt.ShardingSpecProto", &[(1, "serialized_sharding_spec", S)]),
    schema("serdes.ifrt.SingleDeviceShardingSpecProto", 1, &[]),
    schema("serdes.ifrt.OpaqueShardingSpecProto", 1, &[]),
    schema("serdes.ifrt.ConcreteShardingSpecProto", 1, &[
        (2, "shape", SHAPE), (3, "dynamic_shape", DYNAMIC_SHAPE),
        (4, "shard_shapes", SHAPE), (5, "shard_dynamic_shapes", DYNAMIC_SHAPE),
    ]),
    schema("serdes.ifrt.ConcreteEvenShardingSpecProto", 1, &[(3, "shape", SHAPE), (4, "shard_shape", SHAPE)]),
    schema("serdes.ifrt.ShardingParamShardingSpecProto", 1, &[(2, "sharding_param", PARAM)]),
    schema("xla.ifrt.CompactLayoutProto", 2, &[]),
    schema("xla.ifrt.PjRtLayoutProto", 2, &[]),
    unversioned("xla.ifrt.LayoutProto", &[(1, "serialized_layout", S)]),
    schema("xla.ifrt.ArraySpecProto", 5, &[(1, "dtype", DTYPE), (2, "shape", SHAPE), (3, "sharding", M("xla.ifrt.ShardingProto"))]),
    schema("xla.ifrt.AbstractArraySpecProto", 1, &[(2, "dtype", DTYPE), (3, "shape", SHAPE), (4, "sharding_spec", M("xla.ifrt.ShardingSpecProto"))]),
    schema("xla.ifrt.AttributeMapProto", 2, &[]),
    schema("xla.ifrt.ExecuteOptionsProto", 12, &[(10, "custom_options", M("xla.ifrt.AttributeMapProto"))]),
    schema("xla.ifrt.RemapPlanProto", 4, &[
        (1, "input_specs", ARRAY_SPEC), (2, "output_specs", ARRAY_SPEC),
        (5, "input_devices_for_output", M("xla.ifrt.RemapPlanProto.InputDevicesForOutput")),
    ]),
    unversioned("xla.ifrt.RemapPlanProto.InputDevicesForOutput", &[(2, "input_devices", M("xla.ifrt.RemapPlanProto.InputDevices"))]),
    unversioned("xla.ifrt.RemapPlanProto.InputDevices", &[(2, "device_list", DEVICES)]),
    schema("xla.ifrt.CustomCallProgramProto", 7, &[(4, "devices", DEVICES), (5, "input_specs", ARRAY_SPEC), (6, "output_specs", ARRAY_SPEC)]),
    schema("xla.ifrt.CustomCallCompileOptionsProto", 1, &[]),
    schema("xla.ifrt.IfrtIrProgramProto", 4, &[]),
    schema("xla.ifrt.IfrtIrCompileOptionsProto", 4, &[]),
    schema("xla.ifrt.IfrtIrExecutableVersionProto", 1, &[(3, "executable_versions", M("xla.ifrt.AtomExecutableVersionProto"))]),
    unversioned("xla.ifrt.AtomExecutableVersionProto", &[(1, "executable_version", B)]),
    schema("xla.ifrt.SerializedIfrtIrExecutableMetadata", 1, &[(3, "compile_options", M("xla.ifrt.IfrtIrCompileOptionsProto"))]),
    schema("xla.ifrt.XlaCompileOptionsProto", 3, &[]),
    schema("xla.ifrt.SerializedXlaExecutableVersion", 1, &[(3, "runtime_abi_version", B)]),
    schema("xla.ifrt.SerializedXlaExecutableMetadata", 1, &[
        (5, "output_specs", M("xla.ifrt.SerializedXlaExecutableMetadata.OutputSpec")),
        (6, "parameter_specs", M("xla.ifrt.SerializedXlaExecutableMetadata.ParameterSpec")),
        (9, "executable_version", M("xla.ifrt.SerializedXlaExecutableVersion")),
    ]),
    unversioned("xla.ifrt.SerializedXlaExecutableMetadata.OutputSpec", &[(1, "shard_shape", SHAPE), (2, "dtype", DTYPE), (3, "layout", LAYOUT), (6, "shape", SHAPE)]),
    unversioned("xla.ifrt.SerializedXlaExecutableMetadata.ParameterSpec", &[(1, "layout", LAYOUT), (4, "shape", SHAPE), (5, "dtype", DTYPE)]),
];

/// The message of this full name.
pub(super) fn find(message: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.message == message)
}

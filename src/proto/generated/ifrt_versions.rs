// Made from the descriptors by `cargo xtask proto`; not to be edited.
&[
    Schema {
        message: "xla.ifrt.ShardingParamProto",
        version: Some(4),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.ShapeProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.BoundedDynamicShapeTagProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.DynamicShapeProto",
        version: Some(3),
        fields: &[
            (1, "shape", Message("xla.ifrt.ShapeProto")),
            (2, "bounded_dynamic_shape_tag", Message("xla.ifrt.BoundedDynamicShapeTagProto")),
        ],
    },
    Schema {
        message: "serdes.ifrt.SingleDeviceShardingSpecProto",
        version: Some(1),
        fields: &[
        ],
    },
    Schema {
        message: "serdes.ifrt.OpaqueShardingSpecProto",
        version: Some(1),
        fields: &[
        ],
    },
    Schema {
        message: "serdes.ifrt.ConcreteShardingSpecProto",
        version: Some(1),
        fields: &[
            (2, "shape", Message("xla.ifrt.ShapeProto")),
            (3, "dynamic_shape", Message("xla.ifrt.DynamicShapeProto")),
            (4, "shard_shapes", Message("xla.ifrt.ShapeProto")),
            (5, "shard_dynamic_shapes", Message("xla.ifrt.DynamicShapeProto")),
        ],
    },
    Schema {
        message: "serdes.ifrt.ConcreteEvenShardingSpecProto",
        version: Some(1),
        fields: &[
            (3, "shape", Message("xla.ifrt.ShapeProto")),
            (4, "shard_shape", Message("xla.ifrt.ShapeProto")),
        ],
    },
    Schema {
        message: "serdes.ifrt.ShardingParamShardingSpecProto",
        version: Some(1),
        fields: &[
            (2, "sharding_param", Message("xla.ifrt.ShardingParamProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.DTypeProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.ShardingProto",
        version: None,
        fields: &[
            (1, "serialized_sharding", Serialized),
        ],
    },
    Schema {
        message: "xla.ifrt.ShardingSpecProto",
        version: None,
        fields: &[
            (1, "serialized_sharding_spec", Serialized),
        ],
    },
    Schema {
        message: "xla.ifrt.ArraySpecProto",
        version: Some(5),
        fields: &[
            (1, "dtype", Message("xla.ifrt.DTypeProto")),
            (2, "shape", Message("xla.ifrt.ShapeProto")),
            (3, "sharding", Message("xla.ifrt.ShardingProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.AbstractArraySpecProto",
        version: Some(1),
        fields: &[
            (2, "dtype", Message("xla.ifrt.DTypeProto")),
            (3, "shape", Message("xla.ifrt.ShapeProto")),
            (4, "sharding_spec", Message("xla.ifrt.ShardingSpecProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.AttributeMapProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.DeviceListProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.CustomCallProgramProto",
        version: Some(7),
        fields: &[
            (4, "devices", Message("xla.ifrt.DeviceListProto")),
            (5, "input_specs", Message("xla.ifrt.ArraySpecProto")),
            (6, "output_specs", Message("xla.ifrt.ArraySpecProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.CustomCallCompileOptionsProto",
        version: Some(1),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.ExecuteOptionsProto",
        version: Some(12),
        fields: &[
            (10, "custom_options", Message("xla.ifrt.AttributeMapProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.IndexProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.IndexDomainProto",
        version: Some(3),
        fields: &[
            (1, "origin", Message("xla.ifrt.IndexProto")),
            (2, "shape", Message("xla.ifrt.ShapeProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.IfrtIrCompileOptionsProto",
        version: Some(4),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.AtomExecutableVersionProto",
        version: None,
        fields: &[
            (1, "executable_version", Bytes),
        ],
    },
    Schema {
        message: "xla.ifrt.IfrtIrExecutableVersionProto",
        version: Some(1),
        fields: &[
            (3, "executable_versions", Message("xla.ifrt.AtomExecutableVersionProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.IfrtIrProgramProto",
        version: Some(4),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.SerializedIfrtIrExecutableMetadata",
        version: Some(1),
        fields: &[
            (3, "compile_options", Message("xla.ifrt.IfrtIrCompileOptionsProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.LayoutProto",
        version: None,
        fields: &[
            (1, "serialized_layout", Serialized),
        ],
    },
    Schema {
        message: "xla.ifrt.CompactLayoutProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.SerializedXlaExecutableVersion",
        version: Some(1),
        fields: &[
            (3, "runtime_abi_version", Bytes),
        ],
    },
    Schema {
        message: "xla.ifrt.SerializedXlaExecutableMetadata",
        version: Some(1),
        fields: &[
            (5, "output_specs", Message("xla.ifrt.SerializedXlaExecutableMetadata.OutputSpec")),
            (6, "parameter_specs", Message("xla.ifrt.SerializedXlaExecutableMetadata.ParameterSpec")),
            (9, "executable_version", Message("xla.ifrt.SerializedXlaExecutableVersion")),
        ],
    },
    Schema {
        message: "xla.ifrt.SerializedXlaExecutableMetadata.OutputSpec",
        version: None,
        fields: &[
            (1, "shard_shape", Message("xla.ifrt.ShapeProto")),
            (2, "dtype", Message("xla.ifrt.DTypeProto")),
            (3, "layout", Message("xla.ifrt.LayoutProto")),
            (6, "shape", Message("xla.ifrt.ShapeProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.SerializedXlaExecutableMetadata.ParameterSpec",
        version: None,
        fields: &[
            (1, "layout", Message("xla.ifrt.LayoutProto")),
            (4, "shape", Message("xla.ifrt.ShapeProto")),
            (5, "dtype", Message("xla.ifrt.DTypeProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.PjRtLayoutProto",
        version: Some(2),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.XlaCompileOptionsProto",
        version: Some(3),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.HloShardingProto",
        version: Some(4),
        fields: &[
            (1, "devices", Message("xla.ifrt.DeviceListProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.HloShardingSpecProto",
        version: Some(1),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.RemapPlanProto",
        version: Some(4),
        fields: &[
            (1, "input_specs", Message("xla.ifrt.ArraySpecProto")),
            (2, "output_specs", Message("xla.ifrt.ArraySpecProto")),
            (5, "input_devices_for_output", Message("xla.ifrt.RemapPlanProto.InputDevicesForOutput")),
        ],
    },
    Schema {
        message: "xla.ifrt.RemapPlanProto.InputDevices",
        version: None,
        fields: &[
            (2, "device_list", Message("xla.ifrt.DeviceListProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.RemapPlanProto.InputDevicesForOutput",
        version: None,
        fields: &[
            (2, "input_devices", Message("xla.ifrt.RemapPlanProto.InputDevices")),
        ],
    },
    Schema {
        message: "xla.ifrt.SingleDeviceShardingProto",
        version: Some(3),
        fields: &[
        ],
    },
    Schema {
        message: "xla.ifrt.OpaqueShardingProto",
        version: Some(3),
        fields: &[
            (1, "devices", Message("xla.ifrt.DeviceListProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.ConcreteShardingProto",
        version: Some(7),
        fields: &[
            (1, "devices", Message("xla.ifrt.DeviceListProto")),
            (2, "shape", Message("xla.ifrt.ShapeProto")),
            (3, "shard_shapes", Message("xla.ifrt.ShapeProto")),
            (5, "dynamic_shape", Message("xla.ifrt.DynamicShapeProto")),
            (6, "shard_dynamic_shapes", Message("xla.ifrt.DynamicShapeProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.ConcreteEvenShardingProto",
        version: Some(6),
        fields: &[
            (1, "devices", Message("xla.ifrt.DeviceListProto")),
            (2, "shape", Message("xla.ifrt.ShapeProto")),
            (3, "shard_shape", Message("xla.ifrt.ShapeProto")),
        ],
    },
    Schema {
        message: "xla.ifrt.ShardingParamShardingProto",
        version: Some(4),
        fields: &[
            (1, "sharding_param", Message("xla.ifrt.ShardingParamProto")),
            (2, "devices", Message("xla.ifrt.DeviceListProto")),
        ],
    },
]

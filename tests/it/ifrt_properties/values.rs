//! Strategies for values of the data types.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serdes::ifrt::{
    sharding::ShardShapes,
    xla::{OpSharding, TileAssignment},
    *,
};

/// The devices of the programs of IFRT IR.
pub(crate) const LOGICAL_DEVICES: usize = 4;

pub(crate) fn dtypes() -> impl Strategy<Value = DType> {
    select(DType::ALL)
}

pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    vec(prop_oneof![0..10_i64, 0..=i64::MAX], 0..6).prop_map(|dims| Shape::new(dims).unwrap())
}

pub(crate) fn dynamic_shapes() -> impl Strategy<Value = DynamicShape> {
    vec((0..=i64::MAX, any::<bool>()), 1..6).prop_map(|dims| {
        let (bounds, mut dynamic): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        dynamic[0] |= !dynamic.contains(&true);
        let tag = BoundedDynamicShapeTag::new(dynamic).unwrap();
        DynamicShape::new(Shape::new(bounds).unwrap(), tag).unwrap()
    })
}

pub(crate) fn device_lists(
    count: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = DeviceList> {
    vec(any::<i32>(), count).prop_map(|ids| ids.into_iter().map(DeviceId).collect())
}

pub(crate) fn memory_kinds() -> impl Strategy<Value = MemoryKind> {
    option::of(".{0,12}").prop_map(MemoryKind::from)
}

/// Generates meshes with dimensions that fit them: a dimension takes the whole next axis, or has
/// one shard.
pub(crate) fn sharding_params() -> impl Strategy<Value = ShardingParam> {
    (vec((1..5_i32, any::<bool>(), any::<bool>()), 1..4), any::<proptest::sample::Index>())
        .prop_map(|(axes, rotation)| {
            let count = axes.len();
            let rotation = rotation.index(count);
            let permutation: Vec<i32> =
                (0..count).map(|axis| ((axis + rotation) % count) as i32).collect();
            let sizes: Vec<i32> = axes.iter().map(|(size, ..)| *size).collect();
            // Only the leading axes of the permutation are taken, so that the shards always fit.
            let mut dim_shards = vec![1];
            for axis in &permutation {
                let (size, taken, _) = axes[*axis as usize];
                if !taken {
                    break;
                }
                dim_shards.push(i64::from(size));
            }
            let unreduced: Vec<i32> = (0..)
                .zip(&axes)
                .filter(|(_, (.., unreduced))| *unreduced)
                .map(|(axis, _)| axis)
                .collect();
            ShardingParam::new(dim_shards, permutation, sizes)
                .and_then(|param| param.with_unreduced_axes(unreduced))
                .unwrap()
        })
}

pub(crate) fn shardings() -> impl Strategy<Value = Sharding> {
    prop_oneof![
        (any::<i32>(), memory_kinds()).prop_map(|(id, kind)| {
            SingleDeviceSharding::new(DeviceId(id)).with_memory_kind(kind).into()
        }),
        (device_lists(0..20), memory_kinds())
            .prop_map(|(devices, kind)| OpaqueSharding::new(devices, kind).into()),
        (vec((any::<i32>(), shapes()), 0..5), memory_kinds(), shapes()).prop_map(
            |(shards, kind, shape)| {
                let (ids, shard_shapes): (Vec<_>, Vec<_>) =
                    shards.into_iter().map(|(id, shape)| (DeviceId(id), shape)).unzip();
                let shapes = ShardShapes::Static { shape, shard_shapes };
                ConcreteSharding::new(DeviceList::new(ids), kind, shapes).unwrap().into()
            }
        ),
        (vec((any::<i32>(), dynamic_shapes()), 0..5), memory_kinds(), dynamic_shapes()).prop_map(
            |(shards, kind, shape)| {
                let (ids, shard_shapes): (Vec<_>, Vec<_>) =
                    shards.into_iter().map(|(id, shape)| (DeviceId(id), shape)).unzip();
                let shapes = ShardShapes::Dynamic { shape, shard_shapes };
                ConcreteSharding::new(DeviceList::new(ids), kind, shapes).unwrap().into()
            }
        ),
        (device_lists(0..20), memory_kinds(), shapes(), any::<bool>()).prop_map(
            |(devices, kind, shape, replicated)| {
                ConcreteEvenSharding::new(devices, kind, shape.clone(), shape, replicated)
                    .unwrap()
                    .into()
            }
        ),
        (sharding_params(), memory_kinds()).prop_map(|(param, kind)| {
            let devices = (0..param.device_count().unwrap()).map(DeviceId).collect();
            ShardingParamSharding::new(param, devices, kind).unwrap().into()
        }),
        (1..5_i64, 1..5_i64, any::<bool>(), memory_kinds()).prop_map(
            |(first, second, transposed, kind)| {
                let permutation = if transposed { [1, 0] } else { [0, 1] };
                let tiles =
                    TileAssignment::iota([first, second], [first, second], permutation).unwrap();
                let devices = (0..(first * second) as i32).map(DeviceId).collect();
                HloSharding::new(devices, kind, OpSharding::tiled(tiles)).unwrap().into()
            }
        ),
    ]
}

pub(crate) fn layouts() -> impl Strategy<Value = Option<PjRtLayout>> {
    select(&[None, Some("{}"), Some("{1,0}"), Some("{1,0:T(8,128)(2,1)}"), Some("{0,1:E(4)}")])
        .prop_map(|text| text.map(|text: &str| text.parse().unwrap()))
}

pub(crate) fn array_specs() -> impl Strategy<Value = ArraySpec> {
    (dtypes(), shapes(), shardings(), layouts()).prop_map(|(dtype, shape, sharding, layout)| {
        let spec = ArraySpec::new(dtype, shape, sharding);
        match layout {
            Some(layout) => spec.with_layout(layout),
            None => spec,
        }
    })
}

pub(crate) fn attribute_maps() -> impl Strategy<Value = AttributeMap> {
    let value = prop_oneof![
        vec(any::<u8>(), 0..20).prop_map(AttributeValue::from),
        any::<bool>().prop_map(AttributeValue::from),
        any::<i64>().prop_map(AttributeValue::from),
        vec(any::<i64>(), 0..20).prop_map(AttributeValue::from),
        (-1e30_f32..1e30).prop_map(AttributeValue::from),
    ];
    vec((".{0,8}", value), 0..10).prop_map(AttributeMap::from_iter)
}

pub(crate) fn execute_options() -> impl Strategy<Value = ExecuteOptions> {
    (any::<(i32, bool, i64)>(), vec(any::<i32>(), 0..5), option::of(attribute_maps())).prop_map(
        |((launch, status, stream), indices, custom)| {
            let options = ExecuteOptions::new()
                .with_launch_id(launch)
                .with_fill_status(status)
                .with_execution_stream_id(stream)
                .with_non_donatable_input_indices(indices);
            match custom {
                Some(custom) => options.with_custom_options(custom),
                None => options,
            }
        },
    )
}

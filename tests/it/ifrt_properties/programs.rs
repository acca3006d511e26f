//! Strategies for programs, their options, and the metadata of executables.

use bytes::Bytes;
use proptest::{collection::vec, option, prelude::*, sample::select};
use prost::encoding;
use serdes::{
    codec::{SerializeOptions, StatusCode, ToProto, Validation},
    ifrt::{
        xla::{self, OpSharding, PrimitiveType, TileAssignment},
        *,
    },
    proto::{OpaqueMessage, google::protobuf::Any},
};

use super::{
    options, trips, trips_by_name,
    values::{LOGICAL_DEVICES, array_specs, device_lists, dtypes, layouts, memory_kinds, shapes},
    versions,
};

fn byte_strings() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

/// Generates fields of a message that this build does not know.
fn fields() -> impl Strategy<Value = Bytes> {
    vec((1..20_000_u32, any::<u64>(), option::of(vec(any::<u8>(), 0..9))), 0..5).prop_map(|list| {
        let mut bytes = Vec::new();
        for (number, value, content) in list {
            match content {
                None => encoding::uint64::encode(number, &value, &mut bytes),
                Some(content) => encoding::bytes::encode(number, &content, &mut bytes),
            }
        }
        bytes.into()
    })
}

fn slice_sizes() -> impl Strategy<Value = Vec<i32>> {
    prop_oneof![Just(Vec::new()), vec(any::<i32>(), 1..4)]
}

fn custom_calls() -> impl Strategy<Value = CustomCallProgram> {
    let specs = || vec(array_specs(), 0..3);
    (".{0,8}", ".{0,8}", byte_strings(), device_lists(0..9), specs(), specs()).prop_map(
        |(kind, name, text, devices, inputs, outputs)| {
            CustomCallProgram::new(kind, name, text, devices)
                .with_inputs(inputs)
                .with_outputs(outputs)
        },
    )
}

fn hlo_programs() -> impl Strategy<Value = HloProgram> {
    let producer = prop_oneof!["[ -~é]{0,20}", Just("StableHLO_v1.13.7".to_owned())];
    (producer, byte_strings()).prop_map(|(producer, rest)| {
        let artifact = [b"ML\xefR\x0d", producer.as_bytes(), b"\0", &rest].concat();
        HloProgram::new(artifact).unwrap()
    })
}

fn ifrt_ir_programs() -> impl Strategy<Value = IfrtIrProgram> {
    let atom = (".{0,8}", option::of(".{0,8}"), byte_strings())
        .prop_map(|(name, version, program)| IfrtIrAtomProgram { name, version, program });
    (byte_strings(), option::of(".{0,8}"), vec(atom, 0..3)).prop_map(|(module, version, atoms)| {
        let program = IfrtIrProgram::new(module).with_atom_programs(atoms);
        match version {
            Some(version) => program.with_ifrt_version(version),
            None => program,
        }
    })
}

fn ifrt_ir_options() -> impl Strategy<Value = IfrtIrCompileOptions> {
    let dumps = option::of((".{0,8}", ".{0,8}", ".{0,8}", ".{0,8}"));
    let limits = option::of((any::<bool>(), any::<i64>(), -1e30_f32..1e30, any::<i64>()));
    let overrides = vec((".{0,8}", fields()), 0..3);
    (device_lists(0..5), overrides, any::<bool>(), slice_sizes(), dumps, limits).prop_map(
        |(devices, overrides, strict, sizes, dumps, limits)| {
            let mut options = IfrtIrCompileOptions::new(devices.ids().iter().copied())
                .with_strict_memory_reservation(strict)
                .with_outputs_bundle_slice_sizes(sizes);
            for (part, fields) in overrides {
                options = options.with_override(part, OpaqueMessage::from_fields(&fields).unwrap());
            }
            if let Some((to, passes, functions, graph)) = dumps {
                options = options
                    .with_mlir_dump_to(to)
                    .with_mlir_dump_pass_re(passes)
                    .with_mlir_dump_func_re(functions)
                    .with_dot_graph_dump_to(graph);
            }
            if let Some((timing, memory, flops, transfer)) = limits {
                options = options
                    .with_mlir_enable_timing(timing)
                    .with_dot_graph_min_executable_peak_memory_bytes(memory)
                    .with_dot_graph_min_executable_flops(flops)
                    .with_dot_graph_min_per_device_transfer_size_bytes(transfer);
            }
            options
        },
    )
}

fn ifrt_ir_versions() -> impl Strategy<Value = IfrtIrExecutableVersion> {
    let indexes = vec(0..LOGICAL_DEVICES as i32, 0..5);
    let part = (any::<u64>(), indexes).prop_map(|(platform, logical_device_indexes)| {
        let version = XlaExecutableVersion::new(platform);
        let current = serdes::version::SerDesVersion::current();
        let serialized = serdes::codec::Serialized::of(&version, current).unwrap();
        AtomExecutableVersion { executable_version: serialized.to_bytes(), logical_device_indexes }
    });
    (".{0,8}", vec(part, 0..3))
        .prop_map(|(version, parts)| IfrtIrExecutableVersion::new(version, parts))
}

fn compact_layouts() -> impl Strategy<Value = CompactLayout> {
    let order = (0..6_i32).prop_flat_map(|rank| Just((0..rank).collect::<Vec<_>>()).prop_shuffle());
    order.prop_map(|order| CompactLayout::new(order).unwrap())
}

fn pjrt_layouts() -> impl Strategy<Value = PjRtLayout> {
    select(&[
        "{}",
        "{1,0}",
        "{1,0:T(8,128)(2,1)}",
        "{0,1:E(4)S(5)}",
        "{0:L(1024)SC(0:2)}",
        "{0:D(C+~)M(8)}",
    ])
    .prop_map(|text| text.parse().unwrap())
}

fn executable_versions() -> impl Strategy<Value = XlaExecutableVersion> {
    (any::<u64>(), option::of(compact_layouts())).prop_map(|(platform, abi)| {
        let version = XlaExecutableVersion::new(platform);
        match abi {
            Some(abi) => version.with_runtime_abi_version(abi),
            None => version,
        }
    })
}

fn op_shardings() -> impl Strategy<Value = OpSharding> {
    prop_oneof![
        Just(OpSharding::replicated()),
        (1..5_i64, 1..5_i64).prop_map(|(rows, columns)| {
            let tiles = TileAssignment::iota([rows, columns], [columns, rows], [1, 0]).unwrap();
            OpSharding::tiled(tiles)
        }),
    ]
}

fn executables() -> impl Strategy<Value = XlaExecutableMetadata> {
    let layouts = || layouts().prop_map(|layout| layout.map(Layout::from));
    let kinds = || memory_kinds().prop_map(|kind| kind.name().unwrap_or_default().to_owned());
    let output = (dtypes(), shapes(), option::of(shapes()), layouts(), kinds(), op_shardings());
    let parameter = (
        (option::of(dtypes()), option::of(shapes()), layouts(), kinds()),
        (option::of(op_shardings()), any::<bool>()),
    );
    let texts = (".{0,8}", ".{0,8}");
    let version = option::of(executable_versions());
    let outputs = (vec(output, 0..3), any::<bool>());
    (texts, any::<bool>(), outputs, vec(parameter, 0..3), version, slice_sizes()).prop_map(
        |((name, runtime), portable, (outputs, sharded), parameters, version, sizes)| {
            let outputs = outputs.into_iter().map(
                |(dtype, shard_shape, shape, layout, memory_kind, sharding)| OutputSpec {
                    dtype,
                    shard_shape,
                    shape,
                    layout,
                    memory_kind,
                    op_sharding: sharded.then_some(sharding),
                },
            );
            let parameters = parameters.into_iter().map(
                |((dtype, shape, layout, memory_kind), (op_sharding, donated_input))| {
                    ParameterSpec { dtype, shape, layout, memory_kind, op_sharding, donated_input }
                },
            );
            let metadata = XlaExecutableMetadata::new(name)
                .with_runtime_name(runtime)
                .with_portable(portable)
                .with_outputs(outputs.collect::<Vec<_>>())
                .unwrap()
                .with_parameters(parameters.collect::<Vec<_>>())
                .with_outputs_bundle_slice_sizes(sizes);
            match version {
                Some(version) => metadata.with_executable_version(version),
                None => metadata,
            }
        },
    )
}

fn host_callbacks() -> impl Strategy<Value = XlaHostCallback> {
    let dimensions = vec((0..i64::MAX, any::<bool>()), 0..4);
    let argument = (any::<u32>(), select(PrimitiveType::ALL), dimensions, any::<bool>()).prop_map(
        |(channel_id, kind, dimensions, laid_out)| {
            let (sizes, dynamic): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            let layout = xla::Layout::descending(sizes.len() as u16);
            let shape = xla::Shape::array(kind, sizes).with_dynamic_dimensions(dynamic);
            let shape = if laid_out { shape.with_layout(layout) } else { shape };
            HostCallbackArgument { channel_id, shape }
        },
    );
    let arguments = vec(argument, 0..3);
    let function = option::of((".{0,8}", vec(any::<u8>(), 0..9)));
    (arguments.clone(), arguments, function, any::<bool>()).prop_map(
        |(operands, results, function, row_major)| {
            let callback =
                XlaHostCallback::new(operands, results).with_major_to_minor_data_layout(row_major);
            match function {
                Some((type_url, value)) => {
                    callback.with_callback(Any { type_url, value: value.into() })
                }
                None => callback,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_make_the_round_trip(
        custom in custom_calls(), plugin in byte_strings(), hlo in hlo_programs(), ir in ifrt_ir_programs(),
    ) {
        trips(&custom)?;
        trips_by_name(&custom)?;
        trips_by_name(&PluginProgram::new(plugin))?;
        trips_by_name(&hlo)?;
        trips(&ir)?;
        trips_by_name(&ir)?;
    }

    #[test]
    fn options_of_compilers_make_the_round_trip(
        sizes in slice_sizes(), unknown in fields(), ir in ifrt_ir_options(),
    ) {
        let custom = CustomCallCompileOptions::new().with_outputs_bundle_slice_sizes(sizes.clone());
        trips(&custom)?;
        trips_by_name(&custom)?;
        trips_by_name(&PluginCompileOptions::new())?;
        let xla = XlaCompileOptions::new(unknown).unwrap().with_outputs_bundle_slice_sizes(sizes);
        trips(&xla)?;
        trips_by_name(&xla)?;
        trips(&ir)?;
        trips_by_name(&ir)?;
    }

    #[test]
    fn layouts_make_the_round_trip(compact in compact_layouts(), pjrt in pjrt_layouts()) {
        trips(&compact)?;
        trips_by_name(&compact)?;
        trips(&Layout::from(compact))?;
        trips(&pjrt)?;
        trips_by_name(&pjrt)?;
        trips(&Layout::from(pjrt))?;
    }

    #[test]
    fn executable_metadata_round_trips(
        metadata in executables(),
        version in executable_versions(),
        ir in ifrt_ir_versions(),
        executable in byte_strings(),
    ) {
        trips(&version)?;
        trips_by_name(&version)?;
        trips(&ir)?;
        trips_by_name(&ir)?;
        trips(&metadata)?;
        let whole = SerializedXlaExecutable { metadata, executable };
        for version in versions() {
            match whole.to_bytes(version) {
                Ok(bytes) => for validation in [Validation::Parity, Validation::Strict] {
                    let read = SerializedXlaExecutable::from_bytes(bytes.clone(), &options(validation));
                    prop_assert_eq!(read.as_ref(), Ok(&whole));
                },
                Err(error) => {
                    prop_assert_eq!(error.code(), StatusCode::Internal);
                    prop_assert!(whole.metadata.can_serialize_at(version).is_err());
                }
            }
        }
    }

    #[test]
    fn host_callbacks_make_the_round_trip(callback in host_callbacks(), unknown in fields()) {
        trips(&callback)?;
        // Compile options cannot carry them: no version can encode such a value, and the error
        // names the field.
        let options = XlaCompileOptions::new(unknown).unwrap().with_loaded_host_callbacks([callback]);
        for version in versions() {
            let error = options.to_bytes(version).unwrap_err();
            prop_assert_eq!(error.code(), StatusCode::Unimplemented);
            prop_assert!(error.to_string().contains("loaded_host_callbacks"), "{}", error);
            let named = global_registry().serialize(&options, &SerializeOptions::new(version));
            prop_assert_eq!(named, Err(error));
        }
    }
}

//! Samples of programs, compile options, executables and plans.

use bytes::Bytes;
use serdes::{
    codec::{FromProto, ToProto, Validation},
    ifrt::{
        xla::{self, OpSharding, TileAssignment},
        *,
    },
    proto::OpaqueMessage,
};

use super::samples::{Sample, options, sample};

/// Types whose recorded number upstream ignores; only strict readers refuse a newer one, as their
/// unit tests show.
pub(crate) const NUMBER_NOT_CHECKED: [&str; 2] = ["IfrtIRProgram", "XlaExecutableMetadata"];

fn shape(dims: impl AsRef<[i64]>) -> Shape {
    Shape::new(dims).unwrap()
}

fn array(devices: &[i32]) -> ArraySpec {
    let count = devices.len() as i64;
    let tiles = OpSharding::tiled(TileAssignment::iota([count], [count], [0]).unwrap());
    let devices = devices.iter().copied().map(DeviceId).collect();
    let sharding = HloSharding::new(devices, MemoryKind::new("device"), tiles).unwrap();
    ArraySpec::new(DType::F64, shape([2 * count]), sharding)
}

fn scalar() -> ArraySpec {
    ArraySpec::new(DType::S32, Shape::scalar(), SingleDeviceSharding::new(DeviceId(1)))
}

/// Returns a sample of a plan, which is read in the form of its version.
fn plan(case: &'static str, plan: RemapPlan) -> Sample {
    let (first, second, text) = (plan.clone(), plan.clone(), plan.to_string());
    Sample {
        type_name: RemapPlan::NAME,
        case,
        message: "xla.ifrt.RemapPlanProto".to_owned(),
        value: text,
        write: Box::new(move |version| first.to_bytes(version)),
        can_write: Box::new(move |version| second.can_serialize_at(version)),
        read: Box::new(move |bytes| {
            for validation in [Validation::Parity, Validation::Strict] {
                let options = options().with_validation(validation);
                let read = RemapPlan::from_bytes(bytes.clone(), &options)?;
                assert_eq!(read.in_device_form(), plan.in_device_form());
            }
            Ok(())
        }),
    }
}

fn plans() -> Vec<Sample> {
    let (first, second) = (Interval::new(0, 1, 1), Interval::new(1, 2, 1));
    let reorder = RemapPlan::new([array(&[0, 1])], [array(&[1, 0])]);
    let reorder = reorder.with_mapping(0, 0, &[first, second], &[second, first]).unwrap();
    let strided = RemapPlan::new([array(&[0, 1, 2, 3])], [array(&[0, 2]), array(&[1, 3])])
        .with_mapping(0, 0, &[Interval::new(0, 4, 2)], &[Interval::new(0, 2, 1)])
        .and_then(|plan| {
            plan.with_mapping(0, 1, &[Interval::new(1, 5, 2)], &[Interval::new(0, 2, 1)])
        })
        .unwrap();
    let devices = strided.in_device_form().unwrap();
    let reversed = RemapPlan::new([array(&[0, 1])], [array(&[1, 0])]);
    let from = InputDevices { in_array: 0, devices: DeviceList::from([1, 0]) };
    let reversed = reversed.with_input_devices(0, [from]).unwrap();
    vec![
        plan("", reorder),
        plan("strided", strided),
        plan("devices", devices),
        plan("reversed", reversed),
    ]
}

fn executable() -> XlaExecutableMetadata {
    let output = |dtype, dims: [i64; 2], sharding| OutputSpec {
        dtype,
        shard_shape: shape(dims),
        shape: Some(shape([dims[0] * 2, dims[1]])),
        layout: None,
        memory_kind: "device".to_owned(),
        op_sharding: Some(sharding),
    };
    let rows = OpSharding::tiled(TileAssignment::iota([2, 1], [2], [0]).unwrap());
    let row_major = Layout::from(PjRtLayout::new(xla::Layout::descending(2)));
    let parameter = ParameterSpec {
        dtype: Some(DType::BF16),
        shape: Some(shape([4, 2])),
        layout: Some(row_major),
        memory_kind: String::new(),
        op_sharding: Some(OpSharding::replicated()),
        donated_input: true,
    };
    XlaExecutableMetadata::new("jit_f")
        .with_outputs([output(DType::F32, [4, 2], rows)])
        .unwrap()
        .with_parameters([parameter, ParameterSpec::default()])
        .with_portable(true)
        .with_executable_version(XlaExecutableVersion::new(7))
        .with_outputs_bundle_slice_sizes([1])
}

/// Returns the samples of this file.
pub(crate) fn programs() -> Vec<Sample> {
    let custom_call =
        CustomCallProgram::new("kind", "name", &b"a\0b"[..], DeviceList::from([0, 1]));
    let artifact = Bytes::from_static(b"ML\xefR\x0dStableHLO_v1.13.7\0\x01%");
    let options = XlaCompileOptions::new(&b"\x10\x01\xc2\xbb\x01\x02ab"[..]).unwrap();
    let abi = CompactLayout::c_order(1);
    let atom = IfrtIrAtomProgram {
        name: "main".to_owned(),
        version: Some("1.0".to_owned()),
        program: Bytes::from_static(b"atom"),
    };
    let ir_options = IfrtIrCompileOptions::new([DeviceId(1), DeviceId(0)])
        .with_override("main", OpaqueMessage::from_fields(b"\x10\x01").unwrap())
        .with_mlir_dump_to("/dump")
        .with_mlir_enable_timing(false)
        .with_dot_graph_min_executable_flops(1.5_f32)
        .with_strict_memory_reservation(true);
    let part = AtomExecutableVersion {
        executable_version: Bytes::from_static(b"\x0a\x01x"),
        logical_device_indexes: vec![1, 0],
    };
    let argument = HostCallbackArgument {
        channel_id: 3,
        shape: xla::Shape::array(xla::PrimitiveType::F32, [4]).with_layout("{0}".parse().unwrap()),
    };
    let mut all = plans();
    all.extend([
        sample("", custom_call.with_inputs([scalar()]).with_outputs([scalar(), scalar()])),
        sample("", CustomCallCompileOptions::new()),
        sample("bundled", CustomCallCompileOptions::new().with_outputs_bundle_slice_sizes([2, 3])),
        sample("", PluginProgram::new(&b"\0\xff"[..])),
        sample("", PluginCompileOptions::new()),
        sample("", HloProgram::new(artifact).unwrap()),
        sample("", options.clone()),
        sample("bundled", options.with_outputs_bundle_slice_sizes([1, 2])),
        sample("", XlaExecutableVersion::new(9)),
        sample("abi", XlaExecutableVersion::new(9).with_runtime_abi_version(abi)),
        sample("", executable()),
        sample(
            "",
            IfrtIrProgram::new("module").with_ifrt_version("0.1.0").with_atom_programs([atom]),
        ),
        sample("bundles", ir_options.clone().with_outputs_bundle_slice_sizes([2, 1])),
        sample("", ir_options),
        sample("", IfrtIrExecutableVersion::new("0.1.0", [part])),
        sample(
            "",
            XlaHostCallback::new([argument.clone()], [argument])
                .with_major_to_minor_data_layout(true),
        ),
    ]);
    all
}

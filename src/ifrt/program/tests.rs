use bytes::Bytes;
use prost::Message as _;

use super::*;
use crate::{
    codec::{
        DeserializeOptions, ErrorKind, FromProto, Registered, Serialized, StatusCode, ToProto,
        Validation,
    },
    ifrt::{
        AnyDevice, ArraySpec, ConcreteEvenSharding, DType, DeviceId, DeviceList, Layout,
        MemoryKind, PjRtLayout, Shape, SingleDeviceSharding,
        testing::{hex, shape, version, versions},
        xla,
    },
    proto::{OpaqueMessage, google::protobuf::Any, xla::ifrt as wire},
    version::SerDesVersion,
};

fn options() -> DeserializeOptions {
    DeserializeOptions::new()
        .with(DeserializeProgramOptions::new(AnyDevice))
        .with(IfrtIrExecutableVersionDeserializeOptions::new(2))
}

fn strict() -> DeserializeOptions {
    options().with_validation(Validation::Strict)
}

fn scalar() -> ArraySpec {
    ArraySpec::new(DType::S32, Shape::scalar(), SingleDeviceSharding::new(DeviceId(1)))
}

#[test]
fn custom_call_program_with_nul_bytes_round_trips() {
    let program = CustomCallProgram::new("kind", "name", &b"a\0b\0"[..], DeviceList::from([0, 1]))
        .with_inputs([scalar()])
        .with_outputs([scalar(), scalar()]);
    for version in versions() {
        let bytes = program.to_bytes(version).unwrap();
        assert_eq!(CustomCallProgram::from_bytes(bytes, &options()), Ok(program.clone()));
    }
    let bytes = program.to_bytes(version(3)).unwrap();
    let error = CustomCallProgram::from_bytes(bytes, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("DeserializeProgramOptions"), "{error}");
    let proto = wire::CustomCallProgramProto { version_number: 7, ..Default::default() };
    let error = CustomCallProgram::from_proto(&proto, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

#[test]
fn custom_call_options_are_a_message_from_version_4_on() {
    let plain = CustomCallCompileOptions::new();
    let bundled = CustomCallCompileOptions::new().with_outputs_bundle_slice_sizes([2, 3]);
    for version in versions() {
        let bytes = plain.to_bytes(version).unwrap();
        if version.number() < 4 {
            assert!(bytes.is_empty());
            let error = bundled.to_bytes(version).unwrap_err();
            assert_eq!(error.code(), StatusCode::FailedPrecondition);
            let text = error.to_string();
            assert!(
                text.contains("CustomCallCompileOptions")
                    && text.contains("outputs_bundle_slice_sizes"),
                "{text}"
            );
        } else {
            assert_eq!(bytes, hex("0804"));
            let bytes = bundled.to_bytes(version).unwrap();
            assert_eq!(bytes, hex("080412020203"));
            assert_eq!(
                CustomCallCompileOptions::from_bytes(bytes, &options()),
                Ok(bundled.clone())
            );
        }
        assert_eq!(CustomCallCompileOptions::from_bytes(bytes, &options()), Ok(plain.clone()));
    }
    for (bytes, kind) in [
        ("12020203", ErrorKind::Corrupt),
        ("7801", ErrorKind::Corrupt),
        ("0805", ErrorKind::Corrupt),
        ("0807", ErrorKind::TooNew),
        ("08", ErrorKind::Corrupt),
    ] {
        let error = CustomCallCompileOptions::from_bytes(hex(bytes), &options()).unwrap_err();
        assert_eq!(error.kind(), kind, "{bytes}: {error}");
    }
}

#[test]
fn ifrt_ir_options_record_4_from_version_4_on() {
    let plain = IfrtIrCompileOptions::new([DeviceId(0), DeviceId(1)]);
    let bundled = plain.clone().with_outputs_bundle_slice_sizes([2, 1]);
    for version in versions() {
        let bytes = plain.to_bytes(version).unwrap();
        let expected = if version.number() < 4 { "0a020001" } else { "0a0200012004" };
        assert_eq!(bytes, hex(expected), "{version}");
        assert_eq!(IfrtIrCompileOptions::from_bytes(bytes, &strict()), Ok(plain.clone()));
        match bundled.to_bytes(version) {
            Ok(bytes) => {
                assert_eq!(bytes, hex("0a020001200472020201"), "{version}");
                let read = IfrtIrCompileOptions::from_bytes(bytes, &strict());
                assert_eq!(read, Ok(bundled.clone()));
            }
            Err(error) => {
                assert!(version.number() < 4, "{error}");
                assert!(error.to_string().contains("version 4 is the first"), "{error}");
            }
        }
    }
    // Readers read sizes at format 4 only.
    let sizes_at_0 = hex("0a02000172020201");
    assert_eq!(IfrtIrCompileOptions::from_bytes(sizes_at_0.clone(), &options()), Ok(plain));
    let error = IfrtIrCompileOptions::from_bytes(sizes_at_0, &strict()).unwrap_err();
    assert!(error.to_string().contains("outputs_bundle_slice_sizes"), "{error}");
}

#[test]
fn overrides_of_one_name_take_the_last_one() {
    let entry = |value| format!("12070a0161120210{value}");
    let twice = hex(&[entry("01"), entry("02")].concat());
    let read = IfrtIrCompileOptions::from_bytes(twice, &strict()).unwrap();
    assert_eq!(read.overrides()["a"].fields(), [0x10, 2]);
    assert_eq!(read.to_bytes(version(3)).unwrap(), hex(&entry("02")));
    let wrong = IfrtIrCompileOptions::from_bytes(hex("10020a00"), &options()).unwrap_err();
    assert!(wrong.to_string().contains("wire type"), "{wrong}");
}

#[test]
fn a_plugin_program_is_its_prefix_and_its_bytes() {
    let program = PluginProgram::new(&b"\0\xff"[..]);
    for version in versions() {
        let bytes = program.to_bytes(version).unwrap();
        assert_eq!(&bytes[..], b"__serialized_plugin_program \0\xff");
        assert_eq!(PluginProgram::from_bytes(bytes, &options()), Ok(program.clone()));
        assert!(PluginCompileOptions::new().to_bytes(version).unwrap().is_empty());
    }
    let error = PluginProgram::from_bytes(Bytes::from("__serialized"), &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("PluginProgram"), "{error}");
    assert!(PluginCompileOptions::from_bytes(Bytes::from("any"), &options()).is_ok());
    assert!(PluginCompileOptions::from_bytes(Bytes::from("any"), &strict()).is_err());
}

#[test]
fn stablehlo_program_is_written_from_version_3_on() {
    let artifact = Bytes::from_static(b"ML\xefR\x0dStableHLO_v1.13.7\0\x01%");
    let program = HloProgram::new(artifact.clone()).unwrap();
    for version in versions() {
        let serialized = Serialized::of(&program, version);
        if version.number() < 3 {
            let error = serialized.unwrap_err();
            assert_eq!(error.code(), StatusCode::FailedPrecondition);
            assert!(error.to_string().contains("StableHLO_v1.13.7"), "{error}");
            continue;
        }
        let serialized = serialized.unwrap();
        assert_eq!(serialized.type_name(), "xla::ifrt::XlaProgram");
        assert_eq!(serialized.data(), &artifact);
        assert_eq!(serialized.read::<HloProgram>(&options()), Ok(program.clone()));
    }
    let error = HloProgram::from_bytes(Bytes::from("garbage"), &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
}

#[test]
fn compile_options_keep_what_this_build_does_not_know() {
    // Options with an unknown field 3000, then sizes, number 4 and two unknown fields around them.
    let inner = hex("1a03080142c2bb0102aabb");
    let mut bytes = vec![0x7d, 1, 2, 3, 4, 0x0a, inner.len() as u8];
    bytes.extend_from_slice(&inner);
    bytes.extend_from_slice(&hex("120101180422026162"));
    let options = XlaCompileOptions::from_bytes(bytes.into(), &options()).unwrap();
    assert_eq!(options.compile_options(), &inner);
    assert_eq!(options.outputs_bundle_slice_sizes(), [1]);
    let written = options.to_bytes(version(6)).unwrap();
    let mut expected = vec![0x0a, inner.len() as u8];
    expected.extend_from_slice(&inner);
    expected.extend_from_slice(&hex("12010118047d0102030422026162"));
    assert_eq!(&written[..], expected);
    // The message cannot hold them.
    let error = options.to_proto(version(6)).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("fields that this build does not know"), "{error}");
}

#[test]
fn compile_options_record_no_number_below_4() {
    let plain = XlaCompileOptions::new(hex("1001")).unwrap();
    for version in versions() {
        let bytes = plain.to_bytes(version).unwrap();
        let expected = if version.number() < 4 { "0a021001" } else { "0a0210011804" };
        assert_eq!(bytes, hex(expected));
        assert_eq!(plain.to_proto(version).unwrap().encode_to_vec(), bytes);
        assert_eq!(XlaCompileOptions::from_bytes(bytes, &options()), Ok(plain.clone()));
    }
    let bundled = plain.clone().with_outputs_bundle_slice_sizes([1]);
    assert_eq!(
        bundled.can_serialize_at(version(3)).unwrap_err().code(),
        StatusCode::FailedPrecondition
    );
    let loaded = plain.with_loaded_host_callbacks([XlaHostCallback::default()]);
    let error = loaded.to_bytes(version(6)).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("loaded_host_callbacks"), "{error}");
    for bytes in ["0a", "0a0208", "0801", "ff", "0a020b0b"] {
        let error = XlaCompileOptions::from_bytes(hex(bytes), &options()).unwrap_err();
        assert_eq!(error.code(), StatusCode::DataLoss, "{bytes}");
    }
    let error = XlaCompileOptions::from_bytes(hex("1807"), &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

/// A type that records the requested version.
#[derive(Debug)]
struct Recording;

impl Registered for Recording {
    const TYPE_NAME: &'static str = "test::Recording";
}

impl ToProto for Recording {
    type Proto = i32;

    fn to_proto(&self, version: SerDesVersion) -> Result<i32, crate::codec::EncodeError> {
        match version.number() {
            0 => Err(crate::codec::EncodeError::not_serializable("Recording", "zero", "ask more")),
            number => Ok(number),
        }
    }
}

#[test]
fn an_executable_version_hands_the_requested_version_on() {
    let with_abi = XlaExecutableVersion::new(9).with_runtime_abi_version(Recording);
    for version in versions().skip(1) {
        let bytes = with_abi.to_bytes(version).unwrap();
        let read = XlaExecutableVersion::from_bytes(bytes, &options()).unwrap();
        assert_eq!(read.platform_id(), 9);
        let nested = read.runtime_abi_version().unwrap().to_serialized(version).unwrap();
        assert_eq!(nested.type_name(), "test::Recording");
        assert_eq!(i32::decode(nested.data().clone()), Ok(version.number()));
    }
    assert_eq!(with_abi.to_bytes(version(0)).unwrap_err().code(), StatusCode::Internal);
    let garbage = wire::SerializedXlaExecutableVersion {
        runtime_abi_version: Bytes::from("\u{1}"),
        ..Default::default()
    };
    let error = XlaExecutableVersion::from_proto(&garbage, &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    let newer = wire::SerializedXlaExecutableVersion { version_number: 7, ..Default::default() };
    let error = XlaExecutableVersion::from_proto(&newer, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

#[test]
fn executables_of_two_platforms_are_not_compatible() {
    let status = XlaExecutableVersion::new(1).check_compatible(&XlaExecutableVersion::new(2));
    let status = status.unwrap_err();
    assert_eq!(status.code(), StatusCode::FailedPrecondition);
    assert!(status.message().contains("platform 1, not for 2"), "{status}");
    assert!(XlaExecutableVersion::new(1).check_compatible(&XlaExecutableVersion::new(1)).is_ok());
}

/// The metadata of a jitted function with outputs (a@b, bf16(a+1)), as jaxlib 0.10.2 wrote it.
const REAL_METADATA: &str = "08031209706a72745f696672742a180a040a0204021202080b220664657669636532040a0204022a180a040a02040812020810220664657669636532040a02040832260a240a220a15786c613a3a696672743a3a506a52744c61796f757412090a070a02010080010132260a240a220a15786c613a3a696672743a3a506a52744c61796f757412090a070a0201008001013a0b6a69745f5f6c616d6264614a00";

#[test]
fn metadata_of_a_real_executable_round_trips_byte_for_byte() {
    let output = |dtype, dims: &[i64]| OutputSpec {
        dtype,
        shard_shape: shape(dims),
        shape: Some(shape(dims)),
        layout: None,
        memory_kind: "device".to_owned(),
        op_sharding: None,
    };
    let row_major = Layout::from(PjRtLayout::new(xla::Layout::descending(2)));
    let parameter = ParameterSpec { layout: Some(row_major), ..Default::default() };
    let metadata = XlaExecutableMetadata::new("jit__lambda")
        .with_outputs([output(DType::F32, &[4, 2]), output(DType::BF16, &[4, 8])])
        .unwrap()
        .with_parameters([parameter.clone(), parameter])
        .with_executable_version(XlaExecutableVersion::default());
    let executable = SerializedXlaExecutable { metadata, executable: Bytes::from("backend") };
    let bytes = executable.to_bytes(version(3)).unwrap();
    let real = [&hex("a001"), &hex(REAL_METADATA)[..], b"backend"].concat();
    assert_eq!(&bytes[..], real);
    assert_eq!(SerializedXlaExecutable::from_bytes(bytes, &options()), Ok(executable));
}

#[test]
fn newer_metadata_is_refused_by_strict_readers_only() {
    let proto =
        wire::SerializedXlaExecutableMetadata { ifrt_version_number: 7, ..Default::default() };
    assert!(XlaExecutableMetadata::from_proto(&proto, &options()).is_ok());
    let error = XlaExecutableMetadata::from_proto(&proto, &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
    let program = wire::IfrtIrProgramProto { version_number: 7, ..Default::default() };
    assert!(IfrtIrProgram::from_proto(&program, &options()).is_ok());
    let error = IfrtIrProgram::from_proto(&program, &strict()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooNew);
}

#[test]
fn metadata_that_mixes_shardings_or_ends_early_is_refused() {
    use wire::serialized_xla_executable_metadata::OutputSpec as Output;
    let sharded = Output { op_sharding: Some(Default::default()), ..Default::default() };
    let proto = wire::SerializedXlaExecutableMetadata {
        output_specs: vec![sharded, Output::default()],
        ..Default::default()
    };
    let error = XlaExecutableMetadata::from_proto(&proto, &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("1 of 2 outputs"), "{error}");
    for bytes in ["", "ff", "05", "a001ff", "ffffffffffffffffff01"] {
        let error = SerializedXlaExecutable::from_bytes(hex(bytes), &options()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{bytes}");
    }
}

#[test]
fn ifrt_ir_types_make_the_round_trip() {
    let atom = IfrtIrAtomProgram {
        name: "main".to_owned(),
        version: Some(String::new()),
        program: Bytes::from_static(b"\0"),
    };
    let program =
        IfrtIrProgram::new("module").with_ifrt_version("0.1.0").with_atom_programs([atom]);
    let compile = IfrtIrCompileOptions::new([DeviceId(1), DeviceId(0)])
        .with_override("main", OpaqueMessage::from_fields(&hex("1001")).unwrap())
        .with_mlir_dump_to("/tmp")
        .with_mlir_enable_timing(false)
        .with_dot_graph_min_executable_flops(1.5_f32)
        .with_strict_memory_reservation(true);
    let serialized = Serialized::of(&XlaExecutableVersion::new(4), version(6)).unwrap();
    let part = AtomExecutableVersion {
        executable_version: wire::Serialized::from(serialized).encode_to_vec().into(),
        logical_device_indexes: vec![1, 0],
    };
    let executable = IfrtIrExecutableVersion::new("0.1.0", [part]);
    for version in versions() {
        if version.number() < 3 {
            let error = program.to_bytes(version).unwrap_err();
            assert_eq!(error.code(), StatusCode::FailedPrecondition);
        } else {
            let bytes = program.to_bytes(version).unwrap();
            assert_eq!(IfrtIrProgram::from_bytes(bytes, &options()), Ok(program.clone()));
        }
        let bytes = compile.to_bytes(version).unwrap();
        assert_eq!(IfrtIrCompileOptions::from_bytes(bytes, &options()), Ok(compile.clone()));
        let bytes = executable.to_bytes(version).unwrap();
        assert_eq!(IfrtIrExecutableVersion::from_bytes(bytes, &options()), Ok(executable.clone()));
    }
    assert_eq!(compile.mlir_enable_timing(), Some(false));
    assert_eq!(compile.mlir_dump_to(), Some("/tmp"));
}

#[test]
fn ifrt_ir_types_refuse_what_upstream_refuses() {
    let proto = wire::IfrtIrCompileOptionsProto { propagate_shardings: true, ..Default::default() };
    let error = IfrtIrCompileOptions::from_proto(&proto, &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert!(error.to_string().contains("propagate_shardings"), "{error}");

    let part = |bytes: &'static [u8], index| wire::AtomExecutableVersionProto {
        executable_version: Bytes::from_static(bytes),
        logical_device_indexes: vec![index],
    };
    for part in [part(b"", 2), part(b"", -1), part(b"\x01", 0)] {
        let proto = wire::IfrtIrExecutableVersionProto {
            executable_versions: vec![part],
            ..Default::default()
        };
        let error = IfrtIrExecutableVersion::from_proto(&proto, &options()).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
    }
    let error =
        IfrtIrExecutableVersion::from_proto(&Default::default(), &DeserializeOptions::new());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("IfrtIrExecutableVersionDeserializeOptions"), "{text}");
}

#[test]
fn a_host_callback_makes_the_round_trip() {
    let argument = |channel_id, text: &str| HostCallbackArgument {
        channel_id,
        shape: xla::Shape::array(xla::PrimitiveType::F32, [4]).with_layout(text.parse().unwrap()),
    };
    let callback = XlaHostCallback::new([argument(1, "{0}")], [argument(2, "{0:T(8)}")])
        .with_callback(Any { type_url: "type/x".to_owned(), value: vec![1].into() })
        .with_major_to_minor_data_layout(true);
    assert_eq!(callback.to_string(), "XlaHostCallback((f32[4]{0}) -> (f32[4]{0:T(8)}))");
    for version in versions() {
        let bytes = callback.to_bytes(version).unwrap();
        assert_eq!(XlaHostCallback::from_bytes(bytes, &options()), Ok(callback.clone()));
    }
}

#[test]
fn an_array_spec_inside_of_a_program_may_have_any_sharding() {
    let two = DeviceList::from([0, 1]);
    let (whole, part) = (shape([4]), shape([2]));
    let even =
        ConcreteEvenSharding::new(two.clone(), MemoryKind::unset(), whole.clone(), part, false);
    let spec = ArraySpec::new(DType::F32, whole, even.unwrap());
    let program = CustomCallProgram::new("", "", "", two).with_inputs([spec]);
    let bytes = program.to_bytes(version(0)).unwrap();
    assert_eq!(CustomCallProgram::from_bytes(bytes, &options()), Ok(program));
}

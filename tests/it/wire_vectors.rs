//! Tests of messages from the real client of jaxlib 0.10.2: each is read and written again to the
//! same bytes, and plans, programs and compile options have the values that were sent.
//!
//! See `tests/data/ifrt/README.md`. Values of the core types are tested in `ifrt_vectors.rs`.

use std::{collections::BTreeSet, fs, path::Path};

use bytes::Bytes;
use prost::{Message, Name};
use serdes::{
    codec::{FromProto, Registered, Serialized, ToProto, Validation},
    ifrt::*,
    proto::xla::ifrt::{self as wire, proto, proxy},
    version::{SerDesAnyVersionAccessor, SerDesVersion},
};

/// Returns the files as (version, label, full message name, bytes).
fn files() -> Vec<(SerDesVersion, String, String, Bytes)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt/golden");
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        let (label, message) = name.strip_suffix(".binpb").unwrap().split_once(".xla.").unwrap();
        let (version, label) = label.strip_prefix("serdes").unwrap().split_once('.').unwrap();
        let version = SerDesAnyVersionAccessor::get(version.parse().unwrap()).unwrap();
        let bytes = fs::read(entry.path()).unwrap();
        (version, label.to_owned(), format!("xla.{message}"), bytes.into())
    });
    files.collect()
}

/// Reads and writes a message of the type.
fn trip<M: Message + Name + Default + PartialEq + std::fmt::Debug>(bytes: &Bytes) -> Vec<u8> {
    let message = M::decode(bytes.clone()).unwrap();
    let written = message.encode_to_vec();
    assert_eq!(M::decode(&written[..]).unwrap(), message);
    written
}

macro_rules! trips {
    ($($message:ty),* $(,)?) => {
        [$((<$message>::full_name(), trip::<$message> as fn(&Bytes) -> Vec<u8>)),*]
    };
}

#[test]
fn every_message_is_written_as_it_was_sent() {
    let trips = trips![
        wire::ArraySpecProto,
        wire::AttributeMapProto,
        wire::ConcreteEvenShardingProto,
        wire::DTypeProto,
        wire::DeviceListProto,
        wire::HloShardingProto,
        wire::RemapPlanProto,
        wire::Serialized,
        wire::ShapeProto,
        wire::ShardingProto,
        proto::ByteStrides,
        proto::StringArrayContents,
        proxy::AssembleArrayFromSingleDeviceArraysRequest,
        proxy::CheckFutureRequest,
        proxy::CheckValueReadyRequest,
        proxy::CompileRequest,
        proxy::CopyArraysRequest,
        proxy::CopyToHostBufferRequest,
        proxy::DeleteArrayRequest,
        proxy::DestructArrayRequest,
        proxy::DisassembleIntoSingleDeviceArraysRequest,
        proxy::FullyReplicatedShardRequest,
        proxy::GetDefaultLayoutRequest,
        proxy::GrpcGetVersionRequest,
        proxy::GrpcHostBufferDeleteRequest,
        proxy::GrpcHostBufferLookupRequest,
        proxy::GrpcHostBufferStoreMetadata,
        proxy::GrpcHostBufferStoreRequest,
        proxy::GrpcIfrtSessionMetadata,
        proxy::IfrtRequest,
        proxy::InitRequest,
        proxy::MakeArrayFromHostBufferRequest,
        proxy::MakeArraysFromHostBufferShardsRequest,
        proxy::RemapArraysRequest,
    ];
    let mut seen = BTreeSet::new();
    for (version, label, message, bytes) in files() {
        let (_, trip) = trips
            .iter()
            .find(|(name, _)| *name == message)
            .unwrap_or_else(|| panic!("{message} is not in the list"));
        let written = trip(&bytes);
        // Our maps are written in the order of their keys, those of the real client in the order of
        // a hash.
        if label == "three_kinds" {
            assert_eq!(written.len(), bytes.len(), "{label} {message} at {version}");
        } else {
            assert_eq!(written, bytes, "{label} {message} at {version}");
        }
        seen.insert(message);
    }
    assert_eq!(seen.len(), trips.len(), "{seen:?}");
}

fn find(label: &str, message: &str) -> Vec<(SerDesVersion, Bytes)> {
    let found: Vec<_> = files()
        .into_iter()
        .filter(|(_, found, name, _)| found == label && name == message)
        .map(|(version, _, _, bytes)| (version, bytes))
        .collect();
    assert!(!found.is_empty(), "{label} {message}");
    found
}

#[test]
fn a_real_remap_plan_changes_the_places_of_two_shards() {
    for (version, bytes) in find("reorder2", "xla.ifrt.RemapPlanProto") {
        let options = with_devices(AnyDevice).with_validation(Validation::Strict);
        let plan = RemapPlan::from_bytes(bytes.clone(), &options).unwrap();
        let mappings: Vec<_> = plan.mappings().map(|mapping| mapping.to_string()).collect();
        assert_eq!(
            mappings,
            ["Mapping(in_array=0,out_array=0,from=[[0:1:1],[1:2:1]],to=[[1:2:1],[0:1:1]])"]
        );
        assert_eq!(plan.input_devices().unwrap()[&0][0].devices, DeviceList::from([0, 1]));
        assert_eq!(plan.to_bytes(version).unwrap(), bytes);
        let message = plan.to_proto(version).unwrap();
        assert_eq!(message.encode_to_vec(), bytes);
        // The mappings that are computed from the devices alone equal those that the client sent.
        let again = plan.in_device_form().unwrap().in_mapping_form().unwrap();
        assert_eq!(again.to_bytes(version).unwrap(), bytes);
    }
}

fn serialized(label: &str) -> (SerDesVersion, Serialized) {
    let (version, bytes) = find(label, "xla.ifrt.Serialized").remove(0);
    let message = wire::Serialized::decode(bytes).unwrap();
    (version, message.into())
}

#[test]
fn a_real_program_says_its_version_of_stablehlo() {
    let (version, serialized) = serialized("program_XlaProgram");
    assert_eq!(serialized.type_name(), HloProgram::TYPE_NAME);
    let program = serialized.read::<HloProgram>(&with_devices(AnyDevice)).unwrap();
    assert_eq!(program.producer(), "StableHLO_v1.13.7");
    assert_eq!(program.bytecode_version(), 6);
    assert_eq!(program.stablehlo_version().unwrap().to_string(), "1.13.7");
    assert_eq!(Serialized::of(&program, version), Ok(serialized));
}

#[test]
fn real_compile_options_are_passed_on_byte_for_byte() {
    let (version, serialized) = serialized("compile_options_XlaCompileOptions");
    let options = serialized.read::<XlaCompileOptions>(&with_devices(AnyDevice)).unwrap();
    assert!(options.outputs_bundle_slice_sizes().is_empty());
    assert_eq!(Serialized::of(&options, version), Ok(serialized.clone()));
    // The message keeps all fields of the compiler as well.
    let message = wire::XlaCompileOptionsProto::decode(serialized.data().clone()).unwrap();
    assert_eq!(message.encode_to_vec(), *serialized.data());
    assert_eq!(options.to_proto(version).unwrap(), message);
}

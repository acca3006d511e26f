//! Messages of IFRT: values under their type names, and bare messages without a name.
//!
//! A bare message and a GraphDef both consist of fields only, and a parser of graphs skips unknown
//! fields. Bytes that may be a graph count as one: with versions, with nodes that all have
//! operations, or with a function. So do zero bytes, which are a valid encoding of every message
//! with default values.

use std::io;

use serdes::proto::{
    serdes::ifrt as specs,
    xla::ifrt::{self, proto, proxy},
};
use serdes_graphs::graph::{self, Form, Message, ReadOptions};
use serdes_wire::{Dialect, FieldValue, WireReader};

use super::file::File;

/// The prefix of the type names.
const NAMES: &[u8] = b"xla::ifrt::";

/// Limit on the length of a bare message, in bytes; they are lists of devices and dimensions.
const LONGEST_BARE: u64 = 1 << 20;

/// Returns true if a message begins with an IFRT type name.
pub(super) fn is_serialized(head: &[u8]) -> bool {
    matches!(head.split_at_checked(2), Some(([0x0a, length], name)) if usize::from(*length) >= NAMES.len() && name.starts_with(NAMES))
}

/// Returns true if a file is a bare message of IFRT or its proxy: it cannot contain a graph, and
/// one of the messages decodes it and encodes to the same bytes.
pub(super) fn is_bare(file: &File<'_>) -> io::Result<bool> {
    if file.size > LONGEST_BARE || !is_plausible(file.head) {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(file.size).unwrap_or_default()];
    file.source.read_exact_at(&mut bytes, 0)?;
    Ok(!has_graph(&bytes) && is_message(&bytes))
}

/// Returns true if the first field is one of the few that messages of IFRT begin with.
fn is_plausible(head: &[u8]) -> bool {
    head.first().is_some_and(|tag| (1..=15).contains(&(tag >> 3)))
}

/// Returns true if the bytes may contain a graph: versions, nodes that all have operations, a
/// function, or only the version number that graphs of the first TensorFlow had.
fn has_graph(bytes: &Vec<u8>) -> bool {
    let options = ReadOptions::default().with_operations_counted(true);
    let Ok(graphs) = graph::read(bytes, Message::GraphDef, Form::Binary, &options) else {
        return false;
    };
    let has_operations = graphs.meta_graphs.iter().any(|meta_graph| {
        let graph = &meta_graph.graph;
        let nodes = graph.nodes + graph.function_nodes;
        nodes > 0
            && graph.operations.values().sum::<u64>() == nodes
            && graph.operations.keys().all(|name| is_name(name.as_bytes()))
    });
    has_operations
        || contents(VERSIONS, bytes).any(is_versions)
        || has_function(bytes)
        || is_old_version(bytes)
}

/// Returns true if a message has only the field `version`, which graphs had before `versions`.
fn is_old_version(message: &[u8]) -> bool {
    let mut fields = WireReader::new(Dialect::Prost, message);
    std::iter::from_fn(|| fields.next_field().transpose())
        .all(|field| field.is_ok_and(|field| field.number == VERSION))
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

/// Returns true if a message has only the fields of a graph's versions: a producer, the oldest
/// consumer, and consumers that must not read it, one by one or packed. It may be empty.
fn is_versions(message: &[u8]) -> bool {
    let mut fields = WireReader::new(Dialect::Prost, message);
    loop {
        match fields.next_field() {
            Ok(None) => return true,
            Ok(Some(field)) => match (field.number, field.value) {
                (1..=3, FieldValue::Varint(_)) | (3, FieldValue::Bytes(_)) => {}
                _ => return false,
            },
            Err(_) => return false,
        }
    }
}

/// Returns true if a library of a graph has a function whose signature has a name.
fn has_function(bytes: &[u8]) -> bool {
    contents(LIBRARY, bytes)
        .flat_map(|library| contents(FUNCTION, library))
        .flat_map(|function| contents(SIGNATURE, function))
        .flat_map(|signature| contents(NAME, signature))
        .any(is_name)
}

/// The number of the field `library` of a GraphDef.
const LIBRARY: u32 = 2;
/// The number of the field `version` of a GraphDef.
const VERSION: u32 = 3;
/// The number of the field `versions` of a GraphDef.
const VERSIONS: u32 = 4;
/// The number of the field `function` of a FunctionDefLibrary.
const FUNCTION: u32 = 1;
/// The number of the field `signature` of a FunctionDef.
const SIGNATURE: u32 = 1;
/// The number of the field `name` of an OpDef.
const NAME: u32 = 1;

/// Returns the contents of the fields of this number, up to the first byte that is not part of a
/// field.
fn contents(number: u32, message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut fields = WireReader::new(Dialect::Prost, message);
    std::iter::from_fn(move || fields.next_field().ok().flatten()).filter_map(move |field| {
        match field.value {
            FieldValue::Bytes(bytes) if field.number == number => Some(bytes),
            _ => None,
        }
    })
}

fn is_written_again<M: prost::Message + Default>(bytes: &[u8]) -> bool {
    M::decode(bytes).is_ok_and(|message| message.encode_to_vec() == bytes)
}

/// Defines the checks of the messages of a package, one per message.
macro_rules! messages {
    ($package:ident: $($name:ident),* $(,)?) => {
        &[$(is_written_again::<$package::$name>),*]
    };
}

type IsMessage = fn(&[u8]) -> bool;

/// The messages by package; one for each set of fields.
const MESSAGES: [&[IsMessage]; 4] = [
    messages!(
        ifrt:
            DTypeProto, ShapeProto, DynamicShapeProto, BoundedDynamicShapeTagProto, ArraySpecProto,
            AbstractArraySpecProto, ShardingProto, ShardingSpecProto, ShardingParamProto,
            HloShardingProto, HloShardingSpecProto, SingleDeviceShardingProto, OpaqueShardingProto,
            ConcreteShardingProto, ConcreteEvenShardingProto, ShardingParamShardingProto,
            DeviceListProto, RemapPlanProto, AttributeMapProto, ExecuteOptionsProto, IndexProto,
            IndexDomainProto, LayoutProto, CompactLayoutProto, PjRtLayoutProto, Serialized,
            XlaCompileOptionsProto,
    ),
    messages!(proto: ByteStrides, StringArrayContents),
    messages!(specs: SingleDeviceShardingSpecProto, ConcreteEvenShardingSpecProto),
    messages!(
        proxy:
            GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcIfrtSessionMetadata,
            GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest,
            GrpcHostBufferReadFromDiskRequest, GrpcHostBufferLookupRequest, IfrtProxyVersion,
            IfrtRequest, IfrtResponse, RequestMetadata, ResponseMetadata, InitResponse,
            CheckFutureRequest, CheckValueReadyRequest, MakeArrayFromHostBufferRequest,
            MakeArraysFromHostBufferShardsRequest, MakeArraysFromHostBufferShardsResponse,
            MakeErrorArraysRequest, AssembleArrayFromSingleDeviceArraysRequest, RemapArraysRequest,
            BitcastArraysRequest, CopyToHostBufferRequest, DisassembleIntoSingleDeviceArraysRequest,
            CopyArraysRequest, FullyReplicatedShardRequest, DeleteArrayRequest,
            IsArrayDeletedResponse, CompileRequest, CompileResponse,
            LoadedExecutableMetadataResponse, LoadedExecutableCostAnalysisResponse,
            LoadedExecutableHumanReadableProgramTextResponse, LoadedExecutableExecuteRequest,
            LoadedExecutableExecuteResponse, LoadedExecutableFetchExecuteResultResponse,
            LoadedExecutableDeleteOptionsProto, LoadedExecutableDestructRequest,
            LoadedExecutableMpmdMetadataResponse, LoadedExecutableMpmdCostAnalysisResponse,
            LoadedHostCallbackPollResponse, LoadedHostCallbackReturnRequest,
            GetDefaultDeviceAssignmentResponse, GetDefaultLayoutRequest,
    ),
];

/// Returns true if the bytes are one of the messages, without unknown fields.
fn is_message(bytes: &[u8]) -> bool {
    MESSAGES.iter().any(|package| package.iter().any(|is_it| is_it(bytes)))
}

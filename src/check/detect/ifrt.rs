//! Messages of IFRT: values under their type names, and bare messages, which nothing names.

use std::io;

use super::file::File;
use crate::{
    artifact::graph::{self, Form, Message, ReadOptions},
    proto::{serdes::ifrt as specs, xla::ifrt},
    version::VersionDef,
};

/// The prefix of the type names.
const NAMES: &[u8] = b"xla::ifrt::";

/// The longest bare message, in bytes; they are lists of devices and dimensions.
const LONGEST_BARE: u64 = 1 << 20;

/// True if a message begins with a type name of IFRT's.
pub(super) fn is_serialized(head: &[u8]) -> bool {
    matches!(head.split_at_checked(2), Some(([0x0a, length], name)) if usize::from(*length) >= NAMES.len() && name.starts_with(NAMES))
}

/// True if a file is a bare message of IFRT: it has neither versions nor nodes of a graph, and one
/// of the messages decodes it and encodes to the same bytes.
pub(super) fn is_bare(file: &File<'_>) -> io::Result<bool> {
    if file.size > LONGEST_BARE || !is_plausible(file.head) {
        return Ok(false);
    }
    let mut bytes = vec![0; usize::try_from(file.size).unwrap_or_default()];
    file.source.read_exact_at(&mut bytes, 0)?;
    Ok(!has_graph(&bytes) && is_message(&bytes))
}

/// True if the first field is one of the few that messages of IFRT have; an old graph may begin
/// with its version, which is field 3.
fn is_plausible(head: &[u8]) -> bool {
    head.first().is_some_and(|tag| (1..=15).contains(&(tag >> 3)) && *tag != 0x18)
}

/// True if the bytes have what every graph has: versions, or nodes that all have operations.
fn has_graph(bytes: &Vec<u8>) -> bool {
    let options = ReadOptions::default().with_operations_counted(true);
    let Ok(graphs) = graph::read(bytes, Message::GraphDef, Form::Binary, &options) else {
        return false;
    };
    graphs.meta_graphs.iter().any(|meta_graph| {
        let graph = &meta_graph.graph;
        let nodes = graph.nodes + graph.function_nodes;
        let is_named = |name: &String| {
            !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_graphic())
        };
        graph.versions != VersionDef::default()
            || (nodes > 0
                && graph.operations.values().sum::<u64>() == nodes
                && graph.operations.keys().all(is_named))
    })
}

fn is_written_again<M: prost::Message + Default>(bytes: &[u8]) -> bool {
    M::decode(bytes).is_ok_and(|message| message.encode_to_vec() == bytes)
}

/// True if bytes are one of the messages, all fields of which are known.
fn is_message(bytes: &[u8]) -> bool {
    const MESSAGES: [fn(&[u8]) -> bool; 30] = [
        is_written_again::<ifrt::DTypeProto>,
        is_written_again::<ifrt::ShapeProto>,
        is_written_again::<ifrt::DynamicShapeProto>,
        is_written_again::<ifrt::BoundedDynamicShapeTagProto>,
        is_written_again::<ifrt::ArraySpecProto>,
        is_written_again::<ifrt::AbstractArraySpecProto>,
        is_written_again::<ifrt::ShardingProto>,
        is_written_again::<ifrt::ShardingSpecProto>,
        is_written_again::<ifrt::ShardingParamProto>,
        is_written_again::<ifrt::HloShardingProto>,
        is_written_again::<ifrt::HloShardingSpecProto>,
        is_written_again::<ifrt::SingleDeviceShardingProto>,
        is_written_again::<ifrt::OpaqueShardingProto>,
        is_written_again::<ifrt::ConcreteShardingProto>,
        is_written_again::<ifrt::ConcreteEvenShardingProto>,
        is_written_again::<ifrt::ShardingParamShardingProto>,
        is_written_again::<ifrt::DeviceListProto>,
        is_written_again::<ifrt::RemapPlanProto>,
        is_written_again::<ifrt::AttributeMapProto>,
        is_written_again::<ifrt::ExecuteOptionsProto>,
        is_written_again::<ifrt::IndexProto>,
        is_written_again::<ifrt::IndexDomainProto>,
        is_written_again::<ifrt::LayoutProto>,
        is_written_again::<ifrt::CompactLayoutProto>,
        is_written_again::<ifrt::PjRtLayoutProto>,
        is_written_again::<ifrt::Serialized>,
        is_written_again::<ifrt::proto::ByteStrides>,
        is_written_again::<ifrt::proto::StringArrayContents>,
        is_written_again::<specs::SingleDeviceShardingSpecProto>,
        is_written_again::<specs::ConcreteEvenShardingSpecProto>,
    ];
    MESSAGES.iter().any(|is_it| is_it(bytes))
}

//! The gRPC services on the wire: their paths, metadata keys, and the sizes of messages.

/// The name of the service.
pub(super) const NAME: &str = "xla.ifrt.proxy.GrpcIfrtService";

/// A path of a call.
macro_rules! path {
    ($name:literal) => {
        concat!("/xla.ifrt.proxy.GrpcIfrtService/", $name)
    };
}

/// The calls of gRPC's health service.
pub(super) const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
pub(super) const HEALTH_WATCH: &str = "/grpc.health.v1.Health/Watch";

pub(super) const GET_VERSION: &str = path!("GetVersion");
pub(super) const IFRT_SESSION: &str = path!("IfrtSession");
pub(super) const HOST_BUFFER_STORE: &str = path!("HostBufferStore");
pub(super) const HOST_BUFFER_LOOKUP: &str = path!("HostBufferLookup");
pub(super) const HOST_BUFFER_DELETE: &str = path!("HostBufferDelete");
pub(super) const HOST_BUFFER_READ_FROM_DISK: &str = path!("HostBufferReadFromDisk");

/// The stream of a session's small arrays, which other servers do not have. Its metadata is that of
/// a store, of which the session alone counts.
pub(super) const SMALL_TRANSFERS: &str = "/serdes.proxy.SmallTransfers/Transfer";

/// The call that has arrays of a session kept in the state, which other servers do not have. Its
/// metadata is that of a store, of which the session alone counts.
pub(super) const KEEP: &str = "/serdes.proxy.State/Keep";

/// The key of a session's metadata: a `GrpcIfrtSessionMetadata`.
pub(super) const SESSION_METADATA: &str = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
/// The key of a store's metadata: a `GrpcHostBufferStoreMetadata`.
pub(super) const STORE_METADATA: &str = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";

/// Name of gRPC's trailer for the status code of a call: 0 for success.
pub(super) const GRPC_STATUS: &str = "grpc-status";

/// The key by which our client says that it wants a host buffer once, and by which our server
/// answers that it has given the buffer up: a deletion less. Other servers do not know it, and
/// their buffers are deleted as ever.
pub(super) const TAKE: &str = "serdes-take-host-buffer";

/// The key by which our server says, in its answer to `GetVersion`, that a transfer of a host
/// buffer may bring the request along that the buffer is for. A small array is one call then, and
/// not two. Other servers do not say it, and get two.
pub(super) const TAKES_REQUESTS: &str = "serdes-takes-requests";
/// The key of that request in the metadata of the transfer: an `IfrtRequest`.
pub(super) const REQUEST: &str = "serdes-request-bin";

/// The key by which our server says, in its answer to `GetVersion`, that it has the stream of small
/// arrays.
pub(super) const HAS_SMALL_TRANSFERS: &str = "serdes-has-small-transfers";

/// The key by which our client says that the answer to a store need not have a message: its status
/// alone is one frame in place of three. Other servers do not know it, and send the message.
pub(super) const BRIEF: &str = "serdes-brief";

/// The most bytes of data in a message of a host-buffer call, as the real ones have it.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// The largest answer of a server that a client takes.
pub(super) const ANSWER_BYTES: usize = 512 << 20;
/// The largest message with a part of a host buffer. The real ones have a MiB.
pub(super) const MESSAGE_BYTES: u64 = 16 << 20;

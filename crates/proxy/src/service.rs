//! The gRPC services on the wire: paths, metadata keys and message sizes.

/// The name of the service.
pub(super) const NAME: &str = "xla.ifrt.proxy.GrpcIfrtService";

/// Builds the path of a call.
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

/// The stream of a session's small arrays, which only this library's server has. Its metadata is
/// that of a store, of which only the session is used.
pub(super) const SMALL_TRANSFERS: &str = "/serdes.proxy.SmallTransfers/Transfer";

/// The call that stores arrays of a session in the state, which only this library's server has. Its
/// metadata is that of a store, of which only the session is used.
pub(super) const KEEP: &str = "/serdes.proxy.State/Keep";

/// The key of a session's metadata: a `GrpcIfrtSessionMetadata`.
pub(super) const SESSION_METADATA: &str = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
/// The key of a store's metadata: a `GrpcHostBufferStoreMetadata`.
pub(super) const STORE_METADATA: &str = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";

/// Name of gRPC's trailer for the status code of a call: 0 for success.
pub(super) const GRPC_STATUS: &str = "grpc-status";

/// Key with which our client requests a host buffer for the last time, and our server answers that
/// it has removed the buffer, which saves a deletion. Other servers ignore it, and their buffers
/// are deleted as usual.
pub(super) const TAKE: &str = "serdes-take-host-buffer";

/// Key with which our server announces, in its answer to `GetVersion`, that a transfer of a host
/// buffer may carry the request that uses it: a small array then takes one call instead of two.
/// Other servers do not send it, and get two calls.
pub(super) const TAKES_REQUESTS: &str = "serdes-takes-requests";
/// Key of that request in the metadata of the transfer: an `IfrtRequest`.
pub(super) const REQUEST: &str = "serdes-request-bin";

/// Key with which our server announces, in its answer to `GetVersion`, the stream of small arrays.
pub(super) const HAS_SMALL_TRANSFERS: &str = "serdes-has-small-transfers";

/// Key with which our client permits an answer to a store without a message: its status alone is
/// one frame instead of three. Other servers ignore it, and send the message.
pub(super) const BRIEF: &str = "serdes-brief";

/// Maximum data of a message of a host-buffer call in bytes, as in the real clients and servers.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Maximum size of a server's answer that a client accepts, in bytes.
pub(super) const ANSWER_BYTES: usize = 512 << 20;
/// Maximum size of a message with a part of a host buffer, in bytes. Real ones have 1 MiB.
pub(super) const MESSAGE_BYTES: u64 = 16 << 20;

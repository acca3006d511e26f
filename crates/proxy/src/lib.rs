//! The IFRT proxy: a server of arrays on the devices of a plug-in, and a client, over gRPC.
//!
//! A JAX program of any release of the last year connects to a [`Server`]; both agree on the
//! highest version of the protocol and of the IFRT values that both speak, each for itself; then
//! arrays go to the plug-in's devices and come back. Where the devices are those of a PJRT plug-in,
//! programs are compiled and run on them.
//!
//! ```
//! use serdes::ifrt::{DType, DeviceId, Shape};
//! use serdes_stream_executor::Plugin;
//! use serdes_proxy::{Client, Server};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let server = Server::builder(&Plugin::host()).build()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = format!("http://{}", listener.local_addr()?);
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let serving = tokio::spawn(async move { server.serve(listener, async { drop(stopped.await) }).await });
//!
//! let client = Client::connect(&address).await?;
//! let device = client.devices()[0].id;
//! let array = client.put(DType::F32, &Shape::new([2])?, device, [0, 0, 128, 63, 0, 0, 0, 64].to_vec()).await?;
//! assert_eq!(&client.get(&array).await?[..4], 1.0_f32.to_le_bytes());
//!
//! drop(client);
//! drop(stop);
//! serving.await??;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
//!
//! # What a peer may expect
//!
//! * Both lines are negotiated by `GetVersion`. Where ranges do not overlap the answer is an error
//!   that names both and says who must be upgraded; the client's user reads it. The server never
//!   answers outside of the client's range.
//! * The version that a session was opened with is the one that everything in the session is
//!   written with.
//! * Requests take effect in the order in which they came. One that has to wait, for the data of an
//!   array or for the device, waits beside the others, and its answer comes when it is done.
//! * Handles are chosen by the client. A failed request leaves its error under the handles that it
//!   should have made: whatever uses them gets it, and they can be destructed.
//!
//! The crate knows the messages of the proxy, values of IFRT and devices. It must never know a
//! command line.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![forbid(unsafe_code)]
// No bytes, no peer and no plug-in makes the crate panic: what could is an exception with its
// reason.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod boxed;
mod bulk;
mod client;
mod error;
mod handshake;
mod health;
mod keeping;
mod requests;
mod server;
mod service;
mod small_transfers;
mod status;

pub use client::{
    Client, ClientOptions, RemoteArray, RemoteDevice, RemoteMemory, check_health, negotiate,
    negotiate_with,
};
pub use error::ProxyError;
pub use handshake::Handshake;
pub use health::Health;
pub use server::{
    Limits, LocalSession, Metrics, ServedDevices, Server, ServerBuilder, StateHolder, Tokens,
    TrialCompiler, TrialFailure,
};

pub use serdes::version::proxy::{Agreement, Ranges};

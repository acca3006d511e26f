//! The IFRT proxy: a server of arrays on the devices of a plug-in, and a client, over gRPC.
//!
//! A JAX program of any release of the last year connects to a [`Server`]; for the protocol and for
//! IFRT values, both use the highest version that both support; then arrays go to the plug-in's
//! devices and come back. If the devices belong to a PJRT plug-in, programs are compiled and run on
//! them.
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
//! # Guarantees to peers
//!
//! * Both versions are negotiated by `GetVersion`. If the ranges do not overlap, the answer is an
//!   error for the client's user that names both and says which side to upgrade. The server never
//!   chooses a version outside of the client's range.
//! * Everything in a session is written with the version that the session was opened with.
//! * Requests take effect in the order of arrival. A request that waits for the data of an array or
//!   for the device does not block others; its answer comes when it is done.
//! * The client chooses handles. A failed request stores its error under the handles that it would
//!   have created: requests that use them get the error, and they can be destructed.
//!
//! The crate deals with the messages of the proxy, IFRT values and devices. It does not depend on a
//! command line.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![forbid(unsafe_code)]
// Data, peers and plug-ins must not make the crate panic: each exception states its reason.
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

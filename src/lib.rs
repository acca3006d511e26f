//! Saves and restores machine-learning state across framework versions.
//!
//! # The version of a conversation
//!
//! ```
//! use serdes::codec::{DeserializeOptions, FromProto, ToProto};
//! use serdes::ifrt::Shape;
//! use serdes::version::{SerDesAnyVersionAccessor, VersionRange};
//!
//! let peer = VersionRange::new(2, 4).expect("not empty");
//! let version = SerDesAnyVersionAccessor::negotiate(VersionRange::supported(), peer)?;
//! let message = Shape::new([2, 3])?.to_proto(version)?; // the version is always said
//! let same = Shape::from_proto(&message, &DeserializeOptions::new())?; // the message says its own
//! assert_eq!(same, Shape::new([2, 3])?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Your own formats
//!
//! A crate declares lines of versions in its own `versions.toml`, and [`lines!`] defines types for
//! them: see `examples/downstream`.
//!
//! # Modules
//!
//! A module uses only the modules before it in this list: [`version`] and `wire`; [`proto`] and
//! [`codec`]; [`ifrt`]. [`stablehlo`] is the crate `serdes-stablehlo`, on which all of them may
//! depend.
//!
//! The crates `serdes-device-state` (buffers of devices, from one build to another),
//! `serdes-tensors` (files of tensors, their storage, and transfers to and from states),
//! `serdes-check` (verdicts before loading) and `serdes-proxy` (the server of arrays and programs
//! over gRPC, and its client) depend on this one. Beside it are `serdes-stream-executor` and
//! `serdes-pjrt` (hosts of plug-ins), `serdes-graphs` and `serdes-checkpoints` (TensorFlow's graphs
//! and checkpoints).
//!
//! # Features
//!
//! | feature | what comes with it |
//! |---|---|
//! | `proxy` | in [`proto`], the messages of the IFRT proxy |
//! | `serde` | `Serialize` and `Deserialize` for the types of [`ifrt`] and for versions |
//! | `testing` | in [`codec`], checks of versions and formats for the tests of your own types |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Bytes, peers and plug-ins must not make the library panic; each exception states its reason.
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

pub mod codec;
pub mod ifrt;
pub mod proto;
pub mod version;
mod wire;

pub use serdes_abi::ErrorKind;
pub use serdes_stablehlo as stablehlo;

/// Declares the lines of the crate's own `versions.toml`: one type per line, which implements
/// [`Line`](version::Line), and `REGISTRY` with the whole content of the file.
///
/// The crate's `build.rs` calls `serdes_version_registry::build("versions.toml")`, which checks
/// every rule of the file; its documentation describes the file's format. `examples/downstream` is
/// a complete crate of this kind.
#[macro_export]
macro_rules! lines {
    () => {
        include!(concat!(env!("OUT_DIR"), "/serdes_lines.rs"));
    };
}

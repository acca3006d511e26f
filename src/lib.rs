//! Saves and restores machine-learning state across framework versions.
//!
//! # Device state that an older build can read
//!
#![cfg_attr(feature = "device", doc = "```")]
#![cfg_attr(not(feature = "device"), doc = "```ignore")]
//! use serdes::device_state::{Reader, Versions, Writer};
//! use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
//! use serdes::stream_executor::Plugin;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("step-1000.sds");
//! # let bytes = vec![0; 512 * 512 * 4];
//! let plugin = Plugin::host(); // or Plugin::load("libmy_device.so")?
//! let device = plugin.device(0)?;
//! let kernel = device.upload(&bytes)?; // freed on drop
//! let shape = Shape::new([512, 512])?;
//! let spec = ArraySpec::new(DType::F32, shape, SingleDeviceSharding::new(DeviceId(0)));
//! let mut state = Writer::create(&path, Versions::week_4_old())?;
//! state.add("dense/kernel", &spec, &kernel)?; // streams out in chunks, checksummed
//! state.finish()?; // the whole file or none
//!
//! let state = Reader::open(&path)?; // reads the ends, not the data
//! let restored = state.tensor("dense/kernel")?.restore(&device)?;
//! assert_eq!(device.download(&restored)?, bytes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! A crate declares lines of versions in its own `versions.toml`, and [`lines!`] makes types of them: see `examples/downstream`.
//!
//! # Modules
//!
//! A module uses only those above it, and none points back: [`version`] and `wire`; [`proto`] and [`codec`]; [`ifrt`];
//! and [`device_state`]. [`files`], [`stablehlo`], [`stream_executor`] and [`pjrt`] are crates of their own below all of
//! them (`serdes-files`, `serdes-stablehlo`, `serdes-stream-executor`, `serdes-pjrt`), as are the fields of `wire`.
//!
//! Crates of their own beside or above this one are `serdes-graphs` and `serdes-checkpoints` (TensorFlow's graphs and checkpoints),
//! `serdes-tensors` (files of tensors, where they lie, and their way into states and back), `serdes-check` (verdicts before loading) and
//! `serdes-proxy` (the server of arrays and programs over gRPC, and its client).
//!
//! # Features
//!
//! | feature | what comes with it |
//! |---|---|
//! | none | [`version`], [`codec`], [`ifrt`] and [`stablehlo`]: enough for a client that only exchanges messages |
//! | `device` (default) | [`stream_executor`], [`pjrt`] and [`device_state`] |
//! | `serde` | `Serialize` and `Deserialize` for the types of [`ifrt`] and for versions |
//! | `mmap` | views of a state's tensors where they lie in the file |
//! | `object_store` | states in object storage, of one process or of several, written by multipart uploads and read by ranges |
//! | `conformance` | in [`stream_executor`] and [`pjrt`], suites of what the C API demands of a plug-in |
//! | `abi-diff` | in [`stream_executor`], the comparison of layouts of C APIs |
//! | `testing` | in [`codec`], what the tests of types of one's own ask of versions and formats |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// No bytes, no peer and no plug-in makes the library panic: what could is an exception with its
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

pub mod codec;
#[cfg(feature = "device")]
pub mod device_state;
#[cfg(feature = "device")]
pub mod files;
pub mod ifrt;
pub mod proto;
pub mod version;
mod wire;

pub use serdes_abi::ErrorKind;
pub use serdes_stablehlo as stablehlo;
#[cfg(feature = "device")]
pub use {serdes_pjrt as pjrt, serdes_stream_executor as stream_executor};

/// Declares the lines of the crate's own `versions.toml`: a type a line, which is a
/// [`Line`](version::Line), and `REGISTRY` with everything that the file says.
///
/// The crate's `build.rs` calls `serdes_version_registry::build("versions.toml")`, which checks
/// every rule of the file; its documentation has the form of the file. `examples/downstream` is a
/// whole crate of this kind.
#[macro_export]
macro_rules! lines {
    () => {
        include!(concat!(env!("OUT_DIR"), "/serdes_lines.rs"));
    };
}

/// The code of `docs/how-to/use-from-rust.md`, compiled and run.
#[cfg(all(doctest, feature = "device"))]
#[doc = include_str!("../docs/how-to/use-from-rust.md")]
struct UseFromRust;

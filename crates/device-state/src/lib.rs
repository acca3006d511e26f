//! Device state: a container that carries the buffers of devices from one build to another.
//!
//! ```
//! use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
//! use serdes_device_state::{Reader, Versions, Writer};
//! use serdes_stream_executor::Plugin;
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
//! A state is one file, or one index over the parts that several processes saved. Its header says
//! which builds read it, each buffer is stored with the [`ArraySpec`](serdes::ifrt::ArraySpec) that
//! describes it, every chunk of every buffer has a checksum, and an index at the end lets a reader
//! open it without reading the data. The bytes are specified in `docs/format.md`.
//!
//! # Modules
//!
//! `save` and `load` are the two directions, `pump` moves the bytes of both, `store` has the places
//! of states, `format` the bytes, `shards` the partitions of arrays. The crate does not depend on
//! the formats of tensor files, and gives no verdicts about artifacts.
//!
//! # Features
//!
//! | feature | what comes with it |
//! |---|---|
//! | `mmap` | `MappedState`: views of a state's tensors where they lie in the file |
//! | `object_store` | `ObjectParts`: states in object storage, of one process or of several, written by multipart uploads and read by ranges |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Data, stores and plug-ins must not make the crate panic: each exception states its reason.
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

mod error;
mod error_file;
pub mod files;
mod format;
mod hosted;
mod load;
mod options;
mod pump;
mod save;
mod shards;
mod store;
#[cfg(test)]
mod tests;
mod versions;

pub use error::Error;
pub use files::{Durability, Phase, Progress, ProgressMonitor};
pub use format::{END_MAGIC, MAGIC};
pub use hosted::{HostedDevice, HostedMemory};
pub use load::PieceSums;
#[cfg(feature = "mmap")]
pub use load::mapped::MappedState;
pub use load::{
    Damage, HostTarget, Reader, Restored, RestoredShards, Salvaged, ShardTarget, Tensor,
    Verification, matches_any,
};
pub use options::WriteOptions;
pub use pump::{Contents, Download, Downloads, Uploads};
pub use save::{DeferredBytes, Shard, Writer, Written};
#[cfg(feature = "object_store")]
pub use store::object::ObjectParts;
pub use store::{
    Commit, LocalParts, Merged, Part, PartStore, PendingPart, SaveId, discard, merge, merge_in,
};
pub use versions::Versions;

/// The code of `docs/how-to/use-from-rust.md`, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/use-from-rust.md")]
struct UseFromRust;

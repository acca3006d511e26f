//! Files of tensors as streams: safetensors, alone or as shards with an index, npy and npz,
//! TensorFlow V2 checkpoints, device states; and, read-only, TensorFlow V1 checkpoints and files of
//! PyTorch's `torch.save`.
//!
//! A [`Source`] lists its tensors and returns the bytes of one at a time; a [`Target`] gets the
//! list and becomes the [`TensorSink`] that accepts them the same way. Neither ever holds a whole
//! tensor. The bytes between the two always have the layout of a device state: dense, row-major,
//! little endian, elements narrower than a byte in a byte each.
//!
//! [`storage`] accesses the places of files, [`transfers`] moves their tensors to a device and into
//! a state, and back.
//!
//! This crate gives no verdicts about artifacts; its readers and writers do not depend on devices.
//!
//! # Features
//!
//! | feature | what comes with it |
//! |---|---|
//! | `addresses` | [`storage`]: `s3://`, `gs://`, `az://`, `file://` and `https://` wherever a path is |
//! | `npz` | NumPy's archives as sources and targets |
//! | `torch` | files of PyTorch's `torch.save` as sources |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
// Data and stores must not make the crate panic: each exception states its reason.
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

mod aliases;
#[cfg(any(feature = "npz", feature = "torch"))]
mod archive;
mod bundle;
mod checkpoint_state;
mod checkpoint_v1;
mod create;
mod diff;
mod elements;
mod error;
mod folder;
mod form;
pub mod ifrt_types;
mod info;
mod json;
mod npy;
#[cfg(feature = "npz")]
mod npz;
#[cfg(not(feature = "npz"))]
#[path = "no_npz.rs"]
mod npz;
mod number;
mod open;
mod output;
mod refused;
mod safetensors;
mod section;
mod sharded;
mod source;
mod staged_upload;
mod stand_in;
mod state;
pub mod storage;
mod target;
mod tensorflow;
#[cfg(feature = "torch")]
mod torch;
#[cfg(not(feature = "torch"))]
#[path = "no_torch.rs"]
mod torch;
pub mod transfers;

pub use create::{create, create_in, create_sharded, create_sharded_in, create_stream};
pub use diff::{Comparison, Difference, diff};
pub use error::Error;
pub use folder::{is_distributed, open_folder};
pub use form::Form;
pub use info::{Metadata, TensorInfo, element_bytes};
pub use number::Tolerance;
pub use open::{open, open_at, open_in, open_stream};
use output::Output;
pub use refused::Refused;
pub use safetensors::LONGEST_HEADER as LONGEST_SAFETENSORS_HEADER;
pub use sharded::{ShardFile, ShardSet, begins_like_index, files_of_index, is_index};
#[doc(hidden)]
pub use sharded::{count as count_of_tensors, listed as listed_names};
pub use source::{Listing, Source};
use target::{Announced, pass_on};
pub use target::{Target, TensorSink};

/// The README, whose example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! TensorFlow's checkpoints: listed, verified, read and written as TensorFlow does it, without
//! TensorFlow.
//!
//! - [`tensor_bundle`] has checkpoints of the format V2, [`checkpoint_v1`] those of the format V1.
//! - [`checkpoint_state`] reads the file `checkpoint`, which names the checkpoints of a folder.
//! - [`table`] is the sorted table of keys that both formats are made of; [`slice`](mod@slice) has
//!   parts of tensors.
//!
//! This crate does not depend on devices or on verdicts.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// No input makes the crate panic: code that could is an exception with its reason.
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

pub mod checkpoint_state;
pub mod checkpoint_v1;
mod checksum;
pub mod patterns;
pub mod slice;
pub mod table;
pub mod tensor_bundle;

pub use serdes_abi::{ErrorKind, StatusCode};
pub use serdes_graph_format::data_type;
use serdes_version_registry::{Rejection, VersionRule};

/// Returns the kind of an error about the versions of a file.
fn kind_of_rejection(rejection: &Rejection) -> ErrorKind {
    match rejection.rule {
        VersionRule::ConsumerBelowMinProducer => ErrorKind::InvalidInput,
        VersionRule::ProducerTooOld => ErrorKind::TooOld,
        // The writer requires its readers to be newer builds.
        VersionRule::MinConsumer | VersionRule::BadConsumer => ErrorKind::TooNew,
    }
}

/// The release of the [`default_consumer`](tensor_bundle::default_consumer)s: the newest one of
/// `versions.toml`. A test of `serdes-tensors` compares it, and the consumers' numbers, with that
/// file.
const NEWEST_RELEASE: &str = "TensorFlow 2.21.0";

/// The README, whose example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

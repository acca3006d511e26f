//! One entry point for compatibility checks: may an artifact be loaded, and if not, why, and what
//! is the remedy?
//!
//! ```no_run
//! use serdes_check::{self as check, Consumer};
//!
//! let verdict = check::path("exported/model")?.for_consumer(&Consumer::tensorflow("2.16")?);
//! for reason in verdict.reasons() {
//!     eprintln!("{reason}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`path`] opens one artifact, [`bytes()`] one in memory, and [`all`] walks over directories. The
//! result is a [`Verdict`]: reasons and warnings as data, each with its rule ([`Rule`]).
//!
//! # Kinds
//!
//! The kind of an artifact is detected from its content, then from its name ([`Kind`]). Some kinds
//! are recognised and not judged: they are unreadable by [`Rule::OtherKind`], never corrupt and
//! never an acceptable graph. A GraphDef has no magic number, so anything not recognised is read as
//! one, and the verdict is that of TensorFlow's import of the same bytes. A bare message of IFRT
//! has no magic number either: a file is one if it cannot contain a graph, and every byte decodes
//! as one of IFRT's messages.
//!
//! The crate maps kinds of artifacts to readers. It never runs foreign code, and reads data that a
//! reader can skip only if it is asked to verify it. The readers do not depend on it.
//!
//! # Features
//!
//! | feature | what comes with it |
//! |---|---|
//! | `serde` | `Serialize` for verdicts, and for what [`Artifact::inspect`] gives |
//! | `addresses` | artifacts in object storage and on the web, with [`Storage`](serdes_tensors::storage::Storage) as the tree |
//! | `npz` | the tensors of NumPy's archives |
//! | `torch` | the tensors of files of PyTorch |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
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

mod artifact;
mod bans;
mod call_modules;
mod checkpoint_state;
mod checkpoint_v1;
mod consumer;
mod detect;
mod device_state;
mod each;
mod empty;
mod error;
mod graph;
mod ifrt;
mod inspection;
mod jax;
mod jax_summary;
mod jaxlib;
mod kind;
mod loaders;
mod mesh_names;
mod model_summary;
mod opened;
mod operations;
mod options;
mod orbax;
mod other_kind;
mod outcome;
mod plugin;
mod reading;
mod reason;
mod releases;
mod remedy;
#[cfg(feature = "report")]
#[cfg_attr(docsrs, doc(cfg(feature = "report")))]
pub mod report;
mod restore;
mod restoring;
mod rule;
mod saved_model;
#[cfg(feature = "serde")]
mod serde_impls;
mod shards;
mod spool;
mod state_summary;
mod table_file;
mod tensor_bundle;
mod tensors;
mod verdict;
mod walk;

use verdict::Findings;

pub use self::{
    artifact::{Artifact, bytes, path, path_in, path_of_kind, reader},
    consumer::{ArtifactLine, Consumer, ConsumerError},
    error::CheckError,
    inspection::{CheckpointList, CheckpointSummary, Inspection, NestedVersion, TensorSummary},
    jax_summary::{ExportSummary, FunctionSummary, JaxSummary, ValueSummary},
    kind::{Kind, UnknownKind, named_kind},
    loaders::Loaders,
    mesh_names::AxisSummary,
    model_summary::{
        FingerprintSummary, FunctionInterface, FunctionOption, MetaGraphSummary, ModelSummary,
        SignatureSummary, SignatureTensor,
    },
    options::Options,
    outcome::Outcome,
    reason::{Reason, Warning},
    remedy::Remedy,
    rule::{Explanation, Rule, UnknownRule},
    state_summary::{DeviceSummary, MeshSummary, PartSummary, ShardingSummary, StateSummary},
    verdict::{Cancelled, ConsumerVersion, Verdict, Verdicts, Versions},
    walk::{Skipped, Unopened, Walk, all, walk},
};
pub use serdes_graphs::graph::Loader;

/// The README, whose example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

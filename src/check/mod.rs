//! One door over everything: may this artifact be loaded, and if not, why, and what to do?
//!
//! ```no_run
//! use serdes::check::{self, Consumer};
//!
//! let verdict = check::path("exported/model")?.for_consumer(&Consumer::tensorflow("2.16")?);
//! for reason in verdict.reasons() {
//!     eprintln!("{reason}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`path`] opens one artifact, [`bytes()`] one that is in memory, [`all`] walks over directories. The answer is a [`Verdict`]: reasons
//! and warnings as data, with the rule ([`Rule`]) that each follows from.
//!
//! Knows which kinds of artifacts there are and which reader reads each. It must never run foreign code, nor read what a reader can
//! step over unless it is asked to verify data. The readers must never know of it.

mod artifact;
mod checkpoint_v1;
mod consumer;
mod device_state;
mod graph;
mod ifrt;
mod inspection;
mod kind;
mod options;
mod plugin;
mod rule;
mod tensor_bundle;
mod verdict;
mod walk;

pub use artifact::{Artifact, CheckError, bytes, path, path_of_kind, reader};
pub use consumer::{Consumer, ConsumerError};
pub use inspection::{Inspection, NestedVersion, TensorSummary};
pub use kind::{Kind, UnknownKind};
pub use options::Options;
pub use rule::{Explanation, Rule, UnknownRule};
pub use verdict::{ConsumerVersion, Outcome, Reason, Verdict, Versions, Warning};
pub use walk::{all, exit_status};

//! Determines which jaxlib releases read a `jax.export` file or a StableHLO portable artifact,
//! without loading anything.
//!
//! ```
//! use serdes_jax_artifacts::{Artifact, Options, Release, Rule};
//!
//! // What jax 0.12.0.1 wrote for a Cholesky factorization.
//! # const BYTES: &[u8] = include_bytes!("../tests/data/example.jaxexport");
//! let bytes: &[u8] = BYTES;
//! let artifact = Artifact::read(bytes)?;
//!
//! let release = Release::find("0.10.2").expect("a release that is known");
//! let judgement = artifact.judge(release, &Options::new());
//! assert!(!judgement.is_acceptable());
//! for reason in &judgement.reasons {
//!     // jaxlib 0.10.2 has no operation vhlo.custom_call_v2, which came with StableHLO 1.18.0
//!     println!("{}: {}; {}", reason.rule, reason.message, reason.remedy);
//! }
//! assert_eq!(judgement.reasons[0].rule, Rule::UnknownOp);
//!
//! // And what is in it.
//! let inspection = artifact.inspect(&Options::new());
//! let export = inspection.export.expect("a file of jax.export");
//! assert_eq!(export.platforms, ["cpu"]);
//! assert_eq!(*export.inputs[0].shape, ["3", "3"]);
//! assert_eq!(inspection.read_by[0].version, "0.11.0");
//! # Ok::<(), serdes_jax_artifacts::ReadError>(())
//! ```
//!
//! A verdict is that of the release's own reader: a file of `jax.export` must deserialize with
//! `jax.export.deserialize`, and its module must be readable by the same jaxlib; a portable
//! artifact must be readable by `stablehlo.deserialize_portable_artifact`. The features that the
//! file uses decide, not its version number. The checks of the compiler's verifier are not
//! modelled; they matter for about 1 in 40 damaged files.
//!
//! Nothing is run, copied or trusted: time is linear in the size of a file and the number of
//! releases, memory at most four times the size plus 2 MiB, and constants are not copied.

#![forbid(unsafe_code)]
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
mod bytecode;
mod call_module;
mod excerpt;
mod exported;
mod inspection;
mod judgement;
mod module_reasons;
mod release;
mod rule;
mod vocabulary;

pub use artifact::{Artifact, Kind, ReadError, sniff};
pub use bytecode::Function;
pub use call_module::xla_call_module;
pub use exported::{DisabledCheck, Value};
pub use inspection::{Export, Inspection, ModuleSummary};
pub use judgement::{Judgement, Options, Reason, Verdict, Warning};
pub use release::{Day, Deserializer, DeviceField, Release, StableHlo, releases};
pub use rule::Rule;

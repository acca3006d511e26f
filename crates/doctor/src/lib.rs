//! Checks that the packages of a Python environment for machine learning are compatible with each
//! other, without importing any of them.
//!
//! An environment is a virtual environment, a conda prefix, a folder of packages, the root of an
//! image, or a lock file. Nothing in it is run, imported or loaded: versions come from metadata,
//! version files and the headers of libraries. Compatibility is decided by tables of measured
//! releases ([`Releases`]), by the packages' declared requirements, and by their files.
//!
//! ```no_run
//! use serdes_doctor::{Environment, TablesOnly, diagnose};
//!
//! for environment in Environment::read(".venv")? {
//!     let diagnosis = diagnose(&environment, &TablesOnly);
//!     for problem in &diagnosis.problems {
//!         println!("{}: {}", problem.rule, problem.message);
//!         for remedy in &problem.remedies {
//!             println!("  {}", remedy.command.as_deref().unwrap_or(&remedy.text));
//!         }
//!     }
//! }
//! # Ok::<(), serdes_doctor::ReadError>(())
//! ```
//!
//! A remedy is suggested only if the changed environment, checked by the same rules, no longer has
//! the problem and has no new one.

#![forbid(unsafe_code)]
// Files of an environment must not make the crate panic: each exception states its reason.
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

mod artifacts;
mod beside;
mod data;
mod diagnose;
mod diagnosis;
mod environment;
mod judge;
mod libraries;
mod names;
mod package;
mod read;
mod remedy;
mod report;
mod rule;
mod text;
mod warning;

pub use artifacts::{ArtifactProblem, judge_safetensors};
pub use beside::InstalledPlugin;
pub use data::Releases;
pub use diagnose::diagnose;
pub use diagnosis::{Change, Component, Diagnosis, Problem, Remedy, Target, Verdict};
pub use environment::{Environment, Kind, PluginFramework, PluginModule, SystemNeed, Tool};
pub use libraries::{Comparison, Libraries, Misfit, TablesOnly};
pub use names::is_judged;
pub use package::{Package, RecordedFile};
pub use pep440_rs::{Version, VersionSpecifiers};
pub use read::ReadError;
pub use rule::{Rule, WarningRule};
pub use warning::{Unknown, Warning};

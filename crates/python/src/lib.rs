//! The extension module of the Python package `serdes-ml`: its interface to the library.
//!
//! Arrays are numpy arrays, whose bytes are read and filled in place; results with structure are
//! returned as JSON, like the command's. The folder `python/serdes_ml` provides the public modules.
//! This crate makes no decisions of its own, and does not depend on frameworks.

#![deny(
    clippy::expect_used,
    clippy::get_unwrap,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used
)]

mod command;
mod convert;
mod deferred;
mod environments;
mod failures;
mod locations;
mod memory;
mod raised;
mod reader;
mod remedies;
mod session;
mod verdicts;
mod work;
mod writer;

/// The module `serdes_ml._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::command::command;
    #[pymodule_export]
    use super::convert::convert;
    #[pymodule_export]
    use super::environments::doctor;
    #[pymodule_export]
    use super::locations::{names, shown, system_path};
    #[pymodule_export]
    use super::reader::{Reader, matching};
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::verdicts::{
        check, check_all, check_bytes, difference, explain, inspect, report, versions,
    };
    #[pymodule_export]
    use super::writer::{discard, merge, new_save_id, remove_state, save};

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

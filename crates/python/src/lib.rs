//! The extension module of the Python package `serdes-ml`: what the package needs of the library,
//! as Python sees it.
//!
//! Arrays come in as numpy arrays and their bytes are read and filled where they lie; results that
//! are objects go out as JSON, the same that the command prints. The folder `python/serdes_ml`
//! makes of it what people import. This crate must never decide what a thing means, and never know
//! a framework.

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

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

//! Tests of the command's contract: one file per subcommand, and one for each feature that all of
//! them share.

mod abi;
mod addresses;
mod against;
mod changing_files;
mod check;
mod check_kinds;
mod check_operations;
mod check_releases;
mod checkpoint_state;
mod clumsy;
mod completions;
mod config;
mod convert;
mod diff;
mod doctor;
mod explain;
mod help;
mod inspect;
mod jax;
mod json;
mod kinds;
mod man;
mod matrix;
mod merge;
mod negotiate;
mod ops;
mod pjrt_layouts;
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod pjrt_plugins;
#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod pjrt_state;
mod plugin;
#[cfg(target_os = "linux")]
mod plugin_process;
mod plugin_suite;
mod report_matrix;
mod reports;
mod restore;
mod restore_fit;
#[cfg(target_os = "linux")]
mod results;
mod save;
#[cfg(unix)]
mod serve_access;
#[cfg(target_os = "linux")]
mod serve_faults;
#[cfg(target_os = "linux")]
mod serve_operation;
mod serve_platform;
#[cfg(all(unix, feature = "opentelemetry"))]
mod serve_spans;
#[cfg(target_os = "linux")]
mod serve_state;
#[cfg(unix)]
mod serving;
mod shards;
#[cfg(target_os = "linux")]
mod signals;
mod streams;
mod terminals;
mod testkit;
mod version_releases;
mod versions;
mod versions_crate;

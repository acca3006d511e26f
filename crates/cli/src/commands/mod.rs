//! One file a command; each turns its arguments into calls of the library and prints what comes
//! back.

mod abi;
mod against;
mod check;
#[cfg(unix)]
mod compile_worker;
mod completions;
mod config;
mod consumers;
mod convert;
mod convert_message;
mod convert_output;
mod convert_program;
mod device;
mod diff;
mod dispatch;
mod doctor;
mod doctor_report;
mod environment_rules;
mod explain;
mod failures;
mod form_places;
mod framework_names;
mod inspect;
mod inspect_jax;
mod inspect_message;
mod inspect_model;
mod inspect_state;
mod left_out;
mod locations;
mod man;
mod markdown_text;
mod matrix;
mod merge;
pub(crate) mod nearest;
mod negotiate;
mod negotiation_report;
mod ops;
mod pjrt_check;
mod plugin;
mod plugin_behaviours;
mod plugin_files;
mod plugin_folder;
mod plugin_inspect;
mod plugin_junit;
mod plugin_opening;
mod plugin_pages;
mod plugin_process;
mod plugin_report;
mod plugin_selection;
mod plugin_suite;
mod plugin_tally;
mod progress_monitor;
pub(crate) mod remedies;
mod report_file;
mod reports;
mod restore;
mod restore_fit;
mod save;
mod selection;
mod serve;
mod serve_access;
mod serve_log;
mod serve_manager;
mod small_file;
mod streams;
#[cfg(target_os = "linux")]
mod supervised;
mod transfer_report;
mod unread;
pub(crate) mod versions;
mod walk_options;
#[cfg(target_os = "linux")]
mod xla_flags;

pub(crate) use dispatch::run;
pub(crate) use plugin_files::PluginFiles;
#[cfg(target_os = "linux")]
pub(crate) use supervised::supervise;

//! Arguments of the command line; their texts are public API (docs/cli.md).
//!
//! This module only describes arguments. It opens no files or devices.

mod abi;
mod check;
mod cli;
mod config;
mod configuration;
mod convert;
mod device;
mod diff;
mod doctor;
mod explain;
mod inspect;
mod matrix;
mod merge;
mod negotiate;
mod ops;
mod plugin;
mod reports;
mod restore;
mod save;
mod serve;
mod versions;

pub(crate) use self::{
    abi::{AbiCommand, AllowedBump},
    check::{CheckArguments, ModelLoader},
    cli::{Cli, Color, Command, Global},
    config::ConfigArguments,
    configuration::ConfigurationArguments,
    convert::ConvertArguments,
    device::{DeviceArguments, SyncMode},
    diff::DiffArguments,
    doctor::{DoctorArguments, DoctorFormat},
    explain::ExplainArguments,
    inspect::InspectArguments,
    matrix::{MatrixArguments, MatrixFormat},
    merge::MergeArguments,
    negotiate::{NegotiateArguments, RangeArguments},
    ops::OpsArguments,
    plugin::{CheckPluginArguments, Level, PluginArguments, PluginCommand, VerifyArguments},
    reports::ReportArguments,
    restore::RestoreArguments,
    save::SaveArguments,
    serve::{AccessArguments, LogFormat, ServeArguments},
    versions::{
        AddVersionArguments, GoldenArguments, InitVersionsArguments, ReleaseVersionsArguments,
        VersionsArguments, VersionsCommand,
    },
};

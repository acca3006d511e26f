//! The contents of a file, except its module.

use std::collections::BTreeSet;

use super::{avals::Value, effects::DisabledCheck};

/// The contents of a file, except its module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exported {
    pub(crate) serialization: u16,
    pub(crate) function: String,
    pub(crate) devices: u32,
    pub(crate) has_short_devices: bool,
    pub(crate) has_wide_devices: bool,
    pub(crate) has_tables: bool,
    pub(crate) has_device_platform: bool,
    pub(crate) inputs: Vec<Value>,
    pub(crate) outputs: Vec<Value>,
    pub(crate) platforms: Vec<String>,
    pub(crate) ordered_effects: Vec<String>,
    pub(crate) unordered_effects: Vec<String>,
    pub(crate) disabled_checks: Vec<DisabledCheck>,
    pub(crate) calling_convention: u16,
    pub(crate) kept_arguments: Vec<u16>,
    pub(crate) has_derivative: bool,
    pub(crate) custom_nodes: BTreeSet<String>,
    pub(crate) jax_version: Option<String>,
}

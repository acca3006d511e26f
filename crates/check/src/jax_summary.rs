//! The contents of a file of `jax.export` or a portable artifact of StableHLO, as data.

use std::{collections::BTreeMap, sync::Arc};

use serdes_jax_artifacts::{DisabledCheck, Export, Function, Inspection, Value};

/// A description of a file that a jaxlib loads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct JaxSummary {
    /// The fields that `jax.export` wrote around the module; `None` for a portable artifact.
    pub export: Option<ExportSummary>,
    /// The name of the module's producer: `StableHLO_v1.18.0`.
    pub producer: String,
    /// The version of StableHLO in the producer's name.
    pub stablehlo_version: Option<String>,
    /// The version of MLIR's bytecode.
    pub bytecode_version: Option<u64>,
    /// Length of the module in bytes.
    pub module_bytes: usize,
    /// Number of bytes of its constants.
    pub constant_bytes: u64,
    /// The dialects of its operations, attributes and types.
    pub dialects: Vec<String>,
    /// Targets of custom calls, and the number of each.
    pub custom_calls: BTreeMap<String, u64>,
    /// The public functions of the module.
    pub module_functions: Vec<FunctionSummary>,
    /// The error at which reading of the module ended; `None` if it was read to its end.
    pub damage: Option<String>,
    /// The releases of jaxlib that read the file, oldest first.
    pub read_by: Vec<String>,
}

/// The fields that `jax.export` wrote around a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ExportSummary {
    /// The name of the function.
    pub function: String,
    /// The serialization version in the file.
    pub serialization_version: u16,
    /// The version of the calling convention.
    pub calling_convention_version: u16,
    /// The version of jax that wrote the file, if it is recorded.
    pub jax_version: Option<String>,
    /// The oldest and the newest release of jaxlib that write such a file.
    pub made_by: Option<(String, String)>,
    /// The day until which jax promises that newer releases read it, `YYYY-MM-DD`.
    pub promised_until: Option<String>,
    /// The platforms that it was exported for.
    pub platforms: Vec<String>,
    /// The number of devices that it was exported for.
    pub devices: u32,
    /// The arguments.
    pub inputs: Vec<ValueSummary>,
    /// The results.
    pub outputs: Vec<ValueSummary>,
    /// The indices of the arguments that the module takes.
    pub kept_arguments: Vec<u16>,
    /// Effects whose order counts.
    pub ordered_effects: Vec<String>,
    /// Effects whose order does not.
    pub unordered_effects: Vec<String>,
    /// Safety checks that were disabled when the file was exported: `platform`, `shape_assertions`,
    /// or a custom call's target after `custom_call:`.
    pub disabled_checks: Vec<String>,
    /// The node types of its trees that a program must register.
    pub custom_nodes: Vec<String>,
    /// Number of orders of derivatives in the file; 8 means 8 or more.
    pub derivatives: usize,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ValueSummary {
    /// The element type, as NumPy and JAX name it.
    pub dtype: String,
    /// The dimensions: numbers, or expressions of symbols.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serde_impls::dimensions"))]
    pub shape: Arc<[String]>,
    /// `device`, `host` or `any`, where the file says it.
    pub memory_space: Option<String>,
    /// Its sharding, where the file records it.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serde_impls::text"))]
    pub sharding: Option<Arc<str>>,
}

/// A function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FunctionSummary {
    /// Its name.
    pub name: String,
    /// The types of its inputs, as StableHLO prints them.
    pub inputs: Vec<String>,
    /// The types of its outputs.
    pub outputs: Vec<String>,
}

impl JaxSummary {
    pub(super) fn of(found: Inspection) -> Self {
        let module = found.module;
        let functions = module.functions.into_iter().filter(|function| function.is_public);
        Self {
            export: found.export.map(ExportSummary::of),
            producer: module.producer,
            stablehlo_version: module.stablehlo.map(|version| version.to_string()),
            bytecode_version: module.bytecode_version,
            module_bytes: module.bytes,
            constant_bytes: module.constant_bytes,
            dialects: module.dialects,
            custom_calls: module.custom_calls,
            module_functions: functions.map(FunctionSummary::of).collect(),
            damage: module.damage,
            read_by: found.read_by.iter().map(|release| release.version.to_owned()).collect(),
        }
    }
}

impl ExportSummary {
    fn of(export: Export) -> Self {
        let made_by = export
            .made_by
            .map(|(oldest, newest)| (oldest.version.to_owned(), newest.version.to_owned()));
        Self {
            function: export.function,
            serialization_version: export.serialization_version,
            calling_convention_version: export.calling_convention_version,
            jax_version: export.jax_version,
            made_by,
            promised_until: export.promised_until.map(|day| day.to_string()),
            platforms: export.platforms,
            devices: export.devices,
            inputs: export.inputs.iter().map(ValueSummary::of).collect(),
            outputs: export.outputs.iter().map(ValueSummary::of).collect(),
            kept_arguments: export.kept_arguments,
            ordered_effects: export.ordered_effects,
            unordered_effects: export.unordered_effects,
            disabled_checks: export.disabled_checks.into_iter().map(name_of_check).collect(),
            custom_nodes: export.custom_nodes.into_iter().collect(),
            derivatives: export.derivatives,
        }
    }
}

fn name_of_check(check: DisabledCheck) -> String {
    match check {
        DisabledCheck::Platform => "platform".to_owned(),
        DisabledCheck::CustomCall(target) => format!("custom_call:{target}"),
        DisabledCheck::ShapeAssertions => "shape_assertions".to_owned(),
        other => format!("{other:?}"),
    }
}

impl ValueSummary {
    fn of(value: &Value) -> Self {
        Self {
            dtype: value.dtype.clone(),
            shape: Arc::clone(&value.shape),
            memory_space: value.memory_space.clone(),
            sharding: value.sharding.clone(),
        }
    }
}

impl FunctionSummary {
    fn of(function: Function) -> Self {
        Self { name: function.name, inputs: function.inputs, outputs: function.outputs }
    }
}

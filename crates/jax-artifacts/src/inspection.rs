//! Descriptions of files, for people and programs to inspect before loading.

use std::collections::{BTreeMap, BTreeSet};

use serdes_mlir_bytecode::Stop;

use crate::{
    artifact::{Artifact, Kind},
    bytecode::{Function, Module},
    exported::{DisabledCheck, Exported, ReaderProfile, Value},
    judgement::Options,
    release::{Day, Release, StableHlo},
};

/// Number of months for which jax promises that newer releases read a file of `jax.export`.
const PROMISED_MONTHS: u8 = 6;

/// A description of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The kind of the file.
    pub kind: Kind,
    /// Its size in bytes.
    pub bytes: usize,
    /// The fields that `jax.export` wrote around the module; `None` for a portable artifact, or if
    /// they cannot be read.
    pub export: Option<Export>,
    /// The module.
    pub module: ModuleSummary,
    /// The releases that read the file, oldest first, of those with known verdicts.
    pub read_by: Vec<&'static Release>,
}

/// The fields that `jax.export` wrote around a module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Export {
    /// The name of the function.
    pub function: String,
    /// The serialization version in the file; 3 for all files written by 0.8.2 to 0.11.0.
    pub serialization_version: u16,
    /// The version of the calling convention.
    pub calling_convention_version: u16,
    /// The version of jax that wrote the file; recorded since 0.11.1.
    pub jax_version: Option<String>,
    /// The oldest and the newest release that write such fields.
    pub made_by: Option<(&'static Release, &'static Release)>,
    /// The day until which jax promises that newer releases read the file: six months after the
    /// newest release that may have written it, if that is known.
    pub promised_until: Option<Day>,
    /// The platforms that it was exported for.
    pub platforms: Vec<String>,
    /// The number of devices that it was exported for.
    pub devices: u32,
    /// The arguments, without the structure of their trees.
    pub inputs: Vec<Value>,
    /// The results.
    pub outputs: Vec<Value>,
    /// The indices of the arguments that the module takes.
    pub kept_arguments: Vec<u16>,
    /// Effects whose order counts.
    pub ordered_effects: Vec<String>,
    /// Effects whose order does not.
    pub unordered_effects: Vec<String>,
    /// Safety checks that were disabled when the file was exported.
    pub disabled_checks: Vec<DisabledCheck>,
    /// The node types of its trees that the program, or jax, must register.
    pub custom_nodes: BTreeSet<String>,
    /// Number of orders of derivatives in the file; 8 means 8 or more.
    pub derivatives: usize,
}

/// A description of a module.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModuleSummary {
    /// Its size in bytes.
    pub bytes: usize,
    /// The version of MLIR's bytecode.
    pub bytecode_version: Option<u64>,
    /// The name of the producer; readers ignore it.
    pub producer: String,
    /// The version of StableHLO in the producer's name.
    pub stablehlo: Option<StableHlo>,
    /// The dialects of its operations, attributes and types.
    pub dialects: Vec<String>,
    /// Its operations with their dialects, and the number of each.
    pub operations: BTreeMap<String, u64>,
    /// Targets of custom calls, and the number of each.
    pub custom_calls: BTreeMap<String, u64>,
    /// Its functions, in order; empty for bytecode older than version 5.
    pub functions: Vec<Function>,
    /// Number of bytes of its constants.
    pub constant_bytes: u64,
    /// The reason why it could not be read to its end.
    pub damage: Option<String>,
}

impl Artifact<'_> {
    /// Describes the contents of the file as far as it can be read; nothing is refused.
    #[must_use]
    pub fn inspect(&self, options: &Options) -> Inspection {
        let module = self.modules.first().and_then(Option::as_ref);
        Inspection {
            kind: self.kind,
            bytes: self.bytes.len(),
            export: self.export(),
            module: module.map(ModuleSummary::of).unwrap_or_default(),
            read_by: self.accepting(options),
        }
    }

    fn export(&self) -> Option<Export> {
        if self.kind != Kind::JaxExport {
            return None;
        }
        let profile = ReaderProfile {
            deserializer: Release::latest().deserializer,
            last_dtype: Release::latest().last_dtype,
            custom_nodes: &BTreeSet::new(),
            is_lenient: true,
            takes_expired: true,
        };
        let exported = Exported::read_level(self.bytes, 0, &profile).ok()?;
        let made_by = exported.makers();
        let promised_until = made_by.map(|(_, newest)| newest.day.after_months(PROMISED_MONTHS));
        Some(Export {
            function: exported.function,
            serialization_version: exported.serialization,
            calling_convention_version: exported.calling_convention,
            jax_version: exported.jax_version,
            made_by,
            promised_until,
            platforms: exported.platforms,
            devices: exported.devices,
            inputs: exported.inputs,
            outputs: exported.outputs,
            kept_arguments: exported.kept_arguments,
            ordered_effects: exported.ordered_effects,
            unordered_effects: exported.unordered_effects,
            disabled_checks: exported.disabled_checks,
            custom_nodes: exported.custom_nodes,
            derivatives: self.modules.len().saturating_sub(1),
        })
    }
}

impl ModuleSummary {
    fn of(module: &Module) -> Self {
        let damage = module.stop.as_ref().map(|stop| match stop {
            Stop::Damaged(damage) => {
                format!("at byte {}, there is not {}", damage.at, damage.expected)
            }
            Stop::UnknownCode(unknown) => {
                format!(
                    "at byte {}, there is the unknown code {} of {}",
                    unknown.at, unknown.code, unknown.dialect
                )
            }
        });
        let operations = module.operations.iter();
        Self {
            bytes: module.bytes,
            bytecode_version: module.bytecode_version,
            producer: module.producer.clone(),
            stablehlo: module.stablehlo(),
            dialects: module.dialects.clone(),
            operations: operations
                .map(|((dialect, name), used)| (format!("{dialect}.{name}"), used.count))
                .collect(),
            custom_calls: module.custom_calls.clone(),
            functions: module.functions.clone(),
            constant_bytes: module.constant_bytes,
            damage,
        }
    }
}

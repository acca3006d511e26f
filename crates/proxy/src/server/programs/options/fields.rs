//! Fields of the messages around `xla.DebugOptions`, and their permitted values.

use std::ops::RangeInclusive;

use serdes::codec::Status;

use super::{
    rules::{OptionRules, refused},
    wire::{Value, packed},
};

/// Permitted contents of a field.
#[derive(Clone, Debug)]
enum Form {
    Numbers(RangeInclusive<i64>),
    /// A list whose length is in this range, in one field or in several.
    List(RangeInclusive<i64>),
    /// A fraction from -1 to 1.
    Effort,
    /// Only the default value.
    Nothing,
}

use Form::{Effort, List, Nothing, Numbers};

const FLAG: RangeInclusive<i64> = 0..=1;

/// A message: its name and its known fields.
pub(super) struct Known {
    name: &'static str,
    fields: &'static [(u32, &'static str, Form)],
}

/// `xla.CompileOptionsProto`, without the fields that are read separately.
pub(super) const MESSAGE: Known = Known {
    name: "xla.CompileOptionsProto",
    fields: &[
        // The program defines the layouts.
        (1, "argument_layouts", Nothing),
        (2, "parameter_is_tupled_arguments", Numbers(FLAG)),
        (4, "compile_portable_executable", Numbers(FLAG)),
        // Clients send -1, or the value of `jax_xla_profile_version`.
        (5, "profile_version", Numbers(-1..=i32::MAX as i64)),
        (6, "serialized_multi_slice_config", Nothing),
        (8, "target_config", Nothing),
        (9, "allow_in_place_mlir_modification", Numbers(FLAG)),
        (10, "matrix_unit_operand_precision", Numbers(0..=3)),
        (11, "compiler_variant", Nothing),
        (12, "individually_defined_output_indices", Nothing),
    ],
};

/// `xla.ExecutableBuildOptionsProto`, without the fields that are read separately.
pub(super) const BUILD: Known = Known {
    name: "xla.ExecutableBuildOptionsProto",
    fields: &[
        (2, "result_layout", Nothing),
        (6, "use_spmd_partitioning", Numbers(FLAG)),
        (7, "use_auto_spmd_partitioning", Numbers(FLAG)),
        (8, "deduplicate_hlo", Numbers(FLAG)),
        (10, "alias_passthrough_params", Numbers(FLAG)),
        // For programs that another compiler has optimised, which are not checked.
        (11, "run_backend_only", Nothing),
        (12, "allow_spmd_sharding_propagation_to_output", List(FLAG)),
        (13, "comp_envs", Nothing),
        (14, "fdo_profile", Nothing),
        (15, "device_memory_size", Numbers(0..=i64::MAX)),
        (16, "auto_spmd_partitioning_mesh_shape", List(1..=1 << 20)),
        (17, "auto_spmd_partitioning_mesh_ids", List(0..=1 << 20)),
        (18, "allow_spmd_sharding_propagation_to_parameters", List(FLAG)),
        (19, "use_shardy_partitioner", Numbers(FLAG)),
        (20, "exec_time_optimization_effort", Effort),
        (21, "memory_fitting_effort", Effort),
        // Only one process compiles.
        (22, "process_index", Nothing),
        (23, "process_count", Numbers(0..=1)),
        // O0 to O3 are 9 to 39.
        (24, "optimization_level", Numbers(0..=39)),
        (25, "memory_fitting_level", Numbers(0..=39)),
        (26, "slice_size", Nothing),
        (27, "gpu_topology", Nothing),
    ],
};

/// Returns the value of a field for the plug-in.
///
/// # Errors
/// INVALID_ARGUMENT with the name of the field.
pub(super) fn check<'a>(
    message: &Known,
    number: u32,
    value: Value<'a>,
    rules: &OptionRules,
) -> Result<Value<'a>, Status> {
    let field = message.fields.iter().find(|(known, ..)| *known == number);
    let Some((_, name, form)) = field else {
        let name = format!("field {number} of {}", message.name);
        return Err(refused(&name, &value.describe(), "nothing"));
    };
    if form.takes(value) || rules.allows(name) {
        return Ok(value);
    }
    Err(refused(name, &value.describe(), &form.describe()))
}

impl Form {
    fn takes(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Numbers(range) | List(range), Value::Number(number)) => {
                range.contains(&number.cast_signed())
            }
            (List(range), Value::Bytes(bytes)) => packed(bytes)
                .is_some_and(|numbers| numbers.iter().all(|number| range.contains(number))),
            (Effort, Value::Fixed32(bytes)) => (-1.0..=1.0).contains(&f32::from_le_bytes(bytes)),
            (Nothing, value) => value.is_nothing(),
            _ => false,
        }
    }

    fn describe(&self) -> String {
        match self {
            Numbers(range) => format!("{} to {}", range.start(), range.end()),
            List(range) => format!("numbers from {} to {}", range.start(), range.end()),
            Effort => "a fraction from -1 to 1".to_owned(),
            Nothing => "nothing".to_owned(),
        }
    }
}

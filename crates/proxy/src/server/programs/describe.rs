//! Descriptions of programs for clients: names, devices, shardings, layouts, memory.
//!
//! Clients rely on it. Facts that the plug-in does not report are marked as unimplemented, or left
//! out if the field has no value for that; they are never guessed.

use serdes::{
    codec::{Status, StatusCode},
    ifrt::xla::OpSharding,
    proto::xla::{
        self, CompiledMemoryStatsProto, LayoutProto,
        ifrt::proxy::{
            CompileResponse, LoadedExecutableMetadataResponse,
            compile_response::Fingerprint,
            loaded_executable_metadata_response::{
                CompiledMemoryStatsOneof, DonatedInputIndices, DonatedInputIndicesOneof,
                LayoutList, MemoryKindList, MpmdCompiledMemoryStatsOneof, OutputLayouts,
                OutputMemoryKind, ParameterLayouts, ShardingList,
            },
        },
    },
};
use serdes_pjrt::{LoadedExecutable, PjrtError, ProgramMemory};

use super::module::Module;
use crate::{
    server::arrays::Kind,
    status::{of_pjrt, status, to_proto},
};

/// The facts for a description.
pub(super) struct Described<'a> {
    pub(super) loaded: &'a LoadedExecutable,
    /// Ids of the program's devices.
    pub(super) ids: &'a [i32],
    pub(super) module: &'a Module,
    /// Memory kinds of the outputs.
    pub(super) kinds: &'a [Kind],
    /// Shardings of the parameters and outputs; empty for a program of one device.
    pub(super) parameter_shardings: &'a [OpSharding],
    pub(super) output_shardings: &'a [OpSharding],
}

/// Returns the first description of a program, without handles.
///
/// # Errors
/// The plug-in's error if it does not report the program's name.
pub(super) fn answer(described: &Described<'_>) -> Result<CompileResponse, Status> {
    let executable = described.loaded.executable();
    let fingerprint = match executable.fingerprint() {
        Err(error) if error.is_unsupported() => described.loaded.fingerprint(),
        found => found,
    };
    let fingerprint = match fingerprint {
        Ok(text) => Some(Fingerprint::FingerprintValue(text.into())),
        Err(error) if error.is_unsupported() => None,
        Err(error) => Some(Fingerprint::FingerprintError(to_proto(&of_pjrt(&error)))),
    };
    let ids = described.ids;
    Ok(CompileResponse {
        name: executable.name().map_err(|error| of_pjrt(&error))?,
        // There are fewer devices than an i32 counts.
        num_devices: ids.len() as i32,
        addressable_device_ids: ids.to_vec(),
        device_ids: ids.to_vec(),
        fingerprint,
        ..Default::default()
    })
}

/// Returns the full description, for clients that ask for it.
pub(super) fn metadata(described: &Described<'_>) -> LoadedExecutableMetadataResponse {
    let executable = described.loaded.executable();
    let module = described.module;
    let shardings = |of: &[OpSharding]| {
        let shardings = of.iter().map(|sharding| sharding.proto().clone()).collect();
        (described.ids.len() > 1).then_some(ShardingList { shardings })
    };
    let memory_kinds = described.kinds.iter().map(|kind| kind.name().to_owned()).collect();
    // There are fewer parameters than a u32 counts.
    let donated_input_indices = module.donated.iter().map(|number| *number as u32).collect();
    let indices = DonatedInputIndices { donated_input_indices };
    let memory = match executable.memory() {
        Ok(memory) => CompiledMemoryStatsOneof::CompiledMemoryStats(statistics(&memory)),
        Err(error) => CompiledMemoryStatsOneof::CompiledMemoryStatsError(to_proto(&lack(&error))),
    };
    let mpmd = status!(Unimplemented, "the program is one part, which is asked for as a whole");
    LoadedExecutableMetadataResponse {
        parameter_shardings: shardings(described.parameter_shardings)
            .filter(|list| list.shardings.len() == module.parameters.len()),
        output_shardings: shardings(described.output_shardings)
            .filter(|list| list.shardings.len() == module.outputs.len()),
        output_memory_kinds: Some(OutputMemoryKind {
            status: None,
            memory_kind_lists: vec![MemoryKindList { memory_kinds }],
        }),
        parameter_layouts: Some(match layouts(&module.parameters) {
            Ok(list) => ParameterLayouts::ParameterLayoutsList(list),
            Err(status) => ParameterLayouts::ParameterLayoutsError(to_proto(&status)),
        }),
        output_layouts: Some(match layouts(&module.outputs) {
            Ok(list) => OutputLayouts::OutputLayoutsList(list),
            Err(status) => OutputLayouts::OutputLayoutsError(to_proto(&status)),
        }),
        donated_input_indices_oneof: Some(DonatedInputIndicesOneof::DonatedInputIndices(indices)),
        compiled_memory_stats_oneof: Some(memory),
        size_of_generated_code_in_bytes: executable.code_bytes().unwrap_or(0).max(0),
        mpmd_compiled_memory_stats_oneof: Some(
            MpmdCompiledMemoryStatsOneof::MpmdCompiledMemoryStatsError(to_proto(&mpmd)),
        ),
    }
}

/// Returns one layout per shape: clients treat another number as an error.
///
/// # Errors
/// UNIMPLEMENTED if the module has no layout for one.
fn layouts(shapes: &[xla::ShapeProto]) -> Result<LayoutList, Status> {
    let layout = |shape: &xla::ShapeProto| -> Option<LayoutProto> {
        match &shape.layout {
            Some(layout) => Some(LayoutProto::clone(layout)),
            None => shape.dimensions.is_empty().then(LayoutProto::default),
        }
    };
    let found: Option<Vec<_>> = shapes.iter().map(layout).collect();
    let missing = || status!(Unimplemented, "the plug-in's program does not say its layouts");
    found.map(|layouts| LayoutList { layouts }).ok_or_else(missing)
}

/// Returns the status for a fact that the plug-in does not report.
pub(super) fn lack(error: &PjrtError) -> Status {
    let status = of_pjrt(error);
    match error.is_unsupported() {
        true => Status::new(StatusCode::Unimplemented, status.message()),
        false => status,
    }
}

/// Returns the memory statistics of a program.
fn statistics(memory: &ProgramMemory) -> CompiledMemoryStatsProto {
    CompiledMemoryStatsProto {
        generated_code_size_in_bytes: memory.generated_code,
        argument_size_in_bytes: memory.arguments,
        output_size_in_bytes: memory.outputs,
        alias_size_in_bytes: memory.aliased,
        temp_size_in_bytes: memory.temporary,
        host_generated_code_size_in_bytes: memory.host_generated_code.unwrap_or_default(),
        host_argument_size_in_bytes: memory.host_arguments.unwrap_or_default(),
        host_output_size_in_bytes: memory.host_outputs.unwrap_or_default(),
        host_alias_size_in_bytes: memory.host_aliased.unwrap_or_default(),
        host_temp_size_in_bytes: memory.host_temporary.unwrap_or_default(),
        peak_memory_in_bytes: memory.peak.unwrap_or_default(),
        total_size_in_bytes: memory.total.unwrap_or_default(),
        ..Default::default()
    }
}

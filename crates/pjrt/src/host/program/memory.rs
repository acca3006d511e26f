//! Memory requirements of a compiled program.

use serdes_abi::pjrt::{Minor, args::*};

/// Memory that a compiled program needs, in bytes. Counts that the plug-in's version lacks are
/// `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramMemory {
    /// The size of the code on the device.
    pub generated_code: i64,
    /// The size of the arguments on the device.
    pub arguments: i64,
    /// The size of the outputs on the device.
    pub outputs: i64,
    /// The part of the outputs that shares memory with the arguments.
    pub aliased: i64,
    /// The temporary memory of a run.
    pub temporary: i64,
    /// The size of the code on the host.
    pub host_generated_code: Option<i64>,
    /// The size of the arguments on the host.
    pub host_arguments: Option<i64>,
    /// The size of the outputs on the host.
    pub host_outputs: Option<i64>,
    /// The part of the outputs on the host that shares memory with the arguments.
    pub host_aliased: Option<i64>,
    /// The temporary memory of a run on the host.
    pub host_temporary: Option<i64>,
    /// The largest amount that is needed at once.
    pub peak: Option<i64>,
    /// The total.
    pub total: Option<i64>,
}

impl ProgramMemory {
    /// Reads the fields that a plug-in of `minor` has written.
    pub(super) fn of(found: &PJRT_Executable_GetCompiledMemoryStats_Args, minor: Minor) -> Self {
        let history = PJRT_Executable_GetCompiledMemoryStats_Args::HISTORY;
        let given = |value, field| history.field(field, minor).map(|_| value);
        Self {
            generated_code: found.generated_code_size_in_bytes,
            arguments: found.argument_size_in_bytes,
            outputs: found.output_size_in_bytes,
            aliased: found.alias_size_in_bytes,
            temporary: found.temp_size_in_bytes,
            host_generated_code: given(
                found.host_generated_code_size_in_bytes,
                "host_generated_code_size_in_bytes",
            ),
            host_arguments: given(found.host_argument_size_in_bytes, "host_argument_size_in_bytes"),
            host_outputs: given(found.host_output_size_in_bytes, "host_output_size_in_bytes"),
            host_aliased: given(found.host_alias_size_in_bytes, "host_alias_size_in_bytes"),
            host_temporary: given(found.host_temp_size_in_bytes, "host_temp_size_in_bytes"),
            peak: given(found.peak_memory_in_bytes, "peak_memory_in_bytes"),
            total: given(found.total_size_in_bytes, "total_size_in_bytes"),
        }
    }
}

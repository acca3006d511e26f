//! The guidance on each behaviour of the suite: class, position in the header, remedy.

use serdes_library_file::conformance::{Guidance, Row, guidance_among};

/// Returns the guidance on a behaviour; `None` if the suite has none with this name.
#[must_use]
pub fn guidance(behaviour: &str) -> Option<Guidance> {
    guidance_among(ROWS, behaviour)
}

/// All positions are in XLA's header `xla/pjrt/c/pjrt_c_api.h`.
const ROWS: &[Row] = &[
    Row::required(
        &["pjrt_load", "pjrt_table", "pjrt_version"],
        "pjrt_c_api.h: GetPjrtApi, PJRT_Api, PJRT_Api_Version",
        "return the address of one static PJRT_Api whose struct_size and version are those of the header that it was built with",
    ),
    Row::required(
        &["pjrt_required_functions", "pjrt_slots"],
        "pjrt_c_api.h: PJRT_Api",
        "set every function pointer of the table; one without an implementation returns PJRT_Error_Code_UNIMPLEMENTED",
    ),
    Row::required(
        &["pjrt_extensions"],
        "pjrt_c_api.h: PJRT_Extension_Base",
        "end the chain with a NULL `next`, and set struct_size and type of each extension",
    ),
    Row::required(
        &["pjrt_attributes"],
        "pjrt_c_api.h: PJRT_Plugin_Attributes; stablehlo_current_version, stablehlo_minimum_version",
        "return both versions as lists of three integers",
    ),
    Row::robust(
        &["pjrt_short_arguments", "pjrt_short_arguments_with_type"],
        "pjrt_c_api.h: struct_size of each *_Args",
        "compare struct_size with the size of the first fields before any of them is read, and return PJRT_Error_Code_INVALID_ARGUMENT",
    ),
    Row::required(
        &["pjrt_longer_arguments"],
        "pjrt_c_api.h: struct_size of each *_Args; docs of PJRT on ABI versioning",
        "take a struct_size that is larger than the plug-in's own, and pass over what it does not know",
    ),
    Row::required(
        &["pjrt_errors"],
        "pjrt_c_api.h: PJRT_Error_Message, PJRT_Error_GetCode",
        "give each error a code and a message that lives as long as the error",
    ),
    Row::required(
        &["pjrt_client", "pjrt_client_after_another", "pjrt_topology"],
        "pjrt_c_api.h: PJRT_Client_Create, PJRT_Client_Destroy, PJRT_Client_PlatformName, PJRT_Client_TopologyDescription",
        "keep nothing of a client in globals, so that a second one can be made, and name the platform",
    ),
    Row::robust(
        &["pjrt_unknown_option", "pjrt_option_of_another_type"],
        "pjrt_c_api.h: PJRT_Client_Create_Args.create_options, PJRT_NamedValue.type",
        "compare name and type of each option before its value is read; return PJRT_Error_Code_INVALID_ARGUMENT, or pass it over",
    ),
    Row::required(
        &["pjrt_devices", "pjrt_lookup_device", "pjrt_memories"],
        "pjrt_c_api.h: PJRT_Client_Devices, PJRT_Client_LookupDevice, PJRT_Device_AddressableMemories",
        "give each device an id of its own, list those of this process among all, and each memory a kind",
    ),
    Row::required(
        &["pjrt_put", "pjrt_shapes", "pjrt_strides", "pjrt_type_*"],
        "pjrt_c_api.h: PJRT_Client_BufferFromHostBuffer, PJRT_Buffer_Type, byte_strides",
        "copy the elements by dims and byte_strides; return PJRT_Error_Code_UNIMPLEMENTED or INVALID_ARGUMENT for a type without support",
    ),
    Row::required(
        &[
            "pjrt_only_during_call",
            "pjrt_until_transfer_completes",
            "pjrt_zero_copy",
            "pjrt_mutable_zero_copy",
        ],
        "pjrt_c_api.h: PJRT_HostBufferSemantics",
        "read the host's memory no longer than its semantics allow; done_with_host_buffer becomes ready after the last read",
    ),
    Row::robust(
        &["pjrt_unknown_type"],
        "pjrt_c_api.h: PJRT_Buffer_Type, which newer hosts extend",
        "return PJRT_Error_Code_INVALID_ARGUMENT for a number that the plug-in does not know, in place of a fatal check",
    ),
    Row::required(
        &["pjrt_buffer_facts", "pjrt_read_size", "pjrt_read_raw"],
        "pjrt_c_api.h: PJRT_Buffer_*, PJRT_Buffer_ToHostBuffer, PJRT_Buffer_CopyRawToHost",
        "answer type, dimensions and size of the array as it was put, and write no byte beyond dst_size",
    ),
    Row::required(
        &["pjrt_copy_to_device", "pjrt_copy_to_memory"],
        "pjrt_c_api.h: PJRT_Buffer_CopyToDevice, PJRT_Buffer_CopyToMemory",
        "make a buffer of its own in the target, which outlives its source",
    ),
    Row::required(
        &["pjrt_delete", "pjrt_external_references"],
        "pjrt_c_api.h: PJRT_Buffer_Delete, PJRT_Buffer_IsDeleted, PJRT_Buffer_IncreaseExternalReferenceCount",
        "free the memory once, return an error where a deleted buffer is read, and count external references",
    ),
    Row::required(
        &["pjrt_ready_event", "pjrt_on_ready", "pjrt_transfer_manager"],
        "pjrt_c_api.h: PJRT_Buffer_ReadyEvent, PJRT_Event_OnReady, PJRT_AsyncHostToDeviceTransferManager_*",
        "make an event ready once its data is there, and call each callback once",
    ),
    Row::required(
        &["pjrt_threads"],
        "pjrt_c_api.h: PJRT_Client; clients are used from several threads",
        "guard what calls share by a lock, or share nothing",
    ),
    Row::required(
        &["pjrt_compile", "pjrt_execute"],
        "pjrt_c_api.h: PJRT_Client_Compile, PJRT_LoadedExecutable_Execute, PJRT_Program",
        "compile portable artifacts of StableHLO (format \"mlir\"), and leave arguments that are not donated as they are",
    ),
    Row::robust(
        &["pjrt_no_program", "pjrt_unknown_format", "pjrt_no_compile_options"],
        "pjrt_c_api.h: PJRT_Program.format, PJRT_Client_Compile_Args.compile_options",
        "check format, code and options before they are used, and return PJRT_Error_Code_INVALID_ARGUMENT",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::behaviours;

    #[test]
    fn every_behaviour_has_its_guidance_and_no_row_is_of_none() {
        for behaviour in behaviours() {
            assert!(guidance(behaviour).is_some(), "{behaviour}");
        }
        for name in ROWS.iter().flat_map(|row| row.names) {
            let known = |behaviour: &str| match name.strip_suffix('*') {
                Some(beginning) => behaviour.starts_with(beginning),
                None => behaviour == *name,
            };
            assert!(behaviours().any(known), "{name}");
        }
    }
}

//! Arguments of calls that compile programs, and that inspect and run executables.

use core::ffi::{c_char, c_int, c_void};

use super::*;

arguments! {
    PJRT_Client_Compile_Args of "PJRT_Client_Compile" {
        client: *mut PJRT_Client,
        program: *const PJRT_Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_Executable_Destroy_Args of "PJRT_Executable_Destroy" {
        executable: *mut PJRT_Executable,
    }
    PJRT_Executable_Name_Args of "PJRT_Executable_Name" {
        executable: *mut PJRT_Executable,
        executable_name: *const c_char,
        executable_name_size: usize,
    }
    PJRT_Executable_NumReplicas_Args of "PJRT_Executable_NumReplicas" {
        executable: *mut PJRT_Executable,
        num_replicas: usize,
    }
    PJRT_Executable_NumPartitions_Args of "PJRT_Executable_NumPartitions" {
        executable: *mut PJRT_Executable,
        num_partitions: usize,
    }
    PJRT_Executable_NumOutputs_Args of "PJRT_Executable_NumOutputs" {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
    }
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args of "PJRT_Executable_SizeOfGeneratedCodeInBytes" {
        executable: *mut PJRT_Executable,
        size_in_bytes: i64,
    }
    PJRT_Executable_GetCostAnalysis_Args of "PJRT_Executable_GetCostAnalysis" {
        executable: *mut PJRT_Executable,
        num_properties: usize,
        properties: *const PJRT_NamedValue,
    }
    PJRT_Executable_OutputMemoryKinds_Args of "PJRT_Executable_OutputMemoryKinds" {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        memory_kinds: *const *const c_char,
        memory_kind_sizes: *const usize,
    }
    PJRT_Executable_OptimizedProgram_Args of "PJRT_Executable_OptimizedProgram" {
        executable: *mut PJRT_Executable,
        program: *mut PJRT_Program,
    }
    PJRT_Executable_Serialize_Args of "PJRT_Executable_Serialize" {
        executable: *const PJRT_Executable,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_executable: *mut PJRT_SerializedExecutable,
        serialized_executable_deleter: Deleter<PJRT_SerializedExecutable>,
    }
    PJRT_LoadedExecutable_Destroy_Args of "PJRT_LoadedExecutable_Destroy" {
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_LoadedExecutable_GetExecutable_Args of "PJRT_LoadedExecutable_GetExecutable" {
        loaded_executable: *mut PJRT_LoadedExecutable,
        executable: *mut PJRT_Executable,
    }
    PJRT_LoadedExecutable_AddressableDevices_Args of "PJRT_LoadedExecutable_AddressableDevices" {
        executable: *mut PJRT_LoadedExecutable,
        addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_LoadedExecutable_Delete_Args of "PJRT_LoadedExecutable_Delete" {
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_LoadedExecutable_IsDeleted_Args of "PJRT_LoadedExecutable_IsDeleted" {
        executable: *mut PJRT_LoadedExecutable,
        is_deleted: u8,
    }
    PJRT_LoadedExecutable_Execute_Args of "PJRT_LoadedExecutable_Execute" {
        executable: *mut PJRT_LoadedExecutable,
        options: *mut PJRT_ExecuteOptions,
        argument_lists: *const *const *mut PJRT_Buffer,
        num_devices: usize,
        num_args: usize,
        output_lists: *const *mut *mut PJRT_Buffer,
        device_complete_events: *mut *mut PJRT_Event,
        execute_device: *mut PJRT_Device,
    }
    PJRT_Executable_DeserializeAndLoad_Args of "PJRT_Executable_DeserializeAndLoad" {
        client: *mut PJRT_Client,
        serialized_executable: *const c_char,
        serialized_executable_size: usize,
        loaded_executable: *mut PJRT_LoadedExecutable,
        overridden_serialized_compile_options: *const c_char,
        overridden_serialized_compile_options_size: usize,
        load_options: *mut c_void,
    }
    PJRT_LoadedExecutable_Fingerprint_Args of "PJRT_LoadedExecutable_Fingerprint" {
        executable: *mut PJRT_LoadedExecutable,
        executable_fingerprint: *const c_char,
        executable_fingerprint_size: usize,
    }
    PJRT_Compile_Args of "PJRT_Compile" {
        topology: *const PJRT_TopologyDescription,
        program: *const PJRT_Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        client: *mut PJRT_Client,
        executable: *mut PJRT_Executable,
    }
    PJRT_Executable_OutputElementTypes_Args of "PJRT_Executable_OutputElementTypes" {
        executable: *mut PJRT_Executable,
        output_types: *mut c_int,
        num_output_types: usize,
    }
    PJRT_Executable_OutputDimensions_Args of "PJRT_Executable_OutputDimensions" {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        dims: *const i64,
        dim_sizes: *const usize,
    }
    PJRT_Executable_Fingerprint_Args of "PJRT_Executable_Fingerprint" {
        executable: *mut PJRT_Executable,
        executable_fingerprint: *const c_char,
        executable_fingerprint_size: usize,
    }
    PJRT_Executable_GetCompiledMemoryStats_Args of "PJRT_Executable_GetCompiledMemoryStats" {
        executable: *mut PJRT_Executable,
        generated_code_size_in_bytes: i64,
        argument_size_in_bytes: i64,
        output_size_in_bytes: i64,
        alias_size_in_bytes: i64,
        temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64,
        host_argument_size_in_bytes: i64,
        host_output_size_in_bytes: i64,
        host_alias_size_in_bytes: i64,
        host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64,
        total_size_in_bytes: i64,
        total_allocation_bytes: i64,
        indefinite_allocations: i64,
        peak_unpadded_heap_bytes: i64,
    }
    PJRT_LoadedExecutable_GetDeviceAssignment_Args of "PJRT_LoadedExecutable_GetDeviceAssignment" {
        executable: *mut PJRT_LoadedExecutable,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_device_assignment: *mut PJRT_DeviceAssignmentSerialized,
        serialized_device_assignment_deleter: Deleter<PJRT_DeviceAssignmentSerialized>,
    }
    PJRT_Executable_GetCompileOptions_Args of "PJRT_Executable_GetCompileOptions" {
        executable: *mut PJRT_Executable,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_compile_options: *mut PJRT_SerializedCompileOptions,
        serialized_compile_options_deleter: Deleter<PJRT_SerializedCompileOptions>,
    }
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args of "PJRT_LoadedExecutable_AddressableDeviceLogicalIds" {
        executable: *mut PJRT_LoadedExecutable,
        addressable_device_logical_ids: *mut PJRT_LogicalDeviceIds,
        num_addressable_device_logical_ids: usize,
    }
    PJRT_Executable_ParameterMemoryKinds_Args of "PJRT_Executable_ParameterMemoryKinds" {
        executable: *mut PJRT_Executable,
        num_parameters: usize,
        memory_kinds: *const *const c_char,
        memory_kind_sizes: *const usize,
    }
}

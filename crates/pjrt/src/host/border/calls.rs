//! The list of all calls that this host makes.

use std::ffi::c_void;

use serdes_abi::pjrt::{Struct, args::*};

/// A function of a plug-in: it takes one struct, and returns an error or NULL.
pub(super) type RawFunction = unsafe extern "C" fn(*mut c_void) -> *mut PJRT_Error;

/// The arguments of a call that this host makes.
pub(in crate::host) trait Call: Arguments {
    /// The index in a table's entries.
    const INDEX: usize;
}

/// Numbers the calls, and lists them.
macro_rules! calls {
    ($($arguments:ident),* $(,)?) => {
        #[allow(
            non_camel_case_types,
            clippy::enum_variant_names,
            reason = "the names are those of the C API"
        )]
        enum Index {
            $($arguments),*
        }
        $(impl Call for $arguments {
            const INDEX: usize = Index::$arguments as usize;
        })*
        /// Every call, as its function and its arguments.
        pub(super) const CALLS: &[(&str, &Struct)] = &[
            $((*<$arguments as Arguments>::FUNCTION, <$arguments as Arguments>::STRUCT)),*
        ];
    };
}

calls!(
    PJRT_Error_Destroy_Args,
    PJRT_Error_Message_Args,
    PJRT_Error_GetCode_Args,
    PJRT_Error_ForEachPayload_Args,
    PJRT_Plugin_Initialize_Args,
    PJRT_Plugin_Attributes_Args,
    PJRT_Event_Destroy_Args,
    PJRT_Event_IsReady_Args,
    PJRT_Event_Await_Args,
    PJRT_Event_OnReady_Args,
    PJRT_Client_Create_Args,
    PJRT_Client_Destroy_Args,
    PJRT_Client_PlatformName_Args,
    PJRT_Client_PlatformVersion_Args,
    PJRT_Client_ProcessIndex_Args,
    PJRT_Client_Devices_Args,
    PJRT_Client_AddressableDevices_Args,
    PJRT_Client_AddressableMemories_Args,
    PJRT_Client_LookupDevice_Args,
    PJRT_Client_DefaultDeviceAssignment_Args,
    PJRT_Client_TopologyDescription_Args,
    PJRT_Client_DmaMap_Args,
    PJRT_Client_DmaUnmap_Args,
    PJRT_Device_GetDescription_Args,
    PJRT_Device_IsAddressable_Args,
    PJRT_Device_LocalHardwareId_Args,
    PJRT_Device_AddressableMemories_Args,
    PJRT_Device_DefaultMemory_Args,
    PJRT_Device_MemoryStats_Args,
    PJRT_Device_ClearMemoryStats_Args,
    PJRT_DeviceDescription_Id_Args,
    PJRT_DeviceDescription_ProcessIndex_Args,
    PJRT_DeviceDescription_Kind_Args,
    PJRT_DeviceDescription_DebugString_Args,
    PJRT_DeviceDescription_ToString_Args,
    PJRT_DeviceDescription_Attributes_Args,
    PJRT_Memory_Id_Args,
    PJRT_Memory_Kind_Args,
    PJRT_Memory_Kind_Id_Args,
    PJRT_Memory_DebugString_Args,
    PJRT_Memory_AddressableByDevices_Args,
    PJRT_Client_BufferFromHostBuffer_Args,
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args,
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args,
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args,
    PJRT_Buffer_ElementType_Args,
    PJRT_Buffer_Dimensions_Args,
    PJRT_Buffer_UnpaddedDimensions_Args,
    PJRT_Buffer_DynamicDimensionIndices_Args,
    PJRT_Buffer_GetMemoryLayout_Args,
    PJRT_Buffer_OnDeviceSizeInBytes_Args,
    PJRT_Buffer_Device_Args,
    PJRT_Buffer_Memory_Args,
    PJRT_Buffer_IsOnCpu_Args,
    PJRT_Buffer_ReadyEvent_Args,
    PJRT_Buffer_ToHostBuffer_Args,
    PJRT_Buffer_CopyToDevice_Args,
    PJRT_Buffer_CopyToMemory_Args,
    PJRT_Buffer_IsDeleted_Args,
    PJRT_Buffer_Delete_Args,
    PJRT_Buffer_Destroy_Args,
    PJRT_Buffer_CopyRawToHost_Args,
    PJRT_Buffer_UnsafePointer_Args,
    PJRT_Buffer_IncreaseExternalReferenceCount_Args,
    PJRT_Buffer_DecreaseExternalReferenceCount_Args,
    PJRT_Buffer_CopyRawToHostFuture_Args,
    PJRT_CopyToDeviceStream_Destroy_Args,
    PJRT_CopyToDeviceStream_AddChunk_Args,
    PJRT_CopyToDeviceStream_TotalBytes_Args,
    PJRT_CopyToDeviceStream_GranuleSize_Args,
    PJRT_CopyToDeviceStream_CurrentBytes_Args,
    PJRT_Client_Compile_Args,
    PJRT_Client_Load_Args,
    PJRT_Compile_Args,
    PJRT_Executable_Destroy_Args,
    PJRT_Executable_Name_Args,
    PJRT_Executable_NumReplicas_Args,
    PJRT_Executable_NumPartitions_Args,
    PJRT_Executable_NumOutputs_Args,
    PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
    PJRT_Executable_GetCostAnalysis_Args,
    PJRT_Executable_OutputMemoryKinds_Args,
    PJRT_Executable_ParameterMemoryKinds_Args,
    PJRT_Executable_OptimizedProgram_Args,
    PJRT_Executable_Serialize_Args,
    PJRT_Executable_DeserializeAndLoad_Args,
    PJRT_Executable_OutputElementTypes_Args,
    PJRT_Executable_OutputDimensions_Args,
    PJRT_Executable_Fingerprint_Args,
    PJRT_Executable_GetCompiledMemoryStats_Args,
    PJRT_LoadedExecutable_Destroy_Args,
    PJRT_LoadedExecutable_GetExecutable_Args,
    PJRT_LoadedExecutable_AddressableDevices_Args,
    PJRT_LoadedExecutable_Delete_Args,
    PJRT_LoadedExecutable_IsDeleted_Args,
    PJRT_LoadedExecutable_Execute_Args,
    PJRT_LoadedExecutable_Fingerprint_Args,
    PJRT_LoadedExecutable_GetDeviceAssignment_Args,
    PJRT_TopologyDescription_PlatformName_Args,
    PJRT_TopologyDescription_PlatformVersion_Args,
    PJRT_TopologyDescription_GetDeviceDescriptions_Args,
    PJRT_TopologyDescription_Serialize_Args,
    PJRT_TopologyDescription_Attributes_Args,
    PJRT_TopologyDescription_Fingerprint_Args,
    PJRT_TopologyDescription_Destroy_Args,
    PJRT_TopologyDescription_Deserialize_Args,
);

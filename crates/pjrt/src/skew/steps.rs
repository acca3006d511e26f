//! The steps of a framework that uses a plug-in, and the structs that it passes in each.

use serdes_abi::pjrt::Minor;

/// A step in a framework's use of a plug-in. If a step fails, all later ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The plug-in is initialised.
    Load,
    /// A client is created.
    CreateClient,
    /// The client's properties are queried; a framework that fails here may end the process.
    DescribeClient,
    /// Arrays are put onto a device, read and copied.
    MoveArrays,
    /// A program is compiled.
    Compile,
    /// A program is executed.
    Execute,
    /// Features that not every user needs: statistics, stored executables, views of memory.
    Extras,
}

impl Step {
    /// Returns the step as text for people: `create a client`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Load => "initialise the plug-in",
            Self::CreateClient => "create a client",
            Self::DescribeClient => "ask the client what it is",
            Self::MoveArrays => "move arrays",
            Self::Compile => "compile",
            Self::Execute => "execute",
            Self::Extras => "use what is less common",
        }
    }
}

/// The structs that are passed in each step, in the order of a framework.
pub(super) const STRUCTS: &[(Step, &[&str])] = &[
    (Step::Load, &["PJRT_Plugin_Initialize_Args"]),
    (Step::CreateClient, &["PJRT_Client_Create_Args"]),
    (
        Step::DescribeClient,
        &[
            "PJRT_Plugin_Attributes_Args",
            "PJRT_Client_PlatformName_Args",
            "PJRT_Client_PlatformVersion_Args",
            "PJRT_Client_ProcessIndex_Args",
            "PJRT_Client_Devices_Args",
            "PJRT_Client_AddressableDevices_Args",
            "PJRT_Client_AddressableMemories_Args",
            "PJRT_Client_TopologyDescription_Args",
            "PJRT_Device_GetDescription_Args",
            "PJRT_Device_IsAddressable_Args",
            "PJRT_Device_LocalHardwareId_Args",
            "PJRT_Device_AddressableMemories_Args",
            "PJRT_Device_DefaultMemory_Args",
            "PJRT_DeviceDescription_Id_Args",
            "PJRT_DeviceDescription_ProcessIndex_Args",
            "PJRT_DeviceDescription_Kind_Args",
            "PJRT_DeviceDescription_Attributes_Args",
            "PJRT_DeviceDescription_DebugString_Args",
            "PJRT_DeviceDescription_ToString_Args",
            "PJRT_Memory_Id_Args",
            "PJRT_Memory_Kind_Args",
            "PJRT_Memory_Kind_Id_Args",
            "PJRT_Memory_DebugString_Args",
            "PJRT_Memory_ToString_Args",
            "PJRT_Memory_AddressableByDevices_Args",
        ],
    ),
    (
        Step::MoveArrays,
        &[
            "PJRT_Client_BufferFromHostBuffer_Args",
            "PJRT_Buffer_ElementType_Args",
            "PJRT_Buffer_Dimensions_Args",
            "PJRT_Buffer_GetMemoryLayout_Args",
            "PJRT_Buffer_OnDeviceSizeInBytes_Args",
            "PJRT_Buffer_Device_Args",
            "PJRT_Buffer_Memory_Args",
            "PJRT_Buffer_ReadyEvent_Args",
            "PJRT_Buffer_ToHostBuffer_Args",
            "PJRT_Buffer_CopyToDevice_Args",
            "PJRT_Buffer_CopyToMemory_Args",
            "PJRT_Buffer_IsDeleted_Args",
            "PJRT_Buffer_Delete_Args",
            "PJRT_Buffer_Destroy_Args",
            "PJRT_Event_IsReady_Args",
            "PJRT_Event_Await_Args",
            "PJRT_Event_Error_Args",
            "PJRT_Event_OnReady_Args",
            "PJRT_Event_Destroy_Args",
        ],
    ),
    (
        Step::Compile,
        &[
            "PJRT_Client_Compile_Args",
            "PJRT_Program",
            "PJRT_Client_DefaultDeviceAssignment_Args",
            "PJRT_LoadedExecutable_GetExecutable_Args",
            "PJRT_LoadedExecutable_AddressableDevices_Args",
            "PJRT_Executable_Name_Args",
            "PJRT_Executable_NumReplicas_Args",
            "PJRT_Executable_NumPartitions_Args",
            "PJRT_Executable_NumOutputs_Args",
            "PJRT_Executable_OutputElementTypes_Args",
            "PJRT_Executable_OutputDimensions_Args",
            "PJRT_Executable_OutputMemoryKinds_Args",
            "PJRT_Executable_OptimizedProgram_Args",
        ],
    ),
    (Step::Execute, &["PJRT_LoadedExecutable_Execute_Args", "PJRT_ExecuteOptions"]),
    (
        Step::Extras,
        &[
            "PJRT_Executable_GetCompiledMemoryStats_Args",
            "PJRT_Executable_DeserializeAndLoad_Args",
            "PJRT_Executable_Serialize_Args",
            "PJRT_Client_CreateViewOfDeviceBuffer_Args",
            "PJRT_Client_CreateErrorBuffer_Args",
            "PJRT_Device_MemoryStats_Args",
            "PJRT_Device_PoisonExecution_Args",
        ],
    ),
];

/// A function that frameworks need from one of their minors, regardless of the plug-in's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) function: &'static str,
    /// The first minor of frameworks that need it.
    pub(super) since: Minor,
    pub(super) step: Step,
}

/// The needs of frameworks, from reports of users: without attributes they ended the process
/// (iree#19223), and since jax 0.5.1 every device must have memories (iree#20907).
pub(super) const NEEDS: &[Need] = &[
    need("PJRT_Plugin_Attributes", Minor::new(36), Step::DescribeClient),
    need("PJRT_Client_AddressableMemories", FIRST_WITH_MEMORIES, Step::DescribeClient),
    need("PJRT_Device_AddressableMemories", FIRST_WITH_MEMORIES, Step::DescribeClient),
    need("PJRT_Device_DefaultMemory", FIRST_WITH_MEMORIES, Step::DescribeClient),
];

/// The minor of jaxlib 0.5.1.
const FIRST_WITH_MEMORIES: Minor = Minor::new(67);

const fn need(function: &'static str, since: Minor, step: Step) -> Need {
    Need { function, since, step }
}

/// A struct for which plug-ins accept a smaller size than the one they were built with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerance {
    pub(super) structure: &'static str,
    /// The first minor of plug-ins that do this.
    pub(super) since: Minor,
    /// The smallest size that they accept, in bytes.
    pub(super) least: usize,
}

/// The measured tolerances: plug-ins of 0.81, 0.106, 0.115, 0.116 and 0.117 got every struct with
/// size 0, and reported the smallest size that they accept.
pub(super) const TOLERATED: &[Tolerance] = &[
    tolerance("PJRT_ExecuteOptions", Minor::new(81), 112),
    tolerance("PJRT_Executable_GetCompiledMemoryStats_Args", Minor::new(106), 112),
    tolerance("PJRT_Executable_DeserializeAndLoad_Args", Minor::new(115), 64),
    tolerance("PJRT_Device_MemoryStats_Args", Minor::new(115), 185),
    tolerance("PJRT_Client_CreateErrorBuffer_Args", Minor::new(117), 112),
];

const fn tolerance(structure: &'static str, since: Minor, least: usize) -> Tolerance {
    Tolerance { structure, since, least }
}

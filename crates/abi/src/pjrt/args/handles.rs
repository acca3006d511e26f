//! What a plug-in hands out without saying what is in it, and which call a struct belongs to.

use crate::pjrt::layout::Struct;

handles! {
    /// An error; whoever gets one destroys it.
    PJRT_Error;
    /// Something that will be done.
    PJRT_Event;
    /// A client: the devices of a plug-in, and what lives on them.
    PJRT_Client;
    /// A device of a client, which owns it.
    PJRT_Device;
    /// What is known of a device; it belongs to the client.
    PJRT_DeviceDescription;
    /// A memory of a client, which owns it.
    PJRT_Memory;
    /// An array in a memory.
    PJRT_Buffer;
    /// Takes the data of some buffers in pieces.
    PJRT_AsyncHostToDeviceTransferManager;
    /// A program that was compiled.
    PJRT_Executable;
    /// A compiled program on devices, to be run.
    PJRT_LoadedExecutable;
    /// What a run of a program carries with it.
    PJRT_ExecuteContext;
    /// Devices and how they are connected, without a client.
    PJRT_TopologyDescription;
    /// What owns the bytes of a topology.
    PJRT_SerializedTopology;
    /// What owns the bytes of an executable.
    PJRT_SerializedExecutable;
    /// What owns the bytes of options of a compilation.
    PJRT_SerializedCompileOptions;
    /// What owns the bytes of an assignment of devices.
    PJRT_DeviceAssignmentSerialized;
    /// What owns the attributes of a device.
    PJRT_Device_Attributes;
    /// Takes what a running program receives from the host.
    PJRT_CopyToDeviceStream;
    /// A mark in what a device does, for tools that watch it.
    PJRT_AsyncTrackingEvent;
    /// What makes an alias the buffer that it stands for.
    PJRT_FulfillAliasBufferCallback;
}

/// The call that a struct of arguments belongs to.
///
/// # Safety
/// The type is `repr(C)`, has the layout of [`Self::STRUCT`] in the newest minor, and begins with
/// its size as `usize`; any bytes are a value of it.
pub unsafe trait Arguments: Copy {
    /// The function, by its name in C.
    const FUNCTION: &'static &'static str;
    /// The struct's history.
    const STRUCT: &'static Struct;

    /// A struct without values: the newest size, and zero.
    fn new() -> Self;
}

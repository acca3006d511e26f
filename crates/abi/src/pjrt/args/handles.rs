//! Opaque types of a plug-in, and the call that each struct belongs to.

use crate::pjrt::layout::Struct;

handles! {
    /// An error; the receiver destroys it.
    PJRT_Error;
    /// Something that will be done.
    PJRT_Event;
    /// A client: the devices of a plug-in, and what lives on them.
    PJRT_Client;
    /// A device of a client, which owns it.
    PJRT_Device;
    /// The description of a device; it belongs to the client.
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
    /// The context of a run of a program.
    PJRT_ExecuteContext;
    /// Devices and how they are connected, without a client.
    PJRT_TopologyDescription;
    /// The owner of a topology's bytes.
    PJRT_SerializedTopology;
    /// The owner of an executable's bytes.
    PJRT_SerializedExecutable;
    /// The owner of the bytes of compile options.
    PJRT_SerializedCompileOptions;
    /// The owner of the bytes of a device assignment.
    PJRT_DeviceAssignmentSerialized;
    /// The owner of a device's attributes.
    PJRT_Device_Attributes;
    /// Takes what a running program receives from the host.
    PJRT_CopyToDeviceStream;
    /// A mark in what a device does, for tools that watch it.
    PJRT_AsyncTrackingEvent;
    /// The function that resolves an alias to its buffer.
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

    /// Creates a struct without values: the newest size, and zero.
    fn new() -> Self;
}

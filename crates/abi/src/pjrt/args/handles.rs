//! Opaque types of a plug-in, and the trait that links a struct of arguments to its call.

use crate::pjrt::layout::Struct;

handles! {
    /// An error; the receiver destroys it.
    PJRT_Error;
    /// An asynchronous operation's completion.
    PJRT_Event;
    /// A client: the devices of a plug-in and the objects on them.
    PJRT_Client;
    /// A device of a client, which owns it.
    PJRT_Device;
    /// The description of a device; it belongs to the client.
    PJRT_DeviceDescription;
    /// A memory of a client, which owns it.
    PJRT_Memory;
    /// An array in a memory.
    PJRT_Buffer;
    /// A transfer manager, which receives the data of some buffers in pieces.
    PJRT_AsyncHostToDeviceTransferManager;
    /// A compiled program.
    PJRT_Executable;
    /// A compiled program that is ready to run on devices.
    PJRT_LoadedExecutable;
    /// The context of a run of a program.
    PJRT_ExecuteContext;
    /// The devices of a topology and their connections, without a client.
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
    /// A stream through which a running program receives data from the host.
    PJRT_CopyToDeviceStream;
    /// A mark in a device's work, for tools that observe it.
    PJRT_AsyncTrackingEvent;
    /// The function that resolves an alias to its buffer.
    PJRT_FulfillAliasBufferCallback;
}

/// The arguments of a call.
///
/// # Safety
/// The type is `repr(C)`, has the layout of [`Self::STRUCT`] in the newest minor, and begins with
/// its size as `usize`; any bytes are a valid value.
pub unsafe trait Arguments: Copy {
    /// The name of the function in C.
    const FUNCTION: &'static &'static str;
    /// The history of the struct.
    const STRUCT: &'static Struct;

    /// Creates a struct with the newest size, and everything else zero.
    fn new() -> Self;
}

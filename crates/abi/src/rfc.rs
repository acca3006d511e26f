//! The structs of RFC #257 that differ from the released ones.
//!
//! Functions take the host's structs by pointer, and a pointer does not depend on the layout behind
//! it. So that one function type serves all layouts, callbacks here name the released `SP_Device`,
//! `SP_Platform`, `SP_PlatformFns` and `SP_StreamExecutor` where the pointer is to the RFC's own
//! struct of that name.
//!
//! The RFC's macro for `SP_PlatformFns` stops at `destroy_timer_fns`: the allocator callbacks are
//! beyond the size that it declares.

use core::ffi::{c_char, c_void};

use crate::{
    SE_EventStatus, SE_StatusCallbackFn, SP_Event, SP_Stream, SP_Timer, TF_Bool, TF_Status,
    released,
    released::{
        SE_CreateDeviceParams, SE_CreateStreamExecutorParams, SP_AllocatorStats,
        SP_DeviceMemoryBase, SP_TimerFns,
    },
};

c_struct! {
    /// A device, as the RFC prints it.
    SP_Device, sizeof 32, "SP_DEVICE_STRUCT_SIZE" = 32 ending at device_handle;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The index of the device.
    16 ordinal: i32, "int32_t", Value;
    /// The plug-in's own device.
    24 device_handle: *mut c_void, "void*", Value;
}

c_struct! {
    /// Functions on memory, streams, events and timers, as the RFC prints it.
    SP_StreamExecutor, sizeof 264, "SP_STREAMEXECUTOR_STRUCT_SIZE" = 264 ending at host_callback;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Allocates `size` bytes of device memory in memory space 0 and describes it in the last
    /// argument; a NULL `opaque` there is failure.
    16 allocate: Option<unsafe extern "C" fn(*const released::SP_Device, u64, i64, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Frees device memory; memory with a NULL `opaque` is allowed.
    24 deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Allocates host memory that asynchronous copies can use (pinned); NULL is failure.
    32 host_memory_allocate: Option<unsafe extern "C" fn(*const released::SP_Device, u64) -> *mut c_void>, "fn", Required;
    /// Frees memory of `host_memory_allocate`.
    40 host_memory_deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *mut c_void)>, "fn", Required;
    /// Allocates memory that host and devices address alike; NULL is failure.
    48 unified_memory_allocate: Option<unsafe extern "C" fn(*const released::SP_Device, u64) -> *mut c_void>, "fn", Optional;
    /// Frees memory of `unified_memory_allocate`.
    56 unified_memory_deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *mut c_void)>, "fn", Optional;
    /// Fills the statistics; false: not available.
    64 get_allocator_stats: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_AllocatorStats) -> TF_Bool>, "fn", Required;
    /// Gives free and total bytes of the device; false: not available.
    72 device_memory_usage: Option<unsafe extern "C" fn(*const released::SP_Device, *mut i64, *mut i64) -> TF_Bool>, "fn", Required;
    /// Makes a stream.
    80 create_stream: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Destroys a stream.
    88 destroy_stream: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream)>, "fn", Required;
    /// Makes the first stream wait for the work that the second has now.
    96 create_stream_dependency: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Reports an error of the stream, without waiting.
    104 get_stream_status: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Makes an event.
    112 create_event: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_Event, *mut TF_Status)>, "fn", Required;
    /// Destroys an event.
    120 destroy_event: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Event)>, "fn", Required;
    /// Polls an event.
    128 get_event_status: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Event) -> SE_EventStatus>, "fn", Required;
    /// Puts the event behind the work that the stream has now.
    136 record_event: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Makes the stream wait for the event.
    144 wait_for_event: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Makes a timer.
    152 create_timer: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Destroys a timer.
    160 destroy_timer: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Timer)>, "fn", Optional;
    /// Puts the timer's start into the stream.
    168 start_timer: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Puts the timer's stop into the stream.
    176 stop_timer: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Enqueues a copy from device to host.
    184 memcpy_dtoh: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, *mut c_void, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues a copy from host to device.
    192 memcpy_htod: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, *const c_void, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues a copy between device memories.
    200 memcpy_dtod: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Optional;
    /// Copies from device to host.
    208 sync_memcpy_dtoh: Option<unsafe extern "C" fn(*const released::SP_Device, *mut c_void, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Required;
    /// Copies from host to device.
    216 sync_memcpy_htod: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_DeviceMemoryBase, *const c_void, u64, *mut TF_Status)>, "fn", Required;
    /// Copies between device memories.
    224 sync_memcpy_dtod: Option<unsafe extern "C" fn(*const released::SP_Device, *mut SP_DeviceMemoryBase, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Optional;
    /// Waits for an event.
    232 block_host_for_event: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Waits for all work of a stream. Optional: hosts can do it by an event.
    240 block_host_until_done: Option<unsafe extern "C" fn(*const released::SP_Device, SP_Stream, *mut TF_Status)>, "fn", Optional;
    /// Waits for all work of the device.
    248 synchronize_all_activity: Option<unsafe extern "C" fn(*const released::SP_Device, *mut TF_Status)>, "fn", Required;
    /// Enqueues a function that runs on the host; true: accepted, and it will run exactly once.
    256 host_callback: Option<unsafe extern "C" fn(*mut released::SP_Device, SP_Stream, Option<SE_StatusCallbackFn>, *mut c_void) -> TF_Bool>, "fn", Required;
}

c_struct! {
    /// An allocator for the default strategy, as the RFC prints it.
    SP_Allocator, sizeof 24, "SP_ALLOCATOR_STRUCT_SIZE" = 17 ending at supports_unified_memory;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Nonzero if unified memory is supported.
    16 supports_unified_memory: TF_Bool, "TF_Bool", Value;
}

c_struct! {
    /// Functions of an allocator for the default strategy, as the RFC prints it.
    SP_AllocatorFns, sizeof 80, "SP_ALLOCATOR_FNS_STRUCT_SIZE" = 80 ending at device_memory_usage;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Allocates `size` bytes of device memory in memory space 0 and describes it in the last
    /// argument; a NULL `opaque` there is failure.
    16 allocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, u64, i64, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Frees device memory; memory with a NULL `opaque` is allowed.
    24 deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Allocates host memory that asynchronous copies can use (pinned); NULL is failure.
    32 host_memory_allocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, u64) -> *mut c_void>, "fn", Required;
    /// Frees memory of `host_memory_allocate`.
    40 host_memory_deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, *mut c_void)>, "fn", Required;
    /// Allocates memory that host and devices address alike; NULL is failure.
    48 unified_memory_allocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, u64) -> *mut c_void>, "fn", Optional;
    /// Frees memory of `unified_memory_allocate`.
    56 unified_memory_deallocate: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, *mut c_void)>, "fn", Optional;
    /// Fills the statistics; false: not available.
    64 get_allocator_stats: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, *mut SP_AllocatorStats) -> TF_Bool>, "fn", Required;
    /// Gives free and total bytes of the device; false: not available.
    72 device_memory_usage: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_Allocator, *mut i64, *mut i64) -> TF_Bool>, "fn", Required;
}

c_struct! {
    /// An allocator with a strategy of its own, as the RFC prints it.
    SP_CustomAllocator, sizeof 16, "SP_CUSTOM_ALLOCATOR_STRUCT_SIZE" = 16 ending at ext;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
}

c_struct! {
    /// Functions of an allocator with a strategy of its own, as the RFC prints it.
    SP_CustomAllocatorFns, sizeof 64, "SP_CUSTOM_ALLOCATOR_FNS_STRUCT_SIZE" = 64 ending at device_memory_usage;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Allocates device memory of a size and an alignment in bytes; NULL is failure.
    16 allocate_raw: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, usize, usize) -> *mut c_void>, "fn", Required;
    /// Frees memory of `allocate_raw`; NULL is allowed.
    24 deallocate_raw: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, *mut c_void)>, "fn", Required;
    /// Allocates host memory; NULL is failure.
    32 host_allocate_raw: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, u64) -> *mut c_void>, "fn", Optional;
    /// Frees memory of `host_allocate_raw`.
    40 host_deallocate_raw: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, *mut c_void)>, "fn", Optional;
    /// Fills the statistics; false: not available.
    48 get_allocator_stats: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, *mut SP_AllocatorStats) -> TF_Bool>, "fn", Optional;
    /// Gives free and total bytes of the device; false: not available.
    56 device_memory_usage: Option<unsafe extern "C" fn(*const released::SP_Device, *const SP_CustomAllocator, *mut i64, *mut i64) -> TF_Bool>, "fn", Optional;
}

c_struct! {
    /// The argument of `create_allocator`, as the RFC prints it.
    SE_CreateAllocatorParams, sizeof 32, "SE_CREATE_ALLOCATOR_PARAMS_STRUCT_SIZE" = 32 ending at allocator_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The allocator, which the plug-in fills.
    16 allocator: *mut SP_Allocator, "SP_Allocator*", Required;
    /// The allocator functions, which the plug-in fills.
    24 allocator_fns: *mut SP_AllocatorFns, "SP_AllocatorFns*", Required;
}

c_struct! {
    /// The argument of `create_custom_allocator`, as the RFC prints it.
    SE_CreateCustomAllocatorParams, sizeof 32, "SE_CREATE_CUSTOM_ALLOCATOR_PARAMS_STRUCT_SIZE" = 32 ending at custom_allocator_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The allocator, which the plug-in fills.
    16 custom_allocator: *mut SP_CustomAllocator, "SP_CustomAllocator*", Required;
    /// The allocator functions, which the plug-in fills.
    24 custom_allocator_fns: *mut SP_CustomAllocatorFns, "SP_CustomAllocatorFns*", Required;
}

c_struct! {
    /// A platform: what a plug-in registers, as the RFC prints it.
    SP_Platform, sizeof 40, "SP_PLATFORM_STRUCT_SIZE" = 40 ending at visible_device_count;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Name of the platform.
    16 name: *const c_char, "const char*", Required;
    /// Type of its devices.
    24 r#type: *const c_char, "const char*", Required;
    /// The number of devices.
    32 visible_device_count: usize, "size_t", Value;
}

c_struct! {
    /// Functions on the platform, as the RFC prints it.
    SP_PlatformFns, sizeof 96, "SP_PLATFORM_FNS_STRUCT_SIZE" = 64 ending at destroy_timer_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Fills the device that the parameters point to.
    16 create_device: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateDeviceParams, *mut TF_Status)>, "fn", Required;
    /// Frees what the plug-in put into the device.
    24 destroy_device: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut released::SP_Device)>, "fn", Required;
    /// Fills the executor that the parameters point to.
    32 create_stream_executor: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateStreamExecutorParams, *mut TF_Status)>, "fn", Required;
    /// Frees what the plug-in put into the executor.
    40 destroy_stream_executor: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut released::SP_StreamExecutor)>, "fn", Required;
    /// Fills the timer functions.
    48 create_timer_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_TimerFns, *mut TF_Status)>, "fn", Optional;
    /// Frees what the plug-in put into the timer functions.
    56 destroy_timer_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_TimerFns)>, "fn", Optional;
    /// Fills the allocator for the default strategy (best fit with coalescing). Only one of this
    /// and `create_custom_allocator` may be set.
    64 create_allocator: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateAllocatorParams, *mut TF_Status)>, "fn", Optional;
    /// Frees what the plug-in put into the allocator and its functions.
    72 destroy_allocator: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_Allocator, *mut SP_AllocatorFns)>, "fn", Optional;
    /// Fills an allocator with a strategy of its own.
    80 create_custom_allocator: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateCustomAllocatorParams, *mut TF_Status)>, "fn", Optional;
    /// Frees what the plug-in put into the custom allocator and its functions.
    88 destroy_custom_allocator: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_CustomAllocator, *mut SP_CustomAllocatorFns)>, "fn", Optional;
}

c_struct! {
    /// The argument of `SE_InitPlugin`. Both destroy functions are optional here, because the RFC's
    /// own example of that function sets neither.
    SE_PlatformRegistrationParams, sizeof 64, "SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE" = 64 ending at destroy_platform_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// MAJOR of the host.
    16 major_version: i32, "int32_t", Value;
    /// MINOR of the host.
    20 minor_version: i32, "int32_t", Value;
    /// PATCH of the host.
    24 patch_version: i32, "int32_t", Value;
    /// The platform, which the plug-in fills.
    32 platform: *mut SP_Platform, "SP_Platform*", Required;
    /// The platform functions, which the plug-in fills.
    40 platform_fns: *mut SP_PlatformFns, "SP_PlatformFns*", Required;
    /// Frees what the plug-in put into the platform.
    48 destroy_platform: Option<unsafe extern "C" fn(*mut SP_Platform)>, "fn", Optional;
    /// Frees what the plug-in put into the platform functions.
    56 destroy_platform_fns: Option<unsafe extern "C" fn(*mut SP_PlatformFns)>, "fn", Optional;
}

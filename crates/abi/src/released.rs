//! The structs of the released layout, as in TensorFlow 2.14 to 2.21.
//!
//! Functions are `Option`s: NULL means that the plug-in does not have one. Signatures follow RFC
//! #257 and the released headers.

use core::ffi::{c_char, c_int, c_void};

use crate::{
    SE_EventStatus, SE_StatusCallbackFn, SP_Event, SP_Stream, SP_Timer, TF_Bool, TF_Status,
};

c_struct! {
    /// Functions on timers.
    SP_TimerFns, sizeof 24, "SP_TIMER_FNS_STRUCT_SIZE" = 24 ending at nanoseconds;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The time between start and stop, in nanoseconds.
    16 nanoseconds: Option<unsafe extern "C" fn(SP_Timer) -> u64>, "fn", Optional;
}

c_struct! {
    /// Statistics of an allocator. Has no `ext`.
    SP_AllocatorStats, sizeof 96, "SP_ALLOCATORSTATS_STRUCT_SIZE" = 96 ending at largest_free_block_bytes;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Allocations so far.
    8 num_allocs: i64, "int64_t", Value;
    /// Bytes in use.
    16 bytes_in_use: i64, "int64_t", Value;
    /// Most bytes that were in use.
    24 peak_bytes_in_use: i64, "int64_t", Value;
    /// Largest allocation, in bytes.
    32 largest_alloc_size: i64, "int64_t", Value;
    /// Nonzero if `bytes_limit` is set.
    40 has_bytes_limit: i8, "int8_t", Value;
    /// Most bytes that may be in use.
    48 bytes_limit: i64, "int64_t", Value;
    /// Bytes reserved.
    56 bytes_reserved: i64, "int64_t", Value;
    /// Most bytes that were reserved.
    64 peak_bytes_reserved: i64, "int64_t", Value;
    /// Nonzero if `bytes_reservable_limit` is set.
    72 has_bytes_reservable_limit: i8, "int8_t", Value;
    /// Most bytes that may be reserved.
    80 bytes_reservable_limit: i64, "int64_t", Value;
    /// Largest free block, in bytes.
    88 largest_free_block_bytes: i64, "int64_t", Value;
}

c_struct! {
    /// A piece of device memory.
    SP_DeviceMemoryBase, sizeof 40, "SP_DEVICE_MEMORY_BASE_STRUCT_SIZE" = 40 ending at payload;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The address, or whatever stands for it on the device.
    16 opaque: *mut c_void, "void*", Value;
    /// Bytes of the allocation.
    24 size: u64, "uint64_t", Value;
    /// For the plug-in's use.
    32 payload: u64, "uint64_t", Value;
}

c_struct! {
    /// A device.
    SP_Device, sizeof 56, "SP_DEVICE_STRUCT_SIZE" = 56 ending at pci_bus_id;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The index of the device.
    16 ordinal: i32, "int32_t", Value;
    /// The plug-in's own device.
    24 device_handle: *mut c_void, "void*", Value;
    /// Name of the hardware, or NULL.
    32 hardware_name: *const c_char, "const char*", Optional;
    /// Name of the vendor, or NULL.
    40 device_vendor: *const c_char, "const char*", Optional;
    /// PCI bus id, or NULL.
    48 pci_bus_id: *const c_char, "const char*", Optional;
}

c_struct! {
    /// The argument of `create_device`.
    SE_CreateDeviceParams, sizeof 32, "SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE" = 32 ending at device;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The index of the device.
    16 ordinal: i32, "int32_t", Value;
    /// The device, which the plug-in fills.
    24 device: *mut SP_Device, "SP_Device*", Required;
}

c_struct! {
    /// Functions on devices.
    SP_DeviceFns, sizeof 40, "SP_DEVICE_FNS_STRUCT_SIZE" = 40 ending at get_gflops;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The NUMA node of the device; negative: not known.
    16 get_numa_node: Option<unsafe extern "C" fn(*const SP_Device) -> i32>, "fn", Optional;
    /// Bytes per second to and from device memory; negative: not known.
    24 get_memory_bandwidth: Option<unsafe extern "C" fn(*const SP_Device) -> i64>, "fn", Optional;
    /// Estimated billions of floating-point operations per second.
    32 get_gflops: Option<unsafe extern "C" fn(*const SP_Device) -> f64>, "fn", Optional;
}

c_struct! {
    /// The argument of `create_device_fns`.
    SE_CreateDeviceFnsParams, sizeof 24, "SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE" = 24 ending at device_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The device functions, which the plug-in fills.
    16 device_fns: *mut SP_DeviceFns, "SP_DeviceFns*", Required;
}

c_struct! {
    /// Functions on memory, streams, events and timers.
    SP_StreamExecutor, sizeof 288, "SP_STREAMEXECUTOR_STRUCT_SIZE" = 288 ending at host_callback;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Allocates `size` bytes of device memory in memory space 0 and describes it in the last
    /// argument; a NULL `opaque` there is failure.
    16 allocate: Option<unsafe extern "C" fn(*const SP_Device, u64, i64, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Frees device memory; memory with a NULL `opaque` is allowed.
    24 deallocate: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_DeviceMemoryBase)>, "fn", Required;
    /// Allocates host memory that asynchronous copies can use (pinned); NULL is failure.
    32 host_memory_allocate: Option<unsafe extern "C" fn(*const SP_Device, u64) -> *mut c_void>, "fn", Required;
    /// Frees memory of `host_memory_allocate`.
    40 host_memory_deallocate: Option<unsafe extern "C" fn(*const SP_Device, *mut c_void)>, "fn", Required;
    /// Allocates memory that host and devices address alike; NULL is failure.
    48 unified_memory_allocate: Option<unsafe extern "C" fn(*const SP_Device, u64) -> *mut c_void>, "fn", Optional;
    /// Frees memory of `unified_memory_allocate`.
    56 unified_memory_deallocate: Option<unsafe extern "C" fn(*const SP_Device, *mut c_void)>, "fn", Optional;
    /// Fills the statistics; false: not available.
    64 get_allocator_stats: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_AllocatorStats) -> TF_Bool>, "fn", Required;
    /// Gives free and total bytes of the device; false: not available.
    72 device_memory_usage: Option<unsafe extern "C" fn(*const SP_Device, *mut i64, *mut i64) -> TF_Bool>, "fn", Required;
    /// Makes a stream.
    80 create_stream: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Destroys a stream.
    88 destroy_stream: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream)>, "fn", Required;
    /// Makes the first stream wait for the work that the second has now.
    96 create_stream_dependency: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Reports an error of the stream, without waiting.
    104 get_stream_status: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut TF_Status)>, "fn", Required;
    /// Makes an event.
    112 create_event: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_Event, *mut TF_Status)>, "fn", Required;
    /// Destroys an event.
    120 destroy_event: Option<unsafe extern "C" fn(*const SP_Device, SP_Event)>, "fn", Required;
    /// Polls an event.
    128 get_event_status: Option<unsafe extern "C" fn(*const SP_Device, SP_Event) -> SE_EventStatus>, "fn", Required;
    /// Puts the event behind the work that the stream has now.
    136 record_event: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Makes the stream wait for the event.
    144 wait_for_event: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Makes a timer.
    152 create_timer: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Destroys a timer.
    160 destroy_timer: Option<unsafe extern "C" fn(*const SP_Device, SP_Timer)>, "fn", Optional;
    /// Puts the timer's start into the stream.
    168 start_timer: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Puts the timer's stop into the stream.
    176 stop_timer: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, SP_Timer, *mut TF_Status)>, "fn", Optional;
    /// Enqueues a copy from device to host.
    184 memcpy_dtoh: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut c_void, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues a copy from host to device.
    192 memcpy_htod: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, *const c_void, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues a copy between device memories.
    200 memcpy_dtod: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Optional;
    /// Copies from device to host.
    208 sync_memcpy_dtoh: Option<unsafe extern "C" fn(*const SP_Device, *mut c_void, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Required;
    /// Copies from host to device.
    216 sync_memcpy_htod: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_DeviceMemoryBase, *const c_void, u64, *mut TF_Status)>, "fn", Required;
    /// Copies between device memories.
    224 sync_memcpy_dtod: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_DeviceMemoryBase, *const SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Optional;
    /// Waits for an event.
    232 block_host_for_event: Option<unsafe extern "C" fn(*const SP_Device, SP_Event, *mut TF_Status)>, "fn", Required;
    /// Waits for all work of a stream. Optional: hosts can do it by an event.
    240 block_host_until_done: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut TF_Status)>, "fn", Optional;
    /// Waits for all work of the device.
    248 synchronize_all_activity: Option<unsafe extern "C" fn(*const SP_Device, *mut TF_Status)>, "fn", Required;
    /// Enqueues filling memory with zero bytes.
    256 mem_zero: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues filling memory with a byte.
    264 memset: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, u8, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues filling memory with a 32-bit pattern; the size is in bytes.
    272 memset32: Option<unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut SP_DeviceMemoryBase, u32, u64, *mut TF_Status)>, "fn", Required;
    /// Enqueues a function that runs on the host; true: accepted, and it will run exactly once.
    280 host_callback: Option<unsafe extern "C" fn(*mut SP_Device, SP_Stream, Option<SE_StatusCallbackFn>, *mut c_void) -> TF_Bool>, "fn", Required;
}

c_struct! {
    /// The argument of `create_stream_executor`.
    SE_CreateStreamExecutorParams, sizeof 24, "SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE" = 24 ending at stream_executor;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The executor, which the plug-in fills.
    16 stream_executor: *mut SP_StreamExecutor, "SP_StreamExecutor*", Required;
}

c_struct! {
    /// A platform: what a plug-in registers.
    SP_Platform, sizeof 40, "SP_PLATFORM_STRUCT_SIZE" = 35 ending at force_memory_growth;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// Name of the platform.
    16 name: *const c_char, "const char*", Required;
    /// Type of its devices.
    24 r#type: *const c_char, "const char*", Required;
    /// Nonzero if unified memory is supported.
    32 supports_unified_memory: TF_Bool, "TF_Bool", Value;
    /// Nonzero if the host should put its best-fit allocator over `allocate`.
    33 use_bfc_allocator: TF_Bool, "TF_Bool", Value;
    /// Nonzero if that allocator should grow on demand.
    34 force_memory_growth: TF_Bool, "TF_Bool", Value;
}

c_struct! {
    /// Functions on the platform.
    SP_PlatformFns, sizeof 88, "SP_PLATFORM_FNS_STRUCT_SIZE" = 88 ending at destroy_timer_fns;
    /// Bytes of this struct that its writer knows.
    0 struct_size: usize, "size_t", Required;
    /// Reserved, or for the plug-in's own use.
    8 ext: *mut c_void, "void*", NoOp;
    /// The number of devices.
    16 get_device_count: Option<unsafe extern "C" fn(*const SP_Platform, *mut c_int, *mut TF_Status)>, "fn", Required;
    /// Fills the device that the parameters point to.
    24 create_device: Option<unsafe extern "C" fn(*const SP_Platform, *mut SE_CreateDeviceParams, *mut TF_Status)>, "fn", Required;
    /// Frees what the plug-in put into the device.
    32 destroy_device: Option<unsafe extern "C" fn(*const SP_Platform, *mut SP_Device)>, "fn", Required;
    /// Fills the device functions that the parameters point to.
    40 create_device_fns: Option<unsafe extern "C" fn(*const SP_Platform, *mut SE_CreateDeviceFnsParams, *mut TF_Status)>, "fn", Required;
    /// Frees what the plug-in put into the device functions.
    48 destroy_device_fns: Option<unsafe extern "C" fn(*const SP_Platform, *mut SP_DeviceFns)>, "fn", Required;
    /// Fills the executor that the parameters point to.
    56 create_stream_executor: Option<unsafe extern "C" fn(*const SP_Platform, *mut SE_CreateStreamExecutorParams, *mut TF_Status)>, "fn", Required;
    /// Frees what the plug-in put into the executor.
    64 destroy_stream_executor: Option<unsafe extern "C" fn(*const SP_Platform, *mut SP_StreamExecutor)>, "fn", Required;
    /// Fills the timer functions.
    72 create_timer_fns: Option<unsafe extern "C" fn(*const SP_Platform, *mut SP_TimerFns, *mut TF_Status)>, "fn", Optional;
    /// Frees what the plug-in put into the timer functions.
    80 destroy_timer_fns: Option<unsafe extern "C" fn(*const SP_Platform, *mut SP_TimerFns)>, "fn", Optional;
}

c_struct! {
    /// The argument of `SE_InitPlugin`.
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
    48 destroy_platform: Option<unsafe extern "C" fn(*mut SP_Platform)>, "fn", Required;
    /// Frees what the plug-in put into the platform functions.
    56 destroy_platform_fns: Option<unsafe extern "C" fn(*mut SP_PlatformFns)>, "fn", Required;
}

/// The function `SE_InitPlugin` that a plug-in exports.
pub type SE_InitPluginFn = unsafe extern "C" fn(*mut SE_PlatformRegistrationParams, *mut TF_Status);

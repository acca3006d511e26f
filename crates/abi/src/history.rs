//! The structs of older released layouts, where they differ from the current ones.

/// Structs of TensorFlow 2.4 that differ.
pub mod tensorflow_2_4 {
    use core::ffi::{c_char, c_void};

    use crate::{
        TF_Bool, TF_Status, released,
        released::{
            SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams,
            SP_Device, SP_DeviceFns, SP_StreamExecutor, SP_TimerFns,
        },
    };

    c_struct! {
        /// A platform: what a plug-in registers.
        SP_Platform, sizeof 48, "SP_PLATFORM_STRUCT_SIZE" = 41 ending at supports_unified_memory;
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
        /// Nonzero if unified memory is supported.
        40 supports_unified_memory: TF_Bool, "TF_Bool", Value;
    }

    c_struct! {
        /// Functions on the platform.
        SP_PlatformFns, sizeof 80, "SP_PLATFORM_FNS_STRUCT_SIZE" = 80 ending at destroy_timer_fns;
        /// Bytes of this struct that its writer knows.
        0 struct_size: usize, "size_t", Required;
        /// Reserved, or for the plug-in's own use.
        8 ext: *mut c_void, "void*", NoOp;
        /// Fills the device that the parameters point to.
        16 create_device: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateDeviceParams, *mut TF_Status)>, "fn", Required;
        /// Frees what the plug-in put into the device.
        24 destroy_device: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_Device)>, "fn", Required;
        /// Fills the device functions that the parameters point to.
        32 create_device_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateDeviceFnsParams, *mut TF_Status)>, "fn", Required;
        /// Frees what the plug-in put into the device functions.
        40 destroy_device_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_DeviceFns)>, "fn", Required;
        /// Fills the executor that the parameters point to.
        48 create_stream_executor: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SE_CreateStreamExecutorParams, *mut TF_Status)>, "fn", Required;
        /// Frees what the plug-in put into the executor.
        56 destroy_stream_executor: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_StreamExecutor)>, "fn", Required;
        /// Fills the timer functions.
        64 create_timer_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_TimerFns, *mut TF_Status)>, "fn", Optional;
        /// Frees what the plug-in put into the timer functions.
        72 destroy_timer_fns: Option<unsafe extern "C" fn(*const released::SP_Platform, *mut SP_TimerFns)>, "fn", Optional;
    }
}

/// Structs of TensorFlow 2.5 and 2.6 that differ.
pub mod tensorflow_2_5 {
    use core::ffi::c_void;

    pub use super::tensorflow_2_8::SP_Platform;
    use crate::{
        SE_EventStatus, SE_StatusCallbackFn, SP_Event, SP_Stream, SP_Timer, TF_Bool, TF_Status,
        released::{SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase},
    };

    c_struct! {
        /// Functions on memory, streams, events and timers: without `mem_zero`, `memset` and
        /// `memset32`, which later headers put before `host_callback`.
        SP_StreamExecutor, sizeof 264, "SP_STREAMEXECUTOR_STRUCT_SIZE" = 264 ending at host_callback;
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
        /// Enqueues a function that runs on the host; true: accepted, and it will run exactly once.
        256 host_callback: Option<unsafe extern "C" fn(*mut SP_Device, SP_Stream, Option<SE_StatusCallbackFn>, *mut c_void) -> TF_Bool>, "fn", Required;
    }
}

/// Structs of TensorFlow 2.8 that differ.
pub mod tensorflow_2_8 {
    use core::ffi::{c_char, c_void};

    use crate::TF_Bool;

    c_struct! {
        /// A platform: what a plug-in registers; it cannot ask for growth.
        SP_Platform, sizeof 40, "SP_PLATFORM_STRUCT_SIZE" = 34 ending at use_bfc_allocator;
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
    }
}

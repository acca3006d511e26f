/* StreamExecutor C API, for authors of plug-ins in C: a header of serdes.
 *
 * Every published layout is here; define SERDES_SE_LAYOUT before including it to choose one:
 *
 *   #define SERDES_SE_LAYOUT SERDES_SE_TENSORFLOW_2_14   (the default; TensorFlow 2.14 to 2.21)
 *
 * All layouts call themselves version 0.0.1. The memory of every struct that a plug-in fills belongs to the host.
 * The layouts are those of the crate serdes-abi; a test compares the two.
 *
 * What 0 or NULL means is said of every member:
 *
 *   [required]  it must be set; a plug-in (or a host, in the structs that hosts fill) without it is refused.
 *   [optional]  0 or NULL says that it is not provided, which is allowed.
 *   [value]     0 or NULL is a value like any other.
 *   [no-op]     0 or NULL is a no-op: nothing is done with it.
 *
 * By the versioning strategy only a [no-op] member can be deprecated by leaving it zero without a new MAJOR. */

#ifndef SERDES_STREAM_EXECUTOR_H_
#define SERDES_STREAM_EXECUTOR_H_

#include <stddef.h>
#include <stdint.h>

#define SERDES_SE_RFC_257 257
#define SERDES_SE_TENSORFLOW_2_4 20400
#define SERDES_SE_TENSORFLOW_2_5 20500
#define SERDES_SE_TENSORFLOW_2_8 20800
#define SERDES_SE_TENSORFLOW_2_14 21400

#ifndef SERDES_SE_LAYOUT
#define SERDES_SE_LAYOUT SERDES_SE_TENSORFLOW_2_14
#endif

#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257 && SERDES_SE_LAYOUT != SERDES_SE_TENSORFLOW_2_4 && \
    SERDES_SE_LAYOUT != SERDES_SE_TENSORFLOW_2_5 && SERDES_SE_LAYOUT != SERDES_SE_TENSORFLOW_2_8 && \
    SERDES_SE_LAYOUT != SERDES_SE_TENSORFLOW_2_14
#error "SERDES_SE_LAYOUT is none of the known layouts"
#endif

#define SE_MAJOR 0
#define SE_MINOR 0
#define SE_PATCH 1

/* Where a member ends, in bytes: the struct_size of a struct whose last announced member it is. */
#define SERDES_SE_END_OF(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))

/* The same under the name that RFC #257 and TensorFlow's headers give it. */
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) SERDES_SE_END_OF(TYPE, MEMBER)
#endif

/* Whether a struct has a member, and the member is set. */
#define SERDES_SE_HAS(TYPE, POINTER, MEMBER) \
  ((POINTER)->struct_size >= SERDES_SE_END_OF(TYPE, MEMBER) && (POINTER)->MEMBER != 0)

#if defined(_WIN32)
#define SERDES_SE_EXPORT __declspec(dllexport)
#else
#define SERDES_SE_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned char TF_Bool;

typedef struct TF_Status TF_Status;

typedef enum TF_Code {
  TF_OK = 0,
  TF_CANCELLED = 1,
  TF_UNKNOWN = 2,
  TF_INVALID_ARGUMENT = 3,
  TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5,
  TF_ALREADY_EXISTS = 6,
  TF_PERMISSION_DENIED = 7,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_ABORTED = 10,
  TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14,
  TF_DATA_LOSS = 15,
  TF_UNAUTHENTICATED = 16
} TF_Code;

/* The host defines these five; a plug-in leaves them undefined when it is linked. */
TF_Status* TF_NewStatus(void);
void TF_DeleteStatus(TF_Status* status);
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message);
TF_Code TF_GetCode(const TF_Status* status);
const char* TF_Message(const TF_Status* status);

typedef struct SP_Stream_st* SP_Stream;
typedef struct SP_Event_st* SP_Event;
typedef struct SP_Timer_st* SP_Timer;

/* A function that a stream runs on the host. */
typedef void (*SE_StatusCallbackFn)(void* callback_arg, TF_Status* status);

typedef enum SE_EventStatus {
  SE_EVENT_UNKNOWN = 0,
  SE_EVENT_ERROR = 1,
  SE_EVENT_PENDING = 2,
  SE_EVENT_COMPLETE = 3
} SE_EventStatus;

/* Functions on timers. */
typedef struct SP_TimerFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [optional] The time between start and stop, in nanoseconds. */
  uint64_t (*nanoseconds)(SP_Timer timer);
} SP_TimerFns;
#define SP_TIMER_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_TimerFns, nanoseconds)

/* Statistics of an allocator. Has no 'ext'. */
typedef struct SP_AllocatorStats {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [value] Allocations so far. */
  int64_t num_allocs;
  /* [value] Bytes in use. */
  int64_t bytes_in_use;
  /* [value] Most bytes that were in use. */
  int64_t peak_bytes_in_use;
  /* [value] Largest allocation, in bytes. */
  int64_t largest_alloc_size;
  /* [value] Whether 'bytes_limit' means something. */
  int8_t has_bytes_limit;
  /* [value] Most bytes that may be in use. */
  int64_t bytes_limit;
  /* [value] Bytes reserved. */
  int64_t bytes_reserved;
  /* [value] Most bytes that were reserved. */
  int64_t peak_bytes_reserved;
  /* [value] Whether 'bytes_reservable_limit' means something. */
  int8_t has_bytes_reservable_limit;
  /* [value] Most bytes that may be reserved. */
  int64_t bytes_reservable_limit;
  /* [value] Largest free block, in bytes. */
  int64_t largest_free_block_bytes;
} SP_AllocatorStats;
#define SP_ALLOCATORSTATS_STRUCT_SIZE SERDES_SE_END_OF(SP_AllocatorStats, largest_free_block_bytes)

/* A piece of device memory. */
typedef struct SP_DeviceMemoryBase {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] The address, or whatever stands for it on the device. */
  void* opaque;
  /* [value] Bytes of the allocation. */
  uint64_t size;
  /* [value] For the plug-in's use. */
  uint64_t payload;
} SP_DeviceMemoryBase;
#define SP_DEVICE_MEMORY_BASE_STRUCT_SIZE SERDES_SE_END_OF(SP_DeviceMemoryBase, payload)

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
/* A device. */
typedef struct SP_Device {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] The index of the device. */
  int32_t ordinal;
  /* [value] The plug-in's own device. */
  void* device_handle;
} SP_Device;
#define SP_DEVICE_STRUCT_SIZE SERDES_SE_END_OF(SP_Device, device_handle)
#else
/* A device. */
typedef struct SP_Device {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] The index of the device. */
  int32_t ordinal;
  /* [value] The plug-in's own device. */
  void* device_handle;
  /* [optional] Name of the hardware, or NULL. */
  const char* hardware_name;
  /* [optional] Name of the vendor, or NULL. */
  const char* device_vendor;
  /* [optional] PCI bus id, or NULL. */
  const char* pci_bus_id;
} SP_Device;
#define SP_DEVICE_STRUCT_SIZE SERDES_SE_END_OF(SP_Device, pci_bus_id)
#endif

/* What 'create_device' gets. */
typedef struct SE_CreateDeviceParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] The index of the device. */
  int32_t ordinal;
  /* [required] Where the plug-in puts the device. */
  SP_Device* device;
} SE_CreateDeviceParams;
#define SE_CREATE_DEVICE_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_CreateDeviceParams, device)

#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257
/* Functions on devices. */
typedef struct SP_DeviceFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [optional] The NUMA node of the device; negative: not known. */
  int32_t (*get_numa_node)(const SP_Device* device);
  /* [optional] Bytes per second to and from device memory; negative: not known. */
  int64_t (*get_memory_bandwidth)(const SP_Device* device);
  /* [optional] Estimated billions of floating-point operations per second. */
  double (*get_gflops)(const SP_Device* device);
} SP_DeviceFns;
#define SP_DEVICE_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_DeviceFns, get_gflops)

/* What 'create_device_fns' gets. */
typedef struct SE_CreateDeviceFnsParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Where the plug-in puts the device functions. */
  SP_DeviceFns* device_fns;
} SE_CreateDeviceFnsParams;
#define SE_CREATE_DEVICE_FNS_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_CreateDeviceFnsParams, device_fns)
#endif

/* Functions on memory, streams, events and timers. */
typedef struct SP_StreamExecutor {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Allocates 'size' bytes of device memory in memory space 0 and describes it in the last
   * argument; a NULL 'opaque' there is failure. */
  void (*allocate)(const SP_Device* device, uint64_t size, int64_t memory_space,
      SP_DeviceMemoryBase* memory);
  /* [required] Frees device memory; memory with a NULL 'opaque' is allowed. */
  void (*deallocate)(const SP_Device* device, SP_DeviceMemoryBase* memory);
  /* [required] Allocates host memory that asynchronous copies can use (pinned); NULL is failure. */
  void* (*host_memory_allocate)(const SP_Device* device, uint64_t size);
  /* [required] Frees memory of 'host_memory_allocate'. */
  void (*host_memory_deallocate)(const SP_Device* device, void* memory);
  /* [optional] Allocates memory that host and devices address alike; NULL is failure. A platform
   * that says that it supports unified memory must have it. */
  void* (*unified_memory_allocate)(const SP_Device* device, uint64_t size);
  /* [optional] Frees memory of 'unified_memory_allocate', and goes with it. */
  void (*unified_memory_deallocate)(const SP_Device* device, void* memory);
  /* [required] Fills the statistics; false: not available. */
  TF_Bool (*get_allocator_stats)(const SP_Device* device, SP_AllocatorStats* stats);
  /* [required] Gives free and total bytes of the device; false: not available. */
  TF_Bool (*device_memory_usage)(const SP_Device* device, int64_t* free, int64_t* total);
  /* [required] Makes a stream. */
  void (*create_stream)(const SP_Device* device, SP_Stream* stream, TF_Status* status);
  /* [required] Destroys a stream. */
  void (*destroy_stream)(const SP_Device* device, SP_Stream stream);
  /* [required] Makes the first stream wait for the work that the second has now. */
  void (*create_stream_dependency)(const SP_Device* device, SP_Stream dependent, SP_Stream other,
      TF_Status* status);
  /* [required] Reports an error of the stream, without waiting. */
  void (*get_stream_status)(const SP_Device* device, SP_Stream stream, TF_Status* status);
  /* [required] Makes an event. */
  void (*create_event)(const SP_Device* device, SP_Event* event, TF_Status* status);
  /* [required] Destroys an event. */
  void (*destroy_event)(const SP_Device* device, SP_Event event);
  /* [required] Polls an event. */
  SE_EventStatus (*get_event_status)(const SP_Device* device, SP_Event event);
  /* [required] Puts the event behind the work that the stream has now. */
  void (*record_event)(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status*
      status);
  /* [required] Makes the stream wait for the event. */
  void (*wait_for_event)(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status*
      status);
  /* [optional] Makes a timer. */
  void (*create_timer)(const SP_Device* device, SP_Timer* timer, TF_Status* status);
  /* [optional] Destroys a timer. */
  void (*destroy_timer)(const SP_Device* device, SP_Timer timer);
  /* [optional] Puts the timer's start into the stream. */
  void (*start_timer)(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status*
      status);
  /* [optional] Puts the timer's stop into the stream. */
  void (*stop_timer)(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status*
      status);
  /* [required] Enqueues a copy from device to host. */
  void (*memcpy_dtoh)(const SP_Device* device, SP_Stream stream, void* host_dst, const
      SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status);
  /* [required] Enqueues a copy from host to device. */
  void (*memcpy_htod)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
      const void* host_src, uint64_t size, TF_Status* status);
  /* [optional] Enqueues a copy between device memories. */
  void (*memcpy_dtod)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* device_dst,
      const SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status);
  /* [required] Copies from device to host. */
  void (*sync_memcpy_dtoh)(const SP_Device* device, void* host_dst, const SP_DeviceMemoryBase*
      device_src, uint64_t size, TF_Status* status);
  /* [required] Copies from host to device. */
  void (*sync_memcpy_htod)(const SP_Device* device, SP_DeviceMemoryBase* device_dst, const void*
      host_src, uint64_t size, TF_Status* status);
  /* [optional] Copies between device memories. */
  void (*sync_memcpy_dtod)(const SP_Device* device, SP_DeviceMemoryBase* device_dst, const
      SP_DeviceMemoryBase* device_src, uint64_t size, TF_Status* status);
  /* [required] Waits for an event. */
  void (*block_host_for_event)(const SP_Device* device, SP_Event event, TF_Status* status);
  /* [optional] Waits for all work of a stream. Optional: hosts can do it by an event. */
  void (*block_host_until_done)(const SP_Device* device, SP_Stream stream, TF_Status* status);
  /* [required] Waits for all work of the device. */
  void (*synchronize_all_activity)(const SP_Device* device, TF_Status* status);
#if SERDES_SE_LAYOUT >= SERDES_SE_TENSORFLOW_2_8
  /* [required] Enqueues filling memory with zero bytes. */
  void (*mem_zero)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
      uint64_t size, TF_Status* status);
  /* [required] Enqueues filling memory with a byte. */
  void (*memset)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint8_t
      pattern, uint64_t size, TF_Status* status);
  /* [required] Enqueues filling memory with a 32-bit pattern; the size is in bytes. */
  void (*memset32)(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
      uint32_t pattern, uint64_t size, TF_Status* status);
#endif
  /* [required] Enqueues a function that runs on the host; true: accepted, and it will run exactly once. */
#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
  TF_Bool (*host_callback)(SP_Device* device, SP_Stream stream, SE_StatusCallbackFn callback_fn,
      void* callback_arg);
#else
  TF_Bool (*host_callback)(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn callback_fn,
      void* callback_arg);
#endif
} SP_StreamExecutor;
#define SP_STREAMEXECUTOR_STRUCT_SIZE SERDES_SE_END_OF(SP_StreamExecutor, host_callback)

/* What 'create_stream_executor' gets. */
typedef struct SE_CreateStreamExecutorParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Where the plug-in puts the executor. */
  SP_StreamExecutor* stream_executor;
} SE_CreateStreamExecutorParams;
#define SE_CREATE_STREAM_EXECUTOR_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_CreateStreamExecutorParams, stream_executor)

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
/* An allocator for the default strategy. */
typedef struct SP_Allocator {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] Whether unified memory is supported. */
  TF_Bool supports_unified_memory;
} SP_Allocator;
#define SP_ALLOCATOR_STRUCT_SIZE SERDES_SE_END_OF(SP_Allocator, supports_unified_memory)

/* Functions of an allocator for the default strategy. */
typedef struct SP_AllocatorFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Allocates 'size' bytes of device memory in memory space 0 and describes it in the last
   * argument; a NULL 'opaque' there is failure. */
  void (*allocate)(const SP_Device* device, const SP_Allocator* allocator, uint64_t size, int64_t
      memory_space, SP_DeviceMemoryBase* memory);
  /* [required] Frees device memory; memory with a NULL 'opaque' is allowed. */
  void (*deallocate)(const SP_Device* device, const SP_Allocator* allocator, SP_DeviceMemoryBase*
      memory);
  /* [required] Allocates host memory that asynchronous copies can use (pinned); NULL is failure. */
  void* (*host_memory_allocate)(const SP_Device* device, const SP_Allocator* allocator, uint64_t
      size);
  /* [required] Frees memory of 'host_memory_allocate'. */
  void (*host_memory_deallocate)(const SP_Device* device, const SP_Allocator* allocator, void*
      memory);
  /* [optional] Allocates memory that host and devices address alike; NULL is failure. A platform
   * that says that it supports unified memory must have it. */
  void* (*unified_memory_allocate)(const SP_Device* device, const SP_Allocator* allocator,
      uint64_t size);
  /* [optional] Frees memory of 'unified_memory_allocate', and goes with it. */
  void (*unified_memory_deallocate)(const SP_Device* device, const SP_Allocator* allocator, void*
      memory);
  /* [required] Fills the statistics; false: not available. */
  TF_Bool (*get_allocator_stats)(const SP_Device* device, const SP_Allocator* allocator,
      SP_AllocatorStats* stats);
  /* [required] Gives free and total bytes of the device; false: not available. */
  TF_Bool (*device_memory_usage)(const SP_Device* device, const SP_Allocator* allocator, int64_t*
      free, int64_t* total);
} SP_AllocatorFns;
#define SP_ALLOCATOR_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_AllocatorFns, device_memory_usage)

/* An allocator with a strategy of its own. */
typedef struct SP_CustomAllocator {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
} SP_CustomAllocator;
#define SP_CUSTOM_ALLOCATOR_STRUCT_SIZE SERDES_SE_END_OF(SP_CustomAllocator, ext)

/* Functions of an allocator with a strategy of its own. */
typedef struct SP_CustomAllocatorFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Allocates device memory of a size and an alignment in bytes; NULL is failure. */
  void* (*allocate_raw)(const SP_Device* device, const SP_CustomAllocator* custom_allocator,
      size_t size, size_t alignment);
  /* [required] Frees memory of 'allocate_raw'; NULL is allowed. */
  void (*deallocate_raw)(const SP_Device* device, const SP_CustomAllocator* custom_allocator,
      void* memory);
  /* [optional] Allocates host memory; NULL is failure. */
  void* (*host_allocate_raw)(const SP_Device* device, const SP_CustomAllocator* custom_allocator,
      uint64_t size);
  /* [optional] Frees memory of 'host_allocate_raw', and goes with it. */
  void (*host_deallocate_raw)(const SP_Device* device, const SP_CustomAllocator* custom_allocator,
      void* memory);
  /* [optional] Fills the statistics; false: not available. */
  TF_Bool (*get_allocator_stats)(const SP_Device* device, const SP_CustomAllocator*
      custom_allocator, SP_AllocatorStats* stats);
  /* [optional] Gives free and total bytes of the device; false: not available. */
  TF_Bool (*device_memory_usage)(const SP_Device* device, const SP_CustomAllocator*
      custom_allocator, int64_t* free, int64_t* total);
} SP_CustomAllocatorFns;
#define SP_CUSTOM_ALLOCATOR_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_CustomAllocatorFns, device_memory_usage)

/* What 'create_allocator' gets. */
typedef struct SE_CreateAllocatorParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Where the plug-in puts the allocator. */
  SP_Allocator* allocator;
  /* [required] Where the plug-in puts the allocator functions. */
  SP_AllocatorFns* allocator_fns;
} SE_CreateAllocatorParams;
#define SE_CREATE_ALLOCATOR_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_CreateAllocatorParams, allocator_fns)

/* The name that the RFC's example of a plug-in has for it. */
typedef SE_CreateAllocatorParams SP_CreateAllocatorParams;

/* What 'create_custom_allocator' gets. */
typedef struct SE_CreateCustomAllocatorParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Where the plug-in puts the allocator. */
  SP_CustomAllocator* custom_allocator;
  /* [required] Where the plug-in puts the allocator functions. */
  SP_CustomAllocatorFns* custom_allocator_fns;
} SE_CreateCustomAllocatorParams;
#define SE_CREATE_CUSTOM_ALLOCATOR_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_CreateCustomAllocatorParams, custom_allocator_fns)
#endif

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
/* A platform: what a plug-in registers. */
typedef struct SP_Platform {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Name of the platform. */
  const char* name;
  /* [required] Type of its devices. */
  const char* type;
  /* [value] The number of devices. */
  size_t visible_device_count;
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE SERDES_SE_END_OF(SP_Platform, visible_device_count)
#elif SERDES_SE_LAYOUT == SERDES_SE_TENSORFLOW_2_4
/* A platform: what a plug-in registers. */
typedef struct SP_Platform {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Name of the platform. */
  const char* name;
  /* [required] Type of its devices. */
  const char* type;
  /* [value] The number of devices. */
  size_t visible_device_count;
  /* [value] Whether unified memory is supported. */
  TF_Bool supports_unified_memory;
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE SERDES_SE_END_OF(SP_Platform, supports_unified_memory)
#elif SERDES_SE_LAYOUT <= SERDES_SE_TENSORFLOW_2_8
/* A platform: what a plug-in registers. */
typedef struct SP_Platform {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Name of the platform. */
  const char* name;
  /* [required] Type of its devices. */
  const char* type;
  /* [value] Whether unified memory is supported. */
  TF_Bool supports_unified_memory;
  /* [value] Whether the host should put its best-fit allocator over 'allocate'. */
  TF_Bool use_bfc_allocator;
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE SERDES_SE_END_OF(SP_Platform, use_bfc_allocator)
#else
/* A platform: what a plug-in registers. */
typedef struct SP_Platform {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Name of the platform. */
  const char* name;
  /* [required] Type of its devices. */
  const char* type;
  /* [value] Whether unified memory is supported. */
  TF_Bool supports_unified_memory;
  /* [value] Whether the host should put its best-fit allocator over 'allocate'. */
  TF_Bool use_bfc_allocator;
  /* [value] Whether that allocator should grow by and by. */
  TF_Bool force_memory_growth;
} SP_Platform;
#define SP_PLATFORM_STRUCT_SIZE SERDES_SE_END_OF(SP_Platform, force_memory_growth)
#endif

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
/* The size that the RFC announces ends before the allocator callbacks. */
/* Functions on the platform. */
typedef struct SP_PlatformFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Fills the device that the parameters point to. */
  void (*create_device)(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status*
      status);
  /* [required] Frees what the plug-in put into the device. */
  void (*destroy_device)(const SP_Platform* platform, SP_Device* device);
  /* [required] Fills the executor that the parameters point to. */
  void (*create_stream_executor)(const SP_Platform* platform, SE_CreateStreamExecutorParams*
      params, TF_Status* status);
  /* [required] Frees what the plug-in put into the executor. */
  void (*destroy_stream_executor)(const SP_Platform* platform, SP_StreamExecutor*
      stream_executor);
  /* [optional] Fills the timer functions. */
  void (*create_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns, TF_Status*
      status);
  /* [optional] Frees what the plug-in put into the timer functions. */
  void (*destroy_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns);
  /* [optional] Fills the allocator for the default strategy (best fit with coalescing). Only one of this
   * and 'create_custom_allocator' may be set. */
  void (*create_allocator)(const SP_Platform* platform, SE_CreateAllocatorParams* params,
      TF_Status* status);
  /* [optional] Frees what the plug-in put into the allocator and its functions. Goes with
   * 'create_allocator'. */
  void (*destroy_allocator)(const SP_Platform* platform, SP_Allocator* allocator, SP_AllocatorFns*
      allocator_fns);
  /* [optional] Fills an allocator with a strategy of its own. */
  void (*create_custom_allocator)(const SP_Platform* platform, SE_CreateCustomAllocatorParams*
      params, TF_Status* status);
  /* [optional] Frees what the plug-in put into the custom allocator and its functions. Goes with
   * 'create_custom_allocator'. */
  void (*destroy_custom_allocator)(const SP_Platform* platform, SP_CustomAllocator*
      custom_allocator, SP_CustomAllocatorFns* custom_allocator_fns);
} SP_PlatformFns;
#define SP_PLATFORM_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_PlatformFns, destroy_timer_fns)
#elif SERDES_SE_LAYOUT == SERDES_SE_TENSORFLOW_2_4
/* Functions on the platform. */
typedef struct SP_PlatformFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] Fills the device that the parameters point to. */
  void (*create_device)(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status*
      status);
  /* [required] Frees what the plug-in put into the device. */
  void (*destroy_device)(const SP_Platform* platform, SP_Device* device);
  /* [required] Fills the device functions that the parameters point to. */
  void (*create_device_fns)(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
      TF_Status* status);
  /* [required] Frees what the plug-in put into the device functions. */
  void (*destroy_device_fns)(const SP_Platform* platform, SP_DeviceFns* device_fns);
  /* [required] Fills the executor that the parameters point to. */
  void (*create_stream_executor)(const SP_Platform* platform, SE_CreateStreamExecutorParams*
      params, TF_Status* status);
  /* [required] Frees what the plug-in put into the executor. */
  void (*destroy_stream_executor)(const SP_Platform* platform, SP_StreamExecutor*
      stream_executor);
  /* [optional] Fills the timer functions. */
  void (*create_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns, TF_Status*
      status);
  /* [optional] Frees what the plug-in put into the timer functions. */
  void (*destroy_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns);
} SP_PlatformFns;
#define SP_PLATFORM_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_PlatformFns, destroy_timer_fns)
#else
/* Functions on the platform. */
typedef struct SP_PlatformFns {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [required] The number of devices. */
  void (*get_device_count)(const SP_Platform* platform, int* device_count, TF_Status* status);
  /* [required] Fills the device that the parameters point to. */
  void (*create_device)(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status*
      status);
  /* [required] Frees what the plug-in put into the device. */
  void (*destroy_device)(const SP_Platform* platform, SP_Device* device);
  /* [required] Fills the device functions that the parameters point to. */
  void (*create_device_fns)(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
      TF_Status* status);
  /* [required] Frees what the plug-in put into the device functions. */
  void (*destroy_device_fns)(const SP_Platform* platform, SP_DeviceFns* device_fns);
  /* [required] Fills the executor that the parameters point to. */
  void (*create_stream_executor)(const SP_Platform* platform, SE_CreateStreamExecutorParams*
      params, TF_Status* status);
  /* [required] Frees what the plug-in put into the executor. */
  void (*destroy_stream_executor)(const SP_Platform* platform, SP_StreamExecutor*
      stream_executor);
  /* [optional] Fills the timer functions. */
  void (*create_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns, TF_Status*
      status);
  /* [optional] Frees what the plug-in put into the timer functions. */
  void (*destroy_timer_fns)(const SP_Platform* platform, SP_TimerFns* timer_fns);
} SP_PlatformFns;
#define SP_PLATFORM_FNS_STRUCT_SIZE SERDES_SE_END_OF(SP_PlatformFns, destroy_timer_fns)
#endif

/* What 'SE_InitPlugin' gets. */
typedef struct SE_PlatformRegistrationParams {
  /* [required] Bytes of this struct that its writer knows. */
  size_t struct_size;
  /* [no-op] Reserved, or for the plug-in's own use. */
  void* ext;
  /* [value] MAJOR of the host. */
  int32_t major_version;
  /* [value] MINOR of the host. */
  int32_t minor_version;
  /* [value] PATCH of the host. */
  int32_t patch_version;
  /* [required] Where the plug-in puts the platform. */
  SP_Platform* platform;
  /* [required] Where the plug-in puts the platform functions. */
  SP_PlatformFns* platform_fns;
#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
  /* [optional] Frees what the plug-in put into the platform. */
  void (*destroy_platform)(SP_Platform* platform);
  /* [optional] Frees what the plug-in put into the platform functions. */
  void (*destroy_platform_fns)(SP_PlatformFns* platform_fns);
#else
  /* [required] Frees what the plug-in put into the platform. */
  void (*destroy_platform)(SP_Platform* platform);
  /* [required] Frees what the plug-in put into the platform functions. */
  void (*destroy_platform_fns)(SP_PlatformFns* platform_fns);
#endif
} SE_PlatformRegistrationParams;
#define SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE SERDES_SE_END_OF(SE_PlatformRegistrationParams, destroy_platform_fns)

/* The name that the code of the versioning strategy has for it. */
#ifndef SE_PLATFORM_REGISTRATION_PARAMS_SIZE
#define SE_PLATFORM_REGISTRATION_PARAMS_SIZE SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE
#endif

/* What a plug-in exports. */
SERDES_SE_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SERDES_STREAM_EXECUTOR_H_ */

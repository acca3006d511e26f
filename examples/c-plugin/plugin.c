/* A template of a StreamExecutor plug-in in C: two devices in host memory, for TensorFlow 2.14 and
 * later.
 *
 * Work is done when it is enqueued, so a stream is always idle and an event is complete once it is
 * recorded. Replace `take`, `give_back`, `copy` and the fills by those of a device. */

#define _POSIX_C_SOURCE 200809L

#include "serdes_stream_executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PLUGIN_NAME "C_EXAMPLE"

#define DEVICES 2
#define TOTAL_BYTES ((int64_t)1 << 40)

struct SP_Stream_st {
  char failure[256]; /* of a host callback; empty while all is well */
};

struct SP_Event_st {
  int failed;
};

struct SP_Timer_st {
  uint64_t start, stop;
};

typedef struct {
  int64_t allocations, in_use, peak, largest;
} Device;

static Device devices[DEVICES];

static Device* device_of(const SP_Device* device) { return (Device*)device->device_handle; }

/* Memory: each block stores its size in front, as the size given to deallocate may differ. */

#define FRONT 256

static void* take(Device* device, uint64_t size) {
  char* block = size > (uint64_t)TOTAL_BYTES ? NULL : aligned_alloc(FRONT, (FRONT + size + FRONT - 1) / FRONT * FRONT);
  if (block == NULL) return NULL;
  *(uint64_t*)block = size;
  if (device != NULL) {
    int64_t in_use = __atomic_add_fetch(&device->in_use, (int64_t)size, __ATOMIC_RELAXED);
    __atomic_add_fetch(&device->allocations, 1, __ATOMIC_RELAXED);
    if (in_use > device->peak) device->peak = in_use;
    if ((int64_t)size > device->largest) device->largest = (int64_t)size;
  }
  return block + FRONT;
}

static void give_back(Device* device, void* memory) {
  if (memory == NULL) return;
  char* block = (char*)memory - FRONT;
  if (device != NULL) __atomic_sub_fetch(&device->in_use, (int64_t) * (uint64_t*)block, __ATOMIC_RELAXED);
  free(block);
}

static void allocate(const SP_Device* device, uint64_t size, int64_t memory_space, SP_DeviceMemoryBase* memory) {
  (void)memory_space;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = take(device_of(device), size);
  memory->size = memory->opaque == NULL ? 0 : size;
}

static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  give_back(device_of(device), memory->opaque);
  memory->opaque = NULL;
  memory->size = 0;
}

static void* host_memory_allocate(const SP_Device* device, uint64_t size) {
  (void)device;
  return take(NULL, size);
}

static void host_memory_deallocate(const SP_Device* device, void* memory) {
  (void)device;
  give_back(NULL, memory);
}

static TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  const Device* mine = device_of(device);
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = mine->allocations;
  stats->bytes_in_use = mine->in_use;
  stats->peak_bytes_in_use = mine->peak;
  stats->largest_alloc_size = mine->largest;
  return 1;
}

static TF_Bool device_memory_usage(const SP_Device* device, int64_t* free_bytes, int64_t* total) {
  *free_bytes = TOTAL_BYTES - device_of(device)->in_use;
  *total = TOTAL_BYTES;
  return 1;
}

/* Streams and events. */

static void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  (void)device;
  *stream = calloc(1, sizeof(struct SP_Stream_st));
  if (*stream == NULL) TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a stream");
}

static void destroy_stream(const SP_Device* device, SP_Stream stream) {
  (void)device;
  free(stream);
}

static void get_stream_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device;
  if (stream->failure[0] != '\0') TF_SetStatus(status, TF_INTERNAL, stream->failure);
}

static void create_stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other, TF_Status* status) {
  (void)dependent;
  get_stream_status(device, other, status);
}

static void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  (void)device;
  *event = calloc(1, sizeof(struct SP_Event_st));
  if (*event == NULL) TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for an event");
}

static void destroy_event(const SP_Device* device, SP_Event event) {
  (void)device;
  free(event);
}

static SE_EventStatus get_event_status(const SP_Device* device, SP_Event event) {
  (void)device;
  return event->failed ? SE_EVENT_ERROR : SE_EVENT_COMPLETE;
}

static void record_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  (void)device;
  (void)status;
  event->failed = stream->failure[0] != '\0';
}

static void wait_for_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  (void)device;
  (void)status;
  if (event->failed) snprintf(stream->failure, sizeof(stream->failure), "an event that the stream waits for failed");
}

static void block_host_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device;
  if (event->failed) TF_SetStatus(status, TF_INTERNAL, "the work before the event failed");
}

static void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  (void)device;
  (void)status;
}

static TF_Bool host_callback(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function, void* argument) {
  (void)device;
  TF_Status* status = TF_NewStatus();
  function(argument, status);
  if (TF_GetCode(status) != TF_OK) snprintf(stream->failure, sizeof(stream->failure), "%s", TF_Message(status));
  TF_DeleteStatus(status);
  return 1;
}

/* Timers. */

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void create_timer(const SP_Device* device, SP_Timer* timer, TF_Status* status) {
  (void)device;
  *timer = calloc(1, sizeof(struct SP_Timer_st));
  if (*timer == NULL) TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no memory for a timer");
}

static void destroy_timer(const SP_Device* device, SP_Timer timer) {
  (void)device;
  free(timer);
}

static void start_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  (void)device;
  (void)stream;
  (void)status;
  timer->start = timer->stop = now();
}

static void stop_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  (void)device;
  (void)stream;
  (void)status;
  timer->stop = now();
}

static uint64_t nanoseconds(SP_Timer timer) { return timer->stop - timer->start; }

/* Copies and fills. A failed stream does no more work. */

static int is_refused(SP_Stream stream, const SP_DeviceMemoryBase* memory, uint64_t size, TF_Status* status) {
  if (stream != NULL && stream->failure[0] != '\0') {
    TF_SetStatus(status, TF_INTERNAL, stream->failure);
    return 1;
  }
  if (size > memory->size) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "more bytes than the device memory has");
    return 1;
  }
  return 0;
}

static void copy(void* target, const void* source, uint64_t size) {
  if (size > 0) memmove(target, source, size);
}

static void memcpy_dtoh(const SP_Device* device, SP_Stream stream, void* target, const SP_DeviceMemoryBase* source,
                        uint64_t size, TF_Status* status) {
  (void)device;
  if (!is_refused(stream, source, size, status)) copy(target, source->opaque, size);
}

static void memcpy_htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target, const void* source,
                        uint64_t size, TF_Status* status) {
  (void)device;
  if (!is_refused(stream, target, size, status)) copy(target->opaque, source, size);
}

static void memcpy_dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                        const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device;
  if (!is_refused(stream, target, size, status) && !is_refused(stream, source, size, status)) {
    copy(target->opaque, source->opaque, size);
  }
}

static void sync_memcpy_dtoh(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source, uint64_t size,
                             TF_Status* status) {
  memcpy_dtoh(device, NULL, target, source, size, status);
}

static void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                             TF_Status* status) {
  memcpy_htod(device, NULL, target, source, size, status);
}

static void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* target, const SP_DeviceMemoryBase* source,
                             uint64_t size, TF_Status* status) {
  memcpy_dtod(device, NULL, target, source, size, status);
}

static void fill_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint8_t pattern,
                       uint64_t size, TF_Status* status) {
  (void)device;
  if (!is_refused(stream, memory, size, status) && size > 0) memset(memory->opaque, pattern, size);
}

static void fill_zeros(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint64_t size,
                       TF_Status* status) {
  fill_bytes(device, stream, memory, 0, size, status);
}

static void fill_words(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint32_t pattern,
                       uint64_t size, TF_Status* status) {
  (void)device;
  if (is_refused(stream, memory, size, status)) return;
  for (uint64_t offset = 0; offset + 4 <= size; offset += 4) memcpy((char*)memory->opaque + offset, &pattern, 4);
}

/* The platform. */

static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  (void)platform;
  if (params->ordinal < 0 || params->ordinal >= DEVICES) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "there is no such device");
    return;
  }
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->device_handle = &devices[params->ordinal];
  params->device->hardware_name = "host memory";
  params->device->device_vendor = "example";
}

static void destroy_device(const SP_Platform* platform, SP_Device* device) {
  (void)platform;
  device->device_handle = NULL;
}

static int32_t get_numa_node(const SP_Device* device) {
  (void)device;
  return -1;
}

static void create_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  (void)platform;
  (void)status;
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  params->device_fns->get_numa_node = get_numa_node;
}

static void destroy_device_fns(const SP_Platform* platform, SP_DeviceFns* functions) {
  (void)platform;
  (void)functions;
}

static void get_device_count(const SP_Platform* platform, int* count, TF_Status* status) {
  (void)platform;
  (void)status;
  *count = DEVICES;
}

static void create_stream_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                                   TF_Status* status) {
  (void)platform;
  (void)status;
  SP_StreamExecutor* executor = params->stream_executor;
  executor->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  executor->allocate = allocate;
  executor->deallocate = deallocate;
  executor->host_memory_allocate = host_memory_allocate;
  executor->host_memory_deallocate = host_memory_deallocate;
  executor->get_allocator_stats = get_allocator_stats;
  executor->device_memory_usage = device_memory_usage;
  executor->create_stream = create_stream;
  executor->destroy_stream = destroy_stream;
  executor->create_stream_dependency = create_stream_dependency;
  executor->get_stream_status = get_stream_status;
  executor->create_event = create_event;
  executor->destroy_event = destroy_event;
  executor->get_event_status = get_event_status;
  executor->record_event = record_event;
  executor->wait_for_event = wait_for_event;
  executor->create_timer = create_timer;
  executor->destroy_timer = destroy_timer;
  executor->start_timer = start_timer;
  executor->stop_timer = stop_timer;
  executor->memcpy_dtoh = memcpy_dtoh;
  executor->memcpy_htod = memcpy_htod;
  executor->memcpy_dtod = memcpy_dtod;
  executor->sync_memcpy_dtoh = sync_memcpy_dtoh;
  executor->sync_memcpy_htod = sync_memcpy_htod;
  executor->sync_memcpy_dtod = sync_memcpy_dtod;
  executor->block_host_for_event = block_host_for_event;
  executor->block_host_until_done = get_stream_status;
  executor->synchronize_all_activity = synchronize_all_activity;
  executor->mem_zero = fill_zeros;
  executor->memset = fill_bytes;
  executor->memset32 = fill_words;
  executor->host_callback = host_callback;
}

static void destroy_stream_executor(const SP_Platform* platform, SP_StreamExecutor* executor) {
  (void)platform;
  (void)executor;
}

static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* functions, TF_Status* status) {
  (void)platform;
  (void)status;
  functions->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  functions->nanoseconds = nanoseconds;
}

static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* functions) {
  (void)platform;
  (void)functions;
}

static void destroy_platform(SP_Platform* platform) { (void)platform; }

static void destroy_platform_fns(SP_PlatformFns* functions) { (void)functions; }

SERDES_SE_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (params->struct_size < SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, "the host's SE_PlatformRegistrationParams is too short");
    return;
  }
  if (params->major_version != SE_MAJOR) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, "the host has another MAJOR version of the C API");
    return;
  }
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = PLUGIN_NAME;
  params->platform->type = PLUGIN_NAME;
  SP_PlatformFns* functions = params->platform_fns;
  functions->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  functions->get_device_count = get_device_count;
  functions->create_device = create_device;
  functions->destroy_device = destroy_device;
  functions->create_device_fns = create_device_fns;
  functions->destroy_device_fns = destroy_device_fns;
  functions->create_stream_executor = create_stream_executor;
  functions->destroy_stream_executor = destroy_stream_executor;
  functions->create_timer_fns = create_timer_fns;
  functions->destroy_timer_fns = destroy_timer_fns;
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
}

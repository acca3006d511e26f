/* A plug-in written as RFC #257 shows it, in its names and its layout: it clears the registration parameters, sets no size but the one it
 * cleared them to, counts its devices in the platform, has an allocator for the host's best-fit strategy, and leaves out the functions that
 * destroy the platform. Its allocator counts its calls, for the test that opens it. */

#ifndef SERDES_SE_LAYOUT
#define SERDES_SE_LAYOUT SERDES_SE_RFC_257
#endif
#include "serdes_stream_executor.h"

#include <stdlib.h>
#include <string.h>

/* The macro of the RFC gives what the header's own gives. */
typedef char ends_are_the_same[TF_OFFSET_OF_END(SP_Device, device_handle) == SP_DEVICE_STRUCT_SIZE ? 1 : -1];

SERDES_SE_EXPORT int64_t allocations;
int64_t allocations;
static int the_device, the_stream, the_event;

/* The allocator. */

static void allocate(const SP_Device* device, const SP_Allocator* allocator, uint64_t size, int64_t memory_space,
                     SP_DeviceMemoryBase* memory) {
  (void)device;
  (void)allocator;
  (void)memory_space;
  memory->opaque = size > (uint64_t)1 << 40 ? NULL : aligned_alloc(256, (size + 255) / 256 * 256);
  memory->size = size;
  if (memory->opaque != NULL) __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST);
}

static void deallocate(const SP_Device* device, const SP_Allocator* allocator, SP_DeviceMemoryBase* memory) {
  (void)device;
  (void)allocator;
  free(memory->opaque);
}

static void* host_memory_allocate(const SP_Device* device, const SP_Allocator* allocator, uint64_t size) {
  (void)device;
  (void)allocator;
  return malloc(size);
}

static void host_memory_deallocate(const SP_Device* device, const SP_Allocator* allocator, void* memory) {
  (void)device;
  (void)allocator;
  free(memory);
}

static TF_Bool get_allocator_stats(const SP_Device* device, const SP_Allocator* allocator, SP_AllocatorStats* stats) {
  (void)device;
  (void)allocator;
  stats->num_allocs = allocations;
  return 1;
}

static TF_Bool device_memory_usage(const SP_Device* device, const SP_Allocator* allocator, int64_t* free_bytes,
                                   int64_t* total) {
  (void)device;
  (void)allocator;
  (void)free_bytes;
  (void)total;
  return 0;
}

/* The executor: everything is done when a call returns. */

static void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  (void)device;
  (void)status;
  *stream = (SP_Stream)&the_stream;
}

static void destroy_stream(const SP_Device* device, SP_Stream stream) {
  (void)device;
  (void)stream;
}

static void create_stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other, TF_Status* status) {
  (void)device;
  (void)dependent;
  (void)other;
  (void)status;
}

static void get_stream_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device;
  (void)stream;
  (void)status;
}

static void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  (void)device;
  (void)status;
  *event = (SP_Event)&the_event;
}

static void destroy_event(const SP_Device* device, SP_Event event) {
  (void)device;
  (void)event;
}

static SE_EventStatus get_event_status(const SP_Device* device, SP_Event event) {
  (void)device;
  (void)event;
  return SE_EVENT_COMPLETE;
}

static void record_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  (void)device;
  (void)stream;
  (void)event;
  (void)status;
}

static void block_host_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device;
  (void)event;
  (void)status;
}

static void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  (void)device;
  (void)status;
}

static void sync_memcpy_dtoh(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source, uint64_t size,
                             TF_Status* status) {
  (void)device;
  (void)status;
  memcpy(target, source->opaque, size);
}

static void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                             TF_Status* status) {
  (void)device;
  (void)status;
  memcpy(target->opaque, source, size);
}

static void memcpy_dtoh(const SP_Device* device, SP_Stream stream, void* target, const SP_DeviceMemoryBase* source,
                        uint64_t size, TF_Status* status) {
  (void)stream;
  sync_memcpy_dtoh(device, target, source, size, status);
}

static void my_device_memcpy_from_host(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                                       const void* source, uint64_t size, TF_Status* status) {
  (void)stream;
  sync_memcpy_htod(device, target, source, size, status);
}

static TF_Bool host_callback(SP_Device* device, SP_Stream stream, SE_StatusCallbackFn callback, void* argument) {
  (void)device;
  (void)stream;
  TF_Status* status = TF_NewStatus();
  callback(argument, status);
  TF_DeleteStatus(status);
  return 1;
}

static uint64_t nanoseconds(SP_Timer timer) {
  (void)timer;
  return 0;
}

/* The platform. No struct_size is written: the host has put the sizes there. */

static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  (void)platform;
  (void)status;
  params->device->device_handle = &the_device;
}

static void create_stream_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                                   TF_Status* status) {
  (void)platform;
  (void)status;
  SP_StreamExecutor* executor = params->stream_executor;
  executor->create_stream = create_stream;
  executor->destroy_stream = destroy_stream;
  executor->create_stream_dependency = create_stream_dependency;
  executor->get_stream_status = get_stream_status;
  executor->create_event = create_event;
  executor->destroy_event = destroy_event;
  executor->get_event_status = get_event_status;
  executor->record_event = record_event;
  executor->wait_for_event = record_event;
  executor->memcpy_dtoh = memcpy_dtoh;
  executor->memcpy_htod = my_device_memcpy_from_host;
  executor->sync_memcpy_dtoh = sync_memcpy_dtoh;
  executor->sync_memcpy_htod = sync_memcpy_htod;
  executor->block_host_for_event = block_host_for_event;
  executor->synchronize_all_activity = synchronize_all_activity;
  executor->host_callback = host_callback;
}

static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* timer_fns, TF_Status* status) {
  (void)platform;
  (void)status;
  timer_fns->nanoseconds = nanoseconds;
}

static void create_allocator(const SP_Platform* platform, SP_CreateAllocatorParams* params, TF_Status* status) {
  (void)platform;
  (void)status;
  SP_AllocatorFns* functions = params->allocator_fns;
  functions->allocate = allocate;
  functions->deallocate = deallocate;
  functions->host_memory_allocate = host_memory_allocate;
  functions->host_memory_deallocate = host_memory_deallocate;
  functions->get_allocator_stats = get_allocator_stats;
  functions->device_memory_usage = device_memory_usage;
}

static void destroy_device(const SP_Platform* platform, SP_Device* device) {
  (void)platform;
  device->device_handle = NULL;
}

static void destroy_stream_executor(const SP_Platform* platform, SP_StreamExecutor* executor) {
  (void)platform;
  (void)executor;
}

static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* timer_fns) {
  (void)platform;
  (void)timer_fns;
}

static void destroy_allocator(const SP_Platform* platform, SP_Allocator* allocator, SP_AllocatorFns* allocator_fns) {
  (void)platform;
  (void)allocator;
  (void)allocator_fns;
}

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  (void)status;
  /* The two pointers are kept, or the next lines would write through NULL. */
  SP_Platform* platform = params->platform;
  SP_PlatformFns* functions = params->platform_fns;
  *params = (SE_PlatformRegistrationParams){.struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE};
  params->platform = platform;
  params->platform_fns = functions;
  params->platform->name = "SampleDevice";
  params->platform->type = "GPU";
  params->platform->visible_device_count = 2;
  params->platform_fns->create_device = create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_stream_executor = create_stream_executor;
  params->platform_fns->destroy_stream_executor = destroy_stream_executor;
  params->platform_fns->create_timer_fns = create_timer_fns;
  params->platform_fns->destroy_timer_fns = destroy_timer_fns;
  params->platform_fns->create_allocator = create_allocator;
  params->platform_fns->destroy_allocator = destroy_allocator;
}

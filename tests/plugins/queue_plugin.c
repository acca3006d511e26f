/* A StreamExecutor plug-in whose streams are threads: an asynchronous call returns before its work is done. In the newest layout.
 *
 * PLATFORM is the name of its platform; two plug-ins of one process need two names. With IGNORE_DEPENDENCIES a stream waits for no other stream, with IGNORE_EVENTS for no event; otherwise it keeps the C API. */

#define _GNU_SOURCE

#include "serdes_stream_executor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef PLATFORM
#define PLATFORM "C_QUEUE"
#endif

#define UNUSED __attribute__((unused))

/* One lock and one condition for all streams: simple, and slow enough. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* What was destroyed: another stream may still have work that looks at it. Freed when the library is unloaded. */
static struct Gone {
  struct Gone* next;
  void* memory;
}* gone;

static void retire(void* memory) {
  struct Gone* entry = malloc(sizeof(*entry));
  if (entry == NULL) abort();
  entry->memory = memory;
  pthread_mutex_lock(&lock);
  entry->next = gone;
  gone = entry;
  pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void free_what_is_gone(void) {
  while (gone != NULL) {
    struct Gone* entry = gone;
    gone = entry->next;
    free(entry->memory);
    free(entry);
  }
}

struct SP_Event_st {
  uint64_t recorded, done;
};

typedef struct Work {
  struct Work* next;
  enum { COPY, FILL, RECORD, WAIT, CALL, START, STOP } kind;
  void* target;
  const void* source;
  uint64_t size, number;
  uint32_t pattern;
  SE_StatusCallbackFn function;
} Work;

/* Every stream and the number of its works; a stream that waits for another waits for the works that the other had. */
struct SP_Stream_st {
  pthread_t thread;
  Work *first, *last;
  uint64_t added, done;
  int ends;
  char failure[64];
  struct SP_Stream_st* next;
};

struct SP_Timer_st {
  uint64_t start, stop;
};

static SP_Stream streams;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void call(SP_Stream stream, const Work* work) {
  TF_Status* status = TF_NewStatus();
  work->function(work->target, status);
  if (TF_GetCode(status) != TF_OK) {
    pthread_mutex_lock(&lock);
    strncpy(stream->failure, TF_Message(status), sizeof(stream->failure) - 1);
    pthread_mutex_unlock(&lock);
  }
  TF_DeleteStatus(status);
}

static void run(SP_Stream stream, const Work* work) {
  SP_Event event = work->target;
  SP_Timer timer = work->target;
  switch (work->kind) {
    case COPY:
      memmove(work->target, work->source, work->size);
      break;
    case FILL:
      for (uint64_t at = 0; at < work->size; ++at) ((uint8_t*)work->target)[at] = (uint8_t)(work->pattern >> 8 * (at % 4));
      break;
    case RECORD:
      pthread_mutex_lock(&lock);
      if (event->done < work->number) event->done = work->number;
      pthread_mutex_unlock(&lock);
      break;
    case WAIT:
      pthread_mutex_lock(&lock);
      while (*(const uint64_t*)work->source < work->number) pthread_cond_wait(&changed, &lock);
      pthread_mutex_unlock(&lock);
      break;
    case CALL:
      call(stream, work);
      break;
    case START:
      timer->start = now();
      break;
    case STOP:
      timer->stop = now();
      break;
  }
}

static void* serve(void* argument) {
  SP_Stream stream = argument;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (stream->first == NULL && !stream->ends) pthread_cond_wait(&changed, &lock);
    Work* work = stream->first;
    if (work == NULL) break;
    pthread_mutex_unlock(&lock);
    run(stream, work);
    pthread_mutex_lock(&lock);
    stream->first = work->next;
    stream->done += 1;
    free(work);
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* With the lock held. */
static void add(SP_Stream stream, Work work) {
  Work* copy = malloc(sizeof(work));
  if (copy == NULL) abort();
  *copy = work;
  if (stream->first == NULL) {
    stream->first = copy;
  } else {
    stream->last->next = copy;
  }
  stream->last = copy;
  stream->added += 1;
  pthread_cond_broadcast(&changed);
}

static void enqueue(SP_Stream stream, Work work) {
  pthread_mutex_lock(&lock);
  add(stream, work);
  pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static void finish(SP_Stream stream, TF_Status* status) {
  uint64_t number = stream->added;
  while (stream->done < number) pthread_cond_wait(&changed, &lock);
  if (status != NULL && stream->failure[0] != '\0') TF_SetStatus(status, TF_INTERNAL, stream->failure);
}

#define DEVICE UNUSED const SP_Device *device
#define STATUS UNUSED TF_Status* status

static void* take(DEVICE, uint64_t size) {
  return size < (UINT64_C(1) << 40) ? aligned_alloc(256, (size + 256) / 256 * 256) : NULL;
}
static void give_back(DEVICE, void* memory) { free(memory); }
static void allocate(DEVICE, uint64_t size, UNUSED int64_t space, SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = take(device, size);
  memory->size = size;
}
static void deallocate(DEVICE, SP_DeviceMemoryBase* memory) {
  free(memory->opaque);
  memory->opaque = NULL;
}
static TF_Bool get_allocator_stats(DEVICE, UNUSED SP_AllocatorStats* stats) { return 0; }
static TF_Bool device_memory_usage(DEVICE, int64_t* free_bytes, int64_t* total) {
  *free_bytes = *total = INT64_C(1) << 32;
  return 1;
}

static void create_stream(DEVICE, SP_Stream* stream, STATUS) {
  *stream = calloc(1, sizeof(struct SP_Stream_st));
  if (*stream == NULL || pthread_create(&(*stream)->thread, NULL, serve, *stream) != 0) abort();
  pthread_mutex_lock(&lock);
  (*stream)->next = streams;
  streams = *stream;
  pthread_mutex_unlock(&lock);
}
static void destroy_stream(DEVICE, SP_Stream stream) {
  pthread_mutex_lock(&lock);
  stream->ends = 1;
  for (SP_Stream* link = &streams; *link != NULL; link = &(*link)->next) {
    if (*link == stream) {
      *link = stream->next;
      break;
    }
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(stream->thread, NULL);
  retire(stream);
}
static void create_stream_dependency(DEVICE, SP_Stream dependent, SP_Stream other, STATUS) {
#ifdef IGNORE_DEPENDENCIES
  (void)dependent, (void)other;
#else
  pthread_mutex_lock(&lock);
  if (dependent != other) add(dependent, (Work){.kind = WAIT, .source = &other->done, .number = other->added});
  pthread_mutex_unlock(&lock);
#endif
}
static void get_stream_status(DEVICE, SP_Stream stream, TF_Status* status) {
  pthread_mutex_lock(&lock);
  if (stream->failure[0] != '\0') TF_SetStatus(status, TF_INTERNAL, stream->failure);
  pthread_mutex_unlock(&lock);
}

static void create_event(DEVICE, SP_Event* event, STATUS) {
  *event = calloc(1, sizeof(struct SP_Event_st));
  if (*event == NULL) abort();
}
static void destroy_event(DEVICE, SP_Event event) { retire(event); }
static SE_EventStatus get_event_status(DEVICE, SP_Event event) {
  pthread_mutex_lock(&lock);
  SE_EventStatus status = event->done < event->recorded ? SE_EVENT_PENDING : SE_EVENT_COMPLETE;
  pthread_mutex_unlock(&lock);
  return status;
}
static void record_event(DEVICE, SP_Stream stream, SP_Event event, STATUS) {
  pthread_mutex_lock(&lock);
  add(stream, (Work){.kind = RECORD, .target = event, .number = ++event->recorded});
  pthread_mutex_unlock(&lock);
}
static void wait_for_event(DEVICE, SP_Stream stream, SP_Event event, STATUS) {
#ifdef IGNORE_EVENTS
  (void)stream, (void)event;
#else
  pthread_mutex_lock(&lock);
  add(stream, (Work){.kind = WAIT, .source = &event->done, .number = event->recorded});
  pthread_mutex_unlock(&lock);
#endif
}
static void block_host_for_event(DEVICE, SP_Event event, STATUS) {
  pthread_mutex_lock(&lock);
  while (event->done < event->recorded) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}
static void block_host_until_done(DEVICE, SP_Stream stream, TF_Status* status) {
  pthread_mutex_lock(&lock);
  finish(stream, status);
  pthread_mutex_unlock(&lock);
}
static void synchronize_all_activity(DEVICE, STATUS) {
  pthread_mutex_lock(&lock);
  /* From the beginning after each wait: streams may have gone meanwhile. */
  for (SP_Stream stream = streams; stream != NULL;) {
    if (stream->done < stream->added) {
      pthread_cond_wait(&changed, &lock);
      stream = streams;
    } else {
      stream = stream->next;
    }
  }
  pthread_mutex_unlock(&lock);
}

static void create_timer(DEVICE, SP_Timer* timer, STATUS) {
  *timer = calloc(1, sizeof(struct SP_Timer_st));
  if (*timer == NULL) abort();
}
static void destroy_timer(DEVICE, SP_Timer timer) { free(timer); }
static void start_timer(DEVICE, SP_Stream stream, SP_Timer timer, STATUS) { enqueue(stream, (Work){.kind = START, .target = timer}); }
static void stop_timer(DEVICE, SP_Stream stream, SP_Timer timer, STATUS) { enqueue(stream, (Work){.kind = STOP, .target = timer}); }
static uint64_t nanoseconds(SP_Timer timer) { return timer->stop - timer->start; }

static void copy(SP_Stream stream, void* target, const void* source, uint64_t size) {
  enqueue(stream, (Work){.kind = COPY, .target = target, .source = source, .size = size});
}
static void memcpy_dtoh(DEVICE, SP_Stream stream, void* target, const SP_DeviceMemoryBase* source, uint64_t size, STATUS) {
  copy(stream, target, source->opaque, size);
}
static void memcpy_htod(DEVICE, SP_Stream stream, SP_DeviceMemoryBase* target, const void* source, uint64_t size, STATUS) {
  copy(stream, target->opaque, source, size);
}
static void sync_memcpy_dtoh(DEVICE, void* target, const SP_DeviceMemoryBase* source, uint64_t size, STATUS) {
  memcpy(target, source->opaque, size);
}
static void sync_memcpy_htod(DEVICE, SP_DeviceMemoryBase* target, const void* source, uint64_t size, STATUS) {
  memcpy(target->opaque, source, size);
}
static void memset32(DEVICE, SP_Stream stream, SP_DeviceMemoryBase* target, uint32_t pattern, uint64_t size, STATUS) {
  enqueue(stream, (Work){.kind = FILL, .target = target->opaque, .pattern = pattern, .size = size});
}
static void fill(DEVICE, SP_Stream stream, SP_DeviceMemoryBase* target, uint8_t pattern, uint64_t size, STATUS) {
  memset32(device, stream, target, pattern * UINT32_C(0x01010101), size, status);
}
static void mem_zero(DEVICE, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size, STATUS) {
  memset32(device, stream, target, 0, size, status);
}
static TF_Bool host_callback(DEVICE, SP_Stream stream, SE_StatusCallbackFn function, void* argument) {
  enqueue(stream, (Work){.kind = CALL, .target = argument, .function = function});
  return 1;
}

/* The platform. */

static void get_device_count(UNUSED const SP_Platform* platform, int* count, STATUS) { *count = 1; }
static void create_device(UNUSED const SP_Platform* platform, SE_CreateDeviceParams* params, STATUS) {
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
}
static void destroy_device(UNUSED const SP_Platform* platform, UNUSED SP_Device* device) {}
static void create_device_fns(UNUSED const SP_Platform* platform, SE_CreateDeviceFnsParams* params, STATUS) {
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
}
static void destroy_device_fns(UNUSED const SP_Platform* platform, UNUSED SP_DeviceFns* functions) {}
static void create_timer_fns(UNUSED const SP_Platform* platform, SP_TimerFns* functions, STATUS) {
  functions->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  functions->nanoseconds = nanoseconds;
}
static void destroy_timer_fns(UNUSED const SP_Platform* platform, UNUSED SP_TimerFns* functions) {}
static void create_stream_executor(UNUSED const SP_Platform* platform, SE_CreateStreamExecutorParams* params, STATUS) {
  *params->stream_executor = (SP_StreamExecutor){
      .struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
      .allocate = allocate,
      .deallocate = deallocate,
      .host_memory_allocate = take,
      .host_memory_deallocate = give_back,
      .get_allocator_stats = get_allocator_stats,
      .device_memory_usage = device_memory_usage,
      .create_stream = create_stream,
      .destroy_stream = destroy_stream,
      .create_stream_dependency = create_stream_dependency,
      .get_stream_status = get_stream_status,
      .create_event = create_event,
      .destroy_event = destroy_event,
      .get_event_status = get_event_status,
      .record_event = record_event,
      .wait_for_event = wait_for_event,
      .create_timer = create_timer,
      .destroy_timer = destroy_timer,
      .start_timer = start_timer,
      .stop_timer = stop_timer,
      .memcpy_dtoh = memcpy_dtoh,
      .memcpy_htod = memcpy_htod,
      .sync_memcpy_dtoh = sync_memcpy_dtoh,
      .sync_memcpy_htod = sync_memcpy_htod,
      .block_host_for_event = block_host_for_event,
      .block_host_until_done = block_host_until_done,
      .synchronize_all_activity = synchronize_all_activity,
      .mem_zero = mem_zero,
      .memset = fill,
      .memset32 = memset32,
      .host_callback = host_callback,
  };
}
static void destroy_stream_executor(UNUSED const SP_Platform* platform, UNUSED SP_StreamExecutor* executor) {}
static void destroy_platform(UNUSED SP_Platform* platform) {}
static void destroy_platform_fns(UNUSED SP_PlatformFns* functions) {}

void SE_InitPlugin(SE_PlatformRegistrationParams* params, STATUS) {
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = PLATFORM;
  params->platform->type = PLATFORM;
  *params->platform_fns = (SP_PlatformFns){
      .struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
      .get_device_count = get_device_count,
      .create_device = create_device,
      .destroy_device = destroy_device,
      .create_device_fns = create_device_fns,
      .destroy_device_fns = destroy_device_fns,
      .create_stream_executor = create_stream_executor,
      .destroy_stream_executor = destroy_stream_executor,
      .create_timer_fns = create_timer_fns,
      .destroy_timer_fns = destroy_timer_fns,
  };
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
}

/* A StreamExecutor plug-in with fault switches, for tests of hosts.
 *
 * Without switches it keeps the C API and moves real data. A file beside the library, with its name and ".switches" behind, has them,
 * one a line, "key=value":
 *
 *   name=TEXT, type=TEXT         what the platform is called; the value NULL leaves the pointer NULL
 *   devices=N                    number of devices; the value "unwritten" leaves the count alone
 *   size.STRUCT=N                writes N as the struct's size; "unwritten" leaves what the host put there
 *   extra=N                      a newer header: every struct is N bytes longer, all of them written (with 0xAB)
 *   null=FIELD                   leaves a function or pointer NULL; may be given more than once
 *   error=FUNCTION               the function reports an error (code 13, "as told: FUNCTION"); may be given more than once
 *   hang=FUNCTION, slow=FUNCTION the function sleeps for an hour, or for 50 milliseconds
 *   say=FUNCTION                 the function writes a line to standard output
 *   exit=FUNCTION, crash=FUNCTION  the function ends the process with status 0, or by a signal
 *   leave=FUNCTION               the function ends the process with status 0, without what is to be done at its end
 *   unsettle=FUNCTION            the function changes the working directory, the file mode mask and the limit of a file's size
 *   message=control|huge         what the message of an error is instead: with characters that steer a terminal, or of 1 MiB
 *   handles=null                 streams, events and timers have NULL handles, for which nothing is created and nothing is to be destroyed
 *   status=ok                    sets every status to OK explicitly; by default statuses without error are never touched
 *   device=unwritten             create_device writes neither size nor ordinal
 *   device=gone                  destroy_device writes ordinal -1
 *   callback=drop|twice|refuse|error   what becomes of a host callback
 *   event=N                      what get_event_status says
 *   late=1                       asynchronous copies are accepted, do nothing, and fail when the stream is waited for
 *   corrupt=1, short=1           copies change a byte, or leave out the second half
 *   memory=null|unaligned|small  allocate gives NULL, an odd address, or a size that is too small
 *   host=twice|inside            host and unified memory is the same each time while it is in use, or lies inside of it
 *   usage=0, stats=0             device_memory_usage and get_allocator_stats answer false
 *   params=cleared               SE_InitPlugin clears the parameters first, platform pointers included, as the sample of the RFC does
 *   params=emptied               SE_InitPlugin leaves the platform pointers NULL
 *   major=N                      SE_InitPlugin writes N into major_version
 *   allocator=custom|bfc|both|none  which allocators of RFC #257 there are
 *   deprecated=1                 sets bytes beyond the fields of its layout
 *
 * What is created and destroyed is counted in a file beside the library with ".counts" behind: pairs of 64-bit numbers, created and
 * destroyed, in the order of the enumeration below. The file outlives the library, so that a test can look when it is unloaded. */

#define _GNU_SOURCE

#include "serdes_stream_executor.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Fault switches. */

static char switches[8192];

/* The value of the first switch of that key, or NULL. */
static const char* switch_value(const char* key) {
  static __thread char value[256];
  size_t length = strlen(key);
  for (const char* line = switches; *line != '\0';) {
    size_t end = strcspn(line, "\n");
    if (end > length && strncmp(line, key, length) == 0 && line[length] == '=') {
      size_t size = end - length - 1 < sizeof(value) ? end - length - 1 : sizeof(value) - 1;
      memcpy(value, line + length + 1, size);
      value[size] = '\0';
      return value;
    }
    line += end + (line[end] == '\n');
  }
  return NULL;
}

/* True if there is this switch with this value. */
static int has(const char* key, const char* value) {
  char line[300];
  int length = snprintf(line, sizeof(line), "%s=%s", key, value);
  for (const char* found = switches; (found = strstr(found, line)) != NULL; found += length) {
    int begins = found == switches || found[-1] == '\n';
    int ends = found[length] == '\0' || found[length] == '\n';
    if (begins && ends) return 1;
  }
  return 0;
}

/* Counts. */

enum {
  PLATFORMS,
  PLATFORM_FUNCTIONS,
  DEVICES,
  DEVICE_FUNCTIONS,
  EXECUTORS,
  TIMER_FUNCTIONS,
  STREAMS,
  EVENTS,
  TIMERS,
  DEVICE_MEMORY,
  HOST_MEMORY,
  UNIFIED_MEMORY,
  ALLOCATORS,
  CALLBACKS,
  KINDS
};

static int64_t unmapped[2 * KINDS];
static int64_t* counts = unmapped;

static void created(int kind) { __atomic_add_fetch(&counts[2 * kind], 1, __ATOMIC_SEQ_CST); }
static void destroyed(int kind) { __atomic_add_fetch(&counts[2 * kind + 1], 1, __ATOMIC_SEQ_CST); }

__attribute__((constructor)) static void read_switches(void) {
  Dl_info info;
  char path[4096];
  if (dladdr((void*)&read_switches, &info) == 0) return;
  snprintf(path, sizeof(path), "%s.switches", info.dli_fname);
  FILE* file = fopen(path, "r");
  if (file != NULL) {
    switches[fread(switches, 1, sizeof(switches) - 1, file)] = '\0';
    fclose(file);
  }
  snprintf(path, sizeof(path), "%s.counts", info.dli_fname);
  int descriptor = open(path, O_RDWR | O_CREAT, 0600);
  if (descriptor < 0) return;
  if (ftruncate(descriptor, sizeof(unmapped)) == 0) {
    void* mapped = mmap(NULL, sizeof(unmapped), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED) counts = mapped;
  }
  close(descriptor);
}

__attribute__((destructor)) static void unmap_counts(void) {
  if (counts != unmapped) munmap(counts, sizeof(unmapped));
}

/* What each function does first. Answers 1 if it is to fail. */
static int enter(const char* function, TF_Status* status) {
  if (has("hang", function)) sleep(3600);
  if (has("say", function)) {
    puts("the plug-in speaks");
    fflush(stdout);
  }
  if (has("exit", function)) exit(0);
  if (has("leave", function)) _exit(0);
  if (has("unsettle", function)) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_FSIZE, &limit);
    umask(0777);
    if (chdir("/") != 0) abort();
  }
  if (has("crash", function)) abort();
  if (has("slow", function)) {
    struct timespec time = {0, 50000000};
    nanosleep(&time, NULL);
  }
  if (has("error", function) && status != NULL) {
    char message[300];
    snprintf(message, sizeof(message), "as told: %s", function);
    if (has("message", "control")) strcpy(message, "as\n\ttold \x1b[31m\r\x7f");
    if (has("message", "huge")) {
      static char huge[1 << 20];
      memset(huge, 'x', sizeof(huge) - 1);
      TF_SetStatus(status, TF_INTERNAL, huge);
      return 1;
    }
    TF_SetStatus(status, TF_INTERNAL, message);
    return 1;
  }
  if (has("status", "ok") && status != NULL) TF_SetStatus(status, TF_OK, "");
  return 0;
}

/* Writes the size of a struct, and what a newer header would have behind it. */
static void finish(void* object, const char* name, size_t size, size_t size_of) {
  char key[100];
  const char* value = switch_value("extra");
  size_t extra = value == NULL ? 0 : (size_t)atoi(value);
  if (extra > 0) {
    memset((char*)object + size_of, 0xAB, size + extra > size_of ? size + extra - size_of : 0);
    size += extra;
  }
  snprintf(key, sizeof(key), "size.%s", name);
  value = switch_value(key);
  if (value == NULL) {
    *(size_t*)object = size;
  } else if (strcmp(value, "unwritten") != 0) {
    *(size_t*)object = strtoull(value, NULL, 10);
  }
  if (has("deprecated", "1")) ((char*)object)[size_of] = 1;
}

#define FINISH(TYPE, OBJECT, SIZE) finish((OBJECT), #TYPE, (SIZE), sizeof(TYPE))
#define SET(OBJECT, FIELD, VALUE) (OBJECT)->FIELD = has("null", #FIELD) ? NULL : (VALUE)

struct SP_Stream_st {
  int is_late;
  char failure[256];
};

struct SP_Event_st {
  int recorded;
};

struct SP_Timer_st {
  int starts, stops;
};

/* What stands behind NULL handles. */
static struct SP_Stream_st the_stream;
static struct SP_Event_st the_event;

static SP_Stream stream_of(SP_Stream stream) { return stream == NULL ? &the_stream : stream; }

/* Memory. */

static void allocate(const SP_Device* device, uint64_t size, int64_t memory_space, SP_DeviceMemoryBase* memory) {
  (void)device;
  (void)memory_space;
  enter("allocate", NULL);
  FINISH(SP_DeviceMemoryBase, memory, SP_DEVICE_MEMORY_BASE_STRUCT_SIZE);
  memory->opaque = NULL;
  memory->size = 0;
  if (has("memory", "null") || size > (uint64_t)1 << 40) return;
  char* block = aligned_alloc(256, (size + 2 * 256) / 256 * 256);
  if (block == NULL) return;
  created(DEVICE_MEMORY);
  memory->opaque = block + (has("memory", "unaligned") ? 1 : 0);
  memory->size = has("memory", "small") ? size / 2 : size;
  memory->payload = 77;
}

static void release(void* memory) { free((char*)memory - ((uintptr_t)memory % 256 == 1)); }

static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  (void)device;
  enter("deallocate", NULL);
  if (memory->opaque == NULL) return;
  destroyed(DEVICE_MEMORY);
  release(memory->opaque);
  memory->opaque = NULL;
}

/* Host memory that is in use, of which it is given again by "host=". */
static char* given;

static void* given_again(void) {
  if (given == NULL) return NULL;
  return has("host", "twice") ? given : has("host", "inside") ? given + 50 : NULL;
}

static void* host_memory_allocate(const SP_Device* device, uint64_t size) {
  (void)device;
  enter("host_memory_allocate", NULL);
  if (has("memory", "null")) return NULL;
  if (given_again() != NULL) return given_again();
  created(HOST_MEMORY);
  void* memory = aligned_alloc(256, (size + 256) / 256 * 256);
  if (switch_value("host") != NULL) given = memory;
  return memory;
}

static void host_memory_deallocate(const SP_Device* device, void* memory) {
  (void)device;
  enter("host_memory_deallocate", NULL);
  if (memory == given) given = NULL;
  destroyed(HOST_MEMORY);
  free(memory);
}

static void* unified_memory_allocate(const SP_Device* device, uint64_t size) {
  (void)device;
  if (given_again() != NULL) return given_again();
  created(UNIFIED_MEMORY);
  return aligned_alloc(256, (size + 256) / 256 * 256);
}

static void unified_memory_deallocate(const SP_Device* device, void* memory) {
  (void)device;
  destroyed(UNIFIED_MEMORY);
  free(memory);
}

static TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  (void)device;
  enter("get_allocator_stats", NULL);
  if (has("stats", "0")) return 0;
  FINISH(SP_AllocatorStats, stats, SP_ALLOCATORSTATS_STRUCT_SIZE);
  stats->num_allocs = counts[2 * DEVICE_MEMORY];
  stats->bytes_in_use = 123;
  return 1;
}

static TF_Bool device_memory_usage(const SP_Device* device, int64_t* free_bytes, int64_t* total) {
  (void)device;
  enter("device_memory_usage", NULL);
  if (has("usage", "0")) return 0;
  *free_bytes = 40;
  *total = 50;
  return 1;
}

/* Streams, events, timers. */

static void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  (void)device;
  if (enter("create_stream", status)) return;
  if (has("handles", "null")) {
    memset(&the_stream, 0, sizeof(the_stream));
    return;
  }
  created(STREAMS);
  *stream = calloc(1, sizeof(struct SP_Stream_st));
}

static void destroy_stream(const SP_Device* device, SP_Stream stream) {
  (void)device;
  enter("destroy_stream", NULL);
  destroyed(STREAMS);
  free(stream);
}

static void get_stream_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device;
  if (enter("get_stream_status", status)) return;
  if (stream_of(stream)->failure[0] != '\0') TF_SetStatus(status, TF_ABORTED, stream_of(stream)->failure);
}

static void create_stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other, TF_Status* status) {
  (void)device;
  (void)dependent;
  (void)other;
  enter("create_stream_dependency", status);
}

static void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  (void)device;
  if (enter("create_event", status)) return;
  if (has("handles", "null")) return;
  created(EVENTS);
  *event = calloc(1, sizeof(struct SP_Event_st));
}

static void destroy_event(const SP_Device* device, SP_Event event) {
  (void)device;
  enter("destroy_event", NULL);
  destroyed(EVENTS);
  free(event);
}

static SE_EventStatus get_event_status(const SP_Device* device, SP_Event event) {
  (void)device;
  (void)event;
  enter("get_event_status", NULL);
  const char* value = switch_value("event");
  return value == NULL ? SE_EVENT_COMPLETE : (SE_EventStatus)atoi(value);
}

static void record_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  (void)device;
  (void)stream;
  if (enter("record_event", status)) return;
  (event == NULL ? &the_event : event)->recorded = 1;
}

static void wait_for_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  (void)device;
  (void)stream;
  (void)event;
  enter("wait_for_event", status);
}

static void block_host_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
  (void)device;
  (void)event;
  if (enter("block_host_for_event", status)) return;
  if (the_stream.is_late) TF_SetStatus(status, TF_DATA_LOSS, "a copy failed late");
}

static void block_host_until_done(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  (void)device;
  if (enter("block_host_until_done", status)) return;
  if (stream_of(stream)->is_late) {
    TF_SetStatus(status, TF_DATA_LOSS, "a copy failed late");
  } else if (stream_of(stream)->failure[0] != '\0') {
    TF_SetStatus(status, TF_ABORTED, stream_of(stream)->failure);
  }
}

static void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  (void)device;
  enter("synchronize_all_activity", status);
}

static void create_timer(const SP_Device* device, SP_Timer* timer, TF_Status* status) {
  (void)device;
  if (enter("create_timer", status)) return;
  if (has("handles", "null")) return;
  created(TIMERS);
  *timer = calloc(1, sizeof(struct SP_Timer_st));
}

static void destroy_timer(const SP_Device* device, SP_Timer timer) {
  (void)device;
  destroyed(TIMERS);
  free(timer);
}

static void start_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  (void)device;
  (void)stream;
  if (!enter("start_timer", status) && timer != NULL) timer->starts++;
}

static void stop_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  (void)device;
  (void)stream;
  if (!enter("stop_timer", status) && timer != NULL) timer->stops++;
}

static uint64_t nanoseconds(SP_Timer timer) {
  (void)timer;
  return 25000;
}

/* Copies. */

static void copy(SP_Stream stream, void* target, const void* source, uint64_t size) {
  if (stream != NULL && has("late", "1")) {
    stream->is_late = the_stream.is_late = 1;
    return;
  }
  memmove(target, source, has("short", "1") ? size / 2 : size);
  if (has("corrupt", "1") && size > 0) ((char*)target)[size / 2] ^= 0x40;
}

static void memcpy_dtoh(const SP_Device* device, SP_Stream stream, void* target, const SP_DeviceMemoryBase* source,
                        uint64_t size, TF_Status* status) {
  (void)device;
  if (!enter("memcpy_dtoh", status)) copy(stream_of(stream), target, source->opaque, size);
}

static void memcpy_htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target, const void* source,
                        uint64_t size, TF_Status* status) {
  (void)device;
  if (!enter("memcpy_htod", status)) copy(stream_of(stream), target->opaque, source, size);
}

static void memcpy_dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                        const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  (void)device;
  if (!enter("memcpy_dtod", status)) copy(stream_of(stream), target->opaque, source->opaque, size);
}

static void sync_memcpy_dtoh(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source, uint64_t size,
                             TF_Status* status) {
  (void)device;
  if (!enter("sync_memcpy_dtoh", status)) copy(NULL, target, source->opaque, size);
}

static void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                             TF_Status* status) {
  (void)device;
  if (!enter("sync_memcpy_htod", status)) copy(NULL, target->opaque, source, size);
}

static void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* target, const SP_DeviceMemoryBase* source,
                             uint64_t size, TF_Status* status) {
  (void)device;
  if (!enter("sync_memcpy_dtod", status)) copy(NULL, target->opaque, source->opaque, size);
}

#if SERDES_SE_LAYOUT >= SERDES_SE_TENSORFLOW_2_8
static void fill_zeros(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint64_t size,
                       TF_Status* status) {
  (void)device;
  (void)stream;
  if (!enter("mem_zero", status)) memset(memory->opaque, 0, size);
}

static void fill_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint8_t pattern,
                       uint64_t size, TF_Status* status) {
  (void)device;
  (void)stream;
  if (!enter("memset", status)) memset(memory->opaque, pattern, size);
}

static void fill_words(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory, uint32_t pattern,
                       uint64_t size, TF_Status* status) {
  (void)device;
  (void)stream;
  if (enter("memset32", status)) return;
  for (uint64_t offset = 0; offset + 4 <= size; offset += 4) memcpy((char*)memory->opaque + offset, &pattern, 4);
}
#endif

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
typedef SP_Device CallbackDevice; /* not const in the RFC */
#else
typedef const SP_Device CallbackDevice;
#endif

static TF_Bool host_callback(CallbackDevice* device, SP_Stream stream, SE_StatusCallbackFn function, void* argument) {
  (void)device;
  enter("host_callback", NULL);
  if (has("callback", "refuse")) return 0;
  created(CALLBACKS);
  if (has("callback", "drop")) return 1;
  for (int times = has("callback", "twice") ? 2 : 1; times > 0; times--) {
    TF_Status* status = TF_NewStatus();
    function(argument, status);
    if (TF_GetCode(status) != TF_OK) {
      snprintf(stream_of(stream)->failure, sizeof(the_stream.failure), "%s", TF_Message(status));
    }
    TF_DeleteStatus(status);
    destroyed(CALLBACKS);
  }
  if (has("callback", "error")) snprintf(stream_of(stream)->failure, sizeof(the_stream.failure), "callback as told");
  return 1;
}

/* The allocators of the RFC. */

#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
static void allocate_of(const SP_Device* device, const SP_Allocator* allocator, uint64_t size, int64_t memory_space,
                        SP_DeviceMemoryBase* memory) {
  (void)allocator;
  allocate(device, size, memory_space, memory);
}

static void deallocate_of(const SP_Device* device, const SP_Allocator* allocator, SP_DeviceMemoryBase* memory) {
  (void)allocator;
  deallocate(device, memory);
}

static void* host_allocate_of(const SP_Device* device, const SP_Allocator* allocator, uint64_t size) {
  (void)allocator;
  return host_memory_allocate(device, size);
}

static void host_deallocate_of(const SP_Device* device, const SP_Allocator* allocator, void* memory) {
  (void)allocator;
  host_memory_deallocate(device, memory);
}

static TF_Bool stats_of(const SP_Device* device, const SP_Allocator* allocator, SP_AllocatorStats* stats) {
  (void)allocator;
  return get_allocator_stats(device, stats);
}

static TF_Bool usage_of(const SP_Device* device, const SP_Allocator* allocator, int64_t* free_bytes, int64_t* total) {
  (void)allocator;
  return device_memory_usage(device, free_bytes, total);
}

static void create_allocator(const SP_Platform* platform, SE_CreateAllocatorParams* params, TF_Status* status) {
  (void)platform;
  if (enter("create_allocator", status)) return;
  created(ALLOCATORS);
  FINISH(SP_Allocator, params->allocator, SP_ALLOCATOR_STRUCT_SIZE);
  SP_AllocatorFns* functions = params->allocator_fns;
  SET(functions, allocate, allocate_of);
  SET(functions, deallocate, deallocate_of);
  SET(functions, host_memory_allocate, host_allocate_of);
  SET(functions, host_memory_deallocate, host_deallocate_of);
  SET(functions, get_allocator_stats, stats_of);
  SET(functions, device_memory_usage, usage_of);
  FINISH(SP_AllocatorFns, functions, SP_ALLOCATOR_FNS_STRUCT_SIZE);
}

static void destroy_allocator(const SP_Platform* platform, SP_Allocator* allocator, SP_AllocatorFns* functions) {
  (void)platform;
  (void)allocator;
  (void)functions;
  destroyed(ALLOCATORS);
}

static void* allocate_raw(const SP_Device* device, const SP_CustomAllocator* allocator, size_t size, size_t alignment) {
  (void)device;
  (void)allocator;
  enter("allocate_raw", NULL);
  if (has("memory", "null") || alignment > 256 || size > (size_t)1 << 40) return NULL;
  created(DEVICE_MEMORY);
  return (char*)aligned_alloc(256, (size + 2 * 256) / 256 * 256) + (has("memory", "unaligned") ? 1 : 0);
}

static void deallocate_raw(const SP_Device* device, const SP_CustomAllocator* allocator, void* memory) {
  (void)device;
  (void)allocator;
  if (memory == NULL) return;
  destroyed(DEVICE_MEMORY);
  release(memory);
}

static void* host_allocate_raw(const SP_Device* device, const SP_CustomAllocator* allocator, uint64_t size) {
  (void)allocator;
  return host_memory_allocate(device, size);
}

static void host_deallocate_raw(const SP_Device* device, const SP_CustomAllocator* allocator, void* memory) {
  (void)allocator;
  host_memory_deallocate(device, memory);
}

static TF_Bool custom_stats(const SP_Device* device, const SP_CustomAllocator* allocator, SP_AllocatorStats* stats) {
  (void)allocator;
  return get_allocator_stats(device, stats);
}

static TF_Bool custom_usage(const SP_Device* device, const SP_CustomAllocator* allocator, int64_t* free_bytes,
                            int64_t* total) {
  (void)allocator;
  return device_memory_usage(device, free_bytes, total);
}

static void create_custom_allocator(const SP_Platform* platform, SE_CreateCustomAllocatorParams* params,
                                    TF_Status* status) {
  (void)platform;
  if (enter("create_custom_allocator", status)) return;
  created(ALLOCATORS);
  FINISH(SP_CustomAllocator, params->custom_allocator, SP_CUSTOM_ALLOCATOR_STRUCT_SIZE);
  SP_CustomAllocatorFns* functions = params->custom_allocator_fns;
  SET(functions, allocate_raw, allocate_raw);
  SET(functions, deallocate_raw, deallocate_raw);
  SET(functions, host_allocate_raw, host_allocate_raw);
  SET(functions, host_deallocate_raw, host_deallocate_raw);
  SET(functions, get_allocator_stats, custom_stats);
  SET(functions, device_memory_usage, custom_usage);
  FINISH(SP_CustomAllocatorFns, functions, SP_CUSTOM_ALLOCATOR_FNS_STRUCT_SIZE);
}

static void destroy_custom_allocator(const SP_Platform* platform, SP_CustomAllocator* allocator,
                                     SP_CustomAllocatorFns* functions) {
  (void)platform;
  (void)allocator;
  (void)functions;
  destroyed(ALLOCATORS);
}
#endif

/* The platform. */

static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
  (void)platform;
  if (enter("create_device", status)) return;
  created(DEVICES);
  SP_Device* device = params->device;
  device->device_handle = &the_stream;
#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257
  SET(device, hardware_name, "stub");
  SET(device, device_vendor, "serdes tests");
  SET(device, pci_bus_id, "0000:00:00.0");
#endif
  if (!has("device", "unwritten")) {
    device->ordinal = params->ordinal;
    FINISH(SP_Device, device, SP_DEVICE_STRUCT_SIZE);
  }
}

static void destroy_device(const SP_Platform* platform, SP_Device* device) {
  (void)platform;
  enter("destroy_device", NULL);
  destroyed(DEVICES);
  if (has("device", "gone")) device->ordinal = -1;
}

#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257
static int32_t get_numa_node(const SP_Device* device) {
  (void)device;
  return 123;
}

static int64_t get_memory_bandwidth(const SP_Device* device) {
  (void)device;
  return 54;
}

static double get_gflops(const SP_Device* device) {
  (void)device;
  return 32;
}

static void create_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  (void)platform;
  if (enter("create_device_fns", status)) return;
  created(DEVICE_FUNCTIONS);
  SET(params->device_fns, get_numa_node, get_numa_node);
  SET(params->device_fns, get_memory_bandwidth, get_memory_bandwidth);
  SET(params->device_fns, get_gflops, get_gflops);
  FINISH(SP_DeviceFns, params->device_fns, SP_DEVICE_FNS_STRUCT_SIZE);
}

static void destroy_device_fns(const SP_Platform* platform, SP_DeviceFns* functions) {
  (void)platform;
  (void)functions;
  destroyed(DEVICE_FUNCTIONS);
}
#endif

static int device_count(void) {
  const char* value = switch_value("devices");
  return value == NULL ? 2 : atoi(value);
}

#if SERDES_SE_LAYOUT >= SERDES_SE_TENSORFLOW_2_5
static void get_device_count(const SP_Platform* platform, int* count, TF_Status* status) {
  (void)platform;
  if (enter("get_device_count", status)) return;
  if (!has("devices", "unwritten")) *count = device_count();
}
#endif

static void create_stream_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                                   TF_Status* status) {
  (void)platform;
  if (enter("create_stream_executor", status)) return;
  created(EXECUTORS);
  SP_StreamExecutor* executor = params->stream_executor;
  SET(executor, allocate, allocate);
  SET(executor, deallocate, deallocate);
  SET(executor, host_memory_allocate, host_memory_allocate);
  SET(executor, host_memory_deallocate, host_memory_deallocate);
  SET(executor, unified_memory_allocate, unified_memory_allocate);
  SET(executor, unified_memory_deallocate, unified_memory_deallocate);
  SET(executor, get_allocator_stats, get_allocator_stats);
  SET(executor, device_memory_usage, device_memory_usage);
  SET(executor, create_stream, create_stream);
  SET(executor, destroy_stream, destroy_stream);
  SET(executor, create_stream_dependency, create_stream_dependency);
  SET(executor, get_stream_status, get_stream_status);
  SET(executor, create_event, create_event);
  SET(executor, destroy_event, destroy_event);
  SET(executor, get_event_status, get_event_status);
  SET(executor, record_event, record_event);
  SET(executor, wait_for_event, wait_for_event);
  SET(executor, create_timer, create_timer);
  SET(executor, destroy_timer, destroy_timer);
  SET(executor, start_timer, start_timer);
  SET(executor, stop_timer, stop_timer);
  SET(executor, memcpy_dtoh, memcpy_dtoh);
  SET(executor, memcpy_htod, memcpy_htod);
  SET(executor, memcpy_dtod, memcpy_dtod);
  SET(executor, sync_memcpy_dtoh, sync_memcpy_dtoh);
  SET(executor, sync_memcpy_htod, sync_memcpy_htod);
  SET(executor, sync_memcpy_dtod, sync_memcpy_dtod);
  SET(executor, block_host_for_event, block_host_for_event);
  SET(executor, block_host_until_done, block_host_until_done);
  SET(executor, synchronize_all_activity, synchronize_all_activity);
#if SERDES_SE_LAYOUT >= SERDES_SE_TENSORFLOW_2_8
  SET(executor, mem_zero, fill_zeros);
  SET(executor, memset, fill_bytes);
  SET(executor, memset32, fill_words);
#endif
  SET(executor, host_callback, host_callback);
  FINISH(SP_StreamExecutor, executor, SP_STREAMEXECUTOR_STRUCT_SIZE);
}

static void destroy_stream_executor(const SP_Platform* platform, SP_StreamExecutor* executor) {
  (void)platform;
  (void)executor;
  destroyed(EXECUTORS);
}

static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* functions, TF_Status* status) {
  (void)platform;
  if (enter("create_timer_fns", status)) return;
  created(TIMER_FUNCTIONS);
  SET(functions, nanoseconds, nanoseconds);
  FINISH(SP_TimerFns, functions, SP_TIMER_FNS_STRUCT_SIZE);
}

static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* functions) {
  (void)platform;
  (void)functions;
  destroyed(TIMER_FUNCTIONS);
}

static void destroy_platform(SP_Platform* platform) {
  (void)platform;
  enter("destroy_platform", NULL);
  destroyed(PLATFORMS);
}

static void destroy_platform_fns(SP_PlatformFns* functions) {
  (void)functions;
  destroyed(PLATFORM_FUNCTIONS);
}

static char name[256], type[256];

SERDES_SE_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (enter("SE_InitPlugin", status)) return;
  SP_Platform* platform = params->platform;
  SP_PlatformFns* functions = params->platform_fns;
  if (has("params", "cleared")) {
    memset(params, 0, sizeof(*params));
    params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  }
  created(PLATFORMS);
  created(PLATFORM_FUNCTIONS);

  const char* value = switch_value("name");
  snprintf(name, sizeof(name), "%s", value == NULL ? "STUB" : value);
  value = switch_value("type");
  snprintf(type, sizeof(type), "%s", value == NULL ? "STUB" : value);
  platform->name = strcmp(name, "NULL") == 0 ? NULL : name;
  platform->type = strcmp(type, "NULL") == 0 ? NULL : type;
#if SERDES_SE_LAYOUT < SERDES_SE_TENSORFLOW_2_5
  if (!has("devices", "unwritten")) platform->visible_device_count = (size_t)device_count();
#endif
#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257
  platform->supports_unified_memory = switch_value("unified") == NULL ? 0 : (TF_Bool)atoi(switch_value("unified"));
#endif
  FINISH(SP_Platform, platform, SP_PLATFORM_STRUCT_SIZE);

#if SERDES_SE_LAYOUT >= SERDES_SE_TENSORFLOW_2_5
  SET(functions, get_device_count, get_device_count);
#endif
  SET(functions, create_device, create_device);
  SET(functions, destroy_device, destroy_device);
#if SERDES_SE_LAYOUT != SERDES_SE_RFC_257
  SET(functions, create_device_fns, create_device_fns);
  SET(functions, destroy_device_fns, destroy_device_fns);
#endif
  SET(functions, create_stream_executor, create_stream_executor);
  SET(functions, destroy_stream_executor, destroy_stream_executor);
  SET(functions, create_timer_fns, create_timer_fns);
  SET(functions, destroy_timer_fns, destroy_timer_fns);
#if SERDES_SE_LAYOUT == SERDES_SE_RFC_257
  int custom = switch_value("allocator") == NULL || has("allocator", "custom") || has("allocator", "both");
  int best_fit = has("allocator", "bfc") || has("allocator", "both");
  if (custom) {
    SET(functions, create_custom_allocator, create_custom_allocator);
    SET(functions, destroy_custom_allocator, destroy_custom_allocator);
  }
  if (best_fit) {
    SET(functions, create_allocator, create_allocator);
    SET(functions, destroy_allocator, destroy_allocator);
  }
#endif
  FINISH(SP_PlatformFns, functions, SP_PLATFORM_FNS_STRUCT_SIZE);

  if (has("params", "emptied")) params->platform = NULL, params->platform_fns = NULL;
  if (switch_value("major") != NULL) params->major_version = atoi(switch_value("major"));
  SET(params, destroy_platform, destroy_platform);
  SET(params, destroy_platform_fns, destroy_platform_fns);
  if (switch_value("size.SE_PlatformRegistrationParams") != NULL || switch_value("extra") != NULL) {
    FINISH(SE_PlatformRegistrationParams, params, SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE);
  }
  if (has("error", "after")) TF_SetStatus(status, TF_UNAVAILABLE, "no hardware");
}

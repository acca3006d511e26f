/* A PJRT plug-in over memory of the host, for tests of hosts. It is compiled against a header that the tests write for one minor of the
 * interface (pjrt_layouts.h), so that it has the table and the sizes of that day, wrong macros included.
 *
 * Without switches it keeps the C API and moves real data. Macros are its fault switches:
 *
 *   NULL_TABLE, ODD_TABLE        GetPjrtApi answers NULL, or an odd address
 *   TABLE_SAID=N                 what the table says of its size
 *   MAJOR_SAID=N, MINOR_SAID=N   what it says of its version
 *   NULL_SLOT=SLOT_...           a function is NULL
 *   ENDLESS, ODD_CHAIN           the chain of extensions leads back to itself, or to an odd address
 *   EQUAL_SIZES                  a struct of any other size than its own is refused
 *   FAILING="NAME", CODE=N       a function reports an error
 *   MESSAGE_SAID=N, NULL_MESSAGE how long a message is said to be, or that there is none
 *   DEVICES_SAID=N, NULL_DEVICES, NULL_DEVICE   the list of devices is long, NULL, or has a NULL in it
 *   NULL_CLIENT, NULL_BUFFER     a call succeeds and gives nothing
 *   TYPE_SAID=N, RANK_SAID=N, NEGATIVE   what a buffer says of itself
 *   EVENT_FAILS, NULL_EVENTS     events report an error, or there are none
 *   TWICE, NEVER                 what is to be called when an event is ready is called twice, or never
 *   HANDED_ERROR                 it is called with an error, which is the host's to destroy
 *   UNREADY                      an event never says that it is ready
 *   LATE                         copies are made by a thread, a while after the call
 *   SIZE_SAID=N                  what a buffer says of its size on the device
 *   LAYOUT_SAID=N, LAYOUT_RANK=N, LAYOUT_TILES=N, TILE_RANK=N   what it says of its layout
 *   TURNED                       arrays lie column-major on the device, and are given as they lie, whatever the host asks for
 *   PAYLOADS=N, PAYLOAD_SAID=N, NULL_PAYLOAD   what an error carries: how many pieces, how long one is, none of its bytes
 *   MAPS, NO_UNMAP, MAP_FAILS    memory of the host is mapped; and cannot be unmapped; or some of it cannot be mapped
 *
 * More switches are in pjrt_transfers.h and pjrt_programs.h.
 *
 * live_objects() says how many errors, events, buffers and clients there are; kept_bytes() how the first byte of memory that was given for
 * good reads; mapped_pieces() how many pieces of memory are mapped. After hang_next() the next execution does not end before let_go();
 * hangs() says whether it has begun. */

#include "pjrt_layouts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef CODE
#define CODE 13
#endif

typedef struct {
  int code;
  const char* message;
} Error;
typedef struct {
  long references;
  unsigned char bytes[];
} Storage;
typedef struct {
  int32_t type;
  size_t rank;
  int64_t dims[256];
  size_t bytes;
  Storage* storage;
  unsigned char* data;
  void* memory;
  int deleted, references;
} Buffer;
typedef void (*OnReady)(void* error, void* user_arg);

static long live;
long live_objects(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
static void* made(size_t bytes) {
  __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return calloc(1, bytes);
}
static void gone(void* object) {
  __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  free(object);
}

/* The memory of a buffer, which lives as long as anybody writes to it. */
static Storage* stored(size_t bytes) {
  Storage* storage = calloc(1, sizeof *storage + bytes + 1);
  storage->references = 1;
  return storage;
}
static void released(Storage* storage) {
  if (__atomic_sub_fetch(&storage->references, 1, __ATOMIC_SEQ_CST) == 0) free(storage);
}

static void* failed(int code, const char* message) {
  Error* error = made(sizeof *error);
  error->code = code;
  error->message = message;
  return error;
}

/* What is wrong with a call of that name with arguments of that size, or NULL. */
static void* wrong(const char* name, size_t given, size_t own) {
#ifdef EQUAL_SIZES
  if (given != own) return failed(3, "another size than mine");
#endif
  if (given < own) return failed(3, "shorter than mine");
#ifdef FAILING
  if (strcmp(name, FAILING) == 0) return failed(CODE, "as told");
#endif
  (void)name;
  return NULL;
}

#define CALL(NAME)                                                     \
  static void* NAME##_(NAME##_Args* args);                             \
  static void* NAME(NAME##_Args* args) {                               \
    void* error = wrong(#NAME, args->struct_size, NAME##_Args_SIZE);   \
    return error ? error : NAME##_(args);                              \
  }                                                                    \
  static void* NAME##_(NAME##_Args* args)

static void PJRT_Error_Destroy(PJRT_Error_Destroy_Args* args) { gone(args->error); }
static void PJRT_Error_Message(PJRT_Error_Message_Args* args) {
#ifdef NULL_MESSAGE
  args->message = NULL;
  args->message_size = 1000;
#else
  args->message = (void*)((Error*)args->error)->message;
  args->message_size = strlen(args->message);
#endif
#ifdef MESSAGE_SAID
  static char endless[1 << 20];
  memset(endless, 27, sizeof endless);
  args->message = endless;
  args->message_size = MESSAGE_SAID;
#endif
}
CALL(PJRT_Error_GetCode) {
  args->code = ((Error*)args->error)->code;
  return NULL;
}
CALL(PJRT_Plugin_Initialize) { return (void)args, NULL; }
CALL(PJRT_Plugin_Attributes) {
  static int64_t version[3] = {1, 13, 3};
  static PJRT_NamedValue attributes[2];
  attributes[0] = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_SIZE, .name = "xla_version", .name_size = 11, .type = 1, .value = 2, .value_size = 1};
  attributes[1] = (PJRT_NamedValue){
      .struct_size = PJRT_NamedValue_SIZE, .name = "stablehlo_current_version", .name_size = 25, .type = 2, .value = (uintptr_t)version, .value_size = 3};
  args->attributes = attributes;
  args->num_attributes = 2;
  return NULL;
}

typedef void (*Visitor)(const char* key, size_t key_size, const char* value, size_t value_size, void* user_arg);
#ifdef SLOT_PJRT_Error_ForEachPayload
CALL(PJRT_Error_ForEachPayload) {
#ifdef PAYLOADS
  for (int i = 0; i < PAYLOADS; ++i) {
    const char* value = "eight by";
    size_t length = 8;
#ifdef PAYLOAD_SAID
    static char endless[1 << 17];
    value = endless;
    length = PAYLOAD_SAID;
#endif
#ifdef NULL_PAYLOAD
    value = NULL;
#endif
    ((Visitor)args->visitor)("type\033[2J", 8, value, length, args->user_arg);
  }
#endif
  return (void)args, NULL;
}
#endif

/* An event, and the copy that it stands for where that is made later. */
typedef struct {
  int ready, fails, references;
  OnReady callback;
  void* user_arg;
  unsigned char* to;
  const unsigned char* from;
  size_t bytes;
  Storage* written;
} Event;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void forget(Event* event) {
  if (__atomic_sub_fetch(&event->references, 1, __ATOMIC_SEQ_CST) == 0) gone(event);
}
CALL(PJRT_Event_Destroy) { return forget(args->event), NULL; }
CALL(PJRT_Event_IsReady) {
#ifdef UNREADY
  args->is_ready = 0;
#else
  pthread_mutex_lock(&lock);
  args->is_ready = ((Event*)args->event)->ready != 0;
  pthread_mutex_unlock(&lock);
#endif
  return NULL;
}
CALL(PJRT_Event_Await) {
  pthread_mutex_lock(&lock);
  while (!((Event*)args->event)->ready) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
#ifdef EVENT_FAILS
  return failed(14, "the work before it failed");
#else
  return ((Event*)args->event)->fails ? failed(14, "the run failed") : NULL;
#endif
}
static void called(const Event* event, OnReady callback, void* user_arg) {
#if defined(EVENT_FAILS) || defined(HANDED_ERROR)
  callback(failed(14, "handed over"), user_arg);
#else
  callback(event->fails ? failed(14, "it failed later") : NULL, user_arg);
#endif
  (void)event;
}
CALL(PJRT_Event_OnReady) {
  Event* event = args->event;
  pthread_mutex_lock(&lock);
  int ready = event->ready;
  event->callback = (OnReady)args->callback;
  event->user_arg = args->user_arg;
  pthread_mutex_unlock(&lock);
#ifndef NEVER
  if (ready) called(event, (OnReady)args->callback, args->user_arg);
#endif
#ifdef TWICE
  ((OnReady)args->callback)(NULL, args->user_arg);
  ((OnReady)args->callback)(NULL, (char*)args->user_arg + 1000);
#endif
  (void)ready;
  return NULL;
}
static Event* event(void) {
#ifdef NULL_EVENTS
  return NULL;
#else
  Event* event = made(sizeof *event);
  event->references = 1;
  event->ready = 1;
  return event;
#endif
}
#ifdef LATE
static void* late(void* argument) {
  Event* event = argument;
  nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
  memcpy(event->to, event->from, event->bytes);
  if (event->written) released(event->written);
  pthread_mutex_lock(&lock);
  event->ready = 1;
  pthread_cond_broadcast(&changed);
  OnReady callback = event->callback;
  void* user_arg = event->user_arg;
  pthread_mutex_unlock(&lock);
  if (callback) called(event, callback, user_arg);
  return forget(event), NULL;
}
#endif
/* Copies, now or later; the storage that is written to, if it is one, lives as long. */
static Event* copying(void* to, const void* from, size_t bytes, Storage* written) {
#ifdef LATE
  Event* begun = event();
  pthread_t thread;
  begun->ready = 0;
  begun->references = 2;
  begun->to = to;
  begun->from = from;
  begun->bytes = bytes;
  begun->written = written;
  if (written) __atomic_add_fetch(&written->references, 1, __ATOMIC_SEQ_CST);
  pthread_create(&thread, NULL, late, begun);
  pthread_detach(thread);
  return begun;
#else
  (void)written;
  if (bytes) memcpy(to, from, bytes);
  return event();
#endif
}

static char devices[2], descriptions[2], memories[2];
CALL(PJRT_Client_Create) {
  const PJRT_NamedValue* options = args->create_options;
  for (size_t i = 0; i < args->num_options; ++i)
    if (options[i].name_size == 4 && memcmp(options[i].name, "none", 4) == 0) return failed(5, "there is no device");
#ifdef NULL_CLIENT
  args->client = NULL;
#else
  args->client = made(1);
#endif
  return NULL;
}
CALL(PJRT_Client_Destroy) { return gone(args->client), NULL; }
CALL(PJRT_Client_PlatformName) {
  args->platform_name = "double";
  args->platform_name_size = 6;
  return NULL;
}
CALL(PJRT_Client_PlatformVersion) {
  args->platform_version = "1\033[2J";
  args->platform_version_size = 5;
  return NULL;
}
CALL(PJRT_Client_ProcessIndex) {
  args->process_index = 0;
  return NULL;
}
static void* every_device[2] = {&devices[0], &devices[1]};
CALL(PJRT_Client_Devices) {
  args->devices = every_device;
  args->num_devices = 2;
#ifdef DEVICES_SAID
  args->num_devices = DEVICES_SAID;
#endif
#ifdef NULL_DEVICES
  args->devices = NULL;
#endif
#ifdef NULL_DEVICE
  every_device[1] = NULL;
#endif
  return NULL;
}
CALL(PJRT_Client_AddressableDevices) {
  args->addressable_devices = every_device;
  args->num_addressable_devices = 2;
  return NULL;
}
CALL(PJRT_Client_LookupDevice) {
  if (args->id != 7 && args->id != 8) return failed(5, "no device has this number");
  args->device = &devices[args->id - 7];
  return NULL;
}
CALL(PJRT_Client_DefaultDeviceAssignment) {
  if ((size_t)args->num_replicas * (size_t)args->num_partitions > 2) return failed(3, "more than there are devices");
  for (size_t i = 0; i < args->default_assignment_size; ++i) ((int*)args->default_assignment)[i] = 7 + (int)i;
  return NULL;
}
CALL(PJRT_Device_GetDescription) {
  args->device_description = &descriptions[(char*)args->device - devices];
  return NULL;
}
CALL(PJRT_Device_IsAddressable) {
  args->is_addressable = 1;
  return NULL;
}
CALL(PJRT_Device_LocalHardwareId) {
  args->local_hardware_id = (int)((char*)args->device - devices);
  return NULL;
}
static void* every_memory[2] = {&memories[0], &memories[1]};
CALL(PJRT_Client_AddressableMemories) {
  args->addressable_memories = every_memory;
  args->num_addressable_memories = 2;
  return NULL;
}
CALL(PJRT_Device_MemoryStats) {
  args->bytes_in_use = 1000;
  args->peak_bytes_in_use = 2000;
  args->peak_bytes_in_use_is_set = 1;
  args->num_allocs = 3;
  return NULL;
}
#ifdef SLOT_PJRT_Device_ClearMemoryStats
CALL(PJRT_Device_ClearMemoryStats) { return (void)args, NULL; }
#endif
CALL(PJRT_Device_AddressableMemories) {
  args->memories = every_memory;
  args->num_memories = 2;
  return NULL;
}
CALL(PJRT_Device_DefaultMemory) {
  args->memory = &memories[0];
  return NULL;
}
CALL(PJRT_DeviceDescription_Id) {
  args->id = 7 + (int)((char*)args->device_description - descriptions);
  return NULL;
}
CALL(PJRT_DeviceDescription_ProcessIndex) {
  args->process_index = 0;
  return NULL;
}
CALL(PJRT_DeviceDescription_Kind) {
  args->device_kind = "test";
  args->device_kind_size = 4;
  return NULL;
}
CALL(PJRT_DeviceDescription_DebugString) {
  args->debug_string = "double:0";
  args->debug_string_size = 8;
  return NULL;
}
CALL(PJRT_DeviceDescription_ToString) {
  args->to_string = "double 0";
  args->to_string_size = 8;
  return NULL;
}
CALL(PJRT_DeviceDescription_Attributes) {
  static PJRT_NamedValue attribute;
  attribute = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_SIZE, .name = "core", .name_size = 4, .type = 1, .value = 5, .value_size = 1};
  args->attributes = &attribute;
  args->num_attributes = 1;
#ifdef ATTRIBUTES_SAID
  args->num_attributes = ATTRIBUTES_SAID;
#endif
  return NULL;
}
CALL(PJRT_Memory_Id) {
  args->id = (int)((char*)args->memory - memories);
  return NULL;
}
CALL(PJRT_Memory_Kind) {
  args->KIND = args->memory == &memories[0] ? "device" : "pinned_host";
  args->KIND_SIZE = strlen(args->KIND);
  return NULL;
}

#ifdef SLOT_PJRT_Memory_Kind_Id
CALL(PJRT_Memory_Kind_Id) {
  args->kind_id = -5;
  return NULL;
}
#endif
CALL(PJRT_Memory_DebugString) {
  args->debug_string = "memory";
  args->debug_string_size = 6;
  return NULL;
}
CALL(PJRT_Memory_AddressableByDevices) {
  args->devices = every_device;
  args->num_devices = 2;
  return NULL;
}

/* Bytes of an element on the host, by the number of its type in minors since 0.5. */
static size_t width(int32_t type) {
  static const unsigned char widths[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16};
  return type < 16 ? widths[type] : 1;
}
static unsigned char* kept;
int kept_byte(void) { return kept ? kept[0] : -1; }
CALL(PJRT_Client_BufferFromHostBuffer) {
  Buffer* buffer = made(sizeof *buffer);
  const int64_t* dims = args->dims;
  const int64_t* strides = args->byte_strides;
  buffer->type = args->type;
  buffer->rank = args->num_dims;
  size_t count = 1, size = width(args->type);
  for (size_t i = 0; i < args->num_dims; ++i) count *= (size_t)(buffer->dims[i] = dims[i]);
  buffer->bytes = count * size;
  buffer->storage = stored(buffer->bytes);
  buffer->data = buffer->storage->bytes;
  buffer->memory = args->memory ? args->memory : &memories[0];
  for (size_t n = 0; n < count; ++n) {
    size_t rest = n, at = 0;
    for (size_t i = args->num_dims; i-- > 0;) {
      size_t step = rest % (size_t)dims[i];
      rest /= (size_t)dims[i];
      at += args->num_byte_strides ? step * (size_t)strides[i] : 0;
    }
    memcpy(buffer->data + n * size, (const char*)args->data + (args->num_byte_strides ? at : n * size), size);
  }
  if (args->host_buffer_semantics > 0) kept = (unsigned char*)args->data;
  args->done_with_host_buffer = event();
  args->buffer = buffer;
#ifdef NULL_BUFFER
  released(buffer->storage);
  gone(buffer);
  args->buffer = NULL;
#endif
  return NULL;
}
CALL(PJRT_Buffer_ElementType) {
  args->type = ((Buffer*)args->buffer)->type;
#ifdef TYPE_SAID
  args->type = TYPE_SAID;
#endif
  return NULL;
}
CALL(PJRT_Buffer_Dimensions) {
  Buffer* buffer = args->buffer;
  args->dims = buffer->dims;
  args->num_dims = buffer->rank;
#ifdef NEGATIVE
  buffer->dims[0] = -3;
#endif
#ifdef RANK_SAID
  args->num_dims = RANK_SAID;
#endif
  return NULL;
}
CALL(PJRT_Buffer_OnDeviceSizeInBytes) {
  args->on_device_size_in_bytes = ((Buffer*)args->buffer)->bytes;
#ifdef SIZE_SAID
  args->on_device_size_in_bytes = SIZE_SAID;
#endif
  return NULL;
}
CALL(PJRT_Buffer_ReadyEvent) {
  args->event = event();
  return NULL;
}
CALL(PJRT_Buffer_ToHostBuffer) {
  Buffer* buffer = args->src;
  if (buffer->deleted) return failed(3, "the buffer was deleted");
  if (!args->dst) return args->dst_size = buffer->bytes, args->event = NULL, NULL;
  if (args->dst_size < buffer->bytes) return failed(3, "too small");
  args->event = copying(args->dst, buffer->data, buffer->bytes, NULL);
  return NULL;
}
static Buffer* copied(Buffer* from) {
  Buffer* buffer = made(sizeof *buffer);
  *buffer = *from;
  buffer->references = 0;
  buffer->storage = stored(from->bytes);
  buffer->data = buffer->storage->bytes;
  memcpy(buffer->data, from->data, from->bytes);
  return buffer;
}
CALL(PJRT_Buffer_CopyToDevice) {
#ifdef NULL_COPY
  return (void)args, args->dst_buffer = NULL, NULL;
#endif
  args->dst_buffer = copied(args->buffer);
  return NULL;
}
CALL(PJRT_Buffer_UnpaddedDimensions) {
  args->unpadded_dims = ((Buffer*)args->buffer)->dims;
  args->num_dims = ((Buffer*)args->buffer)->rank;
#ifdef RANK_SAID
  args->num_dims = RANK_SAID;
#endif
  return NULL;
}
CALL(PJRT_Buffer_DynamicDimensionIndices) {
  static size_t none[1];
  args->dynamic_dim_indices = none;
  args->num_dynamic_dims = 0;
#ifdef DYNAMIC_SAID
  args->num_dynamic_dims = DYNAMIC_SAID;
#endif
  return NULL;
}
CALL(PJRT_Buffer_GetMemoryLayout) {
  static int64_t order[256];
  static size_t tile_ranks[1] = {2};
  static int64_t tiles[2] = {8, 128};
  size_t rank = ((Buffer*)args->buffer)->rank;
  for (size_t i = 0; i < rank; ++i) order[i] = (int64_t)(rank - 1 - i);
#ifdef TURNED
  for (size_t i = 0; i < rank; ++i) order[i] = (int64_t)i;
#endif
  PJRT_Buffer_MemoryLayout_Tiled tiled = {.struct_size = 56, .minor_to_major = order, .minor_to_major_size = rank};
#ifdef LAYOUT_RANK
  tiled.minor_to_major_size = LAYOUT_RANK;
#endif
#ifdef LAYOUT_TILES
  tiled.num_tiles = LAYOUT_TILES;
  tiled.tile_dims = tiles;
  tiled.tile_dim_sizes = tile_ranks;
#endif
#ifdef TILE_RANK
  tile_ranks[0] = TILE_RANK;
#endif
  PJRT_Buffer_MemoryLayout layout = {.struct_size = 76, .type = 0};
#ifdef LAYOUT_SAID
  layout.type = LAYOUT_SAID;
#endif
  (void)tiles;
  (void)tile_ranks;
  memcpy(&layout.value, &tiled, sizeof tiled);
  memcpy(&args->layout, &layout, sizeof layout);
  return NULL;
}
CALL(PJRT_Buffer_Device) {
  args->device = &devices[0];
#ifdef NULL_DEVICE_OF
  args->device = NULL;
#endif
  return NULL;
}
CALL(PJRT_Buffer_Memory) {
  args->memory = ((Buffer*)args->buffer)->memory;
  return NULL;
}
CALL(PJRT_Buffer_IsOnCpu) {
  args->is_on_cpu = 1;
  return NULL;
}
CALL(PJRT_Buffer_UnsafePointer) {
  args->buffer_pointer = (intptr_t)((Buffer*)args->buffer)->data;
  return NULL;
}
CALL(PJRT_Buffer_IncreaseExternalReferenceCount) { return ((Buffer*)args->buffer)->references++, NULL; }
CALL(PJRT_Buffer_DecreaseExternalReferenceCount) { return ((Buffer*)args->buffer)->references--, NULL; }
#ifdef SLOT_PJRT_Buffer_CopyToMemory
CALL(PJRT_Buffer_CopyToMemory) {
#ifdef NULL_COPY
  return (void)args, args->dst_buffer = NULL, NULL;
#endif
  Buffer* copy = copied(args->buffer);
  copy->memory = args->dst_memory;
  args->dst_buffer = copy;
  return NULL;
}
#endif
CALL(PJRT_Buffer_IsDeleted) {
  args->is_deleted = ((Buffer*)args->buffer)->deleted != 0;
  return NULL;
}
CALL(PJRT_Buffer_Delete) {
  ((Buffer*)args->buffer)->deleted = 1;
  return NULL;
}
CALL(PJRT_Buffer_Destroy) {
  released(((Buffer*)args->buffer)->storage);
  return gone(args->buffer), NULL;
}
#ifdef SLOT_PJRT_Buffer_CopyRawToHost
CALL(PJRT_Buffer_CopyRawToHost) {
  args->event = copying(args->dst, ((Buffer*)args->buffer)->data + args->offset, (size_t)args->transfer_size, NULL);
  return NULL;
}
#endif

#include "pjrt_programs.h"
#include "pjrt_transfers.h"

typedef struct Extension {
#if PJRT_MINOR >= 45
  size_t struct_size;
#endif
  int32_t type;
  struct Extension* next;
} Extension;

static struct {
  size_t struct_size;
  void* extension_start;
  size_t version_size;
  void* version_extension;
  int32_t major;
  int32_t minor;
  void* functions[(TABLE_SIZEOF - 40) / 8];
} table;

void* GetPjrtApi(void) {
  static Extension chain[2];
#if PJRT_MINOR >= 45
  chain[0].struct_size = 32;
  chain[1].struct_size = 40;
#endif
  chain[0].type = 1;
  chain[1].type = 1000;
  chain[0].next = &chain[1];
#ifdef ENDLESS
  chain[1].next = &chain[0];
#endif
#ifdef ODD_CHAIN
  chain[1].next = (Extension*)((char*)chain + 1);
#endif
#if PJRT_MINOR >= 51 && !defined(NO_LAYOUTS) && !defined(ENDLESS) && !defined(ODD_CHAIN)
  chain[1].next = (Extension*)&layouts;
#if PJRT_MINOR >= 53
  layouts.next = &custom_calls;
#endif
#if PJRT_MINOR >= 91
  custom_calls.next = &shardings;
#endif
#endif
  table.struct_size = TABLE_SIZE;
  table.extension_start = chain;
  table.version_size = 24;
  table.minor = PJRT_MINOR;
#ifdef TABLE_SAID
  table.struct_size = (size_t)TABLE_SAID;
#endif
#ifdef MAJOR_SAID
  table.major = MAJOR_SAID;
#endif
#ifdef MINOR_SAID
  table.minor = MINOR_SAID;
#endif
#include "pjrt_slots.h"
#ifdef NULL_SLOT
  table.functions[NULL_SLOT] = NULL;
#endif
#ifdef NULL_TABLE
  return NULL;
#elif defined(ODD_TABLE)
  return (char*)&table + 1;
#else
  return &table;
#endif
}

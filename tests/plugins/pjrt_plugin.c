/* A PJRT plug-in over memory of the host, for tests of hosts. It is compiled against a header that the tests write for one minor of the
 * interface (pjrt_layouts.h), so that it has the table and the sizes of that day, wrong macros included.
 *
 * Without habits it keeps the C API and moves real data. Macros give it habits:
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
 *   SIZE_SAID=N                  what a buffer says of its size on the device
 *
 * live_objects() says how many errors, events, buffers and clients there are; kept_bytes() how the first byte of memory that was given for
 * good reads. */

#include "pjrt_layouts.h"

#include <stdlib.h>
#include <string.h>

#ifndef CODE
#define CODE 13
#endif

typedef struct {
  int code;
  const char* message;
} Error;
typedef struct {
  int32_t type;
  size_t rank;
  int64_t dims[256];
  size_t bytes;
  unsigned char* data;
  int deleted;
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

CALL(PJRT_Event_Destroy) { return gone(args->event), NULL; }
CALL(PJRT_Event_IsReady) {
  args->is_ready = 1;
  return NULL;
}
CALL(PJRT_Event_Await) {
#ifdef EVENT_FAILS
  return (void)args, failed(14, "the work before it failed");
#else
  return (void)args, NULL;
#endif
}
CALL(PJRT_Event_OnReady) {
#ifndef NEVER
  ((OnReady)args->callback)(failed(14, "handed over"), args->user_arg);
#endif
#ifdef TWICE
  ((OnReady)args->callback)(NULL, args->user_arg);
  ((OnReady)args->callback)(NULL, (char*)args->user_arg + 1000);
#endif
  return (void)args, NULL;
}
static void* event(void) {
#ifdef NULL_EVENTS
  return NULL;
#else
  return made(1);
#endif
}

static char devices[2], description, memories[2];
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
CALL(PJRT_Device_GetDescription) {
  args->device_description = &description;
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
  args->id = 7;
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
CALL(PJRT_Memory_Id) {
  args->id = (int)((char*)args->memory - memories);
  return NULL;
}
CALL(PJRT_Memory_Kind) {
  args->KIND = args->memory == &memories[0] ? "device" : "pinned_host";
  args->KIND_SIZE = strlen(args->KIND);
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
  buffer->data = malloc(buffer->bytes + 1);
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
  free(buffer->data);
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
  if (args->dst_size < buffer->bytes) return failed(3, "too small");
  memcpy(args->dst, buffer->data, buffer->bytes);
  args->event = event();
  return NULL;
}
static void* copied(Buffer* from) {
  Buffer* buffer = made(sizeof *buffer);
  *buffer = *from;
  buffer->data = malloc(from->bytes + 1);
  memcpy(buffer->data, from->data, from->bytes);
  return buffer;
}
CALL(PJRT_Buffer_CopyToDevice) {
  args->dst_buffer = copied(args->buffer);
  return NULL;
}
#ifdef SLOT_PJRT_Buffer_CopyToMemory
CALL(PJRT_Buffer_CopyToMemory) {
  args->dst_buffer = copied(args->buffer);
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
  free(((Buffer*)args->buffer)->data);
  return gone(args->buffer), NULL;
}
#ifdef SLOT_PJRT_Buffer_CopyRawToHost
CALL(PJRT_Buffer_CopyRawToHost) {
  memcpy(args->dst, ((Buffer*)args->buffer)->data + args->offset, (size_t)args->transfer_size);
  args->event = event();
  return NULL;
}
#endif

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

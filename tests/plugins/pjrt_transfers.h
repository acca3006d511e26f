/* Of pjrt_plugin.c: arrays in pieces, memory that is mapped, topologies, and the extension of layouts. Its fault switches:
 *
 *   NULL_MANAGER, NULL_INCOMING=N    a call succeeds, and gives no manager, or no array of that number
 *   NO_CALLBACK                      a raw copy whose memory comes later cannot be told of it
 *   COUNT_SAID=N, INCOMING_SAID=N    how many arrays a manager says that it has, and how long one is
 *   NULL_TOPOLOGY, DESCRIPTIONS_SAID=N, TOPOLOGY_SAID=N, NULL_BYTES   a topology that is none, with many devices, with many bytes, or none
 *   SHARDINGS_SAID=N, SHARDING_BYTES=N, NULL_SHARDING, UNSAID_SHARDINGS   how many shardings there are, how long one is, that one is
 *                                    NULL, that there are none
 *   SHORT_FFI                        the extension of custom calls ends before the function that takes them
 *   NO_LAYOUTS, SHORT_LAYOUTS, NULL_LAYOUT, LAYOUT_BYTES=N   no extension of layouts, one that ends early, a layout that is none or long */

typedef struct {
  Storage* storage;
  int32_t type;
  size_t rank, bytes;
  int64_t dims[256];
  int complete, failed;
} Incoming;
typedef struct {
  size_t count;
  Incoming arrays[];
} Manager;
static int given_up;
int given_up_arrays(void) { return given_up; }

#ifdef SLOT_PJRT_Client_CreateBuffersForAsyncHostToDevice
static void* ended(Manager* manager) {
  for (size_t i = 0; i < manager->count; ++i) released(manager->arrays[i].storage);
  return gone(manager), NULL;
}
CALL(PJRT_Client_CreateBuffersForAsyncHostToDevice) {
  const PJRT_ShapeSpec* shapes = args->shape_specs;
  Manager* manager = made(sizeof *manager + args->num_shape_specs * sizeof(Incoming));
  manager->count = args->num_shape_specs;
  for (size_t at = 0; at < manager->count; ++at) {
    const PJRT_ShapeSpec* shape = &shapes[at];
    Incoming* array = &manager->arrays[at];
    array->type = shape->element_type;
    array->rank = shape->num_dims;
    array->bytes = width(shape->element_type);
    for (size_t i = 0; i < shape->num_dims; ++i) array->bytes *= (size_t)(array->dims[i] = ((const int64_t*)shape->dims)[i]);
    array->storage = stored(array->bytes);
  }
  args->transfer_manager = manager;
#ifdef NULL_MANAGER
  args->transfer_manager = ended(manager);
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_Destroy) { return ended(args->transfer_manager); }
/* A number that is no array's is the host's fault. */
static Incoming* array_of(Manager* manager, int index) {
  if (index < 0 || (size_t)index >= manager->count) abort();
  return &manager->arrays[index];
}
CALL(PJRT_AsyncHostToDeviceTransferManager_TransferData) {
  Incoming* array = array_of(args->transfer_manager, args->buffer_index);
  if (array->complete || array->failed || args->offset < 0 || (size_t)(args->offset + args->transfer_size) > array->bytes) abort();
  array->complete = args->is_last_transfer;
  args->done_with_h2d_transfer = copying(array->storage->bytes + args->offset, args->data, (size_t)args->transfer_size, array->storage);
  return NULL;
}
#endif
#ifdef SLOT_PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer
CALL(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer) {
  Incoming* array = array_of(args->transfer_manager, args->buffer_index);
#ifdef NULL_INCOMING
  if (args->buffer_index == NULL_INCOMING) return args->buffer_out = NULL, NULL;
#endif
  Buffer* buffer = made(sizeof *buffer);
  buffer->type = array->type;
  buffer->rank = array->rank;
  buffer->bytes = array->bytes;
  memcpy(buffer->dims, array->dims, sizeof buffer->dims);
  buffer->storage = array->storage;
  buffer->data = array->storage->bytes;
  buffer->memory = &memories[0];
  __atomic_add_fetch(&array->storage->references, 1, __ATOMIC_SEQ_CST);
  args->buffer_out = buffer;
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_BufferCount) {
  args->buffer_count = ((Manager*)args->transfer_manager)->count;
#ifdef COUNT_SAID
  args->buffer_count = COUNT_SAID;
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_BufferSize) {
  args->buffer_size = array_of(args->transfer_manager, args->buffer_index)->bytes;
#ifdef INCOMING_SAID
  args->buffer_size = INCOMING_SAID;
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_SetBufferError) {
  Incoming* array = array_of(args->transfer_manager, args->buffer_index);
  if (array->complete || array->failed) abort();
  array->failed = 1;
  return ++given_up, NULL;
}
#endif

/* A raw copy whose memory is not there yet. */
typedef struct {
  Storage* storage;
  const unsigned char* from;
  size_t bytes;
  Event* event;
} Awaited;
#ifdef SLOT_PJRT_Buffer_CopyRawToHostFuture
static void memory_came(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  Awaited* awaited = args->callback_data;
#ifdef EQUAL_SIZES
  if (args->struct_size != PJRT_Buffer_CopyRawToHostFuture_Callback_Args_SIZE) abort();
#endif
  if (args->error_code) {
    if (args->dst || !args->error_message_size) abort();
    ++given_up;
  } else {
    memcpy(args->dst, awaited->from, awaited->bytes);
  }
  pthread_mutex_lock(&lock);
  if (awaited->event) awaited->event->ready = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  released(awaited->storage);
  if (awaited->event) forget(awaited->event);
  gone(awaited);
}
CALL(PJRT_Buffer_CopyRawToHostFuture) {
#ifdef NO_CALLBACK
  return args->event = NULL, args->future_ready_callback = NULL, NULL;
#endif
  Buffer* buffer = args->buffer;
  Awaited* awaited = made(sizeof *awaited);
  awaited->storage = buffer->storage;
  __atomic_add_fetch(&buffer->storage->references, 1, __ATOMIC_SEQ_CST);
  awaited->from = buffer->data + args->offset;
  awaited->bytes = (size_t)args->transfer_size;
  awaited->event = event();
  if (awaited->event) awaited->event->ready = 0, awaited->event->references = 2;
  args->event = awaited->event;
  args->callback_data = awaited;
  args->future_ready_callback = (void*)memory_came;
  return NULL;
}
#endif

static long mapped;
long mapped_pieces(void) { return mapped; }
#ifdef SLOT_PJRT_Client_DmaMap
CALL(PJRT_Client_DmaMap) {
#ifdef MAPS
#ifdef MAP_FAILS
  if (mapped >= 1) return failed(8, "no more memory can be locked");
#endif
  return (void)args, ++mapped, NULL;
#else
  return (void)args, ++mapped, failed(12, "memory of the host is not mapped");
#endif
}
CALL(PJRT_Client_DmaUnmap) {
#ifdef NO_UNMAP
  return (void)args, failed(13, "still in use");
#else
  return (void)args, --mapped, NULL;
#endif
}
#endif

#ifdef SLOT_PJRT_Client_TopologyDescription
CALL(PJRT_Client_TopologyDescription) {
  args->topology = &topology;
#ifdef NULL_TOPOLOGY
  args->topology = NULL;
#endif
  return NULL;
}
#endif
CALL(PJRT_TopologyDescription_PlatformName) {
  args->platform_name = "double";
  args->platform_name_size = 6;
  return NULL;
}
CALL(PJRT_TopologyDescription_PlatformVersion) {
  args->platform_version = "1";
  args->platform_version_size = 1;
  return NULL;
}
CALL(PJRT_TopologyDescription_GetDeviceDescriptions) {
  static void* every_description[2] = {&descriptions[0], &descriptions[1]};
  args->descriptions = every_description;
  args->num_descriptions = 2;
#ifdef DESCRIPTIONS_SAID
  args->num_descriptions = DESCRIPTIONS_SAID;
#endif
  return NULL;
}
CALL(PJRT_TopologyDescription_Attributes) {
  args->attributes = NULL;
  args->num_attributes = 0;
  return NULL;
}
static void serialized_gone(void* object) { gone(object); }
CALL(PJRT_TopologyDescription_Serialize) {
  char* bytes = made(8);
  memcpy(bytes, "topology", 8);
  args->serialized_bytes = bytes;
  args->serialized_bytes_size = 8;
  args->serialized_topology = bytes;
  args->serialized_topology_deleter = (void*)serialized_gone;
#ifdef TOPOLOGY_SAID
  args->serialized_bytes_size = TOPOLOGY_SAID;
#endif
#ifdef NULL_BYTES
  args->serialized_bytes = NULL;
#endif
  return NULL;
}
#ifdef SLOT_PJRT_TopologyDescription_Deserialize
CALL(PJRT_TopologyDescription_Deserialize) {
  if (args->serialized_topology_size != 8 || memcmp(args->serialized_topology, "topology", 8)) return failed(3, "no topology of mine");
  args->topology = made(1);
  return NULL;
}
#endif
CALL(PJRT_TopologyDescription_Destroy) { return gone(args->topology), NULL; }
#ifdef SLOT_PJRT_TopologyDescription_Fingerprint
CALL(PJRT_TopologyDescription_Fingerprint) {
  args->fingerprint = 42;
  return NULL;
}
#endif

/* The extension of layouts: sizes are those of 0.114 in every minor. */
typedef struct {
  size_t struct_size;
  void *extension_start, *object;
  union {
    void* layout;
    struct {
      const char* bytes;
      size_t length;
      void* owner;
      void* deleter;
    } text;
    struct {
      int32_t type;
      const int64_t* dims;
      size_t rank;
      void* layout;
    } shape;
    struct {
      size_t count;
      void** layouts;
    } list;
  };
} LayoutArguments;
static void* layout_made(void) {
#ifdef NULL_LAYOUT
  return NULL;
#else
  return made(1);
#endif
}
static void* layout_destroyed(LayoutArguments* args) { return gone(args->object), NULL; }
static void* layout_serialized(LayoutArguments* args) {
  char* bytes = made(8);
  memcpy(bytes, "{1,0}", 5);
  args->text.bytes = bytes;
  args->text.length = 5;
#ifdef LAYOUT_BYTES
  args->text.length = LAYOUT_BYTES;
#endif
  args->text.owner = bytes;
  args->text.deleter = (void*)serialized_gone;
  return NULL;
}
static void* layout_of_client(LayoutArguments* args) { return args->shape.layout = layout_made(), NULL; }
static void* layout_of_buffer(LayoutArguments* args) { return args->layout = layout_made(), NULL; }
static void* layouts_of_program(LayoutArguments* args) {
  static char layout;
  static void* list[8] = {&layout, &layout, &layout, &layout, &layout, &layout, &layout, &layout};
  args->list.layouts = list;
  args->list.count = outputs_of(args->object);
#ifdef LAYOUTS_SAID
  args->list.count = LAYOUTS_SAID;
#endif
  return NULL;
}
static struct {
  size_t struct_size;
  int32_t type;
  void* next;
  void* functions[7];
} layouts __attribute__((unused)) = {
#ifdef SHORT_LAYOUTS
    .struct_size = 44,
#else
    .struct_size = 80,
#endif
    .type = 4,
    .functions = {(void*)layout_destroyed, (void*)layout_serialized, (void*)layout_of_client, (void*)layout_of_buffer,
                  NULL, (void*)layouts_of_program, (void*)layouts_of_program}};

/* The extensions of shardings and of custom calls: sizes are those of 0.114 in every minor. */
typedef struct {
  size_t struct_size;
  void *extension_start, *executable;
  size_t count;
  const char** shardings;
  const size_t* sizes;
} ShardingArguments;
static void* shardings_of(ShardingArguments* args, size_t count) {
  static const char* messages[8] = {"\x08\x01", "\x08\x01", "\x08\x01", "\x08\x01", "\x08\x01", "\x08\x01", "\x08\x01", "\x08\x01"};
  static size_t sizes[8] = {2, 0, 2, 0, 2, 0, 2, 0};
  args->count = count;
  args->shardings = messages;
  args->sizes = sizes;
#ifdef SHARDINGS_SAID
  args->count = SHARDINGS_SAID;
#endif
#ifdef SHARDING_BYTES
  sizes[0] = SHARDING_BYTES;
#endif
#ifdef NULL_SHARDING
  messages[0] = NULL;
#endif
#ifdef UNSAID_SHARDINGS
  args->shardings = NULL;
#endif
  return NULL;
}
static void* parameter_shardings(ShardingArguments* args) { return shardings_of(args, 1); }
static void* output_shardings(ShardingArguments* args) { return shardings_of(args, outputs_of(args->executable)); }

typedef struct {
  size_t struct_size;
  const char* target;
  size_t target_size;
  void* handler;
  const char* platform;
  size_t platform_size;
  int32_t traits;
} HandlerArguments;
static void* handlers[4];
static size_t handler_count;
int called_handlers(void) {
  int sum = 0;
  for (size_t i = 0; i < handler_count; ++i) sum += ((int (*)(void))handlers[i])();
  return sum;
}
static void* handler_registered(HandlerArguments* args) {
  if (args->struct_size != 52 || args->traits) return failed(3, "another size than mine");
  if (args->target_size != 6 || memcmp(args->target, "custom", 6)) return failed(6, "there is a function of this name");
  if (args->platform_size != 4 || memcmp(args->platform, "Host", 4)) return failed(3, "no platform of mine");
  handlers[handler_count++] = args->handler;
  return NULL;
}
static struct {
  size_t struct_size;
  int32_t type;
  void* next;
  void* functions[3];
} custom_calls __attribute__((unused)) =
    {
#ifdef SHORT_FFI
        .struct_size = 40,
#else
        .struct_size = 48,
#endif
        .type = 5,
        .functions = {NULL, NULL, (void*)handler_registered}},
  shardings __attribute__((unused)) = {.struct_size = 40, .type = 19, .functions = {(void*)parameter_shardings, (void*)output_shardings}};

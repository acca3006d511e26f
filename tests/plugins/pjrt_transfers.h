/* Of pjrt_plugin.c: arrays in pieces, memory that is mapped, topologies, and the extension of layouts. Its habits:
 *
 *   NULL_MANAGER, NULL_INCOMING      a call succeeds, and gives no manager, or no array
 *   COUNT_SAID=N, INCOMING_SAID=N    how many arrays a manager says that it has, and how long one is
 *   NULL_TOPOLOGY, DESCRIPTIONS_SAID=N, TOPOLOGY_SAID=N, NULL_BYTES   a topology that is none, with many devices, with many bytes, or none
 *   NO_LAYOUTS, SHORT_LAYOUTS, NULL_LAYOUT, LAYOUT_BYTES=N   no extension of layouts, one that ends early, a layout that is none or long */

typedef struct {
  Buffer* buffer;
  Storage* storage;
  int32_t type;
  size_t rank, bytes;
  int64_t dims[256];
  int given, complete, failed;
} Manager;
static int given_up;
int given_up_arrays(void) { return given_up; }

#ifdef SLOT_PJRT_Client_CreateBuffersForAsyncHostToDevice
CALL(PJRT_Client_CreateBuffersForAsyncHostToDevice) {
  const PJRT_ShapeSpec* shape = args->shape_specs;
  Manager* manager = made(sizeof *manager);
  manager->type = shape->element_type;
  manager->rank = shape->num_dims;
  manager->bytes = width(shape->element_type);
  for (size_t i = 0; i < shape->num_dims; ++i) manager->bytes *= (size_t)(manager->dims[i] = ((const int64_t*)shape->dims)[i]);
  manager->storage = stored(manager->bytes);
  args->transfer_manager = manager;
#ifdef NULL_MANAGER
  released(manager->storage);
  gone(manager);
  args->transfer_manager = NULL;
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_Destroy) {
  Manager* manager = args->transfer_manager;
  released(manager->storage);
  return gone(manager), NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_TransferData) {
  Manager* manager = args->transfer_manager;
  if (manager->complete || manager->failed || args->offset < 0 || (size_t)(args->offset + args->transfer_size) > manager->bytes) abort();
  manager->complete = args->is_last_transfer;
  args->done_with_h2d_transfer =
      copying(manager->storage->bytes + args->offset, args->data, (size_t)args->transfer_size, manager->storage);
  return NULL;
}
#endif
#ifdef SLOT_PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer
CALL(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer) {
  Manager* manager = args->transfer_manager;
  if (args->buffer_index != 0) return failed(3, "there is one array");
#ifdef NULL_INCOMING
  return (void)manager, args->buffer_out = NULL, NULL;
#endif
  Buffer* buffer = made(sizeof *buffer);
  buffer->type = manager->type;
  buffer->rank = manager->rank;
  buffer->bytes = manager->bytes;
  memcpy(buffer->dims, manager->dims, sizeof buffer->dims);
  buffer->storage = manager->storage;
  buffer->data = manager->storage->bytes;
  buffer->memory = &memories[0];
  __atomic_add_fetch(&manager->storage->references, 1, __ATOMIC_SEQ_CST);
  args->buffer_out = buffer;
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_BufferCount) {
  args->buffer_count = 1;
#ifdef COUNT_SAID
  args->buffer_count = COUNT_SAID;
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_BufferSize) {
  args->buffer_size = ((Manager*)args->transfer_manager)->bytes;
#ifdef INCOMING_SAID
  args->buffer_size = INCOMING_SAID;
#endif
  return NULL;
}
CALL(PJRT_AsyncHostToDeviceTransferManager_SetBufferError) {
  Manager* manager = args->transfer_manager;
  if (manager->complete || manager->failed) abort();
  manager->failed = 1;
  return ++given_up, NULL;
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

__attribute__((unused)) static char topology;
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

/* Of pjrt_plugin.c: programs. A program is a text such as "outputs 2 donates 0": each output is the first argument with one added to each
 * byte; the argument of that number is taken unless it is kept. One that ends in " talks" sends its first argument to the host in two
 * pieces (channel 1), and adds what it receives (channel 2) in place of one. Its fault switches:
 *
 *   NULL_LOADED, NULL_EXECUTABLE        a call succeeds and gives nothing
 *   OUTPUTS_SAID=N, TYPES_SAID=N        how many outputs it says that there are; of how many it gives the types
 *   FEWER_OUTPUTS, MORE_OUTPUTS         a run gives one output less than was said, or one more
 *   FAILED_OUTPUTS                      a run fails, and yet has given outputs
 *   NULL_COMPLETE, COMPLETE_FAILS       a run gives no event, or one that reports an error on the second device
 *   OUTPUT_RANK=N, OUTPUT_TYPE=N        what it says of an output
 *   KINDS_SAID=N, NULL_KIND, KIND_SAID=N   of how many memory kinds it tells, and how
 *   MODULE                              the optimised program is a module: one parameter, outputs over both devices, and what is donated
 *   PROGRAM_SAID=N, PROGRAM_GROWS       how long the optimised program is said to be; that it is longer the second time
 *   SERIALIZED_SAID=N, NULL_SERIALIZED, NO_DELETER   what it says of itself as bytes
 *   NAME_SAID=N                         how long its name is said to be
 *   NULL_CHUNK, CHUNK_SAID=N, NULL_CHUNK_DATA   a piece that is sent is NULL, long, or has no bytes
 *   NO_ERRORS                           the host cannot say that a piece is wrong
 *   NULL_STREAM, GRANULE=N              what is received from is NULL, or takes only pieces of N bytes
 *   LATE_PIECE                          a run calls the host with another number than it was given
 *   NULL_AHEAD                          a program is compiled without a client, and is NULL
 *   COSTS_SAID=N                        how many costs are said to be there */

__attribute__((unused)) static char topology;
typedef struct {
  size_t outputs;
  int donates, deleted, talks;
} Program;
static size_t outputs_of(void* program) { return ((Program*)program)->outputs; }

static void* programmed(const char* code, size_t size) {
  char text[64] = "";
  Program program = {.outputs = 1, .donates = -1};
  memcpy(text, code, size < 63 ? size : 63);
  if (sscanf(text, "outputs %zu donates %d", &program.outputs, &program.donates) < 1 || program.outputs > 8) return NULL;
  program.talks = strstr(text, " talks") != NULL;
  Program* loaded = made(sizeof *loaded);
  *loaded = program;
  return loaded;
}
CALL(PJRT_Client_Compile) {
  const PJRT_Program* program = args->program;
  if (args->compile_options_size == 0) abort();
#ifdef EQUAL_SIZES
  if (program->struct_size != PJRT_Program_SIZE) return failed(3, "another size of a program than mine");
#endif
  if (program->format_size != 4 || memcmp(program->format, "mlir", 4)) return failed(3, "another format than mine");
  args->executable = programmed(program->code, program->code_size);
  if (!args->executable) return failed(2, "no program of mine");
#ifdef NULL_LOADED
  gone(args->executable);
  args->executable = NULL;
#endif
  return NULL;
}
CALL(PJRT_Compile) {
  const PJRT_Program* program = args->program;
  if (args->compile_options_size == 0 || args->topology != &topology || args->client) abort();
#ifdef EQUAL_SIZES
  if (program->struct_size != PJRT_Program_SIZE) return failed(3, "another size of a program than mine");
#endif
  args->executable = programmed(program->code, program->code_size);
  if (!args->executable) return failed(2, "no program of mine");
#ifdef NULL_AHEAD
  gone(args->executable);
  args->executable = NULL;
#endif
  return NULL;
}
#ifdef SLOT_PJRT_Client_Load
static int loaded_programs;
int loads(void) { return loaded_programs; }
CALL(PJRT_Client_Load) {
  Program* loaded = made(sizeof *loaded);
  *loaded = *(Program*)args->executable;
  args->loaded_executable = loaded;
  return ++loaded_programs, NULL;
}
#else
int loads(void) { return 0; }
#endif
CALL(PJRT_LoadedExecutable_Destroy) { return gone(args->executable), NULL; }
CALL(PJRT_LoadedExecutable_GetExecutable) {
#ifdef NULL_EXECUTABLE
  return args->executable = NULL, NULL;
#endif
  Program* program = made(sizeof *program);
  *program = *(Program*)args->loaded_executable;
  args->executable = program;
  return NULL;
}
CALL(PJRT_Executable_Destroy) { return gone(args->executable), NULL; }
CALL(PJRT_LoadedExecutable_AddressableDevices) {
  args->addressable_devices = every_device;
  args->num_addressable_devices = 2;
#ifdef PROGRAM_DEVICES
  args->num_addressable_devices = PROGRAM_DEVICES;
#endif
  return NULL;
}
CALL(PJRT_LoadedExecutable_Delete) { return ((Program*)args->executable)->deleted = 1, NULL; }
CALL(PJRT_LoadedExecutable_IsDeleted) {
  args->is_deleted = ((Program*)args->executable)->deleted != 0;
  return NULL;
}
#ifdef SLOT_PJRT_LoadedExecutable_Fingerprint
CALL(PJRT_LoadedExecutable_Fingerprint) {
  args->executable_fingerprint = "finger";
  args->executable_fingerprint_size = 6;
  return NULL;
}
#endif
#ifdef SLOT_PJRT_LoadedExecutable_GetDeviceAssignment
CALL(PJRT_LoadedExecutable_GetDeviceAssignment) {
  /* Two replicas of one computation, on devices 7 and 8. */
  args->serialized_bytes = "\x08\x02\x10\x01\x1a\x04\x0a\x02\x07\x08";
  args->serialized_bytes_size = 10;
  args->serialized_device_assignment = NULL;
  args->serialized_device_assignment_deleter = NULL;
#ifdef ASSIGNMENT_SAID
  args->serialized_bytes_size = ASSIGNMENT_SAID;
#endif
  return NULL;
}
#endif
CALL(PJRT_Executable_Name) {
  args->executable_name = "program";
  args->executable_name_size = 7;
#ifdef NAME_SAID
  args->executable_name_size = NAME_SAID;
#endif
  return NULL;
}
CALL(PJRT_Executable_NumReplicas) {
  args->num_replicas = 2;
  return NULL;
}
CALL(PJRT_Executable_NumPartitions) {
  args->num_partitions = 1;
  return NULL;
}
CALL(PJRT_Executable_NumOutputs) {
  args->num_outputs = outputs_of(args->executable);
#ifdef OUTPUTS_SAID
  args->num_outputs = OUTPUTS_SAID;
#endif
  return NULL;
}
CALL(PJRT_Executable_SizeOfGeneratedCodeInBytes) {
  args->size_in_bytes = 99;
  return NULL;
}
CALL(PJRT_Executable_GetCostAnalysis) {
  static PJRT_NamedValue cost;
  cost = (PJRT_NamedValue){.struct_size = PJRT_NamedValue_SIZE, .name = "flops", .name_size = 5, .type = 3, .value = 0x40000000, .value_size = 1};
  args->properties = &cost;
  args->num_properties = 1;
#ifdef COSTS_SAID
  args->num_properties = COSTS_SAID;
#endif
  return NULL;
}
static const char* kinds[8] = {"device", "device", "device", "device", "device", "device", "device", "device"};
static size_t kind_sizes[8] = {6, 6, 6, 6, 6, 6, 6, 6};
CALL(PJRT_Executable_OutputMemoryKinds) {
  args->num_outputs = outputs_of(args->executable);
#ifdef KINDS_SAID
  args->num_outputs = KINDS_SAID;
#endif
#ifdef NULL_KIND
  kinds[0] = NULL;
#endif
#ifdef KIND_SAID
  kind_sizes[0] = KIND_SAID;
#endif
  args->memory_kinds = (void*)kinds;
  args->memory_kind_sizes = kind_sizes;
  return NULL;
}
#ifdef SLOT_PJRT_Executable_ParameterMemoryKinds
CALL(PJRT_Executable_ParameterMemoryKinds) {
  args->num_parameters = 1;
  args->memory_kinds = (void*)kinds;
  args->memory_kind_sizes = kind_sizes;
  return NULL;
}
#endif
#ifdef MODULE
/* An HloModuleProto: its shape on the host (4), the sharding of its outputs (12), where an output lies in an argument (8). */
static size_t module(const Program* program, unsigned char* bytes) {
  static const unsigned char array[] = {0x10, 6, 0x1a, 1, 4, 0x2a, 3, 0x0a, 1, 0};
  static const unsigned char tiles[] = {0x08, 3, 0x1a, 1, 2, 0x4a, 1, 2, 0x52, 1, 0};
  unsigned char* at = bytes;
  size_t count = program->outputs;
  size_t result = 2 + count * (2 + sizeof array);
  *at++ = 0x22, *at++ = (unsigned char)(2 + sizeof array + 2 + result);
  *at++ = 0x0a, *at++ = sizeof array;
  memcpy(at, array, sizeof array), at += sizeof array;
  *at++ = 0x12, *at++ = (unsigned char)result, *at++ = 0x10, *at++ = 13;
  for (size_t i = 0; i < count; ++i) *at++ = 0x22, *at++ = sizeof array, memcpy(at, array, sizeof array), at += sizeof array;
  *at++ = 0x62, *at++ = (unsigned char)(2 + count * (2 + sizeof tiles)), *at++ = 0x08, *at++ = 2;
  for (size_t i = 0; i < count; ++i) *at++ = 0x2a, *at++ = sizeof tiles, memcpy(at, tiles, sizeof tiles), at += sizeof tiles;
  if (program->donates >= 0) {
    *at++ = 0x42, *at++ = 4, *at++ = 0x0a, *at++ = 2, *at++ = 0x10, *at++ = (unsigned char)program->donates;
  }
  return (size_t)(at - bytes);
}
#endif
CALL(PJRT_Executable_OptimizedProgram) {
  PJRT_Program* program = args->program;
  unsigned char text[256] = "optimised";
  size_t size = 9, written = 9;
#ifdef MODULE
  size = written = module((const Program*)args->executable, text);
#endif
#ifdef PROGRAM_SAID
  size = PROGRAM_SAID;
#endif
#ifdef PROGRAM_GROWS
  if (program->code) size = 1000;
#endif
  program->format = "hlo";
  program->format_size = 3;
  if (program->code && program->code_size >= written) memcpy((void*)program->code, text, written);
  program->code_size = size;
  return NULL;
}
CALL(PJRT_Executable_Serialize) {
  char* bytes = made(64);
  args->serialized_bytes = bytes;
  const Program* program = args->executable;
  args->serialized_bytes_size =
      (size_t)snprintf(bytes, 64, "outputs %zu donates %d%s", program->outputs, program->donates, program->talks ? " talks" : "");
  args->serialized_executable = bytes;
  args->serialized_executable_deleter = (void*)gone;
#ifdef SERIALIZED_SAID
  args->serialized_bytes_size = SERIALIZED_SAID;
#endif
#ifdef NULL_SERIALIZED
  args->serialized_bytes = NULL;
#endif
#ifdef NO_DELETER
  gone(bytes);
  args->serialized_bytes = "outputs 1";
  args->serialized_bytes_size = 9;
  args->serialized_executable_deleter = NULL;
#endif
  return NULL;
}
CALL(PJRT_Executable_DeserializeAndLoad) {
  args->loaded_executable = programmed(args->serialized_executable, args->serialized_executable_size);
  return args->loaded_executable ? NULL : failed(3, "no executable of mine");
}
CALL(PJRT_Executable_OutputElementTypes) {
  static int types[8] = {6, 6, 6, 6, 6, 6, 6, 6};
#ifdef OUTPUT_TYPE
  types[0] = OUTPUT_TYPE;
#endif
  args->output_types = (void*)types;
  args->num_output_types = outputs_of(args->executable);
#ifdef TYPES_SAID
  args->num_output_types = TYPES_SAID;
#endif
  return NULL;
}
CALL(PJRT_Executable_OutputDimensions) {
  static int64_t dims[8] = {4, 4, 4, 4, 4, 4, 4, 4};
  static size_t ranks[8] = {1, 1, 1, 1, 1, 1, 1, 1};
#ifdef OUTPUT_RANK
  ranks[0] = OUTPUT_RANK;
#endif
  args->num_outputs = outputs_of(args->executable);
  args->dims = dims;
  args->dim_sizes = ranks;
  return NULL;
}
#ifdef SLOT_PJRT_Executable_Fingerprint
CALL(PJRT_Executable_Fingerprint) {
  args->executable_fingerprint = "finger";
  args->executable_fingerprint_size = 6;
  return NULL;
}
#endif
#ifdef SLOT_PJRT_Executable_GetCompiledMemoryStats
CALL(PJRT_Executable_GetCompiledMemoryStats) {
  args->generated_code_size_in_bytes = 1;
  args->argument_size_in_bytes = 2;
  return NULL;
}
#endif
/* A stream to a device: what is received is added up. */
typedef struct {
  int64_t total, current;
  unsigned char sum;
} Stream;
static long chunks_freed;
long freed_chunks(void) { return chunks_freed; }
static void chunk_freed(void* data, void* argument) {
  if (argument != &chunks_freed) abort();
  ++chunks_freed;
  gone(data);
}
static unsigned char last_sum;
CALL(PJRT_CopyToDeviceStream_Destroy) {
  last_sum = ((Stream*)args->stream)->sum;
  return gone(args->stream), NULL;
}
CALL(PJRT_CopyToDeviceStream_AddChunk) {
  PJRT_Chunk* chunk = args->chunk;
  Stream* stream = args->stream;
  for (size_t i = 0; i < chunk->size; ++i) stream->sum += ((unsigned char*)chunk->data)[i];
  stream->current += (int64_t)chunk->size;
  ((void (*)(void*, void*))chunk->deleter)(chunk->data, chunk->deleter_arg);
  args->transfer_complete = event();
  return NULL;
}
CALL(PJRT_CopyToDeviceStream_TotalBytes) { return args->total_bytes = ((Stream*)args->stream)->total, NULL; }
CALL(PJRT_CopyToDeviceStream_CurrentBytes) { return args->current_bytes = ((Stream*)args->stream)->current, NULL; }
CALL(PJRT_CopyToDeviceStream_GranuleSize) {
#ifdef GRANULE
  args->granule_size_in_bytes = GRANULE;
#else
  args->granule_size_in_bytes = 1;
#endif
  return NULL;
}
typedef void* (*CallbackError)(int code, const char* message, size_t size);
typedef void* (*SendCallback)(PJRT_Chunk* chunk, CallbackError* error, size_t total, _Bool done, void* user_arg);
typedef void (*RecvCallback)(void* stream, void* user_arg);
static void* said_by_host(int code, const char* message, size_t size) {
  static char said[256];
  snprintf(said, sizeof said, "%.*s", (int)size, message);
  return failed(code, said);
}
/* Half of the array each time. */
static void* send_half(const PJRT_SendCallbackInfo* info, const Buffer* from, int second) {
  CallbackError make_error = said_by_host;
  size_t half = from->bytes / 2;
  PJRT_Chunk chunk = {.data = made(half + 1), .size = half, .deleter = (void*)chunk_freed, .deleter_arg = &chunks_freed};
  memcpy(chunk.data, from->data + (second ? half : 0), half);
  PJRT_Chunk* given = &chunk;
  CallbackError* errors = &make_error;
  void* user_arg = info->user_arg;
#ifdef NULL_CHUNK
  gone(chunk.data);
  given = NULL;
#endif
#ifdef CHUNK_SAID
  chunk.size = CHUNK_SAID;
#endif
#ifdef NULL_CHUNK_DATA
  gone(chunk.data);
  chunk.data = NULL;
  chunk.deleter = NULL;
#endif
#ifdef NO_ERRORS
  errors = NULL;
#endif
#ifdef LATE_PIECE
  user_arg = (char*)user_arg + 100000;
#endif
  return ((SendCallback)info->send_callback)(given, errors, from->bytes, second, user_arg);
}
static unsigned char received_by(const PJRT_RecvCallbackInfo* info) {
  Stream* stream = made(sizeof *stream);
  stream->total = 8;
  last_sum = 0;
#ifdef NULL_STREAM
  gone(stream);
  stream = NULL;
#endif
  ((RecvCallback)info->recv_callback)(stream, info->user_arg);
  return last_sum;
}
/* 1: the next execution hangs; 2: it does; 3: it may go on. */
static int hanging;
int hang_next(void) { return __atomic_exchange_n(&hanging, 1, __ATOMIC_SEQ_CST); }
int hangs(void) { return __atomic_load_n(&hanging, __ATOMIC_SEQ_CST) == 2; }
int let_go(void) { return __atomic_exchange_n(&hanging, 3, __ATOMIC_SEQ_CST); }
static void hang(void) {
  int told = 1;
  if (!__atomic_compare_exchange_n(&hanging, &told, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  while (hangs()) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

CALL(PJRT_LoadedExecutable_Execute) {
  Program* program = args->executable;
  const PJRT_ExecuteOptions* options = args->options;
  Buffer*** arguments = (void*)args->argument_lists;
  Buffer*** outputs = (void*)args->output_lists;
  Event** complete = (void*)args->device_complete_events;
  size_t count = program->outputs;
#ifdef EQUAL_SIZES
  if (options->struct_size != PJRT_ExecuteOptions_SIZE) return failed(3, "another size of options than mine");
#endif
  hang();
  if (program->deleted) return failed(3, "the program was deleted");
  if (args->num_devices != (args->execute_device ? 1 : 2)) return failed(3, "another number of devices than mine");
  if (args->num_args < 1) return failed(3, "too few arguments");
  int kept = 0;
#if PJRT_MINOR >= 39
  for (size_t i = 0; i < options->num_non_donatable_input_indices; ++i)
    kept |= ((const int64_t*)options->non_donatable_input_indices)[i] == program->donates;
#endif
  (void)options;
#ifdef FEWER_OUTPUTS
  --count;
#endif
#ifdef MORE_OUTPUTS
  ++count;
#endif
  for (size_t device = 0; device < args->num_devices; ++device) {
    for (size_t i = 0; i < args->num_args; ++i)
      if (arguments[device][i]->deleted) return failed(3, "an argument was deleted");
    unsigned char added = 1;
    if (program->talks) {
      if (options->num_send_ops != 1 || options->num_recv_ops != 1) return failed(3, "another number of channels than mine");
      const PJRT_SendCallbackInfo* send = &((PJRT_SendCallbackInfo**)options->send_callbacks)[device][0];
      const PJRT_RecvCallbackInfo* receive = &((PJRT_RecvCallbackInfo**)options->recv_callbacks)[device][0];
      if (send->channel_id != 1 || receive->channel_id != 2) return failed(3, "other channels than mine");
      void* error = send_half(send, arguments[device][0], 0);
      if (!error) error = send_half(send, arguments[device][0], 1);
      if (error) return error;
      added = received_by(receive);
    }
    for (size_t i = 0; i < count; ++i) {
      outputs[device][i] = copied(arguments[device][0]);
      for (size_t at = 0; at < outputs[device][i]->bytes; ++at) outputs[device][i]->data[at] += added;
    }
    if (program->donates >= 0 && (size_t)program->donates < args->num_args && !kept && !arguments[device][program->donates]->references)
      arguments[device][program->donates]->deleted = 1;
    if (complete) complete[device] = event();
#ifdef COMPLETE_FAILS
    if (complete) complete[device]->fails = device == 1;
#endif
#ifdef NULL_COMPLETE
    if (complete) forget(complete[device]), complete[device] = NULL;
#endif
  }
#ifdef FAILED_OUTPUTS
  return failed(13, "it failed after all");
#endif
  return NULL;
}

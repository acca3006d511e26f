/* The smallest PJRT plug-in that there is something to say of: a table of MINOR with SIZE bytes, in which every function answers that it is
 * not implemented, but for those that say what the plug-in is. For tests of the command, which asks and never computes.
 *
 *   IN_CODE                the table is filled when it is asked for, from numbers that no pattern finds
 *   STRICT                 a struct of any other size than its own is refused
 *   NO_ATTRIBUTES          it cannot be asked what it says of itself
 *   EMPTY_ATTRIBUTES       it says nothing of itself
 *   STABLEHLO=A,B,C        the oldest and the newest StableHLO that it reads
 *   NULL_SLOT=N            a function is NULL
 *   CLIENT=ERROR           no client: an error (the default)
 *   CLIENT=EXIT, ABORT, HANG, GIVEN   creating one ends the process, never ends, or gives a client with a device and without memories
 *   LOADED=EXIT, ABORT, HANG          what becomes of the process that loads it
 *   UNSETTLES              loading it and creating a client changes the process: working directory, mask, limits, locale, signals; and it
 *                          writes to standard output
 *   SYMBOL=NAME            it exports a variable of this name
 *   NEEDS=NAME             it calls a function of this name, which no library has
 *   MARK="PATH"            a file of that name says that it was loaded */

#include <locale.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERROR 0
#define EXIT 1
#define ABORT 2
#define HANG 3
#define GIVEN 4
#define NOTHING 5
#ifndef CLIENT
#define CLIENT ERROR
#endif
#ifndef LOADED
#define LOADED NOTHING
#endif
#ifndef SIZE
#define SIZE 808
#endif
#define ATTRIBUTES_SIZE (MINOR < 71 ? 24u : 32u)

static void end(int how) {
  if (how == EXIT) exit(0);
  if (how == ABORT) abort();
  while (how == HANG) sleep(1000);
}

static void unsettle(void) {
#ifdef UNSETTLES
  struct rlimit none = {0, 0};
  puts("the plug-in speaks");
  fflush(stdout);
  if (chdir("/") != 0) abort();
  umask(0777);
  setrlimit(RLIMIT_FSIZE, &none);
  setrlimit(RLIMIT_CORE, &none);
  setlocale(LC_ALL, "C");
  setenv("LC_ALL", "nowhere", 1);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
#endif
}

__attribute__((constructor)) static void loaded(void) {
#ifdef MARK
  FILE* mark = fopen(MARK, "w");
  if (mark) fclose(mark);
#endif
  unsettle();
  end(LOADED);
}

/* Fields by their offsets, which have been the same since 0.29. */
static void* field(void* args, size_t offset) { return (char*)args + offset; }
static void put_text(void* args, const char* text) {
  *(const char**)field(args, 24) = text;
  *(size_t*)field(args, 32) = strlen(text);
}

typedef struct {
  int code;
  const char* message;
} Error;
static Error unimplemented_error = {12, "not here"}, size_error = {3, "another size than mine"}, device_error = {5, "there is no chip"};

static void* unimplemented(void* args) { return (void)args, &unimplemented_error; }
static void error_destroy(void* args) { (void)args; }
static void error_message(void* args) { put_text(args, ((Error*)*(void**)field(args, 16))->message); }
static void* error_code(void* args) {
  *(int*)field(args, 24) = ((Error*)*(void**)field(args, 16))->code;
  return NULL;
}
static void* initialize(void* args) { return (void)args, NULL; }

typedef struct {
  size_t struct_size;
  void* extension;
  const char* name;
  size_t name_size;
  int type;
  const int64_t* value;
  size_t value_size;
} NamedValue;
static void* attributes(void* args) {
  size_t given = *(size_t*)args;
#ifdef STRICT
  if (given != ATTRIBUTES_SIZE) return &size_error;
#endif
  if (given < ATTRIBUTES_SIZE) return &size_error;
#ifdef NO_ATTRIBUTES
  return &unimplemented_error;
#else
#ifdef STABLEHLO
  static const int64_t versions[6] = {STABLEHLO};
#else
  static const int64_t versions[6] = {0, 9, 0, 1, 13, 0};
#endif
  static NamedValue values[2];
  values[0] = (NamedValue){sizeof(NamedValue), NULL, "stablehlo_minimum_version", 25, 2, versions, 3};
  values[1] = (NamedValue){sizeof(NamedValue), NULL, "stablehlo_current_version", 25, 2, versions + 3, 3};
  *(void**)field(args, 16) = values;
  *(size_t*)field(args, 24) = 2;
#ifdef EMPTY_ATTRIBUTES
  *(void**)field(args, 16) = NULL;
  *(size_t*)field(args, 24) = 0;
#endif
  return NULL;
#endif
}

static char client, device;
static void* devices[1] = {&device};
static void* client_create(void* args) {
  unsettle();
  end(CLIENT);
  if (CLIENT != GIVEN) return &device_error;
  *(void**)field(args, 64) = &client;
  return NULL;
}
static void* client_destroy(void* args) { return (void)args, NULL; }
static void* platform(void* args) { return put_text(args, "table"), NULL; }
static void* process_index(void* args) {
  *(int*)field(args, 24) = 0;
  return NULL;
}
static void* every_device(void* args) {
  *(void***)field(args, 24) = devices;
  *(size_t*)field(args, 32) = 1;
  return NULL;
}

#ifdef SYMBOL
const char SYMBOL = 29;
#endif
#ifdef NEEDS
void NEEDS(void);
#endif

#define SLOTS 140
static struct {
  size_t struct_size;
  void* extensions;
  size_t version_size;
  void* version_extensions;
  int32_t major, minor;
  void* functions[SLOTS];
} table
#ifndef IN_CODE
    = {.struct_size = SIZE, .version_size = 24, .minor = MINOR}
#endif
;

void* GetPjrtApi(void) {
  static void* const own[] = {error_destroy,   error_message, error_code, initialize,    attributes, NULL,        NULL,     NULL,         NULL,
                              NULL,            client_create, client_destroy, platform, process_index, platform, every_device, every_device};
#ifdef IN_CODE
  volatile int32_t minor = MINOR;
  volatile size_t size = SIZE;
  table.struct_size = size;
  table.version_size = 24;
  table.minor = minor;
#endif
  for (size_t slot = 0; slot < SLOTS; ++slot)
    table.functions[slot] = slot < sizeof own / sizeof *own && own[slot] ? own[slot] : (void*)unimplemented;
#ifdef NEEDS
  NEEDS();
#endif
#ifdef NULL_SLOT
  table.functions[NULL_SLOT] = NULL;
#endif
  return &table;
}

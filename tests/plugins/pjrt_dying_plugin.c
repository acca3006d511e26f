/* A PJRT plug-in that is another one until it dies: the table is that of the library in DYING_REAL, and the function in slot DYING_SLOT ends the
 * process at its call number DYING_CALL, in the manner of DYING_MANNER: `exit` (with status 0), `abort`, `kill` (nothing of the process gets
 * a word in) or `fault`. In the manner `lie` it lives, and the call answers that it is done and leaves the memory alone that it is to fill,
 * whose address and size are the words DYING_TARGET and 5 of its arguments. */

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void* (*Function)(void* args);

/* Where the functions of a table begin, in words. */
enum { FIRST = 5, WORDS = 256 };

static Function wrapped;
static long calls, last;
static const char* manner;

static void* lie(void* args) {
  uint64_t* words = args;
  uint64_t* target = &words[atol(getenv("DYING_TARGET"))];
  uint64_t real = *target;
  /* Never freed: the copy may end later. */
  if (real) *target = (uint64_t)(uintptr_t)malloc(words[5] + 1);
  void* error = wrapped(args);
  *target = real;
  return error;
}

static void* dying(void* args) {
  if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == last) {
    if (strcmp(manner, "lie") == 0) return lie(args);
    if (strcmp(manner, "exit") == 0) exit(0);
    if (strcmp(manner, "abort") == 0) abort();
    if (strcmp(manner, "fault") == 0) *(volatile int*)8 = 1;
    kill(getpid(), SIGKILL);
  }
  return wrapped(args);
}

void* GetPjrtApi(void) {
  static uint64_t table[WORDS];
  const char* slot = getenv("DYING_SLOT");
  void* library = dlopen(getenv("DYING_REAL"), RTLD_NOW | RTLD_LOCAL);
  Function entry = library ? (Function)(uintptr_t)dlsym(library, "GetPjrtApi") : NULL;
  if (!entry || !slot) return NULL;
  const uint64_t* own = entry(NULL);
  memcpy(table, own, own[0] < sizeof table ? own[0] : sizeof table);
  last = atol(getenv("DYING_CALL"));
  manner = getenv("DYING_MANNER");
  wrapped = (Function)(uintptr_t)own[FIRST + atol(slot)];
  table[FIRST + atol(slot)] = (uint64_t)(uintptr_t)dying;
  return table;
}

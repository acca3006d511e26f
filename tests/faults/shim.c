/* Makes calls of the C library fail, for programs that it is preloaded into.
 *
 * Only calls on files below FAULTS_BELOW count, each in its class; the counts lie in the file FAULTS_COUNTS, which all threads share and
 * which survives a kill.
 *
 *   FAULTS_CLASS   the class whose calls fail, or "any"
 *   FAULTS_AT      the number of the call that fails first, from 1
 *   FAULTS_FOREVER if set, all that follow fail, too
 *   FAULTS_HOW     a number: the errno; "short": half of the bytes; "kill": SIGKILL before the call
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum class { OPEN, READ, WRITE, SYNC, RENAME, CLOSE, MODE, REMOVE, LIST, MAKE, LOCK, CUT, CLASSES };

static const char *const names[CLASSES] = {
    "open", "read", "write", "sync", "rename", "close", "mode", "remove", "list", "make", "lock", "cut",
};

static char below[PATH_MAX];
static size_t below_length;
static long *counts;          /* one for each class, then one for all */
static int chosen = -1;       /* a class, CLASSES for any, -1 for none */
static long at;
static int forever, with, is_short, is_kill;

__attribute__((constructor)) static void begin(void)
{
    const char *root = getenv("FAULTS_BELOW"), *path = getenv("FAULTS_COUNTS");
    const char *class = getenv("FAULTS_CLASS"), *how = getenv("FAULTS_HOW"), *first = getenv("FAULTS_AT");
    if (root == NULL || path == NULL || strlen(root) >= sizeof below)
        return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
    if (file < 0)
        return;
    void *memory = mmap(NULL, (CLASSES + 1) * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (memory == MAP_FAILED)
        return;
    strcpy(below, root);
    below_length = strlen(below);
    at = first != NULL ? atol(first) : 0;
    forever = getenv("FAULTS_FOREVER") != NULL;
    if (how != NULL) {
        is_short = strcmp(how, "short") == 0;
        is_kill = strcmp(how, "kill") == 0;
        with = atoi(how);
    }
    for (int number = 0; class != NULL && number < CLASSES; number++)
        if (strcmp(class, names[number]) == 0)
            chosen = number;
    if (class != NULL && strcmp(class, "any") == 0)
        chosen = CLASSES;
    counts = memory;
}

/* Whether this call fails; it does not return if the process is to die. */
static int fails(enum class class)
{
    long number = __atomic_add_fetch(&counts[class], 1, __ATOMIC_SEQ_CST);
    long of_all = __atomic_add_fetch(&counts[CLASSES], 1, __ATOMIC_SEQ_CST);
    if (chosen != (int)class && chosen != CLASSES)
        return 0;
    if (chosen == CLASSES)
        number = of_all;
    if (number != at && !(forever && number > at))
        return 0;
    if (is_kill) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    return 1;
}

static int path_counts(const char *path)
{
    if (counts == NULL || path == NULL)
        return 0;
    return path[0] != '/' || strncmp(path, below, below_length) == 0;
}

static int file_counts(int file)
{
    char link[64], path[PATH_MAX];
    if (counts == NULL)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
    return length >= (long)below_length && strncmp(path, below, below_length) == 0;
}

/* The function that was there before. */
#define NEXT(result, name, ...)                                                \
    static result (*next)(__VA_ARGS__);                                        \
    if (next == NULL)                                                          \
        next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define FAIL(class)                                                            \
    do {                                                                       \
        if (fails(class)) {                                                    \
            errno = with;                                                      \
            return -1;                                                         \
        }                                                                      \
    } while (0)

#define OPEN_LIKE(name)                                                        \
    int name(const char *path, int flags, ...)                                 \
    {                                                                          \
        va_list more;                                                          \
        va_start(more, flags);                                                 \
        mode_t mode = va_arg(more, mode_t);                                    \
        va_end(more);                                                          \
        NEXT(int, name, const char *, int, ...);                               \
        if (path_counts(path))                                                 \
            FAIL(OPEN);                                                        \
        return next(path, flags, mode);                                        \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

#define TRANSFER(name, class, bytes_type, offset_parameter, offset_type, offset) \
    ssize_t name(int file, bytes_type bytes, size_t length offset_parameter)   \
    {                                                                          \
        NEXT(ssize_t, name, int, bytes_type, size_t offset_type);              \
        if (file_counts(file) && fails(class)) {                               \
            if (!is_short) {                                                   \
                errno = with;                                                  \
                return -1;                                                     \
            }                                                                  \
            length = length > 1 ? length / 2 : length;                         \
        }                                                                      \
        return next(file, bytes, length offset);                               \
    }
#define COMMA ,
TRANSFER(read, READ, void *, , , )
TRANSFER(write, WRITE, const void *, , , )
TRANSFER(pread, READ, void *, COMMA off_t place, COMMA off_t, COMMA place)
TRANSFER(pread64, READ, void *, COMMA off64_t place, COMMA off64_t, COMMA place)
TRANSFER(pwrite, WRITE, const void *, COMMA off_t place, COMMA off_t, COMMA place)
TRANSFER(pwrite64, WRITE, const void *, COMMA off64_t place, COMMA off64_t, COMMA place)

ssize_t writev(int file, const struct iovec *parts, int count)
{
    NEXT(ssize_t, writev, int, const struct iovec *, int);
    if (file_counts(file) && fails(WRITE)) {
        if (!is_short) {
            errno = with;
            return -1;
        }
        return next(file, parts, 1);
    }
    return next(file, parts, count);
}

#define ON_FILE(name, class, parameters, types, arguments)                     \
    int name(int file parameters)                                              \
    {                                                                          \
        NEXT(int, name, int types);                                            \
        if (file_counts(file))                                                 \
            FAIL(class);                                                       \
        return next(file arguments);                                           \
    }
ON_FILE(fsync, SYNC, , , )
ON_FILE(fdatasync, SYNC, , , )
ON_FILE(fchmod, MODE, COMMA mode_t mode, COMMA mode_t, COMMA mode)
ON_FILE(fchown, MODE, COMMA uid_t user COMMA gid_t group, COMMA uid_t COMMA gid_t, COMMA user COMMA group)
ON_FILE(flock, LOCK, COMMA int how, COMMA int, COMMA how)
ON_FILE(ftruncate, CUT, COMMA off_t length, COMMA off_t, COMMA length)
ON_FILE(ftruncate64, CUT, COMMA off64_t length, COMMA off64_t, COMMA length)

int close(int file)
{
    NEXT(int, close, int);
    /* Closed it is, whatever it says. */
    if (file_counts(file) && fails(CLOSE)) {
        next(file);
        errno = with;
        return -1;
    }
    return next(file);
}

#define ON_PATH(name, class, parameters, types, arguments)                     \
    int name(const char *path parameters)                                      \
    {                                                                          \
        NEXT(int, name, const char *types);                                    \
        if (path_counts(path))                                                 \
            FAIL(class);                                                       \
        return next(path arguments);                                           \
    }
ON_PATH(rename, RENAME, COMMA const char *to, COMMA const char *, COMMA to)
ON_PATH(unlink, REMOVE, , , )
ON_PATH(rmdir, REMOVE, , , )
ON_PATH(mkdir, MAKE, COMMA mode_t mode, COMMA mode_t, COMMA mode)

DIR *opendir(const char *path)
{
    NEXT(DIR *, opendir, const char *);
    if (path_counts(path) && fails(LIST)) {
        errno = with;
        return NULL;
    }
    return next(path);
}

struct dirent64 *readdir64(DIR *directory)
{
    NEXT(struct dirent64 *, readdir64, DIR *);
    if (file_counts(dirfd(directory)) && fails(LIST)) {
        errno = with;
        return NULL;
    }
    return next(directory);
}

// What ThreadSanitizer cannot see of a standard library that was compiled without it.
//
// The fast ways through a lock are inlined into the code that is instrumented. The slow ones are functions of the library: a thread that
// waited for a lock has it afterwards, and the sanitizer does not know that it waited. Each of these functions is wrapped by the linker
// (`--wrap`), and the wrapper says what the function does: to release is to let everything be seen that was done before, to acquire is to
// see everything that was released. The names have the compiler's hash in them; .ci/sanitizers finds them and defines the macros.

#include <stdbool.h>
#include <stdint.h>

extern void __tsan_acquire(void *address);
extern void __tsan_release(void *address);

#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define REAL(name) JOINED(__real_, name)
#define WRAP(name) JOINED(__wrap_, name)

// Mutex::lock_contended, RwLock::read_contended, RwLock::write_contended: they come back with the lock.
#define LOCK(name)                      \
    extern void REAL(name)(void *lock); \
    void WRAP(name)(void *lock) {       \
        REAL(name)(lock);               \
        __tsan_acquire(lock);           \
    }
LOCK(MUTEX_LOCK)
LOCK(RWLOCK_READ)
LOCK(RWLOCK_WRITE)

// Condvar::wait and Condvar::wait_timeout: they let go of the mutex, and come back with it.
extern void REAL(CONDVAR_WAIT)(void *condition, void *mutex);
void WRAP(CONDVAR_WAIT)(void *condition, void *mutex) {
    __tsan_release(mutex);
    REAL(CONDVAR_WAIT)(condition, mutex);
    __tsan_acquire(mutex);
}

extern bool REAL(CONDVAR_WAIT_TIMEOUT)(void *condition, void *mutex, uint64_t seconds, uint32_t nanoseconds);
bool WRAP(CONDVAR_WAIT_TIMEOUT)(void *condition, void *mutex, uint64_t seconds, uint32_t nanoseconds) {
    __tsan_release(mutex);
    bool in_time = REAL(CONDVAR_WAIT_TIMEOUT)(condition, mutex, seconds, nanoseconds);
    __tsan_acquire(mutex);
    return in_time;
}

// Once::call: who comes back from it sees what the one did that ran the function.
extern void REAL(ONCE_CALL)(void *once, bool ignore_poison, void *function, void *vtable);
void WRAP(ONCE_CALL)(void *once, bool ignore_poison, void *function, void *vtable) {
    REAL(ONCE_CALL)(once, ignore_poison, function, vtable);
    __tsan_release(once);
    __tsan_acquire(once);
}

// Shows the thread sanitizer what `Mutex` does when threads meet at it.
//
// On Linux a `Mutex` that is free is taken by an atomic operation in the caller's code, which the sanitizer sees. One that
// is not free is taken, and given up, by functions of Swift's own library, which was built without the sanitizer. So it
// reports races between what the lock keeps apart (Swift 6.3; on Apple platforms the lock is one that it knows).
//
// In a test program that is built with the sanitizer, the functions below stand before those of the library, call them,
// and say which memory the lock orders. In any other program this file is empty.

#define _GNU_SOURCE

#if defined(__linux__) && __has_feature(thread_sanitizer)

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> ()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
// Synchronization._MutexHandle._tryLockSlow() -> Swift.Bool
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
// Synchronization._MutexHandle._unlockSlow() -> ()
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

typedef __attribute__((swiftcall)) void Lock(uint32_t thread, __attribute__((swift_context)) void *mutex);
typedef __attribute__((swiftcall)) bool TryLock(__attribute__((swift_context)) void *mutex);
typedef __attribute__((swiftcall)) void Unlock(__attribute__((swift_context)) void *mutex);

static Lock *libraryLock;
static TryLock *libraryTryLock;
static Unlock *libraryUnlock;

__attribute__((constructor)) static void findLibrary(void) {
  libraryLock = (Lock *)dlsym(RTLD_NEXT, LOCK);
  libraryTryLock = (TryLock *)dlsym(RTLD_NEXT, TRY_LOCK);
  libraryUnlock = (Unlock *)dlsym(RTLD_NEXT, UNLOCK);
  if (libraryLock == NULL || libraryTryLock == NULL || libraryUnlock == NULL) {
    fputs("This version of Swift locks in another way: Tests/ThreadSanitizerMutex has to follow.\n", stderr);
    abort();
  }
}

Lock shownLock __asm__(LOCK);
TryLock shownTryLock __asm__(TRY_LOCK);
Unlock shownUnlock __asm__(UNLOCK);

__attribute__((swiftcall)) void shownLock(uint32_t thread, __attribute__((swift_context)) void *mutex) {
  libraryLock(thread, mutex);
  __tsan_acquire(mutex);
}

__attribute__((swiftcall)) bool shownTryLock(__attribute__((swift_context)) void *mutex) {
  bool isLocked = libraryTryLock(mutex);
  if (isLocked) __tsan_acquire(mutex);
  return isLocked;
}

__attribute__((swiftcall)) void shownUnlock(__attribute__((swift_context)) void *mutex) {
  __tsan_release(mutex);
  libraryUnlock(mutex);
}

#endif

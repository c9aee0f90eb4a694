#include <lmdb.h>

#ifdef __linux__
#include <linux/falloc.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/types.h>

// The C library declares these only to those who ask for more than POSIX, which Swift does not.
int fallocate(int descriptor, int mode, off_t offset, off_t size);
long syscall(long number, ...);

// Wakes a thread of any process that waits for a word of shared memory to change. Without such a thread, it has no effect.
static inline void larder_wake_waiter(void *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, (void *)0, (void *)0, 0); }
#endif

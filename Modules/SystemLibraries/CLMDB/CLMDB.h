#include <lmdb.h>

#ifdef __linux__
#include <linux/falloc.h>
#include <sys/types.h>

// The C library declares it only to those who ask for more than POSIX, which Swift does not.
int fallocate(int descriptor, int mode, off_t offset, off_t size);
#endif

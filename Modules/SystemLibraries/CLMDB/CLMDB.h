#include <lmdb.h>

#ifdef __linux__
#include <linux/falloc.h>
#include <sys/types.h>

// The C library declares them only to those who ask for more than POSIX, which Swift does not.
int fallocate(int descriptor, int mode, off_t offset, off_t size);
#ifdef __GLIBC__
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif
int renameat2(int folder, const char *path, int newFolder, const char *newPath, unsigned int flags);
#endif
#endif

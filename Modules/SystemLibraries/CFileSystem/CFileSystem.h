#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#ifdef __linux__
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/sysmacros.h>

// The C library declares these only to those who ask for more than POSIX, which Swift does not.
int statx(int folder, const char *path, int flags, unsigned int mask, struct statx *status);
#ifdef __GLIBC__
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#endif
int renameat2(int folder, const char *path, int newFolder, const char *newPath, unsigned int flags);
#endif
#endif

// Finds the device and the inode of the file at a path, symbolic links followed, as stat(2) does; returns 0, or -1 with
// `errno` set.
//
// On Linux nothing else is asked for. Since Linux 6.13 a file whose times someone has asked for, as stat(2) does, gets a new
// time with the next write, and to make that durable with fdatasync(2) takes half as long again: a store asks before each
// write.
static inline int larder_file_identity(const char *path, uint64_t *device, uint64_t *inode) {
#ifdef __linux__
  struct statx status;
  if (statx(AT_FDCWD, path, 0, STATX_INO, &status) != 0) return -1;
  *device = makedev(status.stx_dev_major, status.stx_dev_minor);
  *inode = status.stx_ino;
#else
  struct stat status;
  if (stat(path, &status) != 0) return -1;
  *device = (uint64_t)status.st_dev;
  *inode = status.st_ino;
#endif
  return 0;
}

// Finds the size of an open file; returns 0, or -1 with `errno` set. It asks for nothing else for the same reason.
static inline int larder_file_size(int descriptor, int64_t *size) {
#ifdef __linux__
  struct statx status;
  // 0x1000 is AT_EMPTY_PATH, which only GNU programs get.
  if (statx(descriptor, "", 0x1000, STATX_SIZE, &status) != 0) return -1;
  *size = (int64_t)status.stx_size;
#else
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  *size = (int64_t)status.st_size;
#endif
  return 0;
}

// Returns a monotonic time in nanoseconds that is some milliseconds late, and takes a few nanoseconds to read.
static inline uint64_t larder_coarse_time(void) {
#ifdef __linux__
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
#else
  return clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX);
#endif
}

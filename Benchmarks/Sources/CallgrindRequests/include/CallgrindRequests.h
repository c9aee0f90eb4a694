/// Requests to callgrind, the profiler of valgrind that counts instructions. Without valgrind they have no effect.

#ifndef LARDER_CALLGRIND_REQUESTS_H
#define LARDER_CALLGRIND_REQUESTS_H

/// Begins to count from zero.
void larder_callgrind_begin(void);

/// Writes the counts since the beginning to a file, with a name.
void larder_callgrind_end(const char *name);

#endif

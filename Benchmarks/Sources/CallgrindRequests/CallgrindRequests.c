#include "CallgrindRequests.h"

// The header is part of Debian's package `valgrind`, which does not exist for macOS.
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>

void larder_callgrind_begin(void) { CALLGRIND_ZERO_STATS; }

void larder_callgrind_end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
#else
void larder_callgrind_begin(void) {}

void larder_callgrind_end(const char *name) { (void)name; }
#endif

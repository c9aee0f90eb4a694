#ifndef RAW_ZLIB_H
#define RAW_ZLIB_H

#include <stddef.h>
#include <stdint.h>

// zlib as called by a C program, the yardstick for LarderCompression.
//
// Values follow each other in memory. Functions return 0 or a zlib error code.

typedef struct raw_zlib raw_zlib;

// Creates streams of raw deflate, which all values share, and a buffer for the longest value.
int raw_zlib_open(int level, const uint8_t *dictionary, size_t dictionary_size, size_t longest, raw_zlib **streams);
void raw_zlib_close(raw_zlib *streams);

// Compresses each value into the same buffer. The sum is that of the compressed sizes.
int raw_zlib_deflate(raw_zlib *streams, const uint8_t *values, const size_t *sizes, size_t count, uint64_t *sum);

// Compresses all values into one output, one after another, which must be large enough.
int raw_zlib_deflate_all(raw_zlib *streams, const uint8_t *values, const size_t *sizes, size_t count, uint8_t *output,
                         size_t *output_sizes);

// Decompresses each value into the buffer. The sum is that of the CRC-32 of the values, if requested.
int raw_zlib_inflate(raw_zlib *streams, const uint8_t *values, const size_t *sizes, size_t count, int wants_checksum,
                     uint64_t *sum);

#endif

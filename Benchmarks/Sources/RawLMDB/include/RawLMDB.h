#ifndef RAW_LMDB_H
#define RAW_LMDB_H

#include <stddef.h>
#include <stdint.h>

// LMDB as called by a C program, the yardstick for LarderLMDB.
//
// Keys have the same size and follow each other in memory. Functions return 0 or an LMDB error code.

typedef struct raw_lmdb raw_lmdb;

// Opens a new environment in a folder, with the flags that Larder uses, and one named database in it.
int raw_lmdb_open(const char *folder, raw_lmdb **environment);
void raw_lmdb_close(raw_lmdb *environment);

// Puts one value under each of the keys, in one transaction.
int raw_lmdb_put(raw_lmdb *environment, const uint8_t *keys, size_t key_size, size_t count, const uint8_t *value,
                 size_t value_size);

// Reads each key in a renewed transaction, and copies its value into memory of its own.
int raw_lmdb_get_copies(raw_lmdb *environment, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum);

// Reads each key in one transaction, and adds up the first and last bytes of the values without copying them.
int raw_lmdb_get_in_place(raw_lmdb *environment, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum);

// Reads all entries, and copies each key and value into memory of its own, which is freed a thousand entries later.
int raw_lmdb_scan_copies(raw_lmdb *environment, uint64_t *sum);

// Reads a page of entries from each key on, in a renewed transaction, and copies each key and value into memory of its own. A
// page with fewer entries is an error.
int raw_lmdb_page_copies(raw_lmdb *environment, const uint8_t *keys, size_t key_size, size_t count, size_t page_size,
                         uint64_t *sum);

// Reads all entries, and copies each key and value into one buffer.
int raw_lmdb_scan_into_buffer(raw_lmdb *environment, uint64_t *sum);

#endif

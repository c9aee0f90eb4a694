#ifndef RAW_SQLITE_H
#define RAW_SQLITE_H

#include <stddef.h>
#include <stdint.h>

// SQLite as called by a C program with prepared statements, the yardstick for LarderSQLite.
//
// Keys have the same size and follow each other in memory. Functions return 0 or an error code of SQLite.

typedef struct raw_sqlite raw_sqlite;

// Opens a file of a store, with one connection and the settings that Larder uses for synced writes.
int raw_sqlite_open(const char *path, raw_sqlite **database);
void raw_sqlite_close(raw_sqlite *database);

// Sets one value under each of the keys, in one transaction.
int raw_sqlite_set(raw_sqlite *database, const uint8_t *keys, size_t key_size, size_t count, const uint8_t *value,
                   size_t value_size);

// Reads each key in a transaction of its own, and copies its value into memory of its own.
int raw_sqlite_get_copies(raw_sqlite *database, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum);

// Reads a page of entries from each key on, and copies each key and value into memory of its own. A page with fewer entries is an
// error.
int raw_sqlite_page_copies(raw_sqlite *database, const uint8_t *keys, size_t key_size, size_t count, size_t page_size,
                           uint64_t *sum);

// Reads all entries by pages of 1,000, and copies each key and value into memory of its own.
int raw_sqlite_scan_copies(raw_sqlite *database, uint64_t *sum);

#endif

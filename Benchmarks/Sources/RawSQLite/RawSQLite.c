#include "RawSQLite.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct raw_sqlite {
  sqlite3 *connection;
  sqlite3_stmt *begin, *commit, *set, *get, *scan, *page;
};

static int prepare(raw_sqlite *raw, const char *sql, sqlite3_stmt **statement) {
  return sqlite3_prepare_v3(raw->connection, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
}

static int run(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int raw_sqlite_open(const char *path, raw_sqlite **result) {
  raw_sqlite *raw = calloc(1, sizeof(raw_sqlite));
  int code = sqlite3_open_v2(path, &raw->connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (!code) code = sqlite3_exec(raw->connection, "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON", NULL, NULL, NULL);
  if (!code) code = prepare(raw, "BEGIN IMMEDIATE", &raw->begin);
  if (!code) code = prepare(raw, "COMMIT", &raw->commit);
  if (!code)
    code = prepare(raw,
                   "INSERT INTO \"default\"(key, value) VALUES(?1, ?2) "
                   "ON CONFLICT(key) DO UPDATE SET value = excluded.value",
                   &raw->set);
  if (!code) code = prepare(raw, "SELECT value FROM \"default\" WHERE key = ?1", &raw->get);
  if (!code)
    code = prepare(raw, "SELECT key, value FROM \"default\" WHERE key > ?1 ORDER BY key LIMIT 1000", &raw->scan);
  if (!code)
    code = prepare(raw, "SELECT key, value FROM \"default\" WHERE key >= ?1 ORDER BY key LIMIT ?2", &raw->page);
  *result = raw;
  return code;
}

void raw_sqlite_close(raw_sqlite *raw) {
  sqlite3_finalize(raw->begin);
  sqlite3_finalize(raw->commit);
  sqlite3_finalize(raw->set);
  sqlite3_finalize(raw->get);
  sqlite3_finalize(raw->scan);
  sqlite3_finalize(raw->page);
  sqlite3_close(raw->connection);
  free(raw);
}

int raw_sqlite_set(raw_sqlite *raw, const uint8_t *keys, size_t key_size, size_t count, const uint8_t *value,
                   size_t value_size) {
  int code = run(raw->begin);
  for (size_t i = 0; i < count && !code; i++) {
    sqlite3_bind_blob(raw->set, 1, keys + i * key_size, (int)key_size, SQLITE_STATIC);
    sqlite3_bind_blob(raw->set, 2, value, (int)value_size, SQLITE_STATIC);
    code = run(raw->set);
  }
  return code ? code : run(raw->commit);
}

int raw_sqlite_get_copies(raw_sqlite *raw, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum) {
  for (size_t i = 0; i < count; i++) {
    sqlite3_bind_blob(raw->get, 1, keys + i * key_size, (int)key_size, SQLITE_STATIC);
    int code = sqlite3_step(raw->get);
    if (code != SQLITE_ROW) return code;
    const void *value = sqlite3_column_blob(raw->get, 0);
    size_t size = (size_t)sqlite3_column_bytes(raw->get, 0);
    uint8_t *copy = malloc(size);
    memcpy(copy, value, size);
    *sum += copy[0];
    free(copy);
    sqlite3_reset(raw->get);
  }
  return 0;
}

int raw_sqlite_page_copies(raw_sqlite *raw, const uint8_t *keys, size_t key_size, size_t count, size_t page_size,
                           uint64_t *sum) {
  uint8_t **copies = malloc(2 * page_size * sizeof(uint8_t *));
  int code = SQLITE_OK;
  for (size_t i = 0; i < count && !code; i++) {
    sqlite3_bind_blob(raw->page, 1, keys + i * key_size, (int)key_size, SQLITE_STATIC);
    sqlite3_bind_int64(raw->page, 2, (sqlite3_int64)page_size);
    size_t copied = 0;
    while ((code = sqlite3_step(raw->page)) == SQLITE_ROW) {
      for (int column = 0; column < 2; column++) {
        size_t size = (size_t)sqlite3_column_bytes(raw->page, column);
        copies[copied] = memcpy(malloc(size), sqlite3_column_blob(raw->page, column), size);
        if (column == 1) *sum += copies[copied][0];
        copied++;
      }
    }
    sqlite3_reset(raw->page);
    for (size_t k = 0; k < copied; k++) free(copies[k]);
    if (code == SQLITE_DONE) code = copied == 2 * page_size ? SQLITE_OK : SQLITE_NOTFOUND;
  }
  free(copies);
  return code;
}

int raw_sqlite_scan_copies(raw_sqlite *raw, uint64_t *sum) {
  uint8_t last[512];
  int last_size = 0;
  uint8_t *copies[2000];
  for (;;) {
    sqlite3_bind_blob(raw->scan, 1, last, last_size, SQLITE_STATIC);
    size_t count = 0;
    int code;
    while ((code = sqlite3_step(raw->scan)) == SQLITE_ROW) {
      for (int column = 0; column < 2; column++) {
        size_t size = (size_t)sqlite3_column_bytes(raw->scan, column);
        copies[count] = malloc(size);
        memcpy(copies[count], sqlite3_column_blob(raw->scan, column), size);
        if (column == 1) *sum += copies[count][0];
        count++;
      }
      last_size = sqlite3_column_bytes(raw->scan, 0);
    }
    sqlite3_reset(raw->scan);
    if (count) memcpy(last, copies[count - 2], (size_t)last_size);
    for (size_t i = 0; i < count; i++) free(copies[i]);
    if (code != SQLITE_DONE) return code;
    if (count < 2000) return 0;
  }
}

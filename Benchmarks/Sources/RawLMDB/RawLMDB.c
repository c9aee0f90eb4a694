#include "RawLMDB.h"

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

struct raw_lmdb {
  MDB_env *environment;
  MDB_dbi database;
  MDB_txn *reader;
};

int raw_lmdb_open(const char *folder, raw_lmdb **result) {
  raw_lmdb *raw = calloc(1, sizeof(raw_lmdb));
  MDB_txn *transaction;
  int code = mdb_env_create(&raw->environment);
  if (!code) code = mdb_env_set_mapsize(raw->environment, (size_t)1 << 36);
  if (!code) code = mdb_env_set_maxdbs(raw->environment, 8);
  if (!code) code = mdb_env_open(raw->environment, folder, MDB_NOTLS, 0600);
  if (!code) code = mdb_txn_begin(raw->environment, NULL, 0, &transaction);
  if (!code) code = mdb_dbi_open(transaction, "default", MDB_CREATE, &raw->database);
  if (!code) code = mdb_txn_commit(transaction);
  if (!code) code = mdb_txn_begin(raw->environment, NULL, MDB_RDONLY, &raw->reader);
  if (!code) mdb_txn_reset(raw->reader);
  *result = raw;
  return code;
}

void raw_lmdb_close(raw_lmdb *raw) {
  mdb_txn_abort(raw->reader);
  mdb_env_close(raw->environment);
  free(raw);
}

int raw_lmdb_put(raw_lmdb *raw, const uint8_t *keys, size_t key_size, size_t count, const uint8_t *value,
                 size_t value_size) {
  MDB_txn *transaction;
  int code = mdb_txn_begin(raw->environment, NULL, 0, &transaction);
  for (size_t i = 0; i < count && !code; i++) {
    MDB_val key = {key_size, (void *)(keys + i * key_size)};
    MDB_val data = {value_size, (void *)value};
    code = mdb_put(transaction, raw->database, &key, &data, 0);
  }
  return code ? code : mdb_txn_commit(transaction);
}

int raw_lmdb_get_copies(raw_lmdb *raw, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum) {
  for (size_t i = 0; i < count; i++) {
    MDB_val key = {key_size, (void *)(keys + i * key_size)};
    MDB_val data;
    int code = mdb_txn_renew(raw->reader);
    if (!code) code = mdb_get(raw->reader, raw->database, &key, &data);
    if (code) return code;
    uint8_t *copy = malloc(data.mv_size);
    memcpy(copy, data.mv_data, data.mv_size);
    mdb_txn_reset(raw->reader);
    *sum += copy[0];
    free(copy);
  }
  return 0;
}

int raw_lmdb_get_in_place(raw_lmdb *raw, const uint8_t *keys, size_t key_size, size_t count, uint64_t *sum) {
  int code = mdb_txn_renew(raw->reader);
  for (size_t i = 0; i < count && !code; i++) {
    MDB_val key = {key_size, (void *)(keys + i * key_size)};
    MDB_val data;
    code = mdb_get(raw->reader, raw->database, &key, &data);
    if (!code) *sum += ((uint8_t *)data.mv_data)[0] + ((uint8_t *)data.mv_data)[data.mv_size - 1];
  }
  mdb_txn_reset(raw->reader);
  return code;
}

int raw_lmdb_scan_copies(raw_lmdb *raw, uint64_t *sum) {
  uint8_t *keys[1000] = {0};
  uint8_t *values[1000] = {0};
  size_t place = 0;
  MDB_cursor *cursor;
  MDB_val key, data;
  int code = mdb_txn_renew(raw->reader);
  if (!code) code = mdb_cursor_open(raw->reader, raw->database, &cursor);
  if (code) return code;
  while (!(code = mdb_cursor_get(cursor, &key, &data, MDB_NEXT))) {
    free(keys[place]);
    free(values[place]);
    keys[place] = memcpy(malloc(key.mv_size), key.mv_data, key.mv_size);
    values[place] = memcpy(malloc(data.mv_size), data.mv_data, data.mv_size);
    *sum += values[place][0];
    place = (place + 1) % 1000;
  }
  for (place = 0; place < 1000; place++) {
    free(keys[place]);
    free(values[place]);
  }
  mdb_cursor_close(cursor);
  mdb_txn_reset(raw->reader);
  return code == MDB_NOTFOUND ? 0 : code;
}

int raw_lmdb_page_copies(raw_lmdb *raw, const uint8_t *keys, size_t key_size, size_t count, size_t page_size,
                         uint64_t *sum) {
  uint8_t **copies = malloc(2 * page_size * sizeof(uint8_t *));
  int code = 0;
  for (size_t i = 0; i < count && !code; i++) {
    MDB_cursor *cursor;
    MDB_val key = {key_size, (void *)(keys + i * key_size)};
    MDB_val data;
    size_t size = 0;
    code = mdb_txn_renew(raw->reader);
    if (code) break;
    code = mdb_cursor_open(raw->reader, raw->database, &cursor);
    if (!code) {
      while (size < page_size && !(code = mdb_cursor_get(cursor, &key, &data, size ? MDB_NEXT : MDB_SET_RANGE))) {
        copies[2 * size] = memcpy(malloc(key.mv_size), key.mv_data, key.mv_size);
        copies[2 * size + 1] = memcpy(malloc(data.mv_size), data.mv_data, data.mv_size);
        *sum += copies[2 * size + 1][0];
        size++;
      }
      for (size_t k = 0; k < 2 * size; k++) free(copies[k]);
      mdb_cursor_close(cursor);
    }
    mdb_txn_reset(raw->reader);
  }
  free(copies);
  return code;
}

int raw_lmdb_scan_into_buffer(raw_lmdb *raw, uint64_t *sum) {
  uint8_t buffer[4096];
  MDB_cursor *cursor;
  MDB_val key, data;
  int code = mdb_txn_renew(raw->reader);
  if (!code) code = mdb_cursor_open(raw->reader, raw->database, &cursor);
  if (code) return code;
  while (!(code = mdb_cursor_get(cursor, &key, &data, MDB_NEXT))) {
    memcpy(buffer, key.mv_data, key.mv_size);
    memcpy(buffer + key.mv_size, data.mv_data, data.mv_size);
    *sum += buffer[key.mv_size];
  }
  mdb_cursor_close(cursor);
  mdb_txn_reset(raw->reader);
  return code == MDB_NOTFOUND ? 0 : code;
}

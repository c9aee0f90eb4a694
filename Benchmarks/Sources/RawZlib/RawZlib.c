#include "RawZlib.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct raw_zlib {
  z_stream deflater;
  z_stream inflater;
  uint8_t *dictionary;
  size_t dictionary_size;
  uint8_t *buffer;
  size_t room;
};

int raw_zlib_open(int level, const uint8_t *dictionary, size_t dictionary_size, size_t longest, raw_zlib **result) {
  raw_zlib *raw = calloc(1, sizeof(raw_zlib));
  raw->dictionary = malloc(dictionary_size + 1);
  memcpy(raw->dictionary, dictionary, dictionary_size);
  raw->dictionary_size = dictionary_size;
  int code = deflateInit2(&raw->deflater, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  if (!code) code = inflateInit2(&raw->inflater, -15);
  raw->room = deflateBound(&raw->deflater, longest);
  raw->buffer = malloc(raw->room);
  *result = raw;
  return code;
}

void raw_zlib_close(raw_zlib *raw) {
  deflateEnd(&raw->deflater);
  inflateEnd(&raw->inflater);
  free(raw->dictionary);
  free(raw->buffer);
  free(raw);
}

static int deflate_one(raw_zlib *raw, const uint8_t *value, size_t size, uint8_t *output, size_t room, size_t *written) {
  z_stream *stream = &raw->deflater;
  int code = deflateReset(stream);
  if (!code && raw->dictionary_size) code = deflateSetDictionary(stream, raw->dictionary, raw->dictionary_size);
  if (code) return code;
  stream->next_in = (uint8_t *)value;
  stream->avail_in = size;
  stream->next_out = output;
  stream->avail_out = room;
  code = deflate(stream, Z_FINISH);
  *written = room - stream->avail_out;
  return code == Z_STREAM_END ? 0 : Z_BUF_ERROR;
}

int raw_zlib_deflate(raw_zlib *raw, const uint8_t *values, const size_t *sizes, size_t count, uint64_t *sum) {
  int code = 0;
  for (size_t i = 0; i < count && !code; i++) {
    size_t written;
    code = deflate_one(raw, values, sizes[i], raw->buffer, raw->room, &written);
    *sum += written;
    values += sizes[i];
  }
  return code;
}

int raw_zlib_deflate_all(raw_zlib *raw, const uint8_t *values, const size_t *sizes, size_t count, uint8_t *output,
                         size_t *output_sizes) {
  int code = 0;
  for (size_t i = 0; i < count && !code; i++) {
    code = deflate_one(raw, values, sizes[i], output, deflateBound(&raw->deflater, sizes[i]), &output_sizes[i]);
    output += output_sizes[i];
    values += sizes[i];
  }
  return code;
}

int raw_zlib_inflate(raw_zlib *raw, const uint8_t *values, const size_t *sizes, size_t count, int wants_checksum,
                     uint64_t *sum) {
  z_stream *stream = &raw->inflater;
  for (size_t i = 0; i < count; i++) {
    int code = inflateReset(stream);
    if (!code && raw->dictionary_size) code = inflateSetDictionary(stream, raw->dictionary, raw->dictionary_size);
    if (code) return code;
    stream->next_in = (uint8_t *)values;
    stream->avail_in = sizes[i];
    stream->next_out = raw->buffer;
    stream->avail_out = raw->room;
    code = inflate(stream, Z_FINISH);
    if (code != Z_STREAM_END) return Z_BUF_ERROR;
    *sum += wants_checksum ? crc32(0, raw->buffer, raw->room - stream->avail_out) : raw->buffer[0];
    values += sizes[i];
  }
  return 0;
}

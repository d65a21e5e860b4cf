/* Growing bytes and the protobuf messages in them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int64_t rng_edge(Rng* rng) {
  static const int64_t edges[] = {
      0,         1,
      2,         3,
      -1,        -2,
      -3,        7,
      8,         16,
      31,        32,
      33,        64,
      127,       128,
      255,       256,
      INT16_MAX, 65536,
      1 << 20,   INT32_MAX,
      INT32_MIN, 1LL << 31,
      1LL << 32, 1LL << 40,
      1LL << 61, 1LL << 62,
      INT64_MAX, INT64_MAX - 1,
      INT64_MIN, INT64_MIN + 1,
  };
  return edges[rng_below(rng, sizeof edges / sizeof edges[0])];
}

void bytes_reserve(Bytes* bytes, size_t more) {
  if (bytes->capacity - bytes->size >= more) return;
  bytes->capacity = 2 * (bytes->size + more) + 256;
  bytes->data = realloc(bytes->data, bytes->capacity);
  if (bytes->data != NULL) return;
  fprintf(stderr, "no memory for %zu bytes of a model\n", bytes->capacity);
  exit(1);
}

static size_t encode(uint64_t value, uint8_t encoded[10]) {
  size_t size = 0;
  for (; value > 0x7f; value >>= 7) encoded[size++] = (uint8_t)(value | 0x80);
  encoded[size++] = (uint8_t)value;
  return size;
}

void put_varint(Bytes* bytes, uint64_t value) {
  uint8_t encoded[10];
  put_raw(bytes, encoded, encode(value, encoded));
}

void put_int(Bytes* bytes, unsigned field, int64_t value) {
  put_varint(bytes, field << 3);
  put_varint(bytes, (uint64_t)value);
}

void put_float(Bytes* bytes, unsigned field, float value) {
  put_varint(bytes, field << 3 | 5);
  put_raw(bytes, &value, sizeof value);
}

void put_bytes(Bytes* bytes, unsigned field, const void* data, size_t size) {
  put_varint(bytes, field << 3 | 2);
  put_varint(bytes, size);
  put_raw(bytes, data, size);
}

void put_text(Bytes* bytes, unsigned field, const char* text) {
  put_bytes(bytes, field, text, strlen(text));
}

size_t put_begin(Bytes* bytes, unsigned field) {
  put_varint(bytes, field << 3 | 2);
  return bytes->size;
}

/* The length is not known before: what was put makes room for it. */
void put_end(Bytes* bytes, size_t mark) {
  uint8_t encoded[10];
  size_t length = encode(bytes->size - mark, encoded);
  bytes_reserve(bytes, length);
  memmove(bytes->data + mark + length, bytes->data + mark, bytes->size - mark);
  memcpy(bytes->data + mark, encoded, length);
  bytes->size += length;
}

/* ---- Elements ---- */

size_t element_bytes(int type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
      return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64:
      return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128:
      return 16;
    default:
      return 1;
  }
}

static double any_real(Rng* rng, uint32_t hostility) {
  static const double rare[] = {0.0,     -0.0,   1e30,   -1e30,   1e300,  1e-40,    1e-310,    0x1p31,
                                -0x1p31, 0x1p32, 0x1p63, -0x1p63, 0x1p64, INFINITY, -INFINITY, NAN};
  if (!rng_often(rng, hostility)) return ((int)rng_below(rng, 33) - 16) / 4.0;
  return rare[rng_below(rng, sizeof rare / sizeof rare[0])];
}

void fill_elements(Rng* rng, int type, size_t count, uint32_t hostility, void* out) {
  char* at = out;
  size_t size = element_bytes(type);
  for (size_t i = 0; i < count; i++, at += size) {
    double real = any_real(rng, hostility);
    float narrow = (float)real;
    uint64_t integer = (uint64_t)(rng_often(rng, hostility) ? rng_edge(rng) : (int64_t)rng_below(rng, 8) - 3);
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
      memcpy(at, &narrow, 4);
    else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE)
      memcpy(at, &real, 8);
    else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16)
      memcpy(at, (char*)&narrow + 2, 2);
    else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL)
      *at = (char)(rng_often(rng, hostility) ? integer : integer & 1);
    else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16)
      memcpy(at, (uint16_t[]){(uint16_t)(rng_often(rng, hostility) ? integer : 0x3800 + (integer & 0x87ff))},
             2);
    else
      memcpy(at, (uint64_t[]){integer, 0}, size);
  }
}

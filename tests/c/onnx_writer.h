/* Writes ONNX models for tests: protobuf messages, field by field, into fixed buffers. */
#ifndef TESTS_C_ONNX_WRITER_H
#define TESTS_C_ONNX_WRITER_H

#include <stdint.h>
#include <string.h>

typedef struct Message {
  uint8_t bytes[4096];
  size_t size;
} Message;

static inline void put_varint(Message* message, uint64_t value) {
  for (; value > 0x7f; value >>= 7) message->bytes[message->size++] = (uint8_t)(value | 0x80);
  message->bytes[message->size++] = (uint8_t)value;
}

static inline void put_int(Message* message, unsigned number, int64_t value) {
  put_varint(message, number << 3);
  put_varint(message, (uint64_t)value);
}

static inline void put_bytes(Message* message, unsigned number, const void* data, size_t size) {
  put_varint(message, number << 3 | 2);
  put_varint(message, size);
  memcpy(message->bytes + message->size, data, size);
  message->size += size;
}

static inline void put_text(Message* message, unsigned number, const char* text) {
  put_bytes(message, number, text, strlen(text));
}

static inline void put_message(Message* message, unsigned number, const Message* part) {
  put_bytes(message, number, part->bytes, part->size);
}

/* A ValueInfoProto: a tensor of `element` with one dimension. */
static inline Message value_info(const char* name, int element, int64_t dim) {
  Message dimension = {.size = 0}, shape = {.size = 0}, tensor = {.size = 0}, type = {.size = 0};
  Message value = {.size = 0};
  put_int(&dimension, 1, dim);
  put_message(&shape, 1, &dimension);
  put_int(&tensor, 1, element);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  return value;
}

/* A NodeProto without attributes. `b` may be NULL. */
static inline Message node_proto(const char* op_type, const char* a, const char* b, const char* output) {
  Message node = {.size = 0};
  put_text(&node, 1, a);
  if (b != NULL) put_text(&node, 1, b);
  put_text(&node, 2, output);
  put_text(&node, 3, output);
  put_text(&node, 4, op_type);
  return node;
}

/* A ModelProto of IR version 8 with operator set 17. */
static inline Message model_proto(const Message* graph) {
  Message opset = {.size = 0}, model = {.size = 0};
  put_int(&opset, 2, 17);
  put_int(&model, 1, 8);
  put_message(&model, 7, graph);
  put_message(&model, 8, &opset);
  return model;
}

#endif

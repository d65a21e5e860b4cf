/* AttributeProto. */
#include <string.h>

#include "onnx/reader.h"

enum {
  ATTR_NAME = 1,
  ATTR_F = 2,
  ATTR_I = 3,
  ATTR_S = 4,
  ATTR_T = 5,
  ATTR_G = 6,
  ATTR_FLOATS = 7,
  ATTR_INTS = 8,
  ATTR_STRINGS = 9,
  ATTR_TENSORS = 10,
  ATTR_GRAPHS = 11,
  ATTR_TP = 14,
  ATTR_TYPE_PROTOS = 15,
  ATTR_TYPE = 20,
  ATTR_REF_NAME = 21,
  ATTR_SPARSE_TENSOR = 22,
  ATTR_SPARSE_TENSORS = 23,
};

/* AttributeProto.AttributeType, the member it is kept in, and what the ABI calls it. */
static const struct {
  uint32_t member;
  OrtOpAttrType type;
} kinds[] = {
    [1] = {ATTR_F, ORT_OP_ATTR_FLOAT},
    [2] = {ATTR_I, ORT_OP_ATTR_INT},
    [3] = {ATTR_S, ORT_OP_ATTR_STRING},
    [4] = {ATTR_T, ORT_OP_ATTR_TENSOR},
    [5] = {ATTR_G, ORT_OP_ATTR_GRAPH},
    [6] = {ATTR_FLOATS, ORT_OP_ATTR_FLOATS},
    [7] = {ATTR_INTS, ORT_OP_ATTR_INTS},
    [8] = {ATTR_STRINGS, ORT_OP_ATTR_STRINGS},
    [9] = {ATTR_TENSORS, ORT_OP_ATTR_UNDEFINED},
    [10] = {ATTR_GRAPHS, ORT_OP_ATTR_UNDEFINED},
    [11] = {ATTR_SPARSE_TENSOR, ORT_OP_ATTR_UNDEFINED},
    [12] = {ATTR_SPARSE_TENSORS, ORT_OP_ATTR_UNDEFINED},
    [13] = {ATTR_TP, ORT_OP_ATTR_UNDEFINED},
    [14] = {ATTR_TYPE_PROTOS, ORT_OP_ATTR_UNDEFINED},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

/* Name and type; models of the first IR version leave the type out, then the member that is there says it. */
static OrtStatus* read_attribute_head(Reader* reader, const WireField* field, OrtOpAttr* out,
                                      char** reference) {
  Wire wire = wire_of_field(field);
  WireField part;
  uint64_t type = 0, guess = 0;
  out->name = *reference = (char*)"";
  while (wire_next(&wire, &part)) {
    uint32_t number = part.tag >> 3;
    if (part.tag == WIRE_TAG(ATTR_NAME, WIRE_BYTES)) TRY(read_name(reader, &part, "attribute", &out->name));
    if (part.tag == WIRE_TAG(ATTR_TYPE, WIRE_VARINT)) type = part.value;
    if (part.tag == WIRE_TAG(ATTR_REF_NAME, WIRE_BYTES))
      TRY(read_name(reader, &part, "attribute reference", reference));
    for (size_t i = 1; i < KIND_COUNT; i++) {
      if (kinds[i].member == number) guess = i;
    }
  }
  TRY(check_wire(&wire, "attribute", out->name));
  if ((*reference)[0] != '\0') return NULL; /* the type is that of what is referred to */
  if (type == 0) type = guess;
  if (type == 0 || type >= KIND_COUNT)
    return status_new(ORT_INVALID_GRAPH, "attribute '%s' has the unknown type %llu", out->name,
                      (unsigned long long)type);
  out->onnx_type = (int)type;
  out->type = kinds[type].type;
  return NULL;
}

/* Makes room for the elements of a list. */
static OrtStatus* allocate_list(Arena* arena, const WireField* field, OrtOpAttr* out) {
  uint32_t member = kinds[out->onnx_type].member;
  Wire wire = wire_of_field(field);
  WireField part;
  size_t count = 0;
  while (wire_next(&wire, &part)) {
    if (part.tag >> 3 != member) continue;
    if (out->type == ORT_OP_ATTR_INTS) count += wire_count_varints(&part);
    if (out->type == ORT_OP_ATTR_FLOATS) count += part.size / sizeof(float);
    if (out->type == ORT_OP_ATTR_STRINGS) count += 1;
  }
  bool failed = false;
  if (out->type == ORT_OP_ATTR_INTS)
    failed = (out->ints = arena_calloc(arena, count, sizeof(int64_t))) == NULL;
  if (out->type == ORT_OP_ATTR_FLOATS)
    failed = (out->floats = arena_calloc(arena, count, sizeof(float))) == NULL;
  if (out->type == ORT_OP_ATTR_STRINGS) {
    out->strings = arena_calloc(arena, count, sizeof(char*));
    out->string_lengths = arena_calloc(arena, count, sizeof(size_t));
    failed = out->strings == NULL || out->string_lengths == NULL;
  }
  return failed ? status_no_memory() : NULL;
}

/* Appends one occurrence of a list member; allocate_list made room for all. */
static OrtStatus* read_list_part(Arena* arena, const WireField* part, OrtOpAttr* out) {
  uint32_t type = part->tag & 7;
  Wire elements = wire_of_field(part);
  if (out->type == ORT_OP_ATTR_INTS && (type == WIRE_VARINT || type == WIRE_BYTES)) {
    uint64_t value;
    while (wire_varint(&elements, &value)) out->ints[out->count++] = (int64_t)value;
  } else if (out->type == ORT_OP_ATTR_FLOATS && (type == WIRE_FIXED32 || type == WIRE_BYTES)) {
    uint32_t bits;
    while (wire_fixed32(&elements, &bits)) memcpy(&out->floats[out->count++], &bits, sizeof bits);
  } else if (out->type == ORT_OP_ATTR_STRINGS && type == WIRE_BYTES) {
    char* text = arena_str(arena, (const char*)part->data, part->size);
    if (text == NULL) return status_no_memory();
    out->strings[out->count] = text;
    out->string_lengths[out->count++] = part->size;
  }
  return check_wire(&elements, "attribute", out->name);
}

/* One element of a list of tensors, graphs or types. The ABI tells that there is such a list, and nothing of
 * what is in it: that is only checked. */
static OrtStatus* check_message(const WireField* part, const OrtOpAttr* out) {
  Wire wire = wire_of_field(part);
  WireField inner;
  while (wire_next(&wire, &inner)) continue;
  return check_wire(&wire, "attribute", out->name);
}

/* TENSOR and SPARSE_TENSOR. */
static OrtStatus* read_tensor_member(Reader* reader, const WireField* part, OrtOpAttr* out) {
  TensorResult result = {0};
  OrtStatus* status = out->type == ORT_OP_ATTR_TENSOR ? read_tensor(reader, part, "tensor", &result)
                                                      : read_sparse_tensor(reader, part, "tensor", &result);
  if (status != NULL) return status_wrap(status, "attribute '%s'", out->name);
  out->tensor = result.value;
  return NULL;
}

/* One occurrence of the member. Of a single value the last one counts. */
static OrtStatus* read_member(Reader* reader, const WireField* part, OrtNode* node, OrtOpAttr* out) {
  uint32_t bits = (uint32_t)part->value;
  switch (part->tag) {
    case WIRE_TAG(ATTR_F, WIRE_FIXED32):
      memcpy(&out->f, &bits, sizeof bits);
      return NULL;
    case WIRE_TAG(ATTR_I, WIRE_VARINT):
      out->i = (int64_t)part->value;
      return NULL;
    case WIRE_TAG(ATTR_S, WIRE_BYTES):
      out->s = arena_str(&reader->model->arena, (const char*)part->data, part->size);
      out->count = part->size;
      return out->s != NULL ? NULL : status_no_memory();
    case WIRE_TAG(ATTR_T, WIRE_BYTES):
    case WIRE_TAG(ATTR_SPARSE_TENSOR, WIRE_BYTES):
      return read_tensor_member(reader, part, out);
    case WIRE_TAG(ATTR_G, WIRE_BYTES):
      if (out->graph != NULL)
        return status_new(ORT_INVALID_GRAPH, "attribute '%s' has two graphs", out->name);
      return read_graph(reader, part, node, &out->graph);
    case WIRE_TAG(ATTR_TP, WIRE_BYTES):
      return read_type(reader, part, out->name, &out->type_proto);
    case WIRE_TAG(ATTR_TENSORS, WIRE_BYTES):
    case WIRE_TAG(ATTR_GRAPHS, WIRE_BYTES):
    case WIRE_TAG(ATTR_SPARSE_TENSORS, WIRE_BYTES):
    case WIRE_TAG(ATTR_TYPE_PROTOS, WIRE_BYTES):
      return check_message(part, out);
    default:
      return NULL;
  }
}

/* Reads the attribute's value when its head is read. */
static OrtStatus* read_attribute_value(Reader* reader, const WireField* field, OrtNode* node,
                                       OrtOpAttr* out) {
  Arena* arena = &reader->model->arena;
  uint32_t member = kinds[out->onnx_type].member;
  bool is_list =
      out->type == ORT_OP_ATTR_INTS || out->type == ORT_OP_ATTR_FLOATS || out->type == ORT_OP_ATTR_STRINGS;
  if (is_list) TRY(allocate_list(arena, field, out));
  if (out->type == ORT_OP_ATTR_STRING) out->s = (char*)"";
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag >> 3 != member) continue;
    TRY(is_list ? read_list_part(arena, &part, out) : read_member(reader, &part, node, out));
  }
  bool is_tensor = member == ATTR_T || member == ATTR_SPARSE_TENSOR;
  if ((is_tensor && out->tensor == NULL) || (member == ATTR_G && out->graph == NULL))
    return status_new(ORT_INVALID_GRAPH, "attribute '%s' has no %s", out->name,
                      is_tensor ? "tensor" : "graph");
  return NULL;
}

OrtStatus* read_attribute(Reader* reader, const WireField* field, OrtNode* node, OrtOpAttr* out,
                          bool* is_present) {
  char* reference = NULL;
  TRY(read_attribute_head(reader, field, out, &reference));
  *is_present = true;
  if (reference[0] == '\0') return read_attribute_value(reader, field, node, out);
  if (reader->scope == NULL)
    return status_new(ORT_INVALID_GRAPH, "attribute '%s' refers to '%s' outside of a function", out->name,
                      reference);
  const WireField* given = scope_attribute(reader->scope, reference);
  char* name = out->name;
  *is_present = given != NULL;
  if (given == NULL) return NULL;
  TRY(count_expansion(reader, given));
  TRY(read_attribute_head(reader, given, out, &reference));
  out->name = name;
  if (out->type == ORT_OP_ATTR_GRAPH)
    return status_new(ORT_NOT_IMPLEMENTED, "attribute '%s': a graph as an argument of a function", name);
  return read_attribute_value(reader, given, node, out);
}

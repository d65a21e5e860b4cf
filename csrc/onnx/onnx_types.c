/* TypeProto: tensors, sparse tensors, sequences, maps, optionals. */
#include <string.h>

#include "onnx/reader.h"

/* The dimensions of a shape, in the arena; texts are "" where there is none. */
typedef struct Shape {
  size_t rank;
  int64_t* dims;
  const char **symbols, **denotations;
  bool has_symbols, has_denotations;
} Shape;

/* One TensorShapeProto.Dimension: dim_value = 1, dim_param = 2, denotation = 3. */
static OrtStatus* read_dimension(Reader* reader, const WireField* field, int64_t* dim, const char** symbol,
                                 const char** denotation) {
  Wire wire = wire_of_field(field);
  WireField part;
  *dim = -1;
  *symbol = *denotation = "";
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_VARINT)) {
      *dim = (int64_t)part.value < 0 ? -1 : (int64_t)part.value;
      *symbol = "";
    } else if (part.tag == WIRE_TAG(2, WIRE_BYTES)) {
      char* name = NULL;
      TRY(read_name(reader, &part, "dimension", &name));
      *dim = -1;
      *symbol = name;
    } else if (part.tag == WIRE_TAG(3, WIRE_BYTES)) {
      char* name = NULL;
      TRY(read_name(reader, &part, "denotation of dimension", &name));
      *denotation = name;
    }
  }
  return check_wire(&wire, "dimension", "");
}

/* A TensorShapeProto. */
static OrtStatus* read_shape(Reader* reader, const WireField* field, const char* value, Shape* out) {
  Wire wire = wire_of_field(field);
  WireField part;
  size_t count = 0;
  while (wire_next(&wire, &part)) count += part.tag == WIRE_TAG(1, WIRE_BYTES);
  TRY(check_wire(&wire, "shape of value", value));
  Arena* arena = &reader->model->arena;
  Shape shape = {.rank = count};
  shape.dims = arena_calloc(arena, count, sizeof *shape.dims);
  shape.symbols = arena_calloc(arena, count, sizeof *shape.symbols);
  shape.denotations = arena_calloc(arena, count, sizeof *shape.denotations);
  if (shape.dims == NULL || shape.symbols == NULL || shape.denotations == NULL) return status_no_memory();
  wire = wire_of_field(field);
  for (size_t i = 0; wire_next(&wire, &part);) {
    if (part.tag != WIRE_TAG(1, WIRE_BYTES)) continue;
    TRY(read_dimension(reader, &part, &shape.dims[i], &shape.symbols[i], &shape.denotations[i]));
    shape.has_symbols = shape.has_symbols || shape.symbols[i][0] != '\0';
    shape.has_denotations = shape.has_denotations || shape.denotations[i][0] != '\0';
    i++;
  }
  *out = shape;
  return NULL;
}

/* TypeProto.Tensor and TypeProto.SparseTensor: elem_type = 1, shape = 2. */
static OrtStatus* read_tensor_type(Reader* reader, const WireField* field, const char* value, ONNXType kind,
                                   OrtTypeInfo** out) {
  Wire wire = wire_of_field(field);
  WireField part;
  uint64_t element = 0;
  bool has_shape = false;
  Shape shape = {0};
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_VARINT)) {
      element = part.value;
    } else if (part.tag == WIRE_TAG(2, WIRE_BYTES)) {
      TRY(read_shape(reader, &part, value, &shape));
      has_shape = true;
    }
  }
  TRY(check_wire(&wire, "type of value", value));
  ONNXTensorElementDataType type = element_type_of_proto(element);
  if (element != 0 && type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return status_new(ORT_INVALID_GRAPH, "value '%s' has the unknown element type %llu", value,
                      (unsigned long long)element);
  Arena* arena = &reader->model->arena;
  OrtTensorTypeAndShapeInfo* tensor = shape_info_new(arena, type, has_shape, shape.rank, shape.dims,
                                                     shape.has_symbols ? shape.symbols : NULL);
  if (tensor != NULL && shape.has_denotations) tensor->denotations = shape.denotations;
  *out = type_info_new_tensor(arena, kind, tensor);
  return *out != NULL ? NULL : status_no_memory();
}

static OrtStatus* read_nested_type(Reader* reader, const WireField* field, const char* value, unsigned depth,
                                   OrtTypeInfo** out);

/* Sequence and Optional: elem_type = 1. Map: key_type = 1, value_type = 2. */
static OrtStatus* read_container(Reader* reader, const WireField* field, const char* value, unsigned depth,
                                 ONNXType kind, OrtTypeInfo** out) {
  Wire wire = wire_of_field(field);
  WireField part;
  uint64_t key = 0;
  OrtTypeInfo* element = NULL;
  uint32_t element_tag = WIRE_TAG(kind == ONNX_TYPE_MAP ? 2 : 1, WIRE_BYTES);
  while (wire_next(&wire, &part)) {
    if (part.tag == element_tag) TRY(read_nested_type(reader, &part, value, depth + 1, &element));
    if (part.tag == WIRE_TAG(1, WIRE_VARINT)) key = part.value;
  }
  TRY(check_wire(&wire, "type of value", value));
  ONNXTensorElementDataType key_type = element_type_of_proto(key);
  if (key != 0 && key_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    return status_new(ORT_INVALID_GRAPH, "value '%s' has the unknown key type %llu", value,
                      (unsigned long long)key);
  Arena* arena = &reader->model->arena;
  if (element == NULL) element = type_info_new(arena, ONNX_TYPE_UNKNOWN);
  *out = kind == ONNX_TYPE_MAP ? type_info_new_map(arena, key_type, element)
                               : type_info_new_container(arena, kind, element);
  return *out != NULL ? NULL : status_no_memory();
}

static OrtStatus* read_nested_type(Reader* reader, const WireField* field, const char* value, unsigned depth,
                                   OrtTypeInfo** out) {
  if (depth > MAX_TYPE_DEPTH)
    return status_new(ORT_INVALID_GRAPH, "value '%s': its type is nested more than %d deep", value,
                      MAX_TYPE_DEPTH);
  Wire wire = wire_of_field(field);
  WireField part;
  char* denotation = NULL;
  OrtTypeInfo* type = NULL;
  while (wire_next(&wire, &part)) {
    switch (part.tag) {
      case WIRE_TAG(1, WIRE_BYTES):
        TRY(read_tensor_type(reader, &part, value, ONNX_TYPE_TENSOR, &type));
        break;
      case WIRE_TAG(8, WIRE_BYTES):
        TRY(read_tensor_type(reader, &part, value, ONNX_TYPE_SPARSETENSOR, &type));
        break;
      case WIRE_TAG(4, WIRE_BYTES):
        TRY(read_container(reader, &part, value, depth, ONNX_TYPE_SEQUENCE, &type));
        break;
      case WIRE_TAG(9, WIRE_BYTES):
        TRY(read_container(reader, &part, value, depth, ONNX_TYPE_OPTIONAL, &type));
        break;
      case WIRE_TAG(5, WIRE_BYTES):
        TRY(read_container(reader, &part, value, depth, ONNX_TYPE_MAP, &type));
        break;
      case WIRE_TAG(7, WIRE_BYTES):
        type = type_info_new(&reader->model->arena, ONNX_TYPE_OPAQUE);
        if (type == NULL) return status_no_memory();
        break;
      case WIRE_TAG(6, WIRE_BYTES):
        TRY(read_name(reader, &part, "denotation of value", &denotation));
        break;
      default:
        break;
    }
  }
  TRY(check_wire(&wire, "type of value", value));
  if (type != NULL) type->denotation = denotation;
  *out = type;
  return NULL;
}

OrtStatus* read_type(Reader* reader, const WireField* field, const char* value, OrtTypeInfo** out) {
  return read_nested_type(reader, field, value, 0, out);
}

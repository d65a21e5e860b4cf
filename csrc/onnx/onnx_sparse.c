/* SparseTensorProto: the ABI's initializers and tensor attributes are dense, so it is read as a dense tensor.
 */
#include <string.h>

#include "onnx/reader.h"

/* A sparse tensor may claim any size in a few bytes: a dense form past this is refused. */
#define MAX_DENSE_BYTES ((size_t)1 << 30)

typedef struct SparseParts {
  const char* what;
  TensorResult values, indices;
  int64_t* dims;
  size_t rank;
} SparseParts;

static OrtStatus* sparse_error(const SparseParts* sparse, const char* reason) {
  return status_new(ORT_INVALID_GRAPH, "sparse %s '%s': %s", sparse->what, sparse->values.name, reason);
}

static OrtStatus* read_parts(Reader* reader, const WireField* field, SparseParts* sparse) {
  Wire wire = wire_of_field(field);
  WireField part;
  size_t count = 0;
  sparse->values.name = sparse->indices.name = (char*)"";
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_BYTES))
      TRY(read_tensor(reader, &part, "values of sparse tensor", &sparse->values));
    else if (part.tag == WIRE_TAG(2, WIRE_BYTES))
      TRY(read_tensor(reader, &part, "indices of sparse tensor", &sparse->indices));
    else if (part.tag == WIRE_TAG(3, WIRE_BYTES) || part.tag == WIRE_TAG(3, WIRE_VARINT))
      count += wire_count_varints(&part);
  }
  TRY(check_wire(&wire, "sparse tensor", sparse->values.name));
  sparse->dims = arena_calloc(&reader->model->arena, count, sizeof *sparse->dims);
  if (sparse->dims == NULL) return status_no_memory();
  wire = wire_of_field(field);
  while (wire_next(&wire, &part)) {
    if (part.tag != WIRE_TAG(3, WIRE_BYTES) && part.tag != WIRE_TAG(3, WIRE_VARINT)) continue;
    Wire elements = wire_of_field(&part);
    uint64_t dim;
    while (sparse->rank < count && wire_varint(&elements, &dim)) sparse->dims[sparse->rank++] = (int64_t)dim;
    TRY(check_wire(&elements, "dimensions of sparse tensor", sparse->values.name));
  }
  return NULL;
}

/* The place of the `i`th value in the dense tensor: indices are linear (rank 1) or one row a value (rank 2).
 */
static OrtStatus* linear_index(const SparseParts* sparse, size_t i, size_t element_count, size_t* out) {
  const OrtValue* indices = sparse->indices.value;
  bool is_linear = indices->rank == 1;
  size_t columns = is_linear ? 1 : sparse->rank;
  uint64_t index = 0;
  for (size_t c = 0; c < columns; c++) {
    int64_t at = ((const int64_t*)indices->data)[i * columns + c];
    uint64_t limit = is_linear ? element_count : (uint64_t)sparse->dims[c];
    if (at < 0 || (uint64_t)at >= limit) return sparse_error(sparse, "an index is out of range");
    index = index * limit + (uint64_t)at;
  }
  *out = (size_t)index;
  return NULL;
}

static OrtStatus* check_parts(const SparseParts* sparse, size_t* element_count) {
  const OrtValue *values = sparse->values.value, *indices = sparse->indices.value;
  if (values == NULL || indices == NULL) return sparse_error(sparse, "values or indices are missing");
  unsigned bits = element_type_bits(values->element_type);
  if (bits < 8) return sparse_error(sparse, "elements of this type cannot be sparse");
  if (indices->element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 || values->rank != 1)
    return sparse_error(sparse, "indices must be int64, values of rank 1");
  size_t size_bytes;
  OrtStatus* status =
      tensor_size(values->element_type, sparse->rank, sparse->dims, element_count, &size_bytes);
  if (status != NULL) return status_wrap(status, "sparse %s '%s'", sparse->what, sparse->values.name);
  if (size_bytes > MAX_DENSE_BYTES)
    return status_new(ORT_NOT_IMPLEMENTED, "sparse %s '%s': its dense form of %zu bytes is too large",
                      sparse->what, sparse->values.name, size_bytes);
  bool fits = indices->rank == 1 && indices->dims[0] == values->dims[0];
  fits = fits || (indices->rank == 2 && indices->dims[0] == values->dims[0] &&
                  (uint64_t)indices->dims[1] == sparse->rank);
  return fits ? NULL : sparse_error(sparse, "the shape of its indices does not fit");
}

OrtStatus* read_sparse_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out) {
  SparseParts sparse = {.what = what};
  size_t element_count = 0;
  TRY(read_parts(reader, field, &sparse));
  TRY(check_parts(&sparse, &element_count));
  const OrtValue* values = sparse.values.value;
  OrtValue* dense = NULL;
  TRY(value_new_tensor(allocator_cpu(), values->element_type, sparse.rank, sparse.dims, &dense));
  TRY(model_own_value(reader->model, dense));
  size_t size = element_type_bits(values->element_type) / 8;
  if (dense->size_bytes != 0) memset(dense->data, 0, dense->size_bytes);
  for (size_t i = 0; i < values->element_count; i++) {
    size_t at = 0;
    TRY(linear_index(&sparse, i, element_count, &at));
    memcpy((uint8_t*)dense->data + at * size, (const uint8_t*)values->data + i * size, size);
  }
  *out = (TensorResult){sparse.values.name, dense, NULL};
  return NULL;
}

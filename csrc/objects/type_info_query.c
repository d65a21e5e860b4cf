/* The slots over types: reading them, and changing a tensor type that the client made. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

/* gives (caller releases with ReleaseTensorTypeAndShapeInfo): no type, no shape yet. */
OrtStatus* ORT_API_CALL api_CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) {
  REQUIRE_ARG(out);
  OrtTensorTypeAndShapeInfo* info =
      shape_info_new(NULL, ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, false, 0, NULL, NULL);
  if (info == NULL) return status_no_memory();
  *out = info;
  return NULL;
}

void ORT_API_CALL api_ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* input) {
  shape_info_release(input);
}

void ORT_API_CALL api_ReleaseTypeInfo(OrtTypeInfo* input) {
  type_info_release(input);
}

/* The two below are parts of an OrtTypeInfo and never given to a client to release. */
void ORT_API_CALL api_ReleaseMapTypeInfo(OrtMapTypeInfo* input) {
  (void)input;
}

void ORT_API_CALL api_ReleaseSequenceTypeInfo(OrtSequenceTypeInfo* input) {
  (void)input;
}

OrtStatus* ORT_API_CALL api_SetTensorElementType(OrtTensorTypeAndShapeInfo* info,
                                                 ONNXTensorElementDataType type) {
  REQUIRE_ARG(info);
  info->element_type = type;
  return NULL;
}

/* Puts new dimensions and symbols (either may be the current ones) in place of the old. */
static OrtStatus* replace_shape(OrtTensorTypeAndShapeInfo* info, size_t rank, const int64_t* dims,
                                const char* const* symbols) {
  OrtTensorTypeAndShapeInfo* fresh = shape_info_new(NULL, info->element_type, true, rank, dims, symbols);
  if (fresh == NULL) return status_no_memory();
  mem_free(info->own_block);
  info->own_block = fresh;
  info->has_shape = true;
  info->rank = rank;
  info->dims = fresh->dims;
  info->symbols = fresh->symbols;
  return NULL;
}

/* copies. -1 is an unknown dimension. Symbolic names are forgotten. */
OrtStatus* ORT_API_CALL api_SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dim_values,
                                          size_t dim_count) {
  REQUIRE_ARG(info);
  if (dim_count != 0) REQUIRE_ARG(dim_values);
  return replace_shape(info, dim_count, dim_values, NULL);
}

/* copies. One name a dimension, NULL or "" for none. */
OrtStatus* ORT_API_CALL api_SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                                                  size_t dim_params_length) {
  REQUIRE_ARG(info);
  if (dim_params_length != 0) REQUIRE_ARG(dim_params);
  if (dim_params_length != info->rank)
    return status_new(ORT_INVALID_ARGUMENT, "SetSymbolicDimensions: %zu names for %zu dimensions",
                      dim_params_length, info->rank);
  return replace_shape(info, info->rank, info->dims, (const char* const*)dim_params);
}

OrtStatus* ORT_API_CALL api_GetTensorElementType(const OrtTensorTypeAndShapeInfo* info,
                                                 ONNXTensorElementDataType* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  *out = info->element_type;
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  *out = info->rank;
  return NULL;
}

/* Writes as many as fit. */
OrtStatus* ORT_API_CALL api_GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dim_values,
                                          size_t dim_values_length) {
  REQUIRE_ARG(info);
  size_t count = dim_values_length < info->rank ? dim_values_length : info->rank;
  if (count == 0) return NULL;
  REQUIRE_ARG(dim_values);
  memcpy(dim_values, info->dims, count * sizeof *dim_values);
  return NULL;
}

/* Writes as many as fit. borrows: the names live as long as the info; "" where a dimension has none. */
OrtStatus* ORT_API_CALL api_GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info,
                                                  const char** dim_params, size_t dim_params_length) {
  REQUIRE_ARG(info);
  size_t count = dim_params_length < info->rank ? dim_params_length : info->rank;
  if (count == 0) return NULL;
  REQUIRE_ARG(dim_params);
  for (size_t i = 0; i < count; i++) dim_params[i] = info->symbols != NULL ? info->symbols[i] : "";
  return NULL;
}

/* As in stock ORT: (size_t)-1 while a dimension is unknown. */
OrtStatus* ORT_API_CALL api_GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) {
  REQUIRE_ARG(info);
  REQUIRE_ARG(out);
  size_t count = 1;
  for (size_t i = 0; i < info->rank; i++) {
    if (info->dims[i] < 0) {
      *out = SIZE_MAX;
      return NULL;
    }
    if (!size_mul(count, (size_t)info->dims[i], &count))
      return status_new(ORT_INVALID_ARGUMENT, "GetTensorShapeElementCount: the shape has too many elements");
  }
  *out = count;
  return NULL;
}

bool ORT_API_CALL api_TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) {
  return info != NULL && info->has_shape;
}

OrtStatus* ORT_API_CALL api_GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type_info, ONNXType* out) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(out);
  *out = type_info->kind;
  return NULL;
}

/* borrows: *denotation lives as long as the type; "" where there is none. */
OrtStatus* ORT_API_CALL api_GetDenotationFromTypeInfo(const OrtTypeInfo* type_info,
                                                      const char** const denotation, size_t* len) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(denotation);
  REQUIRE_ARG(len);
  *denotation = type_info->denotation != NULL ? type_info->denotation : "";
  *len = strlen(*denotation);
  return NULL;
}

/* borrows; NULL when the type is no tensor. */
OrtStatus* ORT_API_CALL api_CastTypeInfoToTensorInfo(const OrtTypeInfo* type_info,
                                                     const OrtTensorTypeAndShapeInfo** out) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(out);
  *out = type_info->tensor;
  return NULL;
}

/* borrows; NULL for another type. */
OrtStatus* ORT_API_CALL api_CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type_info,
                                                      const OrtMapTypeInfo** out) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(out);
  *out = type_info->kind == ONNX_TYPE_MAP ? &type_info->map : NULL;
  return NULL;
}

/* borrows; NULL for another type. */
OrtStatus* ORT_API_CALL api_CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type_info,
                                                           const OrtSequenceTypeInfo** out) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(out);
  *out = type_info->kind == ONNX_TYPE_SEQUENCE ? &type_info->sequence : NULL;
  return NULL;
}

/* borrows; NULL for another type. */
OrtStatus* ORT_API_CALL api_CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type_info,
                                                           const OrtOptionalTypeInfo** out) {
  REQUIRE_ARG(type_info);
  REQUIRE_ARG(out);
  *out = type_info->kind == ONNX_TYPE_OPTIONAL ? &type_info->optional : NULL;
  return NULL;
}

OrtStatus* ORT_API_CALL api_GetMapKeyType(const OrtMapTypeInfo* map_type_info,
                                          ONNXTensorElementDataType* out) {
  REQUIRE_ARG(map_type_info);
  REQUIRE_ARG(out);
  *out = map_type_info->key_type;
  return NULL;
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_GetMapValueType(const OrtMapTypeInfo* map_type_info, OrtTypeInfo** type_info) {
  REQUIRE_ARG(map_type_info);
  REQUIRE_ARG(type_info);
  return type_info_give(map_type_info->value, type_info);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_GetSequenceElementType(const OrtSequenceTypeInfo* sequence_type_info,
                                                   OrtTypeInfo** type_info) {
  REQUIRE_ARG(sequence_type_info);
  REQUIRE_ARG(type_info);
  return type_info_give(sequence_type_info->element, type_info);
}

/* gives (caller releases with ReleaseTypeInfo). */
OrtStatus* ORT_API_CALL api_GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional_type_info,
                                                         OrtTypeInfo** out) {
  REQUIRE_ARG(optional_type_info);
  REQUIRE_ARG(out);
  return type_info_give(optional_type_info->element, out);
}

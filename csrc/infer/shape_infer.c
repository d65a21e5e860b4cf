/* Custom operators that infer the types and shapes of their outputs themselves
 * (OrtCustomOp::InferOutputShapeFn).
 */
#include <string.h>

#include "api_slots.h"
#include "infer/infer.h"
#include "infer/type_infer.h"

struct OrtShapeInferContext {
  TypeInfer* infer;
  OrtNode* node;
};

OrtStatus* ORT_API_CALL api_ShapeInferContext_GetInputCount(const OrtShapeInferContext* context,
                                                            size_t* out) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(out);
  *out = context->node->input_count;
  return NULL;
}

/* borrows: a copy that lives as long as the model. Of an input that is missing or unknown, the element type
 * is undefined and the shape is not known. */
OrtStatus* ORT_API_CALL api_ShapeInferContext_GetInputTypeShape(const OrtShapeInferContext* context,
                                                                size_t index,
                                                                OrtTensorTypeAndShapeInfo** info) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(info);
  if (index >= context->node->input_count)
    return status_new(ORT_INVALID_ARGUMENT, "ShapeInferContext_GetInputTypeShape: input %zu of %zu", index,
                      context->node->input_count);
  const OrtTypeInfo* type = infer_input(context->node, index);
  const OrtTensorTypeAndShapeInfo unknown = {.rank = 0};
  const OrtTensorTypeAndShapeInfo* known = type != NULL && type->tensor != NULL ? type->tensor : &unknown;
  OrtTensorTypeAndShapeInfo* copy =
      shape_info_new(&context->infer->model->arena, known->element_type, known->has_shape, known->rank,
                     known->dims, (const char* const*)known->symbols);
  if (copy == NULL) return status_no_memory();
  *info = copy;
  return NULL;
}

/* borrows: as long as the model. */
OrtStatus* ORT_API_CALL api_ShapeInferContext_GetAttribute(const OrtShapeInferContext* context,
                                                           const char* attr_name, const OrtOpAttr** attr) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(attr_name);
  REQUIRE_ARG(attr);
  const OrtOpAttr* found = node_find_attribute(context->node, attr_name);
  if (found == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "ShapeInferContext_GetAttribute: node '%s' has no attribute '%s'",
                      context->node->name, attr_name);
  *attr = found;
  return NULL;
}

/* copies. An output that nobody wants is no error. What the model states itself is kept. */
OrtStatus* ORT_API_CALL api_ShapeInferContext_SetOutputTypeShape(const OrtShapeInferContext* context,
                                                                 size_t index,
                                                                 const OrtTensorTypeAndShapeInfo* info) {
  REQUIRE_ARG(context);
  REQUIRE_ARG(info);
  const OrtNode* node = context->node;
  OrtValueInfo* value = index < node->output_count ? node->outputs[index] : NULL;
  if (value == NULL) return NULL;
  const OrtTypeInfo* old = value->type;
  if (old != NULL && (old->kind != ONNX_TYPE_TENSOR || old->tensor->has_shape)) return NULL;
  ONNXTensorElementDataType element = info->element_type;
  bool has_element = old != NULL && old->tensor->element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  if (has_element && (element == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED || !value->is_inferred))
    element = old->tensor->element_type;
  Arena* arena = &context->infer->model->arena;
  OrtTensorTypeAndShapeInfo* tensor = shape_info_new(arena, element, info->has_shape, info->rank, info->dims,
                                                     (const char* const*)info->symbols);
  OrtTypeInfo* type = tensor != NULL ? type_info_new_tensor(arena, ONNX_TYPE_TENSOR, tensor) : NULL;
  if (type == NULL) return status_no_memory();
  value->type = type;
  value->is_inferred = value->is_inferred || !has_element;
  return NULL;
}

void infer_custom_shapes(TypeInfer* infer, OrtNode* node) {
  const CustomOp* custom = node_custom_op(node);
  const OrtCustomOp* op = custom != NULL ? custom_op_select(custom, node, NULL) : NULL;
  if (op == NULL || custom_op_version(op) < 17 || op->InferOutputShapeFn == NULL) return;
  OrtShapeInferContext context = {infer, node};
  OrtStatus* status = call_OrtCustomOp_InferOutputShapeFn(op, &context);
  if (status == NULL) return;
  char* text = node_text(node);
  LOG(NULL, WARNING, "%s: OrtCustomOp::InferOutputShapeFn failed, its output shapes stay unknown: %s",
      text != NULL ? text : "node", status_message(status));
  mem_free(text);
  status_release(status);
}

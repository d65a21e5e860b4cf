/* type_infer: what type_infer.c and its rules share. Private to infer/. */
#ifndef ORT_ABI_TYPE_INFER_H
#define ORT_ABI_TYPE_INFER_H

#include "infer/infer.h"

#define ELEMENT_TYPE_LIMIT (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 + 1)

/* One walk over a model. Types without a shape are made once and shared by values: nobody changes them. */
typedef struct TypeInfer {
  OrtModel* model;
  OrtTypeInfo* tensors[ELEMENT_TYPE_LIMIT]; /* "tensor(x)" without a shape, made when first needed */
  bool no_memory;
} TypeInfer;

/* All give types of the model's arena; NULL: unknown, or no memory (`no_memory` is set). */
OrtTypeInfo* infer_tensor(TypeInfer* infer, ONNXTensorElementDataType element);
OrtTypeInfo* infer_container(TypeInfer* infer, ONNXType sequence_or_optional, const OrtTypeInfo* element);
/* The same type with nothing known of shapes. */
OrtTypeInfo* infer_without_shape(TypeInfer* infer, const OrtTypeInfo* type);
/* "tensor(float)", "seq(map(int64, float))": as op schemas write types. */
OrtTypeInfo* infer_of_text(TypeInfer* infer, const char* text);
/* The type of an input; NULL if the input is missing or of an unknown type. */
const OrtTypeInfo* infer_input(const OrtNode* node, size_t index);

/* The type that the node's operator makes its output as; NULL: unknown. `schema` may be NULL. */
OrtTypeInfo* infer_output(TypeInfer* infer, const OrtNode* node, const OpSchema* schema, size_t output);
/* An output's type where the schema alone cannot tell it. */
OrtTypeInfo* infer_by_rule(TypeInfer* infer, const OrtNode* node, size_t output);
/* The type of a custom operator's output. *found says whether the node is one. */
OrtTypeInfo* infer_by_custom_op(TypeInfer* infer, const OrtNode* node, size_t output, bool* found);
/* Lets a custom operator set the types and shapes of its outputs, if it can. A failure is a warning, as
 * shapes may be unknown; stock ORT is silent. */
void infer_custom_shapes(TypeInfer* infer, OrtNode* node);

#endif

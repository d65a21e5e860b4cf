/* custom_op: operators that a session knows beside ONNX's, made of OrtCustomOps. */
#ifndef ORT_ABI_CUSTOM_OP_H
#define ORT_ABI_CUSTOM_OP_H

#include "model/model.h"
#include "model/op_schema.h"

/* One operator: its schema, and all OrtCustomOps of its name, which differ in the types that they take.
 * Inputs and outputs are called Input0, Input1, ..., Output0, ..., and so are their type parameters, as in
 * stock ORT. Lives in its model's arena. */
typedef struct CustomOp CustomOp;
struct CustomOp {
  CustomOp* next; /* of the same name, in another domain */
  OpSchema schema;
  const OrtCustomOp** ops; /* borrows them; the first is what the schema was made of */
  size_t count, capacity;
  const OrtCustomOpDomain* origin; /* whose operator this was first */
};

/* Adds the operators of the domains to the model: its nodes get their versions, and values that were of an
 * unknown type get one where the operators tell it. The last `ep_count` domains are EPs': what another domain
 * has an operator for, they leave to it. Errors name operator and domain, or the node. */
OrtStatus* model_add_custom_ops(OrtModel* model, const OrtCustomOpDomain* const* domains, size_t count,
                                size_t ep_count);
/* borrows: NULL when the node's operator is none of those. */
const CustomOp* node_custom_op(const OrtNode* node);
/* borrows: the node's schema, a custom operator's or ONNX's; NULL when there is none. */
const OpSchema* node_schema(const OrtNode* node);

/* The version to read an OrtCustomOp by. */
uint32_t custom_op_version(const OrtCustomOp* op);
/* The first opset version that the operator is for, and the last one. *thrown: as in plugin_calls.h. */
void custom_op_versions(const OrtCustomOp* op, int* first, int* last, OrtStatus** thrown);
/* The first OrtCustomOp that takes the node's inputs, as far as their types are known; NULL: none. *dynamic
 * (may be NULL) is the type of the node's last input among those that may be of any type, which outputs of
 * any type have as well; UNDEFINED if unknown. */
const OrtCustomOp* custom_op_select(const CustomOp* custom, const OrtNode* node,
                                    ONNXTensorElementDataType* dynamic);

#endif

/* infer: what operators say of a graph. Types and shapes, checks of what the model declares, default
 * attributes, and the operators that a session knows beside ONNX's, made of OrtCustomOps. */
#ifndef ORT_ABI_INFER_H
#define ORT_ABI_INFER_H

#include "graph/graph.h"

/* ---- default_attributes.c, type_infer.c ---- */

/* Gives every node the attributes that it lacks and its operator has a default for (as stock ORT does). */
OrtStatus* model_add_default_attributes(OrtModel* model);
/* Fills in the types of values that have none, from the op schemas, node by node (element types; shapes only
 * where they are plain). Called by model_read. */
OrtStatus* model_infer_types(OrtModel* model);

/* ---- type_check.c ---- */

/* Holds every type that the model declares against what its operators make and take: an error that names
 * value, node and both types. Shapes that contradict are a warning, as in stock ORT, but for initializers and
 * what Scan gives to its body. When custom operators are known. */
OrtStatus* model_check_types(OrtModel* model, const OrtLogger* logger);

/* ---- node_check.c ---- */

/* ORT_INVALID_GRAPH when inputs, outputs or attributes are not what the operator's schema says. Operators
 * without a schema may have any. */
OrtStatus* check_node(const OrtNode* node);
/* The same for the numbers of inputs and outputs only. */
OrtStatus* check_node_counts(const OrtNode* node, const OpSchema* schema);

/* ---- custom_op.c ---- */

/* Adds the operators of the domains to the model: its nodes get their versions, and values that were of an
 * unknown type get one where the operators tell it. The last `ep_count` domains are EPs': what another domain
 * has an operator for, they leave to it. Errors name operator and domain, or the node. */
OrtStatus* model_add_custom_ops(OrtModel* model, const OrtCustomOpDomain* const* domains, size_t count,
                                size_t ep_count);
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

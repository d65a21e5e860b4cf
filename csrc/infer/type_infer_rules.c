/* Operators whose output types depend on attributes, subgraphs or the parts of containers. */
#include <ctype.h>
#include <string.h>

#include "infer/type_infer.h"

typedef OrtTypeInfo* (*TypeRule)(TypeInfer* infer, const OrtNode* node, size_t output);

/* The element type in an integer attribute; `absent` when the node does not have it. */
static ONNXTensorElementDataType attribute_element(const OrtNode* node, const char* name,
                                                   ONNXTensorElementDataType absent) {
  const OrtOpAttr* attribute = node_find_attribute(node, name);
  if (attribute == NULL || attribute->type != ORT_OP_ATTR_INT) return absent;
  return element_type_of_proto((uint64_t)attribute->i);
}

static ONNXTensorElementDataType input_element(const OrtNode* node, size_t index) {
  const OrtTypeInfo* type = infer_input(node, index);
  return type != NULL && type->kind == ONNX_TYPE_TENSOR ? type->tensor->element_type
                                                        : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

static bool has_attribute(const OrtNode* node, const char* name) {
  return node_find_attribute(node, name) != NULL;
}

/* ---- Element types in attributes ---- */

/* The first versions of Cast name the type. */
static OrtTypeInfo* rule_cast(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtOpAttr* to = node_find_attribute(node, "to");
  char name[24] = "";
  if (to == NULL || to->type != ORT_OP_ATTR_STRING)
    return infer_tensor(infer, attribute_element(node, "to", ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED));
  for (size_t i = 0; i < to->count && i + 1 < sizeof name; i++)
    name[i] = (char)tolower((unsigned char)to->s[i]);
  return infer_tensor(infer, element_type_of_name(name, strlen(name)));
}

static OrtTypeInfo* rule_to(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "to", ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED));
}

static OrtTypeInfo* rule_dtype_or_float(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "dtype", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
}

static OrtTypeInfo* rule_dtype_or_int32(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "dtype", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32));
}

static OrtTypeInfo* rule_dtype_or_input(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "dtype", input_element(node, 0)));
}

static OrtTypeInfo* rule_output_datatype(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "output_datatype", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
}

/* 0, the default, means that the inputs decide. */
static ONNXTensorElementDataType output_dtype(const OrtNode* node) {
  return attribute_element(node, "output_dtype", ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
}

static OrtTypeInfo* rule_quantize(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  ONNXTensorElementDataType zero_point = input_element(node, 2);
  if (zero_point != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return infer_tensor(infer, zero_point);
  if (node->input_count > 2 && node->inputs[2] != NULL) return NULL;
  ONNXTensorElementDataType given = output_dtype(node);
  return infer_tensor(
      infer, given != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ? given : ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8);
}

static OrtTypeInfo* rule_dequantize(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  ONNXTensorElementDataType given = output_dtype(node);
  if (given != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return infer_tensor(infer, given);
  if (node->since_version < 19) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  return infer_tensor(infer, input_element(node, 1));
}

static OrtTypeInfo* rule_layer_normalization(TypeInfer* infer, const OrtNode* node, size_t output) {
  if (output == 0) return infer_tensor(infer, input_element(node, 0));
  return infer_tensor(infer, attribute_element(node, "stash_type", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
}

/* ---- Constants ---- */

static OrtTypeInfo* rule_constant(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  for (size_t i = 0; i < node->attribute_count; i++) {
    const OrtOpAttr* attribute = &node->attributes[i];
    const OrtValue* tensor = attribute->tensor;
    if (tensor != NULL) { /* a lone constant's shape is as plain as its type */
      Arena* arena = &infer->model->arena;
      OrtTypeInfo* type = type_info_new_tensor(
          arena, ONNX_TYPE_TENSOR,
          shape_info_new(arena, tensor->element_type, true, tensor->rank, tensor->dims, NULL));
      if (type == NULL) infer->no_memory = true;
      return type;
    }
    if (strncmp(attribute->name, "value_int", 9) == 0)
      return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
    if (strncmp(attribute->name, "value_float", 11) == 0)
      return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    if (strncmp(attribute->name, "value_string", 12) == 0)
      return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  }
  return NULL;
}

static OrtTypeInfo* rule_constant_of_shape(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtOpAttr* value = node_find_attribute(node, "value");
  if (value == NULL) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  return value->tensor != NULL ? infer_tensor(infer, value->tensor->element_type) : NULL;
}

/* ---- Subgraphs ---- */

static const OrtTypeInfo* subgraph_output(const OrtNode* node, size_t subgraph, size_t index) {
  if (subgraph >= node->subgraph_count || index >= node->subgraphs[subgraph]->output_count) return NULL;
  return node->subgraphs[subgraph]->outputs[index]->type;
}

static OrtTypeInfo* rule_if(TypeInfer* infer, const OrtNode* node, size_t output) {
  const OrtTypeInfo* type = subgraph_output(node, 0, output);
  return infer_without_shape(infer, type != NULL ? type : subgraph_output(node, 1, output));
}

/* The body's first output is the condition. */
static OrtTypeInfo* rule_loop(TypeInfer* infer, const OrtNode* node, size_t output) {
  return infer_without_shape(infer, subgraph_output(node, 0, output + 1));
}

static OrtTypeInfo* rule_scan(TypeInfer* infer, const OrtNode* node, size_t output) {
  return infer_without_shape(infer, subgraph_output(node, 0, output));
}

static OrtTypeInfo* rule_sequence_map(TypeInfer* infer, const OrtNode* node, size_t output) {
  return infer_container(infer, ONNX_TYPE_SEQUENCE,
                         infer_without_shape(infer, subgraph_output(node, 0, output)));
}

/* ---- Sequences and optionals ---- */

static OrtTypeInfo* rule_sequence_of_input(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_container(infer, ONNX_TYPE_SEQUENCE, infer_tensor(infer, input_element(node, 0)));
}

static OrtTypeInfo* rule_sequence_of_dtype(TypeInfer* infer, const OrtNode* node, size_t output) {
  return infer_container(infer, ONNX_TYPE_SEQUENCE, rule_dtype_or_float(infer, node, output));
}

static OrtTypeInfo* rule_element_of_sequence(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtTypeInfo* type = infer_input(node, 0);
  return type != NULL && type->kind == ONNX_TYPE_SEQUENCE ? infer_without_shape(infer, type->sequence.element)
                                                          : NULL;
}

static OrtTypeInfo* rule_optional(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtOpAttr* type = node_find_attribute(node, "type");
  const OrtTypeInfo* element = type != NULL ? type->type_proto : infer_input(node, 0);
  return infer_container(infer, ONNX_TYPE_OPTIONAL, infer_without_shape(infer, element));
}

static OrtTypeInfo* rule_optional_get(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtTypeInfo* type = infer_input(node, 0);
  bool is_optional = type != NULL && type->kind == ONNX_TYPE_OPTIONAL;
  return infer_without_shape(infer, is_optional ? type->optional.element : type);
}

/* ---- Outputs that follow an input of another type parameter ---- */

/* The state has the type of the past one, or of the query where there is none yet. */
static OrtTypeInfo* rule_linear_attention(TypeInfer* infer, const OrtNode* node, size_t output) {
  const size_t past_state = 3;
  bool has_past = output == 1 && node->input_count > past_state && node->inputs[past_state] != NULL;
  return infer_tensor(infer, input_element(node, has_past ? past_state : 0));
}

/* Training steps: inputs R, T, then n values, n gradients and n of each state; outputs are the new values and
 * states, in that order. */
static OrtTypeInfo* training_step(TypeInfer* infer, const OrtNode* node, size_t output, size_t groups) {
  size_t n = node->input_count > 2 ? (node->input_count - 2) / groups : 0;
  return infer_tensor(infer, input_element(node, output < n ? 2 + output : 2 + n + output));
}

static OrtTypeInfo* rule_step_with_one_state(TypeInfer* infer, const OrtNode* node, size_t output) {
  return training_step(infer, node, output, 3);
}

static OrtTypeInfo* rule_step_with_two_states(TypeInfer* infer, const OrtNode* node, size_t output) {
  return training_step(infer, node, output, 4);
}

/* ---- ai.onnx.ml ---- */

static OrtTypeInfo* rule_cast_map(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtOpAttr* to = node_find_attribute(node, "cast_to");
  if (to == NULL || str_equal(to->s, "TO_FLOAT"))
    return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  if (str_equal(to->s, "TO_STRING")) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  if (str_equal(to->s, "TO_INT64")) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  return NULL;
}

/* Strings become numbers and numbers strings. */
static OrtTypeInfo* rule_category_mapper(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  ONNXTensorElementDataType from = input_element(node, 0);
  if (from == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return NULL;
  return infer_tensor(infer, from == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
                                 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
                                 : ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
}

static OrtTypeInfo* rule_dict_vectorizer(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  const OrtTypeInfo* type = infer_input(node, 0);
  return type != NULL && type->kind == ONNX_TYPE_MAP ? infer_without_shape(infer, type->map.value) : NULL;
}

static OrtTypeInfo* rule_label_encoder(TypeInfer* infer, const OrtNode* node, size_t output) {
  const OrtOpAttr* tensor = node_find_attribute(node, "values_tensor");
  if (node->since_version < 2) return rule_category_mapper(infer, node, output);
  if (has_attribute(node, "values_strings")) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  if (has_attribute(node, "values_int64s")) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  if (has_attribute(node, "values_floats")) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  return tensor != NULL && tensor->tensor != NULL ? infer_tensor(infer, tensor->tensor->element_type) : NULL;
}

/* Labels (output 0) are strings if the model lists strings; scores are floats. */
static OrtTypeInfo* rule_classifier(TypeInfer* infer, const OrtNode* node, size_t output) {
  static const char* const string_labels[] = {"classlabels_strings", "classlabels_string"};
  if (output != 0) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  for (size_t i = 0; i < 2; i++) {
    const OrtOpAttr* labels = node_find_attribute(node, string_labels[i]);
    if (labels != NULL && labels->count != 0)
      return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  }
  return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
}

static OrtTypeInfo* rule_zip_map(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  bool is_string = has_attribute(node, "classlabels_strings");
  return infer_of_text(infer, is_string ? "seq(map(string, float))" : "seq(map(int64, float))");
}

/* ---- com.microsoft: where no input says the type of the output ---- */

static OrtTypeInfo* rule_input(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, input_element(node, 0));
}

static OrtTypeInfo* rule_int32(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)node, (void)output;
  return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
}

static bool is_set(const OrtNode* node, const char* name, bool absent) {
  const OrtOpAttr* attribute = node_find_attribute(node, name);
  return attribute != NULL && attribute->type == ORT_OP_ATTR_INT ? attribute->i != 0 : absent;
}

static OrtTypeInfo* rule_dynamic_sparse_attention(TypeInfer* infer, const OrtNode* node, size_t output) {
  if (output != 0) return NULL; /* a cache that is made from none */
  if (is_set(node, "output_bf16", false)) return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
  return infer_tensor(infer, input_element(node, 0));
}

static OrtTypeInfo* rule_gather_packed(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, attribute_element(node, "output_dtype", ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16));
}

static OrtTypeInfo* rule_murmur_hash(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, is_set(node, "positive", true) ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32
                                                            : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
}

/* Quantized if there is a zero point to quantize with. */
static OrtTypeInfo* rule_q_gemm(TypeInfer* infer, const OrtNode* node, size_t output) {
  const size_t zero_point = 8;
  (void)output;
  if (node->input_count > zero_point && node->inputs[zero_point] != NULL)
    return infer_tensor(infer, input_element(node, zero_point));
  return infer_tensor(infer, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
}

static OrtTypeInfo* rule_rms_norm_rotary(TypeInfer* infer, const OrtNode* node, size_t output) {
  (void)output;
  return infer_tensor(infer, is_set(node, "output_fp16", false) ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16
                                                                : ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
}

/* ---- The table ---- */

static const struct {
  const char* domain;
  const char* op_type;
  TypeRule rule;
} rules[] = {
    {"", "Bernoulli", rule_dtype_or_input},
    {"", "BitCast", rule_to},
    {"", "BlackmanWindow", rule_output_datatype},
    {"", "Cast", rule_cast},
    {"", "ConcatFromSequence", rule_element_of_sequence},
    {"", "Constant", rule_constant},
    {"", "ConstantOfShape", rule_constant_of_shape},
    {"", "DequantizeLinear", rule_dequantize},
    {"", "EyeLike", rule_dtype_or_input},
    {"", "HammingWindow", rule_output_datatype},
    {"", "HannWindow", rule_output_datatype},
    {"", "If", rule_if},
    {"", "LayerNormalization", rule_layer_normalization},
    {"", "LinearAttention", rule_linear_attention},
    {"", "Loop", rule_loop},
    {"", "MelWeightMatrix", rule_output_datatype},
    {"", "Multinomial", rule_dtype_or_int32},
    {"", "Optional", rule_optional},
    {"", "OptionalGetElement", rule_optional_get},
    {"", "QuantizeLinear", rule_quantize},
    {"", "RandomNormal", rule_dtype_or_float},
    {"", "RandomNormalLike", rule_dtype_or_input},
    {"", "RandomUniform", rule_dtype_or_float},
    {"", "RandomUniformLike", rule_dtype_or_input},
    {"", "Scan", rule_scan},
    {"", "SequenceAt", rule_element_of_sequence},
    {"", "SequenceConstruct", rule_sequence_of_input},
    {"", "SequenceEmpty", rule_sequence_of_dtype},
    {"", "SequenceMap", rule_sequence_map},
    {"", "SimplifiedLayerNormalization", rule_layer_normalization},
    {"", "SplitToSequence", rule_sequence_of_input},
    {"ai.onnx.ml", "CastMap", rule_cast_map},
    {"ai.onnx.ml", "CategoryMapper", rule_category_mapper},
    {"ai.onnx.ml", "DictVectorizer", rule_dict_vectorizer},
    {"ai.onnx.ml", "LabelEncoder", rule_label_encoder},
    {"ai.onnx.ml", "LinearClassifier", rule_classifier},
    {"ai.onnx.ml", "SVMClassifier", rule_classifier},
    {"ai.onnx.ml", "TreeEnsembleClassifier", rule_classifier},
    {"ai.onnx.ml", "ZipMap", rule_zip_map},
    {"ai.onnx.preview.training", "Adagrad", rule_step_with_one_state},
    {"ai.onnx.preview.training", "Adam", rule_step_with_two_states},
    {"ai.onnx.preview.training", "Momentum", rule_step_with_one_state},
    {"com.microsoft", "DequantizeBFP", rule_dtype_or_float},
    {"com.microsoft", "DequantizeWithOrder", rule_to},
    {"com.microsoft", "DynamicSparseAttention", rule_dynamic_sparse_attention},
    {"com.microsoft", "GatherPacked", rule_gather_packed},
    {"com.microsoft", "GemmFloat8", rule_dtype_or_float},
    {"com.microsoft", "GridSample", rule_input},
    {"com.microsoft", "LinearAttention", rule_linear_attention},
    {"com.microsoft", "MatMulInteger16", rule_int32},
    {"com.microsoft", "MurmurHash3", rule_murmur_hash},
    {"com.microsoft", "QGemm", rule_q_gemm},
    {"com.microsoft", "QuantizeLinear", rule_quantize},
    {"com.microsoft", "RMSNormRotary", rule_rms_norm_rotary},
};

OrtTypeInfo* infer_by_rule(TypeInfer* infer, const OrtNode* node, size_t output) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (strcmp(rules[i].op_type, node->op_type) == 0 && strcmp(rules[i].domain, node->domain) == 0)
      return rules[i].rule(infer, node, output);
  }
  return NULL;
}

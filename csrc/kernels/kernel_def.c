/* Kernel definitions: what a plugin says its kernels can do. Builders belong to one thread, definitions to
 * all. */
#include <limits.h>
#include <string.h>

#include "api_slots.h"
#include "kernels/kernels.h"

struct OrtKernelDefBuilder {
  OrtKernelDef* def; /* NULL once it was built */
};

OrtKernelDef* kernel_def_retain(const OrtKernelDef* def) {
  OrtKernelDef* shared = (OrtKernelDef*)def;
  atomic_fetch_add(&shared->references, 1);
  return shared;
}

void kernel_def_release(OrtKernelDef* def) {
  if (def == NULL || atomic_fetch_sub(&def->references, 1) != 1) return;
  mem_free(def->op_type);
  mem_free(def->domain);
  mem_free(def->ep_name);
  for (size_t i = 0; i < def->constraint_count; i++) mem_free(def->constraints[i].name);
  mem_free(def->constraints);
  mem_free(def->aliases);
  mem_free(def->mem_types);
  mem_free(def);
}

/* gives (caller releases with ReleaseKernelDefBuilder). */
OrtStatus* ORT_API_CALL api_CreateKernelDefBuilder(OrtKernelDefBuilder** kernel_def_builder_out) {
  REQUIRE_ARG(kernel_def_builder_out);
  OrtKernelDefBuilder* builder = mem_calloc(1, sizeof *builder);
  OrtKernelDef* def = mem_calloc(1, sizeof *def);
  if (builder == NULL || def == NULL) {
    mem_free(builder);
    mem_free(def);
    return status_no_memory();
  }
  atomic_init(&def->references, 1);
  def->since_start = 1;
  def->since_end = INT_MAX;
  builder->def = def;
  *kernel_def_builder_out = builder;
  return NULL;
}

void ORT_API_CALL api_ReleaseKernelDefBuilder(OrtKernelDefBuilder* input) {
  if (input == NULL) return;
  kernel_def_release(input->def);
  mem_free(input);
}

#define REQUIRE_BUILDER(builder)                                                                            \
  do {                                                                                                      \
    REQUIRE_ARG(builder);                                                                                   \
    if ((builder)->def == NULL)                                                                             \
      return status_new(ORT_INVALID_ARGUMENT, "%s: the builder's definition was built", slot_of(__func__)); \
  } while (0)

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetOperatorType(OrtKernelDefBuilder* kernel_def_builder,
                                                             const char* op_type) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(op_type);
  return str_set(&kernel_def_builder->def->op_type, op_type);
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetDomain(OrtKernelDefBuilder* kernel_def_builder,
                                                       const char* domain) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(domain);
  return str_set(&kernel_def_builder->def->domain, strcmp(domain, "ai.onnx") == 0 ? "" : domain);
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetExecutionProvider(OrtKernelDefBuilder* kernel_def_builder,
                                                                  const char* ep_name) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(ep_name);
  return str_set(&kernel_def_builder->def->ep_name, ep_name);
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetSinceVersion(OrtKernelDefBuilder* kernel_def_builder,
                                                             int since_version_start, int since_version_end) {
  REQUIRE_BUILDER(kernel_def_builder);
  if (since_version_start < 1 || since_version_end < since_version_start)
    return status_new(ORT_INVALID_ARGUMENT,
                      "KernelDefBuilder_SetSinceVersion: %d to %d is no range of versions from 1 on",
                      since_version_start, since_version_end);
  kernel_def_builder->def->since_start = since_version_start;
  kernel_def_builder->def->since_end = since_version_end;
  return NULL;
}

static OrtStatus* set_mem_type(OrtKernelDef* def, size_t index, bool is_output, OrtMemType type) {
  for (size_t i = 0; i < def->mem_type_count; i++) {
    KernelMemType* known = &def->mem_types[i];
    if (known->index == index && known->is_output == is_output) {
      known->type = type;
      return NULL;
    }
  }
  if (!ARRAY_RESERVE(def->mem_types, def->mem_type_capacity, def->mem_type_count + 1))
    return status_no_memory();
  def->mem_types[def->mem_type_count++] = (KernelMemType){index, is_output, type};
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetInputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                                             size_t input_index, OrtMemType mem_type) {
  REQUIRE_BUILDER(kernel_def_builder);
  return set_mem_type(kernel_def_builder->def, input_index, false, mem_type);
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_SetOutputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                                              size_t output_index, OrtMemType mem_type) {
  REQUIRE_BUILDER(kernel_def_builder);
  return set_mem_type(kernel_def_builder->def, output_index, true, mem_type);
}

/* copies. Constraints of the same name: the last one counts. */
OrtStatus* ORT_API_CALL api_KernelDefBuilder_AddTypeConstraint(OrtKernelDefBuilder* kernel_def_builder,
                                                               const char* arg_name,
                                                               const OrtDataType* const* types,
                                                               size_t num_types) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(arg_name);
  REQUIRE_ARG(types);
  if (num_types == 0)
    return status_new(ORT_INVALID_ARGUMENT, "KernelDefBuilder_AddTypeConstraint: '%s' has no types",
                      arg_name);
  uint64_t mask = 0;
  for (size_t i = 0; i < num_types; i++) {
    if (types[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "KernelDefBuilder_AddTypeConstraint: type %zu of '%s' is NULL",
                        i, arg_name);
    mask |= UINT64_C(1) << types[i]->type;
  }
  OrtKernelDef* def = kernel_def_builder->def;
  for (size_t i = 0; i < def->constraint_count; i++) {
    if (strcmp(def->constraints[i].name, arg_name) == 0) {
      def->constraints[i].types = mask;
      return NULL;
    }
  }
  if (!ARRAY_RESERVE(def->constraints, def->constraint_capacity, def->constraint_count + 1))
    return status_no_memory();
  char* name = str_copy(arg_name);
  if (name == NULL) return status_no_memory();
  def->constraints[def->constraint_count++] = (KernelConstraint){name, mask};
  return NULL;
}

static OrtStatus* add_aliases(OrtKernelDef* def, const int* inputs, const int* outputs, size_t count,
                              bool in_place, const char* slot) {
  if (count == 0) return status_new(ORT_INVALID_ARGUMENT, "%s: there are no indices", slot);
  for (size_t i = 0; i < count; i++) {
    if (inputs[i] < 0 || outputs[i] < 0)
      return status_new(ORT_INVALID_ARGUMENT, "%s: input %d and output %d are no indices", slot, inputs[i],
                        outputs[i]);
  }
  if (!ARRAY_RESERVE(def->aliases, def->alias_capacity, def->alias_count + count)) return status_no_memory();
  for (size_t i = 0; i < count; i++)
    def->aliases[def->alias_count++] = (KernelAlias){inputs[i], outputs[i], in_place};
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_AddInputOutputAliases(OrtKernelDefBuilder* kernel_def_builder,
                                                                   const int* input_indices,
                                                                   const int* output_indices,
                                                                   size_t num_io_indices) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(input_indices);
  REQUIRE_ARG(output_indices);
  return add_aliases(kernel_def_builder->def, input_indices, output_indices, num_io_indices, false,
                     "KernelDefBuilder_AddInputOutputAliases");
}

OrtStatus* ORT_API_CALL api_KernelDefBuilder_AddInputOutputMutableAliases(
    OrtKernelDefBuilder* kernel_def_builder, const int* input_indices, const int* output_indices,
    size_t num_io_indices) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(input_indices);
  REQUIRE_ARG(output_indices);
  return add_aliases(kernel_def_builder->def, input_indices, output_indices, num_io_indices, true,
                     "KernelDefBuilder_AddInputOutputMutableAliases");
}

/* gives (caller releases with ReleaseKernelDef). The builder is empty afterwards. */
OrtStatus* ORT_API_CALL api_KernelDefBuilder_Build(OrtKernelDefBuilder* kernel_def_builder,
                                                   OrtKernelDef** kernel_def_out) {
  REQUIRE_BUILDER(kernel_def_builder);
  REQUIRE_ARG(kernel_def_out);
  OrtKernelDef* def = kernel_def_builder->def;
  if (def->op_type == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "KernelDefBuilder_Build: the kernel has no operator type");
  if (def->ep_name == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "KernelDefBuilder_Build: the kernel of '%s' has no EP name",
                      def->op_type);
  if (def->domain == NULL) TRY(str_set(&def->domain, ""));
  kernel_def_builder->def = NULL;
  *kernel_def_out = def;
  return NULL;
}

void ORT_API_CALL api_ReleaseKernelDef(OrtKernelDef* input) {
  kernel_def_release(input);
}

/* borrows: as long as the definition. */
const char* ORT_API_CALL api_KernelDef_GetOperatorType(const OrtKernelDef* kernel_def) {
  return kernel_def != NULL ? kernel_def->op_type : NULL;
}

const char* ORT_API_CALL api_KernelDef_GetDomain(const OrtKernelDef* kernel_def) {
  return kernel_def != NULL ? kernel_def->domain : NULL;
}

const char* ORT_API_CALL api_KernelDef_GetExecutionProvider(const OrtKernelDef* kernel_def) {
  return kernel_def != NULL ? kernel_def->ep_name : NULL;
}

OrtStatus* ORT_API_CALL api_KernelDef_GetSinceVersion(const OrtKernelDef* kernel_def, int* start_version,
                                                      int* end_version) {
  REQUIRE_ARG(kernel_def);
  REQUIRE_ARG(start_version);
  REQUIRE_ARG(end_version);
  *start_version = kernel_def->since_start;
  *end_version = kernel_def->since_end;
  return NULL;
}

static OrtMemType mem_type_of(const OrtKernelDef* def, size_t index, bool is_output) {
  for (size_t i = 0; i < def->mem_type_count; i++) {
    const KernelMemType* known = &def->mem_types[i];
    if (known->index == index && known->is_output == is_output) return known->type;
  }
  return OrtMemTypeDefault;
}

OrtStatus* ORT_API_CALL api_KernelDef_GetInputMemType(const OrtKernelDef* kernel_def, size_t input_index,
                                                      OrtMemType* mem_type) {
  REQUIRE_ARG(kernel_def);
  REQUIRE_ARG(mem_type);
  *mem_type = mem_type_of(kernel_def, input_index, false);
  return NULL;
}

OrtStatus* ORT_API_CALL api_KernelDef_GetOutputMemType(const OrtKernelDef* kernel_def, size_t output_index,
                                                       OrtMemType* mem_type) {
  REQUIRE_ARG(kernel_def);
  REQUIRE_ARG(mem_type);
  *mem_type = mem_type_of(kernel_def, output_index, true);
  return NULL;
}

#define DATA_TYPE_COUNT (ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 + 1)

/* borrows: lives as long as the library. An unknown type is an error: a constraint over it would match
 * anything. */
OrtStatus* ORT_API_CALL api_GetTensorDataType(ONNXTensorElementDataType elem_type, const OrtDataType** out) {
  static const OrtDataType data_types[DATA_TYPE_COUNT] = {
      {0},  {1},  {2},  {3},  {4},  {5},  {6},  {7},  {8},  {9},  {10}, {11}, {12}, {13},
      {14}, {15}, {16}, {17}, {18}, {19}, {20}, {21}, {22}, {23}, {24}, {25}, {26}};
  REQUIRE_ARG(out);
  if ((int)elem_type <= 0 || (int)elem_type >= DATA_TYPE_COUNT)
    return status_new(ORT_INVALID_ARGUMENT, "GetTensorDataType: element type %d is unknown", (int)elem_type);
  *out = &data_types[elem_type];
  return NULL;
}

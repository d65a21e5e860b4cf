/* Kernel registries: filled by a plugin on one thread, copied by each session, then only read. */
#include <limits.h>
#include <string.h>

#include "api_slots.h"
#include "infer/infer.h"
#include "kernels/kernels.h"

/* gives (caller releases with ReleaseKernelRegistry). */
OrtStatus* ORT_API_CALL api_CreateKernelRegistry(OrtKernelRegistry** kernel_registry) {
  REQUIRE_ARG(kernel_registry);
  OrtKernelRegistry* registry = mem_calloc(1, sizeof *registry);
  if (registry == NULL) return status_no_memory();
  *kernel_registry = registry;
  return NULL;
}

void kernel_registry_release(OrtKernelRegistry* registry) {
  if (registry == NULL) return;
  name_map_release(&registry->by_op_type);
  for (size_t i = 0; i < registry->count; i++) kernel_def_release(registry->entries[i].def);
  mem_free(registry->entries);
  mem_free(registry);
}

void ORT_API_CALL api_ReleaseKernelRegistry(OrtKernelRegistry* input) {
  kernel_registry_release(input);
}

/* The first entry of an op_type, or NULL. */
static const KernelEntry* first_entry(const OrtKernelRegistry* registry, const char* op_type) {
  size_t place = (size_t)(uintptr_t)name_map_get(&registry->by_op_type, op_type);
  return place != 0 ? &registry->entries[place - 1] : NULL;
}

static const KernelEntry* next_entry(const OrtKernelRegistry* registry, const KernelEntry* entry) {
  return entry->next != 0 ? &registry->entries[entry->next - 1] : NULL;
}

bool kernel_registry_add(OrtKernelRegistry* registry, const OrtKernelDef* def, OrtKernelCreateFunc create,
                         void* create_state) {
  if (!ARRAY_RESERVE(registry->entries, registry->capacity, registry->count + 1)) return false;
  size_t place = (size_t)(uintptr_t)name_map_get(&registry->by_op_type, def->op_type);
  if (place == 0 &&
      !name_map_put(&registry->by_op_type, def->op_type, (void*)(uintptr_t)(registry->count + 1)))
    return false;
  if (place != 0) {
    KernelEntry* last = &registry->entries[place - 1];
    while (last->next != 0) last = &registry->entries[last->next - 1];
    last->next = registry->count + 1;
  }
  registry->entries[registry->count++] = (KernelEntry){kernel_def_retain(def), create, create_state, 0};
  return true;
}

OrtKernelRegistry* kernel_registry_copy(const OrtKernelRegistry* registry) {
  OrtKernelRegistry* copy = mem_calloc(1, sizeof *copy);
  if (copy == NULL) return NULL;
  for (size_t i = 0; i < registry->count; i++) {
    const KernelEntry* entry = &registry->entries[i];
    if (!kernel_registry_add(copy, entry->def, entry->create, entry->create_state)) {
      kernel_registry_release(copy);
      return NULL;
    }
  }
  return copy;
}

/* ---- Conflicts ---- */

static bool has_alias(const OrtKernelDef* def, const KernelAlias* alias) {
  for (size_t i = 0; i < def->alias_count; i++) {
    const KernelAlias* known = &def->aliases[i];
    if (known->input == alias->input && known->output == alias->output && known->in_place == alias->in_place)
      return true;
  }
  return false;
}

static bool same_aliases(const OrtKernelDef* a, const OrtKernelDef* b) {
  if (a->alias_count != b->alias_count) return false;
  for (size_t i = 0; i < a->alias_count; i++) {
    if (!has_alias(b, &a->aliases[i])) return false;
  }
  return true;
}

static bool has_mem_type(const OrtKernelDef* def, const KernelMemType* wanted) {
  for (size_t i = 0; i < def->mem_type_count; i++) {
    const KernelMemType* known = &def->mem_types[i];
    if (known->index == wanted->index && known->is_output == wanted->is_output && known->type == wanted->type)
      return true;
  }
  return false;
}

static bool same_mem_types(const OrtKernelDef* a, const OrtKernelDef* b) {
  if (a->mem_type_count != b->mem_type_count) return false;
  for (size_t i = 0; i < a->mem_type_count; i++) {
    if (!has_mem_type(b, &a->mem_types[i])) return false;
  }
  return true;
}

/* True unless a type parameter that both constrain has no type in common. */
static bool types_overlap(const OrtKernelDef* a, const OrtKernelDef* b) {
  for (size_t i = 0; i < a->constraint_count; i++) {
    for (size_t k = 0; k < b->constraint_count; k++) {
      if (strcmp(a->constraints[i].name, b->constraints[k].name) == 0 &&
          (a->constraints[i].types & b->constraints[k].types) == 0)
        return false;
    }
  }
  return true;
}

/* As in stock ORT: an open range says only that the kernel knows the version it starts with. */
static int last_version(const OrtKernelDef* def) {
  return def->since_end == INT_MAX ? def->since_start : def->since_end;
}

/* Nothing tells two conflicting definitions apart: which kernel a node gets would be a matter of luck. */
static bool defs_conflict(const OrtKernelDef* a, const OrtKernelDef* b) {
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->ep_name, b->ep_name) == 0 &&
         a->since_start <= last_version(b) && b->since_start <= last_version(a) && types_overlap(a, b) &&
         same_aliases(a, b) && same_mem_types(a, b);
}

/* keeps alive `kernel_def`; `kernel_create_func_state` stays the plugin's. */
OrtStatus* ORT_API_CALL api_KernelRegistry_AddKernel(OrtKernelRegistry* kernel_registry,
                                                     const OrtKernelDef* kernel_def,
                                                     OrtKernelCreateFunc kernel_create_func,
                                                     void* kernel_create_func_state) {
  REQUIRE_ARG(kernel_registry);
  REQUIRE_ARG(kernel_def);
  REQUIRE_ARG(kernel_create_func);
  for (const KernelEntry* entry = first_entry(kernel_registry, kernel_def->op_type); entry != NULL;
       entry = next_entry(kernel_registry, entry)) {
    if (defs_conflict(entry->def, kernel_def))
      return status_new(
          ORT_FAIL,
          "KernelRegistry_AddKernel: EP '%s' already has a kernel for '%s' (%s) from version %d on "
          "that takes the same types",
          kernel_def->ep_name, kernel_def->op_type,
          kernel_def->domain[0] != '\0' ? kernel_def->domain : "ai.onnx", entry->def->since_start);
  }
  return kernel_registry_add(kernel_registry, kernel_def, kernel_create_func, kernel_create_func_state)
             ? NULL
             : status_no_memory();
}

/* ---- Looking up ---- */

static bool same_domain(const char* a, const char* b) {
  if (strcmp(a, "ai.onnx") == 0) a = "";
  if (strcmp(b, "ai.onnx") == 0) b = "";
  return strcmp(a, b) == 0;
}

static bool version_fits(const OrtKernelDef* def, int since_version) {
  return def->since_start <= since_version && since_version <= last_version(def);
}

/* UNDEFINED: no such value, its type is unknown, or it is not a tensor. */
static ONNXTensorElementDataType value_element_type(OrtValueInfo* const* values, size_t count, size_t index) {
  if (index >= count || values[index] == NULL || values[index]->type == NULL) return 0;
  const OrtTypeInfo* type = values[index]->type;
  return type->kind == ONNX_TYPE_TENSOR && type->tensor != NULL ? type->tensor->element_type : 0;
}

/* What a constraint on this formal input or output is called: the type parameter, or its own name if it has
 * none. */
static const char* constraint_name(const OpSchema* schema, const OpSchemaFormal* formal) {
  return op_schema_constraint(schema, formal->type_str) != NULL ? formal->type_str : formal->name;
}

/* The element type that a node has for a constraint: of the first input, then output, that the constraint is
 * about. *known false: the op has no such constraint. */
static ONNXTensorElementDataType constrained_type(const OpSchema* schema, const OrtNode* node,
                                                  const char* name, bool* known) {
  *known = false;
  for (size_t i = 0; i < schema->input_count; i++) {
    if (strcmp(constraint_name(schema, &schema->inputs[i]), name) != 0) continue;
    *known = true;
    ONNXTensorElementDataType type = value_element_type(node->inputs, node->input_count, i);
    if (type != 0) return type;
  }
  for (size_t i = 0; i < schema->output_count; i++) {
    if (strcmp(constraint_name(schema, &schema->outputs[i]), name) != 0) continue;
    *known = true;
    ONNXTensorElementDataType type = value_element_type(node->outputs, node->output_count, i);
    if (type != 0) return type;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

/* True if the constraint is about a value that the node does not have at all: nothing to hold it against. */
static bool constraint_is_idle(const OpSchema* schema, const OrtNode* node, const char* name) {
  for (size_t i = 0; i < schema->input_count; i++) {
    if (i < node->input_count && node->inputs[i] != NULL &&
        strcmp(constraint_name(schema, &schema->inputs[i]), name) == 0)
      return false;
  }
  for (size_t i = 0; i < schema->output_count; i++) {
    if (i < node->output_count && node->outputs[i] != NULL &&
        strcmp(constraint_name(schema, &schema->outputs[i]), name) == 0)
      return false;
  }
  return true;
}

/* An op that has no schema here has no names for its types, either: every input whose type is known must be
 * of a type that some constraint allows. */
static bool types_fit_without_schema(const OrtKernelDef* def, const OrtNode* node) {
  uint64_t allowed = 0;
  for (size_t i = 0; i < def->constraint_count; i++) allowed |= def->constraints[i].types;
  for (size_t i = 0; allowed != 0 && i < node->input_count; i++) {
    ONNXTensorElementDataType type = value_element_type(node->inputs, node->input_count, i);
    if (type != 0 && (allowed >> type & 1) == 0) return false;
  }
  return true;
}

/* takes `reason` (NULL: no memory). Appends it, if it is not there yet. */
static void add_reason(StrBuf* why, char* reason) {
  bool is_there = reason != NULL && why->text != NULL && strstr(why->text, reason) != NULL;
  if (reason == NULL) why->failed = true;
  if (reason != NULL && !is_there) strbuf_append(why, "%s%s", why->text != NULL ? "; " : "", reason);
  mem_free(reason);
}
/* Nothing is made where nobody asks. */
#define ADD_REASON(why, ...)                                     \
  do {                                                           \
    if ((why) != NULL) add_reason(why, str_format(__VA_ARGS__)); \
  } while (0)

static void add_type_reason(StrBuf* why, const OrtKernelDef* def, const KernelConstraint* constraint,
                            ONNXTensorElementDataType type) {
  StrBuf takes = {0};
  if (why == NULL) return;
  for (int i = 0; i < 64; i++) {
    if ((constraint->types >> i & 1) == 0) continue;
    strbuf_append(&takes, "%stensor(%s)", takes.text != NULL ? ", " : "", element_type_name(i));
  }
  ADD_REASON(why, "has kernels for %s that take %s for '%s', the model has %s%s%s", def->op_type,
             takes.text != NULL ? takes.text : "nothing", constraint->name, type != 0 ? "tensor(" : "",
             type != 0 ? element_type_name(type) : "an unknown type", type != 0 ? ")" : "");
  why->failed = why->failed || takes.failed;
  strbuf_release(&takes);
}

static bool types_fit(const OrtKernelDef* def, const OrtNode* node, StrBuf* why) {
  const OpSchema* schema = node_schema(node);
  if (schema == NULL) {
    bool fit = types_fit_without_schema(def, node);
    if (!fit) ADD_REASON(why, "has kernels for %s that take other types", def->op_type);
    return fit;
  }
  for (size_t i = 0; i < def->constraint_count; i++) {
    const KernelConstraint* constraint = &def->constraints[i];
    bool known;
    ONNXTensorElementDataType type = constrained_type(schema, node, constraint->name, &known);
    if (!known) {
      if (node_custom_op(node) == NULL) /* which may stand in for the one that the kernel was made for */
        LOG(NULL, WARNING,
            "EP '%s': its kernel for '%s' constrains '%s', which is no type parameter of version %d; it is "
            "not used",
            def->ep_name, node->op_type, constraint->name, node->since_version);
      ADD_REASON(why, "has a kernel for %s that constrains '%s', which is no type parameter of the operator",
                 def->op_type, constraint->name);
      return false;
    }
    if (type != 0 ? (constraint->types >> type & 1) != 0 : constraint_is_idle(schema, node, constraint->name))
      continue;
    add_type_reason(why, def, constraint, type);
    return false;
  }
  return true;
}

static const char* domain_name(const char* domain) {
  return domain[0] != '\0' ? domain : "ai.onnx";
}

static void add_version_reason(StrBuf* why, const OrtKernelDef* def, int version) {
  if (def->since_end == INT_MAX)
    ADD_REASON(why, "has a kernel for %s of version %d only (its range has no end), the model has %d",
               def->op_type, def->since_start, version);
  else if (def->since_start == def->since_end)
    ADD_REASON(why, "has a kernel for %s of version %d, the model has %d", def->op_type, def->since_start,
               version);
  else
    ADD_REASON(why, "has kernels for %s of versions %d to %d, the model has %d", def->op_type,
               def->since_start, def->since_end, version);
}

const KernelEntry* kernel_registry_find(const OrtKernelRegistry* registry, const char* ep_name,
                                        const OrtNode* node, StrBuf* why) {
  if (registry == NULL) {
    ADD_REASON(why, "has no kernel registry");
    return NULL;
  }
  const CustomOp* custom = node_custom_op(node);
  if (custom != NULL && custom_op_select(custom, node, NULL) == NULL) {
    ADD_REASON(why, "cannot: the custom operator %s does not take such inputs", node->op_type);
    return NULL;
  }
  const char* op = node->op_type;
  const KernelEntry* entry = first_entry(registry, op);
  if (entry == NULL) ADD_REASON(why, "has no kernel for %s", op);
  for (; entry != NULL; entry = next_entry(registry, entry)) {
    const OrtKernelDef* def = entry->def;
    if (!same_domain(def->domain, node->domain)) {
      ADD_REASON(why, "has a kernel for %s of domain '%s', the model's is of '%s'", op,
                 domain_name(def->domain), domain_name(node->domain));
    } else if (strcmp(def->ep_name, ep_name) != 0) {
      ADD_REASON(why, "has a kernel for %s that says it is of EP '%s'", op, def->ep_name);
    } else if (!version_fits(def, node->since_version)) {
      add_version_reason(why, def, node->since_version);
    } else if (types_fit(def, node, why)) {
      return entry;
    }
  }
  return NULL;
}

/* In which memory a value is. */
#include "session/session.h"

static bool is_device_tensor(const OrtValueInfo* value) {
  if (value->type == NULL) return true; /* unknown: a tensor, as far as we can run it */
  return value->type->kind == ONNX_TYPE_TENSOR && value->type->tensor != NULL &&
         value->type->tensor->element_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

int32_t place_wanted(const Unit* unit, size_t index, bool is_output, const OrtValueInfo* value) {
  if (unit->ep->place == 0 || !is_device_tensor(value)) return 0;
  const OrtKernelDef* def = unit->kernel_entry != NULL ? unit->kernel_entry->def : NULL;
  for (size_t i = 0; def != NULL && i < def->mem_type_count; i++) {
    const KernelMemType* type = &def->mem_types[i];
    if (type->index == index && type->is_output == is_output && type->type != OrtMemTypeDefault) return 0;
  }
  return unit->ep->place;
}

OrtValue* constant_at(const OrtValueInfo* weight, int32_t place) {
  if (place == 0) return weight->initializer;
  const DeviceCopy* copy = weight->copies;
  while (copy != NULL && copy->place != place) copy = copy->next_of_value;
  return copy != NULL ? copy->value : NULL;
}

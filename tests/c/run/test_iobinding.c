/* IoBinding: what is bound stays alive, runs many times, and every way to bind wrongly. */
#include "run_test.h"

static const int64_t two_by_three[] = {2, 3};

static OrtSession* session;
static OrtIoBinding* binding;
static OrtAllocator* allocator;
static OrtMemoryInfo* cpu;

static void open_binding(void) {
  reset();
  control->claims[0] = "single add";
  session = new_session("inputs", 1, NO_FALLBACK);
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
}

static void close_binding(void) {
  api()->ReleaseMemoryInfo(cpu);
  api()->ReleaseIoBinding(binding);
  api()->ReleaseSession(session);
}

/* Binds a new x and forgets it: the binding keeps it alive. */
static void bind_x(void) {
  OrtValue* x = new_floats(2, two_by_three);
  CHECK_OK(api()->BindInput(binding, "x", x));
  api()->ReleaseValue(x);
}

/* gives (caller releases each with ReleaseValue): the values of `count` bound outputs. */
static void get_outputs(size_t count, OrtValue** out) {
  OrtValue** values = NULL;
  size_t found = 0;
  if (!CHECK_OK(api()->GetBoundOutputValues(binding, allocator, &values, &found))) return;
  CHECK(found == count);
  for (size_t i = 0; i < found; i++) out[i] = values[i];
  CHECK_OK(api()->AllocatorFree(allocator, values));
}

static void test_bound_values_are_kept_alive(void) {
  OrtValue *y = NULL, *first = NULL, *second = NULL;
  open_binding();
  bind_x();
  y = new_floats(2, two_by_three);
  CHECK_OK(api()->BindOutput(binding, "y", y));
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  CHECK(floats(y)[5] == 15); /* written where the caller sees it */
  api()->ReleaseValue(y);
  get_outputs(1, &first);
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  get_outputs(1, &second);
  CHECK(floats(first) == floats(second));
  api()->ClearBoundOutputs(binding);
  CHECK(floats(first)[5] == 15);
  api()->ReleaseValue(first);
  api()->ReleaseValue(second);
  close_binding();
}

static void test_outputs_bound_to_a_device_are_made_anew(void) {
  OrtValue *first[2] = {NULL}, *second[2] = {NULL};
  char* names = NULL;
  size_t *lengths = NULL, count = 0;
  open_binding();
  bind_x();
  CHECK_OK(api()->BindOutputToDevice(binding, "y", cpu));
  CHECK_OK(api()->BindOutputToDevice(binding, "x", cpu));
  OrtValue** none = NULL;
  CHECK_FAILS(api()->GetBoundOutputValues(binding, allocator, &none, &count), ORT_INVALID_ARGUMENT,
              "output 'y' has no value before a run");
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  get_outputs(2, first);
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  get_outputs(2, second);
  CHECK(floats(first[0]) != floats(second[0]) && floats(first[0])[5] == 15 && floats(second[1])[5] == 5);
  for (size_t i = 0; i < 2; i++) {
    api()->ReleaseValue(first[i]);
    api()->ReleaseValue(second[i]);
  }
  CHECK_OK(api()->GetBoundOutputNames(binding, allocator, &names, &lengths, &count));
  CHECK(count == 2 && lengths[0] == 1 && lengths[1] == 1 && memcmp(names, "yx", 2) == 0);
  CHECK_OK(api()->AllocatorFree(allocator, names));
  CHECK_OK(api()->AllocatorFree(allocator, lengths));
  CHECK_OK(api()->SynchronizeBoundInputs(binding));
  CHECK_OK(api()->SynchronizeBoundOutputs(binding));
  close_binding();
}

static void test_a_name_is_bound_again(void) {
  OrtValue *doubled = new_floats(2, two_by_three), *y = NULL;
  for (size_t i = 0; i < 6; i++) ((float*)floats(doubled))[i] *= 2;
  open_binding();
  bind_x();
  CHECK_OK(api()->BindInput(binding, "x", doubled));
  api()->ReleaseValue(doubled);
  CHECK_OK(api()->BindOutputToDevice(binding, "y", cpu));
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  get_outputs(1, &y);
  CHECK(floats(y)[5] == 20);
  api()->ReleaseValue(y);
  close_binding();
}

static void test_bindings_are_checked(void) {
  OrtIoBinding* other = NULL;
  OrtMemoryInfo* device = NULL;
  open_binding();
  OrtValue* x = new_floats(2, two_by_three);
  OrtSession* second = new_session("inputs", 1, NO_FALLBACK);
  CHECK_OK(api()->CreateIoBinding(second, &other));
  CHECK_OK(api()->CreateMemoryInfo_V2("Gpu", OrtMemoryInfoDeviceType_GPU, 1, 0, OrtDeviceMemoryType_DEFAULT,
                                      0, OrtDeviceAllocator, &device));
  CHECK_FAILS(api()->BindInput(binding, "q", x), ORT_INVALID_ARGUMENT, "input name in the mapping: q");
  CHECK_FAILS(api()->BindInput(binding, "x", NULL), ORT_INVALID_ARGUMENT, "'val_ptr'");
  CHECK_FAILS(api()->BindOutput(binding, "q", x), ORT_INVALID_ARGUMENT, "Invalid output name: q");
  CHECK_FAILS(api()->BindOutputToDevice(binding, "q", cpu), ORT_INVALID_ARGUMENT, "Invalid output name: q");
  CHECK_FAILS(api()->BindOutputToDevice(binding, "y", device), ORT_INVALID_ARGUMENT, "'Gpu'");
  CHECK_FAILS(api()->RunWithBinding(session, NULL, binding), ORT_INVALID_ARGUMENT,
              "At least one output should be requested. None is bound");
  CHECK_OK(api()->BindOutputToDevice(binding, "y", cpu));
  CHECK_FAILS(api()->RunWithBinding(session, NULL, binding), ORT_INVALID_ARGUMENT, "Missing Input: x");
  CHECK_FAILS(api()->RunWithBinding(session, NULL, other), ORT_INVALID_ARGUMENT, "another session's");
  bind_x();
  api()->ClearBoundInputs(binding);
  CHECK_FAILS(api()->RunWithBinding(session, NULL, binding), ORT_INVALID_ARGUMENT, "Missing Input: x");
  api()->ReleaseValue(x);
  api()->ReleaseMemoryInfo(device);
  api()->ReleaseIoBinding(other);
  api()->ReleaseSession(second);
  close_binding();
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_bound_values_are_kept_alive);
  RUN(test_outputs_bound_to_a_device_are_made_anew);
  RUN(test_a_name_is_bound_again);
  RUN(test_bindings_are_checked);
  return close_env();
}

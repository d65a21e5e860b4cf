/* Run, RunAsync and bindings with one output in several places: every place gets a value of its own. The
 * model's one output is named twice by the graph. In Python: tests/python/session. */
#include <pthread.h>

#include "harness.h"
#include "onnx_writer.h"

#define COUNT 3
#define ASKED 4

static OrtEnv* env;
static OrtSession* session;
static OrtMemoryInfo* cpu;
static const char *const x_name = "x", *const names[ASKED] = {"y", "x", "y", "y"};
static const float x_data[COUNT] = {-1, -2, -3};

/* y = Abs(x); outputs y, y, x */
static void open_all(void) {
  Message node = node_proto("Abs", "x", NULL, "y"), graph = {.size = 0};
  Message x = value_info("x", 1, COUNT), y = value_info("y", 1, COUNT);
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "g");
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  put_message(&graph, 12, &y);
  put_message(&graph, 12, &x);
  Message model = model_proto(&graph);
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "repeated", &env));
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->CreateSessionFromArray(env, model.bytes, model.size, options, &session));
  api()->ReleaseSessionOptions(options);
}

static void close_all(void) {
  api()->ReleaseSession(session);
  api()->ReleaseMemoryInfo(cpu);
  api()->ReleaseEnv(env);
}

static OrtValue* over(float* data) {
  const int64_t dims[] = {COUNT};
  OrtValue* value = NULL;
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(cpu, data, COUNT * sizeof *data, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
  return value;
}

static float* data_of(OrtValue* value) {
  void* data = NULL;
  return value != NULL && CHECK_OK(api()->GetTensorMutableData(value, &data)) ? data : NULL;
}

static bool shows(OrtValue* value, float sign) {
  const float* data = data_of(value);
  if (data == NULL) return false;
  for (size_t i = 0; i < COUNT; i++) {
    if (data[i] != sign * (float)(i + 1)) return false;
  }
  return true;
}

/* Releases the values; each is written to first, which no other one may show. */
static void check_all(OrtValue** values) {
  for (size_t i = 0; i < ASKED; i++) {
    CHECK(shows(values[i], i == 1 ? -1 : 1));
    float* data = data_of(values[i]);
    if (data != NULL) memset(data, 0, COUNT * sizeof *data);
    api()->ReleaseValue(values[i]);
    values[i] = NULL;
  }
}

static OrtStatus* run(OrtValue** values) {
  float data[COUNT];
  memcpy(data, x_data, sizeof data);
  OrtValue* x = over(data);
  OrtStatus* status = api()->Run(session, NULL, &x_name, (const OrtValue* const*)&x, 1, names, ASKED, values);
  api()->ReleaseValue(x);
  return status;
}

static void test_values_that_the_run_makes(void) {
  for (int i = 0; i < 3; i++) {
    OrtValue* values[ASKED] = {NULL};
    CHECK_OK(run(values));
    check_all(values);
  }
}

/* Any mixture of values that the caller gives and values that the run makes. */
static void test_preallocated_values(void) {
  for (unsigned given = 0; given < 1u << ASKED; given++) {
    float data[ASKED][COUNT] = {{0}};
    OrtValue* values[ASKED] = {NULL};
    for (size_t i = 0; i < ASKED; i++) {
      if (given >> i & 1) values[i] = over(data[i]);
    }
    CHECK_OK(run(values));
    for (size_t i = 0; i < ASKED; i++) CHECK((data_of(values[i]) == data[i]) == (given >> i & 1));
    check_all(values);
  }
}

static void test_one_value_given_twice(void) {
  float data[COUNT] = {0};
  OrtValue* value = over(data);
  OrtValue* values[ASKED] = {value, NULL, value, value};
  CHECK_OK(run(values));
  CHECK(values[0] == value && values[2] == value && values[3] == value);
  CHECK(shows(value, 1) && shows(values[1], -1));
  api()->ReleaseValue(values[1]);
  api()->ReleaseValue(value);
}

static void test_a_wrong_value_at_a_later_place(void) {
  float data[COUNT] = {0};
  const int64_t dims[] = {2};
  OrtValue* values[ASKED] = {NULL};
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(cpu, data, sizeof data, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &values[3]));
  CHECK_FAILS(run(values), ORT_INVALID_ARGUMENT, "Got invalid dimensions for output: y");
  CHECK(values[0] == NULL && values[1] == NULL && values[2] == NULL);
  api()->ReleaseValue(values[3]);
}

typedef struct Answer {
  pthread_mutex_t mutex;
  pthread_cond_t there;
  bool is_there;
} Answer;

static void ORT_API_CALL take_answer(void* user_data, OrtValue** outputs, size_t count, OrtStatusPtr status) {
  Answer* answer = user_data;
  CHECK_OK(status);
  CHECK(count == ASKED);
  check_all(outputs);
  pthread_mutex_lock(&answer->mutex);
  answer->is_there = true;
  pthread_cond_signal(&answer->there);
  pthread_mutex_unlock(&answer->mutex);
}

static void test_run_async(void) {
  Answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
  float data[COUNT], room[COUNT] = {0};
  memcpy(data, x_data, sizeof data);
  OrtValue *x = over(data), *values[ASKED] = {NULL, NULL, over(room), NULL};
  CHECK_OK(api()->RunAsync(session, NULL, &x_name, (const OrtValue* const*)&x, 1, names, ASKED, values,
                           take_answer, &answer));
  pthread_mutex_lock(&answer.mutex);
  while (!answer.is_there) pthread_cond_wait(&answer.there, &answer.mutex);
  pthread_mutex_unlock(&answer.mutex);
  api()->ReleaseValue(x);
}

/* A binding knows an output by its name: bound twice, the last one counts. */
static void test_bindings(void) {
  float data[COUNT], first[COUNT] = {0}, last[COUNT] = {0};
  memcpy(data, x_data, sizeof data);
  OrtIoBinding* binding = NULL;
  OrtValue *x = over(data), *a = over(first), *b = over(last), **outputs = NULL;
  OrtAllocator* allocator = NULL;
  size_t count = 0;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateIoBinding(session, &binding));
  CHECK_OK(api()->BindInput(binding, "x", x));
  CHECK_OK(api()->BindOutputToDevice(binding, "y", cpu));
  for (int i = 0; i < 3; i++) CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  CHECK_OK(api()->GetBoundOutputValues(binding, allocator, &outputs, &count));
  CHECK(count == 1 && shows(outputs[0], 1));
  api()->ReleaseValue(outputs[0]);
  CHECK_OK(api()->AllocatorFree(allocator, outputs));
  CHECK_OK(api()->BindOutput(binding, "y", a));
  CHECK_OK(api()->BindOutput(binding, "y", b));
  CHECK_OK(api()->RunWithBinding(session, NULL, binding));
  CHECK(shows(b, 1) && first[0] == 0);
  api()->ReleaseIoBinding(binding);
  api()->ReleaseValue(a);
  api()->ReleaseValue(b);
  api()->ReleaseValue(x);
}

static OrtStatus* run_and_release(void) {
  OrtValue* values[ASKED] = {NULL};
  float data[COUNT];
  const int64_t dims[] = {COUNT};
  memcpy(data, x_data, sizeof data);
  OrtValue* x = NULL;
  OrtStatus* status = api()->CreateTensorWithDataAsOrtValue(cpu, data, sizeof data, dims, 1,
                                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x);
  if (status == NULL)
    status = api()->Run(session, NULL, &x_name, (const OrtValue* const*)&x, 1, names, ASKED, values);
  for (size_t i = 0; i < ASKED; i++) {
    CHECK(status == NULL || values[i] == NULL);
    api()->ReleaseValue(values[i]);
  }
  api()->ReleaseValue(x);
  return status;
}

static void test_no_memory(void) {
  CHECK_ALLOCATION_FAILURES(run_and_release);
}

int main(void) {
  open_all();
  RUN(test_values_that_the_run_makes);
  RUN(test_preallocated_values);
  RUN(test_one_value_given_twice);
  RUN(test_a_wrong_value_at_a_later_place);
  RUN(test_run_async);
  RUN(test_bindings);
  RUN(test_no_memory);
  close_all();
  return finish();
}

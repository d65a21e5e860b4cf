/* Nothing is written beyond its memory: what a model declares is held against what its nodes make, and what
 * runs are given is of the type that the model has. The models are made here, byte by byte. */
#include "../onnx_writer.h"
#include "run_test.h"

#define INT8 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8
#define ROWS 64 /* elements: a tensor of int8 is far smaller than one of float */

typedef struct Parts {
  const Message *nodes, *inputs, *outputs, *values;
  size_t node_count, input_count, output_count, value_count;
  const Message* initializer;
  int64_t ir_version;
} Parts;

static OrtStatus* create(const Parts* parts, size_t ep_count, const char* config, OrtSession** out) {
  Message graph = {.size = 0}, opset = {.size = 0}, own = {.size = 0}, model = {.size = 0};
  for (size_t i = 0; i < parts->node_count; i++) put_message(&graph, 1, &parts->nodes[i]);
  put_text(&graph, 2, "g");
  if (parts->initializer != NULL) put_message(&graph, 5, parts->initializer);
  for (size_t i = 0; i < parts->input_count; i++) put_message(&graph, 11, &parts->inputs[i]);
  for (size_t i = 0; i < parts->output_count; i++) put_message(&graph, 12, &parts->outputs[i]);
  for (size_t i = 0; i < parts->value_count; i++) put_message(&graph, 13, &parts->values[i]);
  put_int(&opset, 2, 17);
  put_text(&own, 1, "test");
  put_int(&own, 2, 1);
  put_int(&model, 1, parts->ir_version != 0 ? parts->ir_version : 8);
  put_message(&model, 7, &graph);
  put_message(&model, 8, &opset);
  put_message(&model, 8, &own);
  OrtSessionOptions* options = new_options(ep_count, config);
  OrtStatus* status = api()->CreateSessionFromArray(env, model.bytes, model.size, options, out);
  api()->ReleaseSessionOptions(options);
  return status;
}

/* The model is refused with these words; where it is not, one run shows what it does to memory. */
static void check_refused(const Parts* parts, const char* words) {
  const int64_t dims[] = {ROWS};
  OrtSession* session = NULL;
  OrtStatus* status = create(parts, 0, "", &session);
  if (status == NULL) {
    OrtValue *x = new_floats(1, dims), *y = NULL;
    api()->ReleaseStatus(run1(session, "x", x, "y", &y));
    api()->ReleaseValue(x);
    api()->ReleaseValue(y);
  }
  api()->ReleaseSession(session);
  CHECK_FAILS(status, ORT_FAIL, words);
}

static Message untyped(const char* name) {
  Message value = {.size = 0};
  put_text(&value, 1, name);
  return value;
}

/* A TensorProto of ROWS floats. */
static Message floats_proto(const char* name) {
  static const float data[ROWS] = {1};
  Message tensor = {.size = 0};
  put_int(&tensor, 1, ROWS);
  put_int(&tensor, 2, FLOAT);
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, data, sizeof data);
  return tensor;
}

/* ---- Models ---- */

static void test_a_value_is_not_what_it_is_declared_as(void) {
  static const struct {
    const char *op, *b, *words;
  } cases[] = {
      {"Relu", NULL, "node 'a' (Relu): output 'a' is tensor(float), but it is declared as tensor(int8)"},
      {"Max", "x", "node 'a' (Max): output 'a' is tensor(float), but it is declared as tensor(int8)"},
      {"MatMul", "x", "node 'a' (MatMul): output 'a' is tensor(float), but it is declared as tensor(int8)"},
      {"Transpose", NULL,
       "node 'a' (Transpose): output 'a' is tensor(float), but it is declared as tensor(int8)"},
      {"Exp", NULL, "node 'a' (Exp): output 'a' is tensor(float), but it is declared as tensor(int8)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset();
    const Message nodes[] = {node_proto(cases[i].op, "x", cases[i].b, "a"),
                             node_proto("Cast", "a", NULL, "y")};
    const Message x = value_info("x", FLOAT, ROWS), y = untyped("y"), a = value_info("a", INT8, ROWS);
    Message cast = nodes[1], to = {.size = 0};
    put_text(&to, 1, "to");
    put_int(&to, 3, FLOAT);
    put_int(&to, 20, 2); /* INT */
    put_message(&cast, 5, &to);
    const Message both[] = {nodes[0], cast};
    check_refused(&(Parts){both, &x, &y, &a, 2, 1, 1, 1, NULL, 8}, cases[i].words);
  }
}

static void test_an_output_is_not_what_it_is_declared_as(void) {
  reset();
  const Message node = node_proto("Shape", "x", NULL, "y");
  const Message x = value_info("x", FLOAT, ROWS), y = value_info("y", INT8, 1);
  check_refused(&(Parts){&node, &x, &y, NULL, 1, 1, 1, 0, NULL, 8},
                "node 'y' (Shape): output 'y' is tensor(int64), but it is declared as tensor(int8)");
}

static void test_an_initializer_is_not_what_its_input_is_declared_as(void) {
  static const int64_t versions[] = {3, 8};
  const Message node = node_proto("Relu", "w", NULL, "y"), w = floats_proto("w");
  for (size_t i = 0; i < 2; i++) {
    reset();
    const Message inputs[] = {value_info("x", FLOAT, ROWS), value_info("w", INT8, ROWS)};
    const Message y = value_info("y", INT8, ROWS);
    check_refused(&(Parts){&node, inputs, &y, NULL, 1, 2, 1, 0, &w, versions[i]},
                  "initializer 'w' is tensor(float), but the graph's input of that name is tensor(int8)");
    const Message others[] = {inputs[0], value_info("w", FLOAT, 3)};
    const Message z = value_info("y", FLOAT, 3);
    check_refused(&(Parts){&node, others, &z, NULL, 1, 2, 1, 0, &w, versions[i]},
                  "initializer 'w' is tensor(float) of shape {64}, but the graph's input of that name is "
                  "tensor(float) of shape {3}");
  }
}

static void test_inputs_of_one_type_parameter_differ(void) {
  reset();
  const Message node = node_proto("Max", "x", "z", "y"), y = untyped("y");
  const Message inputs[] = {value_info("x", FLOAT, ROWS), value_info("z", INT8, ROWS)};
  check_refused(&(Parts){&node, inputs, &y, NULL, 1, 2, 1, 0, NULL, 8},
                "node 'y' (Max): input 'x' is tensor(float), but input 'z', which is of the same type "
                "parameter T, is tensor(int8)");
}

/* Anything could be given for it, and read as what the others are. */
static void test_an_input_without_a_type(void) {
  reset();
  const Message node = node_proto("Add", "x", "w", "y"), w = floats_proto("w");
  const Message x = untyped("x"), y = untyped("y");
  check_refused(&(Parts){&node, &x, &y, NULL, 1, 1, 1, 0, &w, 8},
                "the model's input 'x' does not have type information");
}

/* ---- Runs ---- */

/* Nobody knows the type of what an operator without a schema makes. */
static void test_an_output_of_unknown_type_cannot_be_preallocated(void) {
  const int64_t dims[] = {ROWS};
  reset();
  control->claims[0] = "fuse y";
  Message node = node_proto("Own", "x", NULL, "y");
  put_text(&node, 7, "test");
  const Message x = value_info("x", FLOAT, ROWS), y = untyped("y");
  OrtSession* session = NULL;
  OrtAllocator* allocator = NULL;
  OrtValue *input = new_floats(1, dims), *output = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->CreateTensorAsOrtValue(allocator, dims, 1, INT8, &output));
  if (CHECK_OK(create(&(Parts){&node, &x, &y, NULL, 1, 1, 1, 0, NULL, 8}, 1, NO_FALLBACK, &session)))
    CHECK_FAILS(run1(session, "x", input, "y", &output), ORT_INVALID_ARGUMENT,
                "Actual: (tensor(int8)) , expected: (unknown) for output 'y'");
  api()->ReleaseValue(output);
  output = NULL;
  if (session != NULL)
    CHECK_FAILS(run1(session, "x", input, "y", &output), ORT_FAIL,
                "(1 node, the first is 'y', Own) failed: the element type of its output 'y' is unknown");
  CHECK(output == NULL);
  api()->ReleaseValue(input);
  api()->ReleaseSession(session);
}

/* ---- Who made it so ---- */

/* RunEp makes one row more than the model says; the CPU EP's Add cannot use it. */
static void check_blamed(const char* claim, const char* words) {
  const int64_t dims[] = {ROWS};
  const Message nodes[] = {node_proto("Relu", "x", NULL, "a"), node_proto("Add", "a", "x", "y")};
  const Message x = value_info("x", FLOAT, ROWS), y = value_info("y", FLOAT, ROWS);
  const Message a = value_info("a", FLOAT, ROWS);
  reset();
  control->claims[0] = claim;
  control->fault = FAULT_GROWS;
  OrtSession* session = NULL;
  OrtValue *input = new_floats(1, dims), *output = NULL;
  if (CHECK_OK(create(&(Parts){nodes, &x, &y, &a, 2, 1, 1, 1, NULL, 8}, 1, "", &session))) {
    OrtStatus* status = run1(session, "x", input, "y", &output);
    const char* message = status != NULL ? api()->GetErrorMessage(status) : "OK";
    check_at(__FILE__, __LINE__, strncmp(message, "EP 'RunEp': ", 12) == 0, "'%s'", message);
    CHECK_FAILS(status, ORT_INVALID_ARGUMENT, words);
  }
  api()->ReleaseValue(input);
  api()->ReleaseSession(session);
}

static void test_who_made_a_wrong_shape_is_named_first(void) {
  check_blamed("single a",
               "node 'a' (Relu, ai.onnx, version 14) made its output 'a' of shape {65}, the model "
               "says {64}; then: EP 'CPUExecutionProvider': node 'y' (Add, ai.onnx, version 14) "
               "failed: ");
  check_blamed("fuse a",
               "(1 node, the first is 'a', Relu) made its output 'a' of shape {65}, the model says "
               "{64}; then: EP 'CPUExecutionProvider': node 'y' (Add");
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv)) return finish();
  RUN(test_a_value_is_not_what_it_is_declared_as);
  RUN(test_an_output_is_not_what_it_is_declared_as);
  RUN(test_an_initializer_is_not_what_its_input_is_declared_as);
  RUN(test_inputs_of_one_type_parameter_differ);
  RUN(test_an_input_without_a_type);
  RUN(test_an_output_of_unknown_type_cannot_be_preallocated);
  RUN(test_who_made_a_wrong_shape_is_named_first);
  return close_env();
}

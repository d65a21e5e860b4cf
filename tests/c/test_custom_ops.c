/* Custom op domains in C: arguments, lifetimes, structs of old versions, operators that contradict
 * themselves, memory. What they compute is tested in tests/python/custom_op/test_custom_ops.py. */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "onnx_writer.h"

enum { FLOAT = 1 };

static OrtEnv* env;
static int kernels_alive;

/* ---- An operator that copies floats ---- */

typedef struct Shape {
  ONNXTensorElementDataType input, output;
  OrtCustomOpInputOutputCharacteristic first, last;
  size_t inputs;
} Shape;
static Shape shape = {FLOAT, FLOAT, INPUT_OUTPUT_REQUIRED, INPUT_OUTPUT_REQUIRED, 1};

static const char* ORT_API_CALL get_name(const OrtCustomOp* op) {
  (void)op;
  return "Copy";
}
static const char* ORT_API_CALL get_no_text(const OrtCustomOp* op) {
  (void)op;
  return NULL;
}
static ONNXTensorElementDataType ORT_API_CALL get_input_type(const OrtCustomOp* op, size_t index) {
  (void)op, (void)index;
  return shape.input;
}
static ONNXTensorElementDataType ORT_API_CALL get_output_type(const OrtCustomOp* op, size_t index) {
  (void)op, (void)index;
  return shape.output;
}
static size_t ORT_API_CALL get_input_count(const OrtCustomOp* op) {
  (void)op;
  return shape.inputs;
}
static size_t ORT_API_CALL get_two(const OrtCustomOp* op) {
  (void)op;
  return 2;
}
static size_t ORT_API_CALL get_one(const OrtCustomOp* op) {
  (void)op;
  return 1;
}
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL get_kind(const OrtCustomOp* op, size_t index) {
  (void)op;
  return index == 0 ? shape.first : shape.last;
}
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL get_required(const OrtCustomOp* op, size_t index) {
  (void)op, (void)index;
  return INPUT_OUTPUT_REQUIRED;
}
static int ORT_API_CALL get_arity(const OrtCustomOp* op) {
  (void)op;
  return 1;
}
static void* ORT_API_CALL create(const OrtCustomOp* op, const OrtApi* table, const OrtKernelInfo* info) {
  (void)op;
  CHECK(table != NULL && info != NULL);
  void* kernel = malloc(1);
  kernels_alive += kernel != NULL;
  return kernel;
}
static void* ORT_API_CALL create_nothing(const OrtCustomOp* op, const OrtApi* table,
                                         const OrtKernelInfo* info) {
  (void)op, (void)table, (void)info;
  return NULL;
}
static OrtStatus* ORT_API_CALL create_nothing_v2(const OrtCustomOp* op, const OrtApi* table,
                                                 const OrtKernelInfo* info, void** kernel) {
  (void)op, (void)table, (void)info, (void)kernel;
  return NULL;
}
static void ORT_API_CALL destroy(void* kernel) {
  kernels_alive--;
  free(kernel);
}
static void ORT_API_CALL compute(void* kernel, OrtKernelContext* context) {
  const OrtValue* input = NULL;
  OrtValue* output = NULL;
  const void* from = NULL;
  void* to = NULL;
  int64_t three = 3;
  (void)kernel;
  CHECK_OK(api()->KernelContext_GetInput(context, 0, &input));
  CHECK_OK(api()->KernelContext_GetOutput(context, 0, &three, 1, &output));
  CHECK_OK(api()->GetTensorData(input, &from));
  CHECK_OK(api()->GetTensorMutableData(output, &to));
  if (from != NULL && to != NULL) memcpy(to, from, 3 * sizeof(float));
}

/* Of version 14; later slots are what no host may read. */
static OrtCustomOp copy_op(void) {
  OrtCustomOp op;
  memset(&op, 0x5a, sizeof op);
  op.version = 14;
  op.CreateKernel = create;
  op.GetName = get_name;
  op.GetExecutionProviderType = get_no_text;
  op.GetInputType = get_input_type;
  op.GetInputTypeCount = get_input_count;
  op.GetOutputType = get_output_type;
  op.GetOutputTypeCount = get_one;
  op.KernelCompute = compute;
  op.KernelDestroy = destroy;
  op.GetInputCharacteristic = get_kind;
  op.GetOutputCharacteristic = get_required;
  op.GetInputMemoryType = NULL;
  op.GetVariadicInputMinArity = op.GetVariadicInputHomogeneity = get_arity;
  op.GetVariadicOutputMinArity = op.GetVariadicOutputHomogeneity = get_arity;
  return op;
}

/* ---- Sessions ---- */

/* y = Copy(x), of domain "mine" */
static Message copy_model(void) {
  Message graph = {.size = 0}, node = node_proto("Copy", "x", NULL, "y"), opset = {.size = 0}, model;
  Message x = value_info("x", FLOAT, 3), y = value_info("y", FLOAT, 3);
  put_text(&node, 7, "mine");
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "g");
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  model = model_proto(&graph);
  put_text(&opset, 1, "mine");
  put_int(&opset, 2, 1);
  put_message(&model, 8, &opset);
  return model;
}

static OrtCustomOpDomain* domain_of(const OrtCustomOp* op) {
  OrtCustomOpDomain* domain = NULL;
  CHECK_OK(api()->CreateCustomOpDomain("mine", &domain));
  CHECK_OK(api()->CustomOpDomain_Add(domain, op));
  return domain;
}

static OrtSessionOptions* options_with(OrtCustomOpDomain* domain) {
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->AddCustomOpDomain(options, domain));
  return options;
}

static OrtStatus* open_session(const OrtSessionOptions* options, OrtSession** session) {
  static Message model;
  if (model.size == 0) model = copy_model();
  return api()->CreateSessionFromArray(env, model.bytes, model.size, options, session);
}

/* Runs the session on {1, 2, 3}. */
static void check_run(OrtSession* session) {
  const OrtMemoryInfo* memory = NULL;
  OrtAllocator* allocator = NULL;
  float data[] = {1, 2, 3};
  int64_t dim = 3;
  const char *x = "x", *y = "y";
  OrtValue *input = NULL, *output = NULL;
  void* result = NULL;
  CHECK_OK(api()->GetAllocatorWithDefaultOptions(&allocator));
  CHECK_OK(api()->AllocatorGetInfo(allocator, &memory));
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, &dim, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  CHECK_OK(api()->Run(session, NULL, &x, (const OrtValue* const*)&input, 1, &y, 1, &output));
  if (output != NULL) CHECK_OK(api()->GetTensorMutableData(output, &result));
  CHECK(result != NULL && memcmp(result, data, sizeof data) == 0);
  api()->ReleaseValue(output);
  api()->ReleaseValue(input);
}

/* An error of CreateSession with the operators of `domain`, which is released. */
static void check_refused(OrtCustomOpDomain* domain, OrtErrorCode code, const char* part) {
  OrtSession* session = NULL;
  OrtSessionOptions* options = options_with(domain);
  CHECK_FAILS(open_session(options, &session), code, part);
  CHECK(session == NULL && kernels_alive == 0);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(domain);
}

static void test_a_session_makes_and_destroys_its_kernels(void) {
  OrtCustomOp op = copy_op();
  OrtCustomOpDomain* domain = domain_of(&op);
  OrtSessionOptions* options = options_with(domain);
  OrtSession* sessions[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) CHECK_OK(open_session(options, &sessions[i]));
  api()->ReleaseSessionOptions(options);
  CHECK(kernels_alive == 2);
  for (int i = 0; i < 2; i++) {
    check_run(sessions[i]);
    api()->ReleaseSession(sessions[i]);
  }
  CHECK(kernels_alive == 0);
  api()->ReleaseCustomOpDomain(domain);
}

/* Nothing behind the end of a struct's version is read: it ends where a page ends, and the next cannot be
 * read. */
static void test_old_structs_end_where_they_end(void) {
  static const struct {
    uint32_t version;
    size_t size;
  } cases[] = {
      {0, offsetof(OrtCustomOp, GetInputCharacteristic)},
      {1, offsetof(OrtCustomOp, GetInputCharacteristic)},
      {8, offsetof(OrtCustomOp, GetInputMemoryType)},
      {13, offsetof(OrtCustomOp, GetVariadicInputMinArity)},
      {14, offsetof(OrtCustomOp, CreateKernelV2)},
  };
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0)) return;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    OrtCustomOp op = copy_op();
    op.version = cases[i].version;
    OrtCustomOp* cut = (OrtCustomOp*)(void*)(pages + page - cases[i].size);
    memcpy(cut, &op, cases[i].size);
    OrtCustomOpDomain* domain = domain_of(cut);
    OrtSessionOptions* options = options_with(domain);
    OrtSession* session = NULL;
    CHECK_OK(open_session(options, &session));
    if (session != NULL) check_run(session);
    api()->ReleaseSession(session);
    api()->ReleaseSessionOptions(options);
    api()->ReleaseCustomOpDomain(domain);
  }
  munmap(pages, 2 * page);
}

static void test_a_kernel_that_is_not_made_is_an_error(void) {
  OrtCustomOp op = copy_op();
  op.CreateKernel = create_nothing;
  check_refused(domain_of(&op), ORT_FAIL, "OrtCustomOp::CreateKernel gave no kernel");
  op.version = 16;
  op.CreateKernelV2 = create_nothing_v2;
  op.KernelComputeV2 = NULL;
  check_refused(domain_of(&op), ORT_FAIL, "OrtCustomOp::CreateKernelV2 gave no kernel");
}

static void test_a_placeholder_is_nobodys(void) {
  OrtCustomOp op = copy_op();
  op.CreateKernel = NULL;
  check_refused(domain_of(&op), ORT_NOT_IMPLEMENTED,
                "'y' (Copy, mine, version 1), a custom operator without");
  op = copy_op();
  op.KernelCompute = NULL;
  check_refused(domain_of(&op), ORT_NOT_IMPLEMENTED, "EP 'CPUExecutionProvider' would have to compile");
}

static void test_operators_that_contradict_themselves_are_refused(void) {
  const char* whose = "custom operator 'Copy' of domain 'mine': ";
  const Shape good = shape;
  OrtCustomOp op = copy_op(), other = copy_op();
  shape.inputs = 2;
  shape.first = INPUT_OUTPUT_VARIADIC;
  check_refused(domain_of(&op), ORT_INVALID_ARGUMENT,
                "of its inputs number 0 is variadic, but only the last");
  shape = good;
  shape.input = (ONNXTensorElementDataType)77;
  check_refused(domain_of(&op), ORT_INVALID_ARGUMENT, "input 0 has the unknown element type 77");
  shape = good;
  shape.output = (ONNXTensorElementDataType)-1;
  check_refused(domain_of(&op), ORT_INVALID_ARGUMENT, "output 0 has the unknown element type -1");
  shape = good;
  shape.inputs = 1000000;
  check_refused(domain_of(&op), ORT_INVALID_ARGUMENT, "it says that it has 1000000 inputs and 1 outputs");
  shape = good;

  OrtCustomOpDomain* domain = domain_of(&op);
  other.GetInputTypeCount = get_two;
  CHECK_OK(api()->CustomOpDomain_Add(domain, &other));
  check_refused(domain, ORT_INVALID_ARGUMENT, "it is there more than once, with 1 and 2 inputs");
  other = copy_op();
  other.GetInputCharacteristic = get_required;
  shape.first = INPUT_OUTPUT_OPTIONAL;
  domain = domain_of(&op);
  CHECK_OK(api()->CustomOpDomain_Add(domain, &other));
  check_refused(domain, ORT_INVALID_ARGUMENT, "its inputs 0 are not of one kind");
  domain = domain_of(&op);
  CHECK_OK(api()->CustomOpDomain_Add(domain, &other));
  check_refused(domain, ORT_INVALID_ARGUMENT, whose);
  shape = good;
}

static void test_one_operator_in_two_domains_of_one_name_is_one(void) {
  OrtCustomOp op = copy_op();
  OrtCustomOpDomain *first = domain_of(&op), *second = domain_of(&op);
  OrtSessionOptions* options = options_with(first);
  OrtSession* session = NULL;
  CHECK_OK(api()->AddCustomOpDomain(options, second));
  CHECK_OK(open_session(options, &session));
  if (session != NULL) check_run(session);
  api()->ReleaseSession(session);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(first);
  api()->ReleaseCustomOpDomain(second);
}

static void test_bad_arguments_are_refused(void) {
  OrtCustomOp op = copy_op();
  OrtCustomOpDomain* domain = domain_of(&op);
  OrtSessionOptions* options = options_with(domain);
  void* handle = NULL;
  CHECK_FAILS(api()->CreateCustomOpDomain(NULL, &domain), ORT_INVALID_ARGUMENT, "'domain'");
  CHECK_FAILS(api()->CreateCustomOpDomain("mine", NULL), ORT_INVALID_ARGUMENT, "'out'");
  CHECK_FAILS(api()->CustomOpDomain_Add(NULL, &op), ORT_INVALID_ARGUMENT, "'custom_op_domain'");
  CHECK_FAILS(api()->CustomOpDomain_Add(domain, NULL), ORT_INVALID_ARGUMENT, "'op'");
  CHECK_FAILS(api()->AddCustomOpDomain(NULL, domain), ORT_INVALID_ARGUMENT, "'options'");
  CHECK_FAILS(api()->AddCustomOpDomain(options, NULL), ORT_INVALID_ARGUMENT, "'custom_op_domain'");
  OrtCustomOp bad = copy_op();
  bad.GetName = get_no_text;
  CHECK_FAILS(api()->CustomOpDomain_Add(domain, &bad), ORT_INVALID_ARGUMENT, "an operator of domain 'mine'");
  bad = copy_op();
  bad.GetOutputTypeCount = NULL;
  CHECK_FAILS(api()->CustomOpDomain_Add(domain, &bad), ORT_INVALID_ARGUMENT, "an operator of domain 'mine'");
  CHECK_FAILS(api()->RegisterCustomOpsLibrary(options, "/nowhere/it.so", &handle), ORT_FAIL,
              "'/nowhere/it.so' cannot be loaded");
  CHECK_FAILS(api()->RegisterCustomOpsLibrary(options, NULL, &handle), ORT_INVALID_ARGUMENT,
              "'library_path'");
  CHECK_FAILS(api()->RegisterCustomOpsLibrary_V2(options, NULL), ORT_INVALID_ARGUMENT, "'library_name'");
  CHECK_FAILS(api()->RegisterCustomOpsUsingFunction(options, "no_such_function"), ORT_INVALID_ARGUMENT,
              "no_such_function");
  CHECK_FAILS(api()->RegisterCustomOpsUsingFunction(options, ""), ORT_INVALID_ARGUMENT, "has no name");
  CHECK(handle == NULL);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(domain);
  api()->ReleaseCustomOpDomain(NULL);
}

static OrtCustomOp program_op;
static OrtCustomOpDomain* program_domain;

/* What a program that has its operators inside gives to RegisterCustomOpsUsingFunction. */
__attribute__((visibility("default"))) OrtStatus* ORT_API_CALL register_in_program(OrtSessionOptions* options,
                                                                                   const OrtApiBase* base);
OrtStatus* ORT_API_CALL register_in_program(OrtSessionOptions* options, const OrtApiBase* base) {
  CHECK(base == OrtGetApiBase());
  return api()->AddCustomOpDomain(options, program_domain);
}

static void test_the_program_may_register_its_own(void) {
  program_op = copy_op();
  program_domain = domain_of(&program_op);
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  CHECK_OK(api()->RegisterCustomOpsUsingFunction(options, "register_in_program"));
  CHECK_OK(open_session(options, &session));
  if (session != NULL) check_run(session);
  api()->ReleaseSession(session);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(program_domain);
}

static OrtStatus* make_domain(void) {
  OrtCustomOp op = copy_op();
  OrtCustomOpDomain* domain = NULL;
  OrtSessionOptions *options = NULL, *copy = NULL;
  OrtStatus* status = api()->CreateCustomOpDomain("mine", &domain);
  if (status == NULL) status = api()->CustomOpDomain_Add(domain, &op);
  if (status == NULL) status = api()->CreateSessionOptions(&options);
  if (status == NULL) status = api()->AddCustomOpDomain(options, domain);
  if (status == NULL) status = api()->CloneSessionOptions(options, &copy);
  api()->ReleaseSessionOptions(copy);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(domain);
  return status;
}

/* An allocation that only a message would have needed may fail unnoticed: then the session is right. */
static void test_memory_runs_out(void) {
  CHECK_ALLOCATION_FAILURES(make_domain);
  OrtCustomOp op = copy_op();
  OrtCustomOpDomain* domain = domain_of(&op);
  OrtSessionOptions* options = options_with(domain);
  int failures = 0;
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = open_session(options, &session);
    ortabi_fail_allocation(-1);
    bool is_last = ortabi_allocation_count() - before <= n;
    CHECK((status == NULL) == (session != NULL));
    failures += status != NULL;
    api()->ReleaseStatus(status);
    if (session != NULL) check_run(session);
    api()->ReleaseSession(session);
    CHECK(kernels_alive == 0);
    if (!is_last) continue;
    CHECK(session != NULL);
    break;
  }
  CHECK(failures > 20);
  api()->ReleaseSessionOptions(options);
  api()->ReleaseCustomOpDomain(domain);
}

int main(void) {
  CHECK_OK(api()->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "test", &env));
  RUN(test_a_session_makes_and_destroys_its_kernels);
  RUN(test_old_structs_end_where_they_end);
  RUN(test_a_kernel_that_is_not_made_is_an_error);
  RUN(test_a_placeholder_is_nobodys);
  RUN(test_operators_that_contradict_themselves_are_refused);
  RUN(test_one_operator_in_two_domains_of_one_name_is_one);
  RUN(test_bad_arguments_are_refused);
  RUN(test_the_program_may_register_its_own);
  RUN(test_memory_runs_out);
  api()->ReleaseEnv(env);
  return finish();
}

/* Who packs what, who owns it and who frees it. AddressSanitizer tells which buffers are alive, and of
 * anything that is lost or freed twice. */
#include "prepack_test.h"

#include <sanitizer/asan_interface.h>

/* Buffers that kernels packed into and that nobody has freed yet. */
static int alive(void) {
  int count = 0;
  for (int i = 0; i < control->buffer_count; i++) count += !__asan_address_is_poisoned(control->buffers[i]);
  return count;
}

/* ---- The three modes ---- */

static void test_not_packed(void) {
  Container* container = new_container();
  for (int shared = 0; shared < 2; shared++) {
    reset(PACK_NOTHING);
    OrtSession* session = new_session("mul", shared ? container : NULL);
    check_run(session, product);
    CHECK(control->packs == 1 && control->set_shared == 0 && control->buffer_count == 0);
    CHECK(control->preset_true == 0 && control->has_original == 1);
    api()->ReleaseSession(session);
  }
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_packed_and_private(void) {
  reset(PACK_PRIVATE);
  OrtSession* session = new_session("mul", NULL);
  check_run(session, product);
  CHECK(control->packs == 1 && control->caches == 0 && control->set_shared == 0);
  CHECK(control->null_allocators == 0 && control->buffer_count == 1 && alive() == 1);
  CHECK(control->has_original == 0);
  api()->ReleaseSession(session);
  CHECK(alive() == 0);
}

/* With a cache that the kernel does not use. */
static void test_private_beside_a_container(void) {
  Container* container = new_container();
  reset(PACK_PRIVATE);
  OrtSession* sessions[] = {new_session("mul", container), new_session("mul", container)};
  for (int i = 0; i < 2; i++) check_run(sessions[i], product);
  CHECK(control->caches == 2 && control->set_shared == 0 && alive() == 2);
  api()->ReleaseSession(sessions[0]);
  CHECK(alive() == 1);
  check_run(sessions[1], product);
  api()->ReleaseSession(sessions[1]);
  CHECK(alive() == 0);
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_packed_and_shared(void) {
  const PackMode modes[] = {PACK_SHARED, PACK_TWO_BUFFERS, PACK_STORE_TWICE, PACK_STORE_SAME_TWICE};
  const int buffers[] = {1, 2, 1, 1}; /* of one weight, in the end */
  for (int i = 0; i < 4; i++) {
    Container* container = new_container();
    reset(modes[i]);
    OrtSession* first = new_session("mul", container);
    CHECK(control->packs == 1 && control->caches == 1 && control->set_shared == 1 && alive() == buffers[i]);
    OrtSession* second = new_session("mul", container);
    CHECK(control->set_shared == 2 && control->shared[0] == control->shared[1] && alive() == buffers[i]);
    check_run(first, product);
    api()->ReleaseSession(first);
    check_run(second, product);
    CHECK(control->has_original == 0);
    api()->ReleaseSession(second);
    CHECK(alive() == buffers[i]); /* for the next session */
    OrtSession* third = new_session("mul", container);
    check_run(third, product);
    CHECK(control->shared[2] == control->shared[0]);
    api()->ReleaseSession(third);
    api()->ReleasePrepackedWeightsContainer(container);
    CHECK(alive() == 0);
  }
}

/* The container's user lets go of it first. */
static void test_sessions_keep_the_container(void) {
  Container* container = new_container();
  reset(PACK_SHARED);
  OrtSession* sessions[] = {new_session("mul", container), new_session("mul", container)};
  api()->ReleasePrepackedWeightsContainer(container);
  api()->ReleaseSession(sessions[0]);
  CHECK(alive() == 1);
  check_run(sessions[1], product);
  api()->ReleaseSession(sessions[1]);
  CHECK(alive() == 0);
}

static void test_two_kernels(void) {
  static const float twice[] = {0, 4, 18, 48, 100, 180};
  reset(PACK_SHARED);
  OrtSession* session = new_session("two", NULL); /* nothing to share in */
  check_run(session, twice);
  CHECK(control->packs == 2 && control->caches == 0 && alive() == 2);
  api()->ReleaseSession(session);
  const char* const keys[] = {"ort_abi.share_prepacked_weights",
                              "session.save_external_prepacked_constant_initializers"};
  for (int i = 0; i < 2; i++) {
    reset(PACK_SHARED);
    if (!CHECK_OK(create_session("two", NULL, keys[i], &session))) continue;
    check_run(session, twice);
    CHECK(control->caches == 2 && control->shared[0] == control->shared[1] && alive() == 1);
    api()->ReleaseSession(session);
    CHECK(alive() == 0);
  }
}

/* By content: another name is no reason, other bytes or another version of the operator are. */
static void test_what_is_equal(void) {
  static const float other_product[] = {0, 2, 6, 12, 20, 35};
  const char* const names[] = {"renamed", "constant", "other", "version13"};
  for (int i = 0; i < 4; i++) {
    Container* container = new_container();
    reset(PACK_SHARED);
    OrtSession* first = new_session("mul", container);
    OrtSession* second = new_session(names[i], container);
    check_run(first, product);
    check_run(second, i == 2 ? other_product : product);
    CHECK((control->shared[0] == control->shared[1]) == (i < 2) && alive() == (i < 2 ? 1 : 2));
    api()->ReleaseSession(first);
    api()->ReleaseSession(second);
    api()->ReleasePrepackedWeightsContainer(container);
    CHECK(alive() == 0);
  }
}

/* Bytes that nobody wrote differ: nothing is shared, and nothing is wrong. */
static void test_padding_left_unwritten(void) {
  Container* container = new_container();
  reset(PACK_PADDED);
  OrtSession* sessions[] = {new_session("mul", container), new_session("mul", container)};
  for (int i = 0; i < 2; i++) check_run(sessions[i], product);
  CHECK(control->shared[0] != control->shared[1] && alive() == 2);
  for (int i = 0; i < 2; i++) api()->ReleaseSession(sessions[i]);
  api()->ReleasePrepackedWeightsContainer(container);
  CHECK(alive() == 0);
}

static void test_many_weights(void) {
  Container* container = new_container();
  reset(PACK_SHARED);
  OrtSession* first = new_session("many", container);
  CHECK(control->set_shared == 200);
  OrtSession* second = new_session("many", container);
  CHECK(control->set_shared == 400 && control->buffer_count == 400);
  int shared = 0; /* of the first few, which are recorded */
  for (int i = 0; i < MAX_BUFFERS; i++) shared += __asan_address_is_poisoned(control->buffers[i]) == 0;
  CHECK(shared == MAX_BUFFERS);
  check_run(first, product);
  check_run(second, product);
  api()->ReleaseSession(first);
  api()->ReleaseSession(second);
  api()->ReleasePrepackedWeightsContainer(container);
}

/* ---- When nothing is packed ---- */

static void test_prepacking_can_be_disabled(void) {
  OrtSession* session = NULL;
  Container* container = new_container();
  reset(PACK_SHARED);
  if (CHECK_OK(create_session("mul", container, "session.disable_prepacking", &session)))
    check_run(session, product);
  CHECK(control->packs == 0 && control->has_original == 1);
  api()->ReleaseSession(session);
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_only_constants_are_packed(void) {
  const char* const names[] = {"computed", "overridable"};
  static const float sums[] = {0, 2, 8, 18, 32, 50};
  for (int i = 0; i < 2; i++) {
    reset(PACK_PRIVATE);
    OrtSession* session = new_session(names[i], NULL);
    check_run(session, i == 0 ? sums : product);
    CHECK(control->packs == 0);
    api()->ReleaseSession(session);
  }
}

/* 0 counts as the oldest that there is. */
static void test_versions_of_kernels(void) {
  const uint32_t versions[] = {0, 24, 99};
  for (int i = 0; i < 3; i++) {
    reset(PACK_PRIVATE);
    control->kernel_version = versions[i];
    OrtSession* session = new_session("mul", NULL);
    check_run(session, product);
    CHECK(control->packs == 1);
    api()->ReleaseSession(session);
  }
}

/* ---- Errors ---- */

/* The session is refused with `part` in the message, and nothing is left. */
static void check_refused(const char* part) {
  OrtSession* session = NULL;
  Container* container = new_container();
  CHECK_FAILS(create_session("mul", container, NULL, &session), ORT_EP_FAIL, part);
  CHECK(session == NULL && control->buffer_count == 1);
  api()->ReleasePrepackedWeightsContainer(container);
  CHECK(alive() == 0);
}

#define WHERE "for input 1 ('w') of node 'mul' (Mul, ai.onnx, version 14) failed: "

static void test_errors_of_prepack(void) {
  reset(PACK_FAIL);
  check_refused("EP 'PrepackEp': OrtKernelImpl::PrePackWeight " WHERE "failed to pack");
  reset(PACK_FAIL_STORED);
  check_refused("PrePackWeight " WHERE "failed after storing");
}

static void test_stored_but_not_packed(void) {
  reset(PACK_STORE_UNPACKED);
  check_refused("PrePackWeight " WHERE "it stored weights to be shared, but said that it packed nothing");
}

static void test_stored_without_set_shared(void) {
  reset(PACK_SHARED);
  control->has_no_set_shared = true;
  check_refused("PrePackWeight " WHERE
                "it stored weights to be shared, but the kernel's SetSharedPrePackedWeight is NULL");
  reset(PACK_PRIVATE); /* then nobody needs it */
  control->has_no_set_shared = true;
  Container* container = new_container();
  OrtSession* session = new_session("mul", container);
  check_run(session, product);
  api()->ReleaseSession(session);
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_set_shared_fails(void) {
  reset(PACK_SHARED);
  control->set_shared_fails = true;
  check_refused("SetSharedPrePackedWeight " WHERE "wants no shared weight");
}

static void test_stored_wrongly(void) {
  Container* container = new_container();
  reset(PACK_STORE_WRONGLY);
  OrtSession* session = new_session("mul", container);
  check_run(session, product);
  CHECK(control->store_refusals == 6 && alive() == 1);
  api()->ReleaseSession(session);
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_null_arguments(void) {
  OrtSession* session = NULL;
  Container* container = new_container();
  char byte = 0;
  CHECK_FAILS(api()->CreatePrepackedWeightsContainer(NULL), ORT_INVALID_ARGUMENT, "'out' is NULL");
  CHECK_FAILS(api()->CreateSessionWithPrepackedWeightsContainer(env, "m", NULL, NULL, &session),
              ORT_INVALID_ARGUMENT, "'prepacked_weights_container' is NULL");
  CHECK_FAILS(api()->CreateSessionWithPrepackedWeightsContainer(env, NULL, NULL, container, &session),
              ORT_INVALID_ARGUMENT, "'model_path' is NULL");
  CHECK_FAILS(api()->CreateSessionWithPrepackedWeightsContainer(env, "m", NULL, container, NULL),
              ORT_INVALID_ARGUMENT, "'out' is NULL");
  CHECK_FAILS(api()->CreateSessionWithPrepackedWeightsContainer(NULL, "m", NULL, container, &session),
              ORT_INVALID_ARGUMENT, "'env' is NULL");
  CHECK_FAILS(api()->CreateSessionFromArrayWithPrepackedWeightsContainer(env, &byte, 1, NULL, NULL, &session),
              ORT_INVALID_ARGUMENT, "'prepacked_weights_container' is NULL");
  CHECK_FAILS(
      api()->CreateSessionFromArrayWithPrepackedWeightsContainer(env, NULL, 1, NULL, container, &session),
      ORT_INVALID_ARGUMENT, "'model_data' is NULL");
  CHECK_FAILS(
      api()->CreateSessionFromArrayWithPrepackedWeightsContainer(env, &byte, 1, NULL, container, NULL),
      ORT_INVALID_ARGUMENT, "'out' is NULL");
  CHECK_FAILS(
      api()->CreateSessionFromArrayWithPrepackedWeightsContainer(NULL, &byte, 1, NULL, container, &session),
      ORT_INVALID_ARGUMENT, "'env' is NULL");
  CHECK(session == NULL);
  api()->ReleasePrepackedWeightsContainer(container);
  api()->ReleasePrepackedWeightsContainer(NULL);
}

/* ---- What was lent for the call ---- */

static void test_pointers_after_the_callback(void) {
  const void* data = NULL;
  const int64_t* dims = NULL;
  ONNXTensorElementDataType type;
  size_t count = 0, size = 16;
  int has_value = 1;
  Container* container = new_container();
  reset(PACK_SHARED);
  OrtSession* session = new_session("mul", container);
  CHECK_OK(api()->HasValue(control->tensor, &has_value));
  CHECK(has_value == 0);
  CHECK_FAILS(api()->GetTensorData(control->tensor, &data), ORT_INVALID_ARGUMENT, "a call that is over");
  CHECK_FAILS(api()->GetTensorElementTypeAndShapeDataReference(control->tensor, &type, &dims, &count),
              ORT_INVALID_ARGUMENT, "a call that is over");
  void* buffer = malloc(size);
  CHECK_FAILS(
      api()->GetEpApi()->SharedPrePackedWeightCache_StoreWeightData(control->cache, &buffer, &size, 1),
      ORT_INVALID_ARGUMENT, "valid only during");
  free(buffer); /* it stayed the caller's */
  check_run(session, product);
  api()->ReleaseSession(session);
  api()->ReleasePrepackedWeightsContainer(container);
}

/* ---- The original ---- */

static OrtStatus* read_original(OrtKernelContext* context) {
  const OrtValue* weight = NULL;
  const void* data = NULL;
  OrtTensorTypeAndShapeInfo* info = NULL;
  OrtTypeInfo* type = NULL;
  CHECK_OK(api()->KernelContext_GetInput(context, 1, &weight));
  CHECK_FAILS(api()->GetTensorData(weight, &data), ORT_INVALID_ARGUMENT, "a weight that its kernel packed");
  CHECK_FAILS(api()->GetTensorTypeAndShape(weight, &info), ORT_INVALID_ARGUMENT, "GetTensorTypeAndShape");
  CHECK_FAILS(api()->GetTypeInfo(weight, &type), ORT_INVALID_ARGUMENT, "GetTypeInfo");
  return NULL;
}

static void test_the_original_is_gone(void) {
  int is_constant = 1;
  const OrtValue* value = NULL;
  reset(PACK_PRIVATE);
  control->on_compute = read_original;
  OrtSession* session = new_session("mul", NULL);
  check_run(session, product);
  CHECK_OK(api()->KernelInfoGetConstantInput_tensor(control->kernel_info, 1, &is_constant, &value));
  CHECK(is_constant == 0 && value == NULL);
  api()->ReleaseSession(session);
}

/* It stays where somebody else reads it: the caller, a kernel that packed nothing, a fused node, a subgraph.
 */
static void test_the_original_that_others_read(void) {
  static const float plus[] = {1, 4, 9, 16, 25, 36}, minus[] = {-1, 0, 3, 8, 15, 24};
  const struct {
    const char* model;
    const float* expected;
    bool drops;
    int has_original;
  } cases[] = {{"output", product, false, 1}, {"reader", plus, false, 1},    {"fused", minus, false, 1},
               {"fused", minus, true, 0},     {"branch", product, false, 1}, {"two_uses", product, false, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset(PACK_PRIVATE);
    control->drops_constants = cases[i].drops;
    OrtSession* session = new_session(cases[i].model, NULL);
    check_run(session, cases[i].expected);
    check_at(__FILE__, __LINE__, control->packs > 0 && control->has_original == cases[i].has_original,
             "%s: the original is%s there", cases[i].model, control->has_original ? "" : " not");
    api()->ReleaseSession(session);
  }
}

/* The host's kernel for If runs the branches, whose kernels pack what they capture. */
static void test_the_original_that_branches_capture(void) {
  const struct {
    const char* model;
    bool drops;
    int packs, has_original;
  } cases[] = {{"captured", false, 2, 0},        {"captured_twice", false, 3, 0},
               {"captured_nested", false, 2, 0}, {"captured_reader", false, 1, 1},
               {"captured_fused", false, 1, 1},  {"captured_fused", true, 1, 0},
               {"captured_output", false, 1, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    reset(PACK_PRIVATE);
    control->runs_branches = true;
    control->drops_constants = cases[i].drops;
    OrtSession* session = new_session(cases[i].model, NULL);
    check_run(session, product);
    check_at(__FILE__, __LINE__,
             control->packs == cases[i].packs && control->has_original == cases[i].has_original,
             "%s: %d packed, the original is%s there", cases[i].model, control->packs,
             control->has_original ? "" : " not");
    api()->ReleaseSession(session);
  }
}

/* With and without pre-packing. */
static void test_what_a_fused_node_drops(void) {
  static const float difference[] = {-1, -1, -1, -1, -1, -1};
  const char* const configs[] = {NULL, "session.disable_prepacking"};
  for (int i = 0; i < 4; i++) {
    OrtSession* session = NULL;
    const char* model = i / 2 == 0 ? "sub" : "sub_output"; /* which gives w, too */
    reset(PACK_NOTHING);
    control->drops_constants = true;
    if (!CHECK_OK(create_session(model, NULL, configs[i % 2], &session))) continue;
    CHECK(control->dropped != NULL && __asan_address_is_poisoned(control->dropped) == (i / 2 == 0));
    check_run(session, difference);
    api()->ReleaseSession(session);
  }
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv, "prepack")) return finish();
  RUN(test_not_packed);
  RUN(test_packed_and_private);
  RUN(test_private_beside_a_container);
  RUN(test_packed_and_shared);
  RUN(test_sessions_keep_the_container);
  RUN(test_two_kernels);
  RUN(test_what_is_equal);
  RUN(test_padding_left_unwritten);
  RUN(test_many_weights);
  RUN(test_prepacking_can_be_disabled);
  RUN(test_only_constants_are_packed);
  RUN(test_versions_of_kernels);
  RUN(test_errors_of_prepack);
  RUN(test_stored_but_not_packed);
  RUN(test_stored_without_set_shared);
  RUN(test_set_shared_fails);
  RUN(test_stored_wrongly);
  RUN(test_null_arguments);
  RUN(test_pointers_after_the_callback);
  RUN(test_the_original_is_gone);
  RUN(test_the_original_that_others_read);
  RUN(test_the_original_that_branches_capture);
  RUN(test_what_a_fused_node_drops);
  return close_env();
}

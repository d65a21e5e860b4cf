/* Kernels in device memory: they pack what was copied to the device, and share nothing. */
#include "prepack_test.h"

static void test_packed_on_the_device(void) {
  Container* container = new_container();
  for (int shared = 0; shared < 2; shared++) {
    reset(PACK_SHARED);
    OrtSession* session = new_session("mul", shared ? container : NULL);
    CHECK(control->packs == 1 && control->caches == 0 && control->set_shared == 0);
    CHECK(control->tensor_device == OrtMemoryInfoDeviceType_NPU);
    CHECK(control->allocator_device == OrtMemoryInfoDeviceType_NPU);
    check_run(session, product);
    CHECK(control->has_original == 0);
    api()->ReleaseSession(session);
  }
  api()->ReleasePrepackedWeightsContainer(container);
}

static void test_not_packed_on_the_device(void) {
  reset(PACK_NOTHING);
  OrtSession* session = new_session("mul", NULL);
  check_run(session, product);
  CHECK(control->packs == 1 && control->has_original == 1);
  api()->ReleaseSession(session);
}

/* Where somebody else reads the weight it goes to the device all the same. */
static void test_a_weight_that_others_read(void) {
  static const float plus[] = {1, 4, 9, 16, 25, 36};
  reset(PACK_PRIVATE);
  OrtSession* session = new_session("reader", NULL);
  check_run(session, plus);
  CHECK(control->has_original == 1);
  api()->ReleaseSession(session);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv, DEVICE_NAME)) return finish();
  RUN(test_packed_on_the_device);
  RUN(test_not_packed_on_the_device);
  RUN(test_a_weight_that_others_read);
  return close_env();
}

/* Sessions over a container with each of their allocations failing in turn. */
#include "prepack_test.h"

/* An allocation that only a message would have needed may fail unnoticed: then the session must be right. So
 * must the next one over the same container, which is a new one for each try. */
static void check_sessions(const char* model, const float* expected) {
  for (int64_t n = 0;; n++) {
    OrtSession* session = NULL;
    Container* container = new_container();
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = create_session(model, container, NULL, &session);
    ortabi_fail_allocation(-1);
    bool is_last = ortabi_allocation_count() - before <= n;
    CHECK((status == NULL) == (session != NULL));
    if (is_last) CHECK(status == NULL);
    api()->ReleaseStatus(status);
    check_run(session, expected);
    api()->ReleaseSession(session);
    session = new_session(model, container);
    check_run(session, expected);
    api()->ReleaseSession(session);
    api()->ReleasePrepackedWeightsContainer(container);
    if (is_last) return;
  }
}

static void test_every_allocation(void) {
  static const float twice[] = {0, 4, 18, 48, 100, 180};
  const PackMode modes[] = {PACK_PRIVATE, PACK_SHARED, PACK_TWO_BUFFERS, PACK_STORE_TWICE};
  for (int i = 0; i < 4; i++) {
    reset(modes[i]);
    check_sessions("mul", product);
    check_sessions("two", twice);
  }
}

static OrtStatus* make_container(void) {
  Container* container = NULL;
  OrtStatus* status = api()->CreatePrepackedWeightsContainer(&container);
  api()->ReleasePrepackedWeightsContainer(container);
  return status;
}

static void test_containers(void) {
  CHECK_ALLOCATION_FAILURES(make_container);
}

int main(int argc, char** argv) {
  if (!open_env(argc, argv, "prepack")) return finish();
  RUN(test_every_allocation);
  RUN(test_containers);
  return close_env();
}

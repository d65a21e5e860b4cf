/* What a plugin's struct must have, and that it is never read past the end of its version: each struct lies
 * directly before an unmapped page. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"
#include "plugins/plugins.h"

static char* pages;
static size_t page_size;

/* borrows: the first `size` bytes of `object`, ending where a page ends; valid until the next call. */
static void* cut(const void* object, size_t size) {
  return memcpy(pages + page_size - size, object, size);
}

static const char* ORT_API_CALL get_name(const OrtEp* ep) {
  (void)ep;
  return "Ep";
}
static OrtStatus* ORT_API_CALL get_capability(OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  (void)ep, (void)graph, (void)info;
  return NULL;
}
static OrtStatus* ORT_API_CALL compile(OrtEp* ep, const OrtGraph** graphs, const OrtNode** nodes,
                                       size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
  (void)ep, (void)graphs, (void)nodes, (void)count, (void)infos, (void)context_nodes;
  return NULL;
}
static void ORT_API_CALL release_infos(OrtEp* ep, OrtNodeComputeInfo** infos, size_t count) {
  (void)ep, (void)infos, (void)count;
}

static void test_versions(void) {
  CHECK(struct_version(0, 23) == 23);
  CHECK(struct_version(24, 23) == 24);
  CHECK(struct_version(ORT_API_VERSION + 1, 23) == ORT_API_VERSION);
  OrtEp ep = {.ort_version_supported = 24};
  CHECK(GUARD_SLOT(&ep, struct_version(24, 23), Sync, 25) == NULL);
}

static void test_ep(void) {
  OrtEp ep = {.GetName = get_name, .GetCapability = get_capability};
  ep.Compile = compile;
  ep.ReleaseNodeComputeInfos = release_infos;
  const size_t size_of_23 = offsetof(OrtEp, GetKernelRegistry);
  const uint32_t versions[] = {0, 23, 24, 30, 31};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    ep.ort_version_supported = versions[i];
    CHECK_OK(guard_ep(cut(&ep, versions[i] < 24 ? size_of_23 : sizeof ep), "E"));
  }
  ep.ort_version_supported = 22;
  CHECK_FAILS(guard_ep(cut(&ep, offsetof(OrtEp, GetCapability)), "E"), ORT_INVALID_ARGUMENT,
              "E: OrtEp carries version 22; the oldest that can be used is 23");
  CHECK_FAILS(guard_ep(NULL, "E"), ORT_INVALID_ARGUMENT, "E: OrtEp is NULL");
  ep.ort_version_supported = 30;
  ep.ReleaseNodeComputeInfos = NULL;
  CHECK_FAILS(guard_ep(&ep, "E"), ORT_INVALID_ARGUMENT,
              "E: required slot OrtEp::ReleaseNodeComputeInfos is NULL");
  ep.Compile = NULL;
  CHECK_OK(guard_ep(&ep, "E"));
  ep.GetCapability = NULL;
  CHECK_FAILS(guard_ep(&ep, "E"), ORT_INVALID_ARGUMENT, "required slot OrtEp::GetCapability is NULL");
  ep.GetName = NULL;
  CHECK_FAILS(guard_ep(&ep, "E"), ORT_INVALID_ARGUMENT, "required slot OrtEp::GetName is NULL");
}

static OrtStatus* ORT_API_CALL create_state(OrtNodeComputeInfo* info, OrtNodeComputeContext* context,
                                            void** state) {
  (void)info, (void)context, (void)state;
  return NULL;
}
static OrtStatus* ORT_API_CALL compute_node(OrtNodeComputeInfo* info, void* state,
                                            OrtKernelContext* context) {
  (void)info, (void)state, (void)context;
  return NULL;
}
static void ORT_API_CALL release_state(OrtNodeComputeInfo* info, void* state) {
  (void)info, (void)state;
}

static void test_node_compute_info(void) {
  OrtNodeComputeInfo info = {23, create_state, compute_node, release_state};
  CHECK_OK(guard_node_compute_info(cut(&info, sizeof info), "E", "n"));
  info.ort_version_supported = 0;
  CHECK_OK(guard_node_compute_info(cut(&info, sizeof info), "E", "n"));
  info.ort_version_supported = 22;
  CHECK_FAILS(guard_node_compute_info(&info, "E", "n"), ORT_INVALID_ARGUMENT, "carries version 22");
  CHECK_FAILS(guard_node_compute_info(NULL, "E", "n"), ORT_EP_FAIL, "gave no OrtNodeComputeInfo for 'n'");
  const char* slots[] = {"CreateState", "Compute", "ReleaseState"};
  for (int i = 0; i < 3; i++) {
    OrtNodeComputeInfo one = {30, i == 0 ? NULL : create_state, i == 1 ? NULL : compute_node,
                              i == 2 ? NULL : release_state};
    CHECK_FAILS(guard_node_compute_info(&one, "E", "n"), ORT_INVALID_ARGUMENT, slots[i]);
  }
}

static OrtStatus* ORT_API_CALL compute_kernel(OrtKernelImpl* kernel, OrtKernelContext* context) {
  (void)kernel, (void)context;
  return NULL;
}
static void ORT_API_CALL release_kernel(OrtKernelImpl* kernel) {
  (void)kernel;
}

static void test_kernel(void) {
  OrtKernelImpl kernel = {.ort_version_supported = 24, .Compute = compute_kernel, .Release = release_kernel};
  CHECK_OK(guard_kernel_impl(cut(&kernel, sizeof kernel), "E", "n"));
  kernel.Release = NULL;
  CHECK_FAILS(guard_kernel_impl(&kernel, "E", "n"), ORT_INVALID_ARGUMENT, "OrtKernelImpl::Release is NULL");
  kernel.Compute = NULL;
  CHECK_FAILS(guard_kernel_impl(&kernel, "E", "n"), ORT_INVALID_ARGUMENT, "OrtKernelImpl::Compute is NULL");
  kernel.ort_version_supported = 23;
  CHECK_FAILS(guard_kernel_impl(&kernel, "E", "n"), ORT_INVALID_ARGUMENT, "OrtKernelImpl carries version 23");
  CHECK_FAILS(guard_kernel_impl(NULL, "E", "n"), ORT_EP_FAIL, "gave no OrtKernelImpl for 'n'");
}

static void test_null_structs(void) {
  CHECK_FAILS(guard_allocator(NULL, "E"), ORT_INVALID_ARGUMENT, "E: OrtAllocator is NULL");
  CHECK_FAILS(guard_data_transfer(NULL, "E"), ORT_INVALID_ARGUMENT, "E: OrtDataTransferImpl is NULL");
}

int main(void) {
  page_size = (size_t)sysconf(_SC_PAGESIZE);
  pages = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + page_size, page_size, PROT_NONE) != 0) return 2;
  RUN(test_versions);
  RUN(test_ep);
  RUN(test_node_compute_info);
  RUN(test_kernel);
  RUN(test_null_structs);
  return finish();
}

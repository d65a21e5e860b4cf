/* What runs: the compute info of a fused graph, and the kernel of a single node. Both are one Python
 * callable. */
#include <stdatomic.h>

#include "bridge.h"

#define HOST_SHIFT 48 /* a kernel definition's state is its Python id with the index of the host above it */

typedef struct PyNode {
  union { /* first: the host's pointer is ours */
    OrtNodeComputeInfo info;
    OrtKernelImpl kernel;
  } base;
  BridgePeer peer;
  uint64_t packed; /* as in BridgeRun; set before the first run */
  BridgeRun run;   /* of whoever has set busy */
  atomic_flag busy;
} PyNode;

/* Gives a node (released with free_node), NULL without memory; copies name. Takes the Python object. */
static PyNode* new_node(const BridgeHost* host, uint64_t id, const char* name, const char* slot) {
  PyNode* node = bridge_peer_new(sizeof *node, offsetof(PyNode, peer), host, id, name, slot);
  if (node) atomic_flag_clear(&node->busy);
  return node;
}

static void free_node(PyNode* node, const char* slot) {
  bridge_run_clear(&node->run);
  bridge_peer_free(node, &node->peer, slot);
}

/* Calls Python. With the inputs of the run before, and nothing else in the way, Python needs nothing but to
 * be told so. Returns a BridgeEnd. */
static int run_in_python(PyNode* node, BridgeRun* run, bool same) {
  int end = BRIDGE_FAILED;
  if (same && run->is_watched) {
    bridge_run_copy_inputs(run);
    end = bridge_py_again(node->peer.id);
    if (end == BRIDGE_WATCHED && !bridge_run_copy_outputs(run)) end = BRIDGE_FAILED;
    if (end != BRIDGE_WATCHED || bridge_worst_loan(run->loans, run->num_loans) != BRIDGE_LOAN_AS_IT_WAS) {
      int found = bridge_py_compute(node->peer.id, BRIDGE_LOOK, run);
      if (end != BRIDGE_FAILED) end = found;
    }
  } else {
    for (size_t i = 0; i < run->num_inputs; i++) run->copies[i].to = NULL;
    end = bridge_py_compute(node->peer.id, run == &node->run ? BRIDGE_RUN : BRIDGE_RUN_ALONE, run);
  }
  run->is_watched = end == BRIDGE_WATCHED;
  return end;
}

static OrtStatus* run_with(PyNode* node, BridgeRun* run, OrtKernelContext* context, const char* slot) {
  bool same = false;
  run->packed = node->packed;
  run->call = bridge_peer_call(&node->peer, slot);
  if (run->call.entered && bridge_run_gather(run, context, &same) && bridge_run_wait_for_others(run))
    run->call.ok = run_in_python(node, run, same) != BRIDGE_FAILED;
  run->context = NULL;
  return bridge_call_end(&run->call);
}

/* Several threads may run one node. The first uses the node's own run, which remembers the last inputs; those
 * that come meanwhile use one of their own. */
static OrtStatus* compute(PyNode* node, OrtKernelContext* context, const char* slot) {
  OrtStatus* status = NULL;
  if (!atomic_flag_test_and_set(&node->busy)) {
    status = run_with(node, &node->run, context, slot);
    atomic_flag_clear(&node->busy);
  } else {
    BridgeRun run = {0};
    status = run_with(node, &run, context, slot);
    bridge_run_clear(&run);
  }
  return status;
}

/* All state is in Python, under the node's id. */
static OrtStatus* info_create_state(OrtNodeComputeInfo* this_ptr, OrtNodeComputeContext* context,
                                    void** state) {
  (void)context;
  *state = this_ptr;
  return NULL;
}

static OrtStatus* info_compute(OrtNodeComputeInfo* this_ptr, void* state, OrtKernelContext* context) {
  (void)state;
  return compute((PyNode*)this_ptr, context, "OrtNodeComputeInfo::Compute");
}

static void info_release_state(OrtNodeComputeInfo* this_ptr, void* state) {
  (void)this_ptr, (void)state;
}

/* Gives the compute info (released with bridge_compute_info_free). A failure releases the Python object. */
OrtStatus* bridge_compute_info_new(const BridgeHost* host, uint64_t id, const char* name,
                                   OrtNodeComputeInfo** info) {
  PyNode* node = new_node(host, id, name, "OrtEp::Compile");
  if (!node) return bridge_no_memory(host, "OrtEp::Compile");
  node->base.info = (OrtNodeComputeInfo){.ort_version_supported = host->version,
                                         .CreateState = info_create_state,
                                         .Compute = info_compute,
                                         .ReleaseState = info_release_state};
  *info = &node->base.info;
  return NULL;
}

void bridge_compute_info_free(OrtNodeComputeInfo* info) {
  free_node((PyNode*)info, "OrtEp::ReleaseNodeComputeInfos");
}

static OrtStatus* kernel_compute(OrtKernelImpl* this_ptr, OrtKernelContext* context) {
  return compute((PyNode*)this_ptr, context, "OrtKernelImpl::Compute");
}

static void kernel_release(OrtKernelImpl* this_ptr) {
  free_node((PyNode*)this_ptr, "OrtKernelImpl::Release");
}

/* borrows all of it during the call. */
static OrtStatus* kernel_prepack(OrtKernelImpl* this_ptr, const OrtValue* tensor, int input_index,
                                 OrtAllocator* allocator, OrtSharedPrePackedWeightCache* cache,
                                 bool* is_packed) {
  PyNode* node = (PyNode*)this_ptr;
  int packed = 0;
  *is_packed = false;
  if (input_index < 0 || input_index >= 64) return NULL; /* no place to remember it */
  BridgeCall call = bridge_peer_call(&node->peer, "OrtKernelImpl::PrePackWeight");
  if (call.entered)
    call.ok = bridge_py_prepack(&call, node->peer.id, tensor, input_index, allocator, cache, &packed);
  OrtStatus* status = bridge_call_end(&call);
  if (status || !packed) return status;
  node->packed |= (uint64_t)1 << input_index;
  *is_packed = true;
  return NULL;
}

/* borrows the buffers, which the host keeps alive longer than the kernel. */
static OrtStatus* kernel_set_shared(OrtKernelImpl* this_ptr, const void* const* buffers, const size_t* sizes,
                                    size_t count, int input_index) {
  PyNode* node = (PyNode*)this_ptr;
  BridgeCall call = bridge_peer_call(&node->peer, "OrtKernelImpl::SetSharedPrePackedWeight");
  if (call.entered) call.ok = bridge_py_set_shared(&call, node->peer.id, buffers, sizes, count, input_index);
  return bridge_call_end(&call);
}

/* The OrtKernelCreateFunc of every Python kernel. Gives the kernel (host releases with its Release). */
OrtStatus* bridge_create_kernel(void* state, const OrtKernelInfo* info, OrtKernelImpl** kernel) {
  const uint64_t definition = (uint64_t)(uintptr_t)state & (((uint64_t)1 << HOST_SHIFT) - 1);
  const BridgeHost* host = bridge_host_at((uint32_t)((uint64_t)(uintptr_t)state >> HOST_SHIFT));
  const OrtEp* ep = NULL;
  uint64_t id = 0;
  uint32_t features = 0;
  *kernel = NULL;
  if (!host) host = bridge_host_at(0); /* a state that is not ours: Python finds no such definition either */
  OrtStatus* status = host->ep_api->KernelInfo_GetEp(info, &ep);
  if (status) return status;

  const char* name = ep->GetName(ep);
  BridgeCall call = bridge_call_begin(host, "OrtKernelCreateFunc", name);
  if (call.entered) call.ok = bridge_py_create_kernel(&call, definition, info, &id, &features);
  status = bridge_call_end(&call);
  if (status) return status;
  PyNode* node = new_node(host, id, name, "OrtKernelCreateFunc");
  if (!node) return bridge_no_memory(host, "OrtKernelCreateFunc");
  node->base.kernel = (OrtKernelImpl){
      .ort_version_supported = host->version, .Compute = kernel_compute, .Release = kernel_release};
  if (features & BRIDGE_KERNEL_PREPACK) {
    node->base.kernel.PrePackWeight = kernel_prepack;
    node->base.kernel.SetSharedPrePackedWeight = kernel_set_shared;
  }
  *kernel = &node->base.kernel;
  return NULL;
}

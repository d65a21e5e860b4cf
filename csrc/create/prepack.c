/* Pre-packing: once, while a session is made, its kernels see their constant inputs and may keep them in a
 * form of their own: not at all, privately, or shared through a container. Originals that nobody reads after
 * that are released, and so is what fused nodes have copied. On the thread that makes the session. */
#include <string.h>

#include "api_slots.h"
#include "create/create.h"

/* What a kernel stores packed weights in, during one call. It lives as long as the session, so that a kernel
 * that comes back with it later gets an error. */
struct OrtSharedPrePackedWeightCache {
  bool is_open;
  PackedBuffers stored; /* owned */
};

/* One constant input of one kernel. */
typedef struct Packing {
  OrtSession* session;
  Unit* unit;
  size_t index;
  OrtValueInfo* weight;
  OrtAllocator* allocator;
  OrtSharedPrePackedWeightCache* cache; /* NULL: the kernel does not share */
  size_t packed_bytes;                  /* of the originals of all that the kernel packed */
} Packing;

/* Below that much it is not worth the time to look for memory to give back. */
#define SMALLEST_TRIM (1 << 20)

/* takes `cause`, gives it with EP, node and input in front. */
static OrtStatus* packing_failure(OrtStatus* cause, const Packing* packing, const char* slot) {
  StrBuf text = {0};
  describe_node(&text, packing->unit->node);
  OrtStatus* status = ep_failure(cause, "EP '%s': OrtKernelImpl::%s for input %zu ('%s') of node %s failed",
                                 packing->unit->ep->name, slot, packing->index, packing->weight->name,
                                 text.failed ? "?" : text.text);
  strbuf_release(&text);
  return status;
}

/* ---- What a kernel stores ---- */

static bool holds(const PackedBuffers* buffers, const void* data) {
  for (size_t i = 0; i < buffers->count; i++) {
    if (buffers->data[i] == data) return true;
  }
  return false;
}

static OrtStatus* check_buffers(void* const* data, const size_t* sizes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (data[i] == NULL && sizes[i] != 0)
      return status_new(ORT_INVALID_ARGUMENT,
                        "SharedPrePackedWeightCache_StoreWeightData: buffer %zu of %zu bytes is NULL", i,
                        sizes[i]);
    for (size_t k = 0; k < i; k++) {
      if (data[i] != NULL && data[k] == data[i])
        return status_new(ORT_INVALID_ARGUMENT,
                          "SharedPrePackedWeightCache_StoreWeightData: buffers %zu and %zu are the same", k,
                          i);
    }
  }
  return NULL;
}

/* takes the buffers, which come from the allocator that PrePackWeight was given, on success; on failure they
 * stay the caller's. copies the arrays. A second call replaces (and frees) what the first one stored. */
OrtStatus* ORT_API_CALL api_SharedPrePackedWeightCache_StoreWeightData(
    OrtSharedPrePackedWeightCache* prepacked_weight_cache, void** buffer_data_ptrs, size_t* buffer_data_sizes,
    size_t num_buffers) {
  REQUIRE_ARG(prepacked_weight_cache);
  REQUIRE_ARG(buffer_data_ptrs);
  REQUIRE_ARG(buffer_data_sizes);
  if (num_buffers == 0)
    return status_new(ORT_INVALID_ARGUMENT,
                      "SharedPrePackedWeightCache_StoreWeightData: there are no buffers (num_buffers is 0)");
  if (!prepacked_weight_cache->is_open)
    return status_new(ORT_INVALID_ARGUMENT,
                      "SharedPrePackedWeightCache_StoreWeightData: the cache is valid only during the "
                      "PrePackWeight call that it was given to");
  TRY(check_buffers(buffer_data_ptrs, buffer_data_sizes, num_buffers));
  PackedBuffers stored;
  TRY(packed_buffers_copy(buffer_data_ptrs, buffer_data_sizes, num_buffers, &stored));
  PackedBuffers* old = &prepacked_weight_cache->stored;
  for (size_t i = 0; i < old->count; i++) {
    if (holds(&stored, old->data[i])) old->data[i] = NULL; /* stored again: not to be freed */
  }
  packed_buffers_release(old);
  *old = stored;
  return NULL;
}

/* takes what the cache holds: it becomes the container's, and the kernel gets that or what was there before.
 */
static OrtStatus* share_stored(const Packing* packing, uint32_t version) {
  OrtKernelImpl* kernel = packing->unit->kernel;
  PackedBuffers* stored = &packing->cache->stored;
  OrtStatus*(ORT_API_CALL * set_shared)(OrtKernelImpl*, const void* const*, const size_t*, size_t, int) =
      GUARD_SLOT(kernel, version, SetSharedPrePackedWeight, 24);
  if (set_shared == NULL) {
    packed_buffers_release(stored);
    return packing_failure(status_new(ORT_EP_FAIL,
                                      "it stored weights to be shared, but the kernel's "
                                      "SetSharedPrePackedWeight is NULL"),
                           packing, "PrePackWeight");
  }
  const PackedBuffers* shared = NULL;
  TRY(packed_container_share(packing->session->packed_weights, packing->unit->node, stored, &shared));
  OrtStatus* status = call_OrtKernelImpl_SetSharedPrePackedWeight(
      kernel, (const void* const*)shared->data, shared->sizes, shared->count, (int)packing->index);
  return status == NULL ? NULL : packing_failure(status, packing, "SetSharedPrePackedWeight");
}

/* ---- The original ---- */

static bool is_unread(const OrtValueInfo* value);

/* True if no subgraph of the node, which a kernel runs, reads what it captures of `value`. */
static bool subgraphs_are_done_with(const OrtNode* node, const OrtValueInfo* value) {
  for (size_t i = 0; i < node->subgraph_count; i++) {
    const OrtValueInfo* captured = graph_find_value(node->subgraphs[i], value->name, false);
    if (captured != NULL && captured->outer == value && !is_unread(captured)) return false;
  }
  return true;
}

/* True if a node that reads `value` does not need it any more. */
static bool is_done_with(const ValueConsumer* use, const OrtValueInfo* value) {
  const Unit* unit = node_unit(use->node);
  if (unit == NULL) return false;
  if (unit->is_fused) return unit->drop_constants; /* the EP has its own copy */
  if (use->input_index < 0) return subgraphs_are_done_with(use->node, value);
  return unit->packed_inputs != NULL && unit->packed_inputs[use->input_index];
}

static bool is_unread(const OrtValueInfo* value) {
  if (value->is_graph_output) return false;
  for (size_t i = value->consumer_count; i-- > 0;) {
    if (!is_done_with(&value->consumers[i], value)) return false;
  }
  return true;
}

/* Gives the bytes that are free now. */
static size_t release_weight(OrtValueInfo* weight) {
  size_t size = weight->initializer->size_bytes;
  value_clear(weight->initializer);
  for (DeviceCopy* copy = weight->copies; copy != NULL; copy = copy->next_of_value) value_clear(copy->value);
  return size;
}

/* The same for a constant that one reader less needs. */
static size_t release_if_unread(OrtValueInfo* value) {
  OrtValueInfo* weight = value_root(value);
  return weight->is_constant && is_unread(weight) ? release_weight(weight) : 0;
}

/* What belongs to a subgraph of a fused node was its EP's to copy in Compile. */
static size_t release_weights_of(const OrtGraph* graph) {
  size_t size = 0;
  for (size_t i = 0; i < graph->initializer_count; i++) size += release_weight(graph->initializers[i]);
  for (size_t i = 0; i < graph->node_count; i++) {
    for (size_t k = 0; k < graph->nodes[i]->subgraph_count; k++)
      size += release_weights_of(graph->nodes[i]->subgraphs[k]);
  }
  return size;
}

/* What a fused node has no use for once it is compiled. */
static size_t release_weights_of_fused(const Unit* unit) {
  size_t size = 0;
  for (size_t i = 0; i < unit->node_count; i++) {
    const OrtNode* node = unit->nodes[i];
    for (size_t k = 0; k < node->subgraph_count; k++) size += release_weights_of(node->subgraphs[k]);
    for (size_t k = 0; unit->drop_constants && k < node->input_count; k++) {
      if (node->inputs[k] != NULL) size += release_if_unread(node->inputs[k]);
    }
    for (size_t k = 0; unit->drop_constants && k < node->implicit_input_count; k++)
      size += release_if_unread(node->implicit_inputs[k]);
  }
  return size;
}

/* ---- Packing ---- */

/* Calls PrePackWeight; what it was lent is empty and closed afterwards. */
static OrtStatus* pack_weight(const Packing* packing, bool* is_packed) {
  OrtKernelImpl* kernel = packing->unit->kernel;
  OrtSharedPrePackedWeightCache* cache = packing->cache;
  OrtValue* view = arena_alloc(&packing->session->arena, sizeof *view);
  if (view == NULL) return status_no_memory();
  int32_t place = place_wanted(packing->unit, packing->index, false, packing->weight);
  value_view_open(view, constant_at(packing->weight, place)); /* the weight where the kernel reads it */
  if (cache != NULL) cache->is_open = true;
  const Unit* unit = packing->unit;
  AtWork before = at_work_begin("EP", unit->ep->name, unit->node->name, unit->node->op_type);
  OrtStatus* status = call_OrtKernelImpl_PrePackWeight(kernel, view, (int)packing->index, packing->allocator,
                                                       cache, is_packed);
  at_work = before;
  if (cache != NULL) cache->is_open = false;
  value_view_close(view);
  bool has_stored = cache != NULL && cache->stored.count != 0;
  if (status == NULL && has_stored && !*is_packed)
    status = status_new(ORT_EP_FAIL, "it stored weights to be shared, but said that it packed nothing");
  if (status == NULL) return NULL;
  if (has_stored) packed_buffers_release(&cache->stored);
  return packing_failure(status, packing, "PrePackWeight");
}

static OrtStatus* pack_input(Packing* packing, uint32_t version, bool is_sharing) {
  OrtSession* session = packing->session;
  bool is_packed = false;
  packing->cache = NULL;
  if (is_sharing) {
    packing->cache = arena_alloc(&session->arena, sizeof *packing->cache);
    if (packing->cache == NULL) return status_no_memory();
  }
  TRY(pack_weight(packing, &is_packed));
  if (!is_packed) return NULL;
  if (packing->cache != NULL && packing->cache->stored.count != 0) TRY(share_stored(packing, version));
  packing->unit->packed_inputs[packing->index] = true;
  packing->packed_bytes += packing->weight->initializer->size_bytes;
  release_if_unread(packing->weight);
  return NULL;
}

static OrtStatus* pack_kernel(OrtSession* session, Unit* unit, size_t* packed_bytes) {
  uint32_t version = struct_version(unit->kernel->ort_version_supported, OLDEST_KERNEL_IMPL);
  if (GUARD_SLOT(unit->kernel, version, PrePackWeight, 24) == NULL) return NULL;
  Packing packing = {.session = session, .unit = unit};
  TRY(api_KernelInfoGetAllocator(unit->kernel_info, OrtMemTypeDefault, &packing.allocator));
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* memory = call_OrtAllocator_Info(packing.allocator, &thrown);
  TRY(thrown);
  bool is_sharing =
      session->packed_weights != NULL && memory != NULL && memory_device_is_host(&memory->device);
  /* Shared weights may outlive the EP and its allocator. */
  if (is_sharing) packing.allocator = allocator_cpu();
  unit->packed_inputs = arena_calloc(&session->arena, unit->node->input_count, sizeof(bool));
  if (unit->packed_inputs == NULL) return status_no_memory();
  for (size_t i = 0; i < unit->node->input_count; i++) {
    if (unit->node->inputs[i] == NULL) continue;
    packing.index = i;
    packing.weight = value_root(unit->node->inputs[i]);
    if (packing.weight->is_constant) TRY(pack_input(&packing, version, is_sharing));
  }
  *packed_bytes += packing.packed_bytes;
  return NULL;
}

static bool is_on(const OrtSession* session, const char* key) {
  return session_options_config(session->options, key, "0")[0] == '1';
}

/* *packed_bytes: of the originals of all that was packed. */
static OrtStatus* pack_kernels(OrtSession* session, size_t* packed_bytes) {
  if (is_on(session, "session.disable_prepacking")) return NULL;
  /* The second is what turns sharing within a session on in stock ORT, for the sake of what it then saves. */
  bool shares_alone = is_on(session, "ort_abi.share_prepacked_weights") ||
                      is_on(session, "session.save_external_prepacked_constant_initializers");
  if (session->packed_weights == NULL && shares_alone) {
    session->packed_weights = packed_container_new();
    if (session->packed_weights == NULL) return status_no_memory();
  }
  for (size_t i = 0; i < session->unit_count; i++) {
    if (session->units[i]->kernel != NULL) TRY(pack_kernel(session, session->units[i], packed_bytes));
  }
  return NULL;
}

OrtStatus* prepack_weights(OrtSession* session) {
  size_t released = 0, packed = 0;
  for (size_t i = 0; i < session->unit_count; i++) {
    if (session->units[i]->is_fused) released += release_weights_of_fused(session->units[i]);
  }
  TRY(pack_kernels(session, &packed));
  /* Originals are free now, and what was packed as others had done before. */
  if (released + packed >= SMALLEST_TRIM) mem_trim();
  return NULL;
}

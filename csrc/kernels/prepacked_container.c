/* Packed weights that kernels of one or more sessions share. They are compared by what they are, not by the
 * weight's name: the operator (domain, type, version) that packed them, and their bytes.
 *
 * A container lives until its user and all its sessions have let go of it, in any order; what was put in
 * stays until then, and never changes. Any thread. */
#include <pthread.h>
#include <string.h>

#include "api_slots.h"
#include "kernels/kernels.h"

typedef struct SharedWeight SharedWeight;

struct SharedWeight {
  SharedWeight* next; /* of the same bucket */
  uint64_t hash;
  char *domain, *op_type; /* owned */
  int since_version;
  PackedBuffers buffers; /* owned */
};

struct OrtPrepackedWeightsContainer {
  _Atomic int references;
  ForkGuard fork;
  pthread_mutex_t mutex; /* guards all below */
  SharedWeight** buckets;
  size_t bucket_count, count;
};

#define FIRST_BUCKETS 64

/* ---- Buffers of one packed weight ---- */

OrtStatus* packed_buffers_copy(void* const* data, const size_t* sizes, size_t count, PackedBuffers* out) {
  size_t data_bytes, size_bytes, total;
  if (!size_mul(count, sizeof *data, &data_bytes) || !size_mul(count, sizeof *sizes, &size_bytes) ||
      !size_add(data_bytes, size_bytes, &total))
    return status_no_memory();
  void** block = mem_alloc(total);
  if (block == NULL) return status_no_memory();
  *out = (PackedBuffers){.data = block, .sizes = (size_t*)(void*)(block + count), .count = count};
  memcpy(out->data, data, data_bytes);
  memcpy(out->sizes, sizes, size_bytes);
  return NULL;
}

void packed_buffers_release(PackedBuffers* buffers) {
  for (size_t i = 0; i < buffers->count; i++) allocator_free(allocator_cpu(), buffers->data[i]);
  mem_free(buffers->data);
  *buffers = (PackedBuffers){0};
}

static bool packed_buffers_equal(const PackedBuffers* a, const PackedBuffers* b) {
  if (a->count != b->count || memcmp(a->sizes, b->sizes, a->count * sizeof *a->sizes) != 0) return false;
  for (size_t i = 0; i < a->count; i++) {
    if (a->sizes[i] != 0 && memcmp(a->data[i], b->data[i], a->sizes[i]) != 0) return false;
  }
  return true;
}

/* ---- Hashes ---- */

#define HASH_LANES 4

static uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

/* Words in lanes that do not wait for each other: weights are large. */
static uint64_t hash_bytes(uint64_t hash, const void* data, size_t size) {
  uint64_t lanes[HASH_LANES] = {hash, hash + 1, hash + 2, hash + 3}, words[HASH_LANES];
  const char* next = data;
  size_t left = size;
  for (; left >= sizeof words; left -= sizeof words, next += sizeof words) {
    memcpy(words, next, sizeof words);
    for (int i = 0; i < HASH_LANES; i++) lanes[i] = hash_word(lanes[i], words[i]);
  }
  memset(words, 0, sizeof words);
  if (left != 0) memcpy(words, next, left);
  for (int i = 0; i < HASH_LANES; i++) hash = hash_word(hash, hash_word(lanes[i], words[i]));
  return hash_word(hash, size);
}

static uint64_t hash_weight(const OrtNode* node, const PackedBuffers* buffers) {
  uint64_t hash = hash_bytes(0, node->domain, strlen(node->domain));
  hash = hash_bytes(hash, node->op_type, strlen(node->op_type));
  hash = hash_word(hash, (uint64_t)node->since_version);
  for (size_t i = 0; i < buffers->count; i++) hash = hash_bytes(hash, buffers->data[i], buffers->sizes[i]);
  return hash;
}

/* ---- The table; the caller holds the mutex ---- */

static SharedWeight* find_weight(const OrtPrepackedWeightsContainer* container, const OrtNode* node,
                                 uint64_t hash, const PackedBuffers* buffers) {
  if (container->bucket_count == 0) return NULL;
  SharedWeight* weight = container->buckets[hash % container->bucket_count];
  for (; weight != NULL; weight = weight->next) {
    if (weight->hash == hash && weight->since_version == node->since_version &&
        strcmp(weight->op_type, node->op_type) == 0 && strcmp(weight->domain, node->domain) == 0 &&
        packed_buffers_equal(&weight->buffers, buffers))
      return weight;
  }
  return NULL;
}

static bool grow(OrtPrepackedWeightsContainer* container) {
  if (container->count < container->bucket_count) return true;
  size_t count = container->bucket_count == 0 ? FIRST_BUCKETS : 2 * container->bucket_count;
  SharedWeight** buckets = mem_calloc(count, sizeof(SharedWeight*));
  if (buckets == NULL) return false;
  for (size_t i = 0; i < container->bucket_count; i++) {
    for (SharedWeight *weight = container->buckets[i], *next; weight != NULL; weight = next) {
      next = weight->next;
      weight->next = buckets[weight->hash % count];
      buckets[weight->hash % count] = weight;
    }
  }
  mem_free(container->buckets);
  container->buckets = buckets;
  container->bucket_count = count;
  return true;
}

static void weight_free(SharedWeight* weight) {
  packed_buffers_release(&weight->buffers);
  mem_free(weight->domain);
  mem_free(weight->op_type);
  mem_free(weight);
}

/* takes `buffers` on success. NULL: no memory. */
static SharedWeight* add_weight(OrtPrepackedWeightsContainer* container, const OrtNode* node, uint64_t hash,
                                PackedBuffers* buffers) {
  if (!grow(container)) return NULL;
  SharedWeight* weight = mem_calloc(1, sizeof *weight);
  if (weight == NULL) return NULL;
  weight->domain = str_copy(node->domain);
  weight->op_type = str_copy(node->op_type);
  if (weight->domain == NULL || weight->op_type == NULL) {
    weight_free(weight);
    return NULL;
  }
  weight->hash = hash;
  weight->since_version = node->since_version;
  weight->buffers = *buffers;
  *buffers = (PackedBuffers){0};
  SharedWeight** bucket = &container->buckets[hash % container->bucket_count];
  weight->next = *bucket;
  *bucket = weight;
  container->count++;
  return weight;
}

/* ---- Containers ---- */

OrtPrepackedWeightsContainer* packed_container_new(void) {
  OrtPrepackedWeightsContainer* container = mem_calloc(1, sizeof *container);
  if (container == NULL) return NULL;
  atomic_init(&container->references, 1);
  pthread_mutex_init(&container->mutex, NULL);
  fork_guard_open(&container->fork, &container->mutex, false);
  return container;
}

OrtPrepackedWeightsContainer* packed_container_retain(OrtPrepackedWeightsContainer* container) {
  if (container != NULL) atomic_fetch_add(&container->references, 1);
  return container;
}

void packed_container_release(OrtPrepackedWeightsContainer* container) {
  if (container == NULL || atomic_fetch_sub(&container->references, 1) != 1) return;
  for (size_t i = 0; i < container->bucket_count; i++) {
    for (SharedWeight *weight = container->buckets[i], *next; weight != NULL; weight = next) {
      next = weight->next;
      weight_free(weight);
    }
  }
  mem_free(container->buckets);
  fork_guard_close(&container->fork);
  pthread_mutex_destroy(&container->mutex);
  mem_free(container);
}

OrtStatus* packed_container_share(OrtPrepackedWeightsContainer* container, const OrtNode* node,
                                  PackedBuffers* buffers, const PackedBuffers** out) {
  uint64_t hash = hash_weight(node, buffers);
  pthread_mutex_lock(&container->mutex);
  SharedWeight* weight = find_weight(container, node, hash, buffers);
  if (weight == NULL) weight = add_weight(container, node, hash, buffers);
  pthread_mutex_unlock(&container->mutex);
  packed_buffers_release(buffers); /* of an equal weight, or all of them when out of memory */
  if (weight == NULL) return status_no_memory();
  *out = &weight->buffers;
  return NULL;
}

/* gives (caller releases with ReleasePrepackedWeightsContainer, before or after the sessions). */
OrtStatus* ORT_API_CALL api_CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) {
  REQUIRE_ARG(out);
  OrtPrepackedWeightsContainer* container = packed_container_new();
  if (container == NULL) return status_no_memory();
  *out = container;
  return NULL;
}

/* releases; sessions keep alive what they share. */
void ORT_API_CALL api_ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* input) {
  packed_container_release(input);
}

/* Equal hashes do not make weights equal: the container compares bytes. Made to collide with knowledge of the
 * hash, which no model needs. */
#include "harness.h"
#include "kernels/kernels.h"

/* As in prepacked_container.c. */
static uint64_t hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static uint64_t hash_text(uint64_t hash, const char* text) {
  uint64_t words[4] = {0};
  uint64_t lanes[4] = {hash, hash + 1, hash + 2, hash + 3};
  memcpy(words, text, strlen(text));
  for (int i = 0; i < 4; i++) hash = hash_word(hash, hash_word(lanes[i], words[i]));
  return hash_word(hash, strlen(text));
}

/* gives (to packed_container_share): one buffer with the words. */
static PackedBuffers new_buffers(const uint64_t* words, size_t count) {
  PackedBuffers buffers = {0};
  size_t size = count * sizeof *words;
  void* data = allocator_alloc(allocator_cpu(), size);
  memcpy(data, words, size);
  CHECK_OK(packed_buffers_copy(&data, &size, 1, &buffers));
  return buffers;
}

static const OrtNode node = {.domain = (char*)"", .op_type = (char*)"Mul", .since_version = 14};

/* gives what the container has for the words, or NULL. */
static const void* share(OrtPrepackedWeightsContainer* container, const uint64_t* words) {
  PackedBuffers buffers = new_buffers(words, 8);
  const PackedBuffers* shared = NULL;
  CHECK_OK(packed_container_share(container, &node, &buffers, &shared));
  return shared != NULL && shared->count == 1 ? shared->data[0] : NULL;
}

static void test_a_collision_is_no_equality(void) {
  const uint64_t one[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t other[8] = {9, 2, 3, 4, 5, 6, 7, 8};
  /* The state of the first lane before the data, and a fifth word that makes up for the other first one. */
  uint64_t lane = hash_word(hash_text(hash_text(0, ""), "Mul"), 14);
  other[4] = one[4] ^ hash_word(lane, one[0]) ^ hash_word(lane, other[0]);
  OrtPrepackedWeightsContainer* container = packed_container_new();
  const void* first = share(container, one);
  const void* second = share(container, other);
  CHECK(first != second && memcmp(first, one, sizeof one) == 0 && memcmp(second, other, sizeof other) == 0);
  CHECK(share(container, one) == first && share(container, other) == second);
  packed_container_release(container);
}

int main(void) {
  RUN(test_a_collision_is_no_equality);
  return finish();
}

/* The one gate to malloc. Tests make the nth allocation fail through it. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ort_abi_host.h"

/* Allocations left until one fails; negative: none fails. Any thread. */
static _Atomic int64_t allocations_left = -1;
static _Atomic int64_t allocations_made = 0;

static bool allocation_allowed(void) {
  atomic_fetch_add_explicit(&allocations_made, 1, memory_order_relaxed);
  if (atomic_load_explicit(&allocations_left, memory_order_relaxed) < 0) return true;
  return atomic_fetch_sub_explicit(&allocations_left, 1, memory_order_relaxed) != 0;
}

ORT_ABI_EXPORT void ortabi_fail_allocation(int64_t allocations_before_failure) {
  atomic_store(&allocations_left, allocations_before_failure);
}

ORT_ABI_EXPORT int64_t ortabi_allocation_count(void) {
  return atomic_load(&allocations_made);
}

void* mem_alloc(size_t size) {
  return allocation_allowed() ? malloc(size ? size : 1) : NULL;
}

void* mem_calloc(size_t count, size_t size) {
  if (count == 0 || size == 0) count = size = 1;
  return allocation_allowed() ? calloc(count, size) : NULL;
}

#define HUGE_FROM ((size_t)4 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* Under a sanitizer the block ends where what malloc gave ends, so that a read behind it is seen. */
#ifdef __SANITIZE_ADDRESS__
static void* malloc_for_aligned(size_t size) {
  void* raw = NULL;
  return posix_memalign(&raw, MEM_ALIGNMENT, size) == 0 ? raw : NULL;
}

static size_t alignment_of(size_t size) {
  (void)size;
  return MEM_ALIGNMENT;
}
#else
static void* malloc_for_aligned(size_t size) {
  return malloc(size); /* posix_memalign takes three times as long */
}

/* Large tensors lie in whole huge pages. An element-wise kernel over 4 MB takes a twentieth less time than in
 * small ones, and what runs between two kernels finds more of its own pages in the TLB. What is skipped in
 * front of the block is never touched, so that it costs addresses and no memory. */
static size_t alignment_of(size_t size) {
  return size >= HUGE_FROM ? HUGE_PAGE : MEM_ALIGNMENT;
}
#endif

/* The address of what malloc gave stands right before the block. There is room: malloc aligns for any type,
 * so at least that much lies between the two.
 * There is no cache of freed blocks: malloc keeps them itself once the first was freed (its mmap threshold
 * grows), so that outputs of later runs come without a page fault. (posix_memalign would not find them
 * again.) */
void* mem_alloc_aligned(size_t size) {
  const size_t alignment = alignment_of(size);
  size_t total;
  if (!size_add(size, alignment, &total) || !allocation_allowed()) return NULL;
  char* raw = malloc_for_aligned(total);
  if (raw == NULL) return NULL;
  char* start = raw + alignment - (uintptr_t)raw % alignment;
  if (alignment == HUGE_PAGE) (void)madvise(start, size, MADV_HUGEPAGE); /* advice: some kernels refuse */
  void** block = (void**)(void*)start;
  block[-1] = raw;
  return block;
}

void mem_free_aligned(void* block) {
  if (block != NULL) free(((void**)block)[-1]);
}

void* mem_realloc(void* block, size_t size) {
  return allocation_allowed() ? realloc(block, size ? size : 1) : NULL;
}

void mem_free(void* block) {
  free(block);
}

void mem_trim(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

bool size_mul(size_t a, size_t b, size_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool size_add(size_t a, size_t b, size_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

bool array_reserve(void** items, size_t* capacity, size_t needed, size_t item_size) {
  if (needed <= *capacity) return true;
  size_t grown = *capacity < 8 ? 8 : *capacity + *capacity / 2;
  if (grown < needed) grown = needed;
  size_t bytes;
  if (!size_mul(grown, item_size, &bytes)) return false;
  void* moved = mem_realloc(*items, bytes);
  if (moved == NULL) return false;
  *items = moved;
  *capacity = grown;
  return true;
}

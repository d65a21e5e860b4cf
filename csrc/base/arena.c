/* Arena: a model's nodes, values and names are allocated here and die together. One thread at a time. */
#include <string.h>

#include "base/base.h"

#define ARENA_BLOCK_BYTES (32 * 1024)
#define ARENA_ALIGNMENT   16

struct ArenaBlock {
  ArenaBlock* older;
  size_t padding; /* keeps the first item aligned */
};

void* arena_alloc(Arena* arena, size_t size) {
  if (!size_add(size, ARENA_ALIGNMENT - 1, &size)) return NULL;
  size &= ~(size_t)(ARENA_ALIGNMENT - 1);
  if (size > arena->left) {
    size_t bytes = size > ARENA_BLOCK_BYTES / 4 ? size : ARENA_BLOCK_BYTES;
    size_t total;
    if (!size_add(bytes, sizeof(ArenaBlock), &total)) return NULL;
    ArenaBlock* block = mem_calloc(1, total);
    if (block == NULL) return NULL;
    block->older = arena->blocks;
    arena->blocks = block;
    if (bytes == size) return block + 1; /* a large item has a block of its own, the open one stays open */
    arena->next = (char*)(block + 1);
    arena->left = bytes;
  }
  void* item = arena->next;
  arena->next += size;
  arena->left -= size;
  return item;
}

void* arena_calloc(Arena* arena, size_t count, size_t size) {
  size_t bytes;
  return size_mul(count, size, &bytes) ? arena_alloc(arena, bytes) : NULL;
}

char* arena_str(Arena* arena, const char* text, size_t length) {
  if (length == SIZE_MAX) return NULL;
  char* copy = arena_alloc(arena, length + 1);
  if (copy == NULL) return NULL;
  if (length != 0) memcpy(copy, text, length);
  return copy; /* zeroed memory: terminated */
}

void arena_release(Arena* arena) {
  for (ArenaBlock* block = arena->blocks; block != NULL;) {
    ArenaBlock* older = block->older;
    mem_free(block);
    block = older;
  }
  memset(arena, 0, sizeof *arena);
}

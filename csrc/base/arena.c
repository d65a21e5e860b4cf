/* Arena: a model's nodes, values and names are allocated here and die together. One thread at a time. */
#include <string.h>

#include "base/base.h"

/* Blocks double from the first size to the last one: many arenas stay small. */
#define ARENA_FIRST_BYTES 1024
#define ARENA_LAST_BYTES  (32 * 1024)
#define ARENA_ALIGNMENT   16

struct ArenaBlock {
  ArenaBlock* older;
  size_t bytes; /* of items; also keeps the first one aligned */
};

void* arena_alloc(Arena* arena, size_t size) {
  if (size == 0) size = 1; /* never NULL but for want of memory */
  if (!size_add(size, ARENA_ALIGNMENT - 1, &size)) return NULL;
  size &= ~(size_t)(ARENA_ALIGNMENT - 1);
  if (size > arena->left) {
    size_t wanted = arena->blocks == NULL ? 0 : arena->blocks->bytes * 2;
    if (wanted < ARENA_FIRST_BYTES) wanted = ARENA_FIRST_BYTES;
    if (wanted > ARENA_LAST_BYTES) wanted = ARENA_LAST_BYTES;
    size_t bytes = size > wanted / 4 ? size : wanted;
    size_t total;
    if (!size_add(bytes, sizeof(ArenaBlock), &total)) return NULL;
    ArenaBlock* block = mem_calloc(1, total);
    if (block == NULL) return NULL;
    block->older = arena->blocks;
    block->bytes = bytes;
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

/* Gives back memory that nobody reads any more, while its model lives on: what was read of a model is in
 * memory of its own, but for tensors that lie well in the model's bytes. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onnx/reader.h"

typedef struct Range {
  uintptr_t begin, end;
} Range;

/* Whole pages only; a failure leaves them where they are. Those of a file can be read again, others become
 * zeros.
 */
static void drop_pages(uintptr_t begin, uintptr_t end) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  if (begin < end) madvise((void*)begin, end - begin, MADV_DONTNEED);
}

static int compare_ranges(const void* a, const void* b) {
  const Range *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The tensors that borrow from the mapping, in order. Some may show the same bytes. *gives* them (caller
 * releases with mem_free); NULL: no memory. */
static Range* borrowed_ranges(const OrtModel* model, Range all, size_t* count) {
  Range* ranges = mem_calloc(model->value_count, sizeof *ranges);
  if (ranges == NULL) return NULL;
  *count = 0;
  for (size_t i = 0; i < model->value_count; i++) {
    const OrtValue* value = model->values[i];
    uintptr_t begin = (uintptr_t)value->data;
    if (value->allocator == NULL && begin >= all.begin && begin < all.end)
      ranges[(*count)++] = (Range){begin, begin + value->size_bytes};
  }
  qsort(ranges, *count, sizeof *ranges, compare_ranges);
  return ranges;
}

static void drop_gaps(const OrtModel* model, Range all) {
  size_t count = 0;
  Range* ranges = borrowed_ranges(model, all, &count);
  if (ranges == NULL) return; /* then all of it stays */
  uintptr_t next = all.begin;
  for (size_t i = 0; i < count; i++) {
    drop_pages(next, ranges[i].begin);
    if (ranges[i].end > next) next = ranges[i].end;
  }
  drop_pages(next, all.end);
  mem_free(ranges);
}

void model_drop_unread_pages(const OrtModel* model) {
  for (const Mapping* mapping = model->mappings; mapping != NULL; mapping = mapping->next) {
    Range all = {(uintptr_t)mapping->data, (uintptr_t)mapping->data + mapping->size};
    if (mapping->is_heap)
      drop_gaps(model, all);
    else
      drop_pages(all.begin, all.end); /* tensors that are read later come back from the file */
  }
}

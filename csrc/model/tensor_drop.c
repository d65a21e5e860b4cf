/* Gives back memory that nobody reads any more, while its model lives on. */
#include <sys/mman.h>
#include <unistd.h>

#include "model/reader.h"

/* Tensors of fewer bytes stay: they fill no page, or hardly one. */
#define SMALLEST_DROP 65536

static bool overlaps(const OrtValue* value, const char* begin, const char* end) {
  const char* data = value->data;
  return data != NULL && data < end && data + value->size_bytes > begin;
}

/* True if other tensors show a part of the same bytes: those of a function that is called twice. */
static bool is_shown_twice(const OrtModel* model, const OrtValue* value) {
  const char* begin = value->data;
  for (size_t i = 0; i < model->value_count; i++) {
    const OrtValue* other = model->values[i];
    if (other != value && other->size_bytes != 0 && overlaps(other, begin, begin + value->size_bytes))
      return true;
  }
  return false;
}

static const Mapping* mapping_of(const OrtModel* model, const char* data) {
  const Mapping* mapping = model->mappings;
  while (mapping != NULL &&
         (data < (const char*)mapping->data || data >= (const char*)mapping->data + mapping->size))
    mapping = mapping->next;
  return mapping;
}

/* Whole pages of the bytes only; a failure leaves them where they are. Those of a file can be read again,
 * others become zeros. */
static void drop_pages(const void* data, size_t size) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t begin = ((uintptr_t)data + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)data + size) / page * page;
  if (begin < end) madvise((void*)begin, end - begin, MADV_DONTNEED);
}

void model_drop_tensor(OrtModel* model, OrtValue* value) {
  bool is_borrowed = value->allocator == NULL && value->size_bytes >= SMALLEST_DROP;
  const Mapping* mapping =
      is_borrowed ? mapping_of(model, value->data) : NULL; /* NULL: or the caller's bytes */
  if (mapping != NULL && (!mapping->is_heap || !is_shown_twice(model, value)))
    drop_pages(value->data, value->size_bytes);
  value_clear(value);
}

void model_drop_file_pages(const OrtModel* model) {
  for (const Mapping* mapping = model->mappings; mapping != NULL; mapping = mapping->next) {
    if (!mapping->is_heap && mapping->size != 0) madvise(mapping->data, mapping->size, MADV_DONTNEED);
  }
}

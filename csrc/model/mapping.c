/* Files that a model's tensors point into. A model file may be anywhere; external data must lie below the
 * model's folder, whatever its location says and wherever links lead. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/reader.h"

/* gives the mapping to the model. takes `data` also on failure. */
static OrtStatus* own_mapping(OrtModel* model, void* data, size_t size, bool is_heap, const char* location,
                              const Mapping** out) {
  Mapping* mapping = arena_alloc(&model->arena, sizeof *mapping);
  char* copy = location != NULL ? arena_str(&model->arena, location, strlen(location)) : NULL;
  if (mapping == NULL || (location != NULL && copy == NULL)) {
    if (is_heap)
      mem_free_aligned(data);
    else if (size != 0)
      munmap(data, size);
    return status_no_memory();
  }
  *mapping = (Mapping){model->mappings, copy, data, size, is_heap};
  model->mappings = mapping;
  *out = mapping;
  return NULL;
}

OrtStatus* map_file(OrtModel* model, const char* path, const char* location, const Mapping** out) {
  OrtStatus* status = NULL;
  struct stat info;
  void* data = NULL;
  /* Not blocking: opening a pipe must not wait for a writer. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (location != NULL ? O_NOFOLLOW : 0));
  if (file < 0) {
    OrtErrorCode code = errno == ENOENT || errno == ENOTDIR ? ORT_NO_SUCHFILE : ORT_FAIL;
    return status_new(code, "cannot open '%s': %s", path, strerror(errno));
  }
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = status_new(ORT_FAIL, "'%s' is not a regular file", path);
    goto done;
  }
  if (info.st_size != 0) { /* private and writable: a client that writes to a tensor changes its own memory */
    data = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      status = status_new(ORT_FAIL, "cannot map '%s': %s", path, strerror(errno));
      goto done;
    }
  }
  status = own_mapping(model, data, (size_t)info.st_size, false, location, out);
done:
  close(file);
  return status;
}

OrtStatus* copy_bytes(OrtModel* model, const void* data, size_t size, const Mapping** out) {
  void* copy = mem_alloc_aligned(size);
  if (copy == NULL) return status_no_memory();
  memcpy(copy, data, size);
  return own_mapping(model, copy, size, true, NULL, out);
}

void mappings_release(OrtModel* model) {
  for (Mapping* mapping = model->mappings; mapping != NULL; mapping = mapping->next) {
    if (mapping->is_heap)
      mem_free_aligned(mapping->data);
    else if (mapping->size != 0)
      munmap(mapping->data, mapping->size);
  }
  model->mappings = NULL;
}

/* True for "a/b.bin"; false for "", "/a", "../a", "a/../b". */
static bool location_is_relative(const char* location) {
  if (location[0] == '\0' || location[0] == '/') return false;
  for (const char* part = location; part != NULL; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) return false;
  }
  return true;
}

static bool is_below(const char* path, const char* folder) {
  size_t length = strlen(folder);
  if (strcmp(folder, "/") == 0) return true;
  return strncmp(path, folder, length) == 0 && path[length] == '/';
}

OrtStatus* map_external(Reader* reader, const char* location, const Mapping** out) {
  for (const Mapping* mapping = reader->model->mappings; mapping != NULL; mapping = mapping->next) {
    if (str_equal(mapping->location, location)) {
      *out = mapping;
      return NULL;
    }
  }
  if (reader->folder == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "external data in '%s', but the model came without a folder",
                      location);
  if (!location_is_relative(location))
    return status_new(ORT_INVALID_GRAPH, "external data location '%s' is not a path below the model's folder",
                      location);
  char* joined = str_format("%s/%s", reader->folder, location);
  if (joined == NULL) return status_no_memory();
  char* real = realpath(joined, NULL);
  OrtStatus* status = NULL;
  if (real == NULL)
    status = status_new(ORT_NO_SUCHFILE, "external data file '%s': %s", joined, strerror(errno));
  else if (!is_below(real, reader->folder))
    status = status_new(ORT_INVALID_GRAPH,
                        "external data location '%s' is a link that leaves the model's folder", location);
  else
    status = map_file(reader->model, real, location, out);
  free(real);
  mem_free(joined);
  return status;
}

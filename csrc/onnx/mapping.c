/* Files that a model's tensors point into. A model file may be anywhere, and is read into memory: it may be
 * written anew while sessions use its weights. External data is mapped, as in stock ORT: it may be larger
 * than memory, sessions share its pages, and whoever writes it in place changes what they read. It must lie
 * below the model's folder or, where the model is a link, below that of the real file (as model hubs lay out
 * their caches), whatever its location says and wherever links lead. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/reader.h"

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

/* gives the file (caller closes it) and its size. */
static OrtStatus* open_regular(const char* path, int flags, int* out, size_t* size) {
  struct stat info;
  /* Not blocking: opening a pipe must not wait for a writer. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (file < 0) {
    OrtErrorCode code = errno == ENOENT || errno == ENOTDIR ? ORT_NO_SUCHFILE : ORT_FAIL;
    return status_new(code, "cannot open '%s': %s", path, strerror(errno));
  }
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(file);
    return status_new(ORT_FAIL, "'%s' is not a regular file", path);
  }
  *out = file;
  *size = (size_t)info.st_size;
  return NULL;
}

/* `path` is a real path. Also for files beyond the machine's memory. */
static OrtStatus* map_file(OrtModel* model, const char* path, const char* location, const Mapping** out) {
  int file = -1;
  size_t size = 0;
  void* data = NULL;
  TRY(open_regular(path, O_NOFOLLOW, &file, &size));
  if (size != 0) /* private and writable: a client that writes to a tensor changes its own memory */
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  OrtStatus* status = data == MAP_FAILED ? status_new(ORT_FAIL, "cannot map '%s': %s", path, strerror(errno))
                                         : own_mapping(model, data, size, false, location, out);
  close(file);
  return status;
}

static OrtStatus* read_all(int file, const char* path, uint8_t* data, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t part = read(file, data + done, size - done);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0)
      return status_new(ORT_FAIL, "cannot read '%s': %s", path,
                        part < 0 ? strerror(errno) : "it became shorter meanwhile");
    done += (size_t)part;
  }
  return NULL;
}

OrtStatus* read_file(OrtModel* model, const char* path, const Mapping** out) {
  int file = -1;
  size_t size = 0;
  TRY(open_regular(path, 0, &file, &size));
  uint8_t* data = mem_alloc_aligned(size);
  OrtStatus* status = data != NULL ? read_all(file, path, data, size) : status_no_memory();
  close(file);
  if (status == NULL) return own_mapping(model, data, size, true, NULL, out);
  if (data != NULL) mem_free_aligned(data);
  return status;
}

OrtStatus* copy_bytes(OrtModel* model, const void* data, size_t size, const Mapping** out) {
  void* copy = mem_alloc_aligned(size);
  if (copy == NULL) return status_no_memory();
  memcpy(copy, data, size);
  return own_mapping(model, copy, size, true, NULL, out);
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
  else if (!is_below(real, reader->folder) &&
           (reader->real_folder == NULL || !is_below(real, reader->real_folder)))
    status = status_new(ORT_INVALID_GRAPH,
                        "external data location '%s' is a link that leaves the model's folder", location);
  else
    status = map_file(reader->model, real, location, out);
  free(real);
  mem_free(joined);
  return status;
}

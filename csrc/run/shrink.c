/* Runs that give memory back: the run option memory.enable_memory_arena_shrinkage, as "cpu:0;gpu:1". First
 * goes what the session keeps for its next runs, then what the allocators do. */
#include <stdlib.h>
#include <string.h>

#include "run/run.h"

static const char KEY[] = "memory.enable_memory_arena_shrinkage";

/* The next entry of a list, which the text behind it is left of. An id that is not there is 0, as in stock.
 * False: it is malformed. */
static bool read_entry(const char** text, size_t* type, int* id) {
  static const char* const types[] = {"cpu", "gpu", "fpga", "npu"}; /* by OrtMemoryInfoDeviceType */
  size_t length = strcspn(*text, ":;");
  for (*type = 0; *type < 4; ++*type) {
    if (strlen(types[*type]) == length && memcmp(*text, types[*type], length) == 0) break;
  }
  const char* end = *text + length;
  *id = 0;
  if (*end == ':') {
    const char* digits = end + 1;
    size_t count = strspn(digits, "0123456789");
    if (count > 6) return false;
    *id = atoi(digits);
    end = digits + count;
  }
  *text = *end == ';' ? end + 1 : end;
  return *type < 4 && (*end == ';' || *end == '\0');
}

/* The session's next place of that device, from place `from` on; -1: none. */
static int32_t find_place(const OrtSession* session, size_t type, int id, size_t from) {
  for (size_t i = from; i < session->place_count; i++) {
    const OrtMemoryDevice* device = &session->places[i].memory->device;
    if ((size_t)device->device_type == type && device->device_id == (uint32_t)id) return (int32_t)i;
  }
  return -1;
}

OrtStatus* shrink_check(const OrtSession* session, const OrtRunOptions* options) {
  const char* list = options != NULL ? key_values_get(options->config, KEY) : NULL;
  for (const char* text = list; text != NULL && *text != '\0';) {
    size_t type;
    int id;
    if (!read_entry(&text, &type, &id))
      return status_new(ORT_INVALID_ARGUMENT,
                        "run option %s is '%s': devices to shrink are expected, like \"cpu:0;gpu:0\"", KEY,
                        list);
    if (find_place(session, type, id, 0) < 0)
      return status_new(
          ORT_INVALID_ARGUMENT,
          "run option %s is '%s': no EP of the session has memory to shrink on one of the devices", KEY,
          list);
  }
  return NULL;
}

static void shrink_place(OrtSession* session, int32_t index) {
  const Place* place = &session->places[index];
  frames_drop_buffers(session, index);
  if (allocator_is_cpu(place->allocator)) {
    mem_trim();
    return;
  }
  OrtStatus* status = allocator_shrink(place->allocator);
  if (status == NULL) return;
  log_unreported("Run", "%s: OrtAllocator::Shrink of '%s': %s",
                 place->ep != NULL ? place->ep->name : "the CPU", place->memory->name,
                 status_message(status));
  status_release(status);
}

void shrink_after(OrtSession* session, const OrtRunOptions* options) {
  const char* text = options != NULL ? key_values_get(options->config, KEY) : NULL;
  size_t type;
  int id;
  while (text != NULL && *text != '\0' && read_entry(&text, &type, &id)) {
    /* Several vendors may have a device of that number. */
    for (int32_t at = -1; (at = find_place(session, type, id, (size_t)(at + 1))) >= 0;)
      shrink_place(session, at);
  }
}

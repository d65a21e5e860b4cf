/* What a profile says of memory: before a step and behind it, of the memory that its EP works in. The
 * allocator of a device knows; in host memory, and for allocators without statistics, it is what the run
 * holds for values between nodes. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "profiling/profiling.h"

/* What an allocator calls it, and stock ORT's names in the profile. */
static const struct {
  const char *stat, *arg, *delta; /* NULL: stock has none */
} kinds[PROFILE_MEMORY_KINDS] = {
    [PROFILE_MEMORY_IN_USE] = {"InUse", "mem_bytes_in_use", "mem_in_use_delta"},
    [PROFILE_MEMORY_REQUESTED] = {"RequestedInUse", "mem_bytes_requested_in_use",
                                  "mem_requested_in_use_delta"},
    [PROFILE_MEMORY_HELD] = {"TotalAllocated", "mem_arena_held", "mem_arena_held_delta"},
    [PROFILE_MEMORY_PEAK] = {"MaxInUse", "mem_in_use_peak", NULL},
};

static void set(ProfileMemory* memory, ProfileMemoryKind kind, int64_t bytes) {
  memory->is_known[kind] = true;
  memory->bytes[kind] = bytes;
}

/* False: that is no number of bytes. */
static bool read_bytes(const char* text, int64_t* bytes) {
  char* end = NULL;
  errno = 0;
  *bytes = strtoll(text, &end, 10);
  return end != text && *end == '\0' && errno == 0 && *bytes >= 0;
}

/* False: the allocator says nothing. A failure is no reason to lose the event. */
static bool read_allocator(const OrtAllocator* allocator, ProfileMemory* out) {
  OrtKeyValuePairs* stats = NULL;
  bool is_any = false;
  status_release(api_AllocatorGetStats(allocator, &stats));
  for (int kind = 0; kind < PROFILE_MEMORY_KINDS && stats != NULL; kind++) {
    const char* text = key_values_get(stats, kinds[kind].stat);
    int64_t bytes;
    if (text == NULL || !read_bytes(text, &bytes)) continue;
    set(out, (ProfileMemoryKind)kind, bytes);
    is_any = true;
  }
  key_values_release(stats);
  return is_any;
}

static void read_buffers(const Frame* frame, int32_t place, ProfileMemory* out) {
  size_t held = 0, in_use = 0, requested = 0;
  for (size_t i = 0; i < frame->buffer_count; i++) {
    const FrameBuffer* buffer = &frame->buffers[i];
    if (buffer->place != place) continue;
    held += buffer->size;
    in_use += buffer->is_taken ? buffer->size : 0;
  }
  for (size_t i = 0; i < frame->plan->slot_count; i++) {
    int32_t buffer = frame->own_buffer[i];
    if (buffer >= 0 && frame->buffers[buffer].place == place) requested += frame->own[i].size_bytes;
  }
  if (frame->peaks[place] < in_use) frame->peaks[place] = in_use;
  set(out, PROFILE_MEMORY_HELD, (int64_t)held);
  set(out, PROFILE_MEMORY_IN_USE, (int64_t)in_use);
  set(out, PROFILE_MEMORY_REQUESTED, (int64_t)requested);
  set(out, PROFILE_MEMORY_PEAK, (int64_t)frame->peaks[place]);
}

ProfileMemory profile_memory(const Frame* frame, const Step* step) {
  ProfileMemory memory = {.bytes = {0}};
  int32_t place = step->unit->ep->place;
  bool is_known = place != 0 && read_allocator(frame->session->places[place].allocator, &memory);
  if (!is_known) read_buffers(frame, place, &memory);
  return memory;
}

size_t profile_memory_args(const ProfileMemory* before, const ProfileMemory* after, ProfileArg* args) {
  size_t count = 0;
  for (int kind = 0; kind < PROFILE_MEMORY_KINDS; kind++) {
    if (!after->is_known[kind]) continue;
    args[count].key = kinds[kind].arg;
    snprintf(args[count++].text, sizeof args->text, "%" PRId64, after->bytes[kind]);
    if (kinds[kind].delta == NULL || !before->is_known[kind]) continue;
    args[count].key = kinds[kind].delta;
    snprintf(args[count++].text, sizeof args->text, "%" PRId64, after->bytes[kind] - before->bytes[kind]);
  }
  return count;
}

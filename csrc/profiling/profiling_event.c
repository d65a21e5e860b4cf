/* Profiling events: those of the host, and those that EPs make. */
#include <inttypes.h>
#include <string.h>

#include "api_slots.h"
#include "profiling/profiling.h"

/* ---- Making ---- */

/* Copies a text to *at and moves on. */
static const char* put_text(char** at, const char* text) {
  size_t size = strlen(text) + 1;
  const char* copy = memcpy(*at, text, size);
  *at += size;
  return copy;
}

OrtProfilingEvent* profiling_event_copy(const OrtProfilingEvent* event) {
  size_t texts = strlen(event->name) + 1;
  for (size_t i = 0; i < event->arg_count; i++)
    texts += strlen(event->keys[i]) + strlen(event->values[i]) + 2;
  size_t pointers, total;
  if (!size_mul(event->arg_count, 2 * sizeof(char*), &pointers) ||
      !size_add(texts, sizeof(OrtProfilingEvent), &total) || !size_add(total, pointers, &total))
    return NULL;
  OrtProfilingEvent* copy = mem_alloc(total);
  if (copy == NULL) return NULL;
  const char** keys = (const char**)(copy + 1);
  const char** values = keys + event->arg_count;
  char* at = (char*)(values + event->arg_count);
  *copy = *event;
  copy->name = put_text(&at, event->name);
  copy->keys = keys;
  copy->values = values;
  for (size_t i = 0; i < event->arg_count; i++) {
    keys[i] = put_text(&at, event->keys[i]);
    values[i] = put_text(&at, event->values[i]);
  }
  return copy;
}

/* gives (caller releases with ReleaseProfilingEvent). copies all texts. */
OrtStatus* ORT_API_CALL api_CreateProfilingEvent(OrtProfilingEventCategory category, int32_t process_id,
                                                 int32_t thread_id, const char* event_name,
                                                 int64_t timestamp_us, int64_t duration_us,
                                                 const char* const* arg_keys, const char* const* arg_values,
                                                 size_t num_args, OrtProfilingEvent** out) {
  REQUIRE_ARG(event_name);
  REQUIRE_ARG(out);
  if ((unsigned)category > OrtProfilingEventCategory_API)
    return status_new(ORT_INVALID_ARGUMENT, "CreateProfilingEvent: there is no category %d", (int)category);
  if (num_args != 0) {
    REQUIRE_ARG(arg_keys);
    REQUIRE_ARG(arg_values);
  }
  for (size_t i = 0; i < num_args; i++) {
    if (arg_keys[i] == NULL || arg_values[i] == NULL)
      return status_new(ORT_INVALID_ARGUMENT, "CreateProfilingEvent: key or value of argument %zu is NULL",
                        i);
  }
  OrtProfilingEvent event = {.category = category,
                             .process_id = process_id,
                             .thread_id = thread_id,
                             .name = event_name,
                             .timestamp_us = timestamp_us,
                             .duration_us = duration_us,
                             .keys = arg_keys,
                             .values = arg_values,
                             .arg_count = num_args};
  OrtProfilingEvent* made = profiling_event_copy(&event);
  if (made == NULL) return status_no_memory();
  *out = made;
  return NULL;
}

void ORT_API_CALL api_ReleaseProfilingEvent(OrtProfilingEvent* input) {
  mem_free(input);
}

/* ---- Reading ---- */

OrtStatus* ORT_API_CALL api_ProfilingEvent_GetCategory(const OrtProfilingEvent* event,
                                                       OrtProfilingEventCategory* out) {
  REQUIRE_ARG(event);
  REQUIRE_ARG(out);
  *out = event->category;
  return NULL;
}

/* borrows: valid as long as the event, as the other texts. */
OrtStatus* ORT_API_CALL api_ProfilingEvent_GetName(const OrtProfilingEvent* event, const char** out) {
  REQUIRE_ARG(event);
  REQUIRE_ARG(out);
  *out = event->name;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ProfilingEvent_GetTimestampUs(const OrtProfilingEvent* event, int64_t* out) {
  REQUIRE_ARG(event);
  REQUIRE_ARG(out);
  *out = event->timestamp_us;
  return NULL;
}

OrtStatus* ORT_API_CALL api_ProfilingEvent_GetDurationUs(const OrtProfilingEvent* event, int64_t* out) {
  REQUIRE_ARG(event);
  REQUIRE_ARG(out);
  *out = event->duration_us;
  return NULL;
}

/* borrows; *out is NULL when the event has no such argument. */
OrtStatus* ORT_API_CALL api_ProfilingEvent_GetArgValue(const OrtProfilingEvent* event, const char* key,
                                                       const char** out) {
  REQUIRE_ARG(event);
  REQUIRE_ARG(key);
  REQUIRE_ARG(out);
  *out = NULL;
  for (size_t i = 0; i < event->arg_count; i++) {
    if (strcmp(event->keys[i], key) != 0) continue;
    *out = event->values[i];
    break;
  }
  return NULL;
}

/* ---- Many ---- */

bool profiling_events_add(OrtProfilingEventsContainer* container, OrtProfilingEvent* event) {
  if (!ARRAY_RESERVE(container->events, container->capacity, container->count + 1)) return false;
  container->events[container->count++] = event;
  return true;
}

void profiling_events_release(OrtProfilingEventsContainer* container) {
  for (size_t i = 0; i < container->count; i++) mem_free(container->events[i]);
  mem_free(container->events);
  *container = (OrtProfilingEventsContainer){0};
}

/* copies the events: all of them, or none. */
OrtStatus* ORT_API_CALL api_ProfilingEventsContainer_AddEvents(OrtProfilingEventsContainer* events_container,
                                                               const OrtProfilingEvent* const* events,
                                                               size_t num_events) {
  REQUIRE_ARG(events_container);
  if (num_events != 0) REQUIRE_ARG(events);
  OrtStatus* status = NULL;
  size_t before = events_container->count;
  for (size_t i = 0; i < num_events && status == NULL; i++) {
    if (events[i] == NULL) {
      status = status_new(ORT_INVALID_ARGUMENT, "ProfilingEventsContainer_AddEvents: event %zu is NULL", i);
      break;
    }
    OrtProfilingEvent* copy = profiling_event_copy(events[i]);
    if (copy != NULL && profiling_events_add(events_container, copy)) continue;
    mem_free(copy);
    status = status_no_memory();
  }
  while (status != NULL && events_container->count > before)
    mem_free(events_container->events[--events_container->count]);
  return status;
}

/* ---- Writing ---- */

static void write_text(FILE* file, const char* text) {
  fputc('"', file);
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20)
      fprintf(file, "\\u%04x", c);
    else if (c == '"' || c == '\\')
      fprintf(file, "\\%c", c);
    else
      fputc(c, file);
  }
  fputc('"', file);
}

static void write_event(FILE* file, const OrtProfilingEvent* event) {
  static const char* const categories[] = {"Session", "Node", "Kernel", "Api"};
  fprintf(file, "{\"cat\" : \"%s\",\"pid\" :%" PRId32 ",\"tid\" :%" PRId32 ",", categories[event->category],
          event->process_id, event->thread_id);
  fprintf(file, "\"dur\" :%" PRId64 ",\"ts\" :%" PRId64 ",\"ph\" : \"X\",\"name\" :", event->duration_us,
          event->timestamp_us);
  write_text(file, event->name);
  fputs(",\"args\" : {", file);
  for (size_t i = 0; i < event->arg_count; i++) {
    const char* value = event->values[i];
    if (i != 0) fputc(',', file);
    write_text(file, event->keys[i]);
    fputs(" : ", file);
    if (value[0] == '{' || value[0] == '[')
      fputs(value, file);
    else
      write_text(file, value);
  }
  fputs("}}", file);
}

void profiling_events_write(const OrtProfilingEventsContainer* container, FILE* file) {
  fputs("[\n", file);
  for (size_t i = 0; i < container->count; i++) {
    write_event(file, container->events[i]);
    fputs(i + 1 < container->count ? ",\n" : "\n", file);
  }
  fputs("]\n", file);
}

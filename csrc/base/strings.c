/* Strings: copies, formatting, a growing text. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

char* str_copy_n(const char* text, size_t length) {
  if (text == NULL) return NULL;
  char* copy = mem_alloc(length + 1);
  if (copy == NULL) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

char* str_copy(const char* text) {
  return text == NULL ? NULL : str_copy_n(text, strlen(text));
}

OrtStatus* str_set(char** field, const char* text) {
  char* copy = str_copy(text);
  if (copy == NULL) return status_no_memory();
  mem_free(*field);
  *field = copy;
  return NULL;
}

char* str_folder(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == NULL ? str_copy(".") : str_copy_n(path, (size_t)(slash - path) + 1);
}

bool str_equal(const char* a, const char* b) {
  return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void strbuf_append_v(StrBuf* buffer, const char* format, va_list arguments) {
  if (buffer->failed) return;
  va_list measured;
  va_copy(measured, arguments);
  int length = vsnprintf(NULL, 0, format, measured);
  va_end(measured);
  if (length < 0 || !ARRAY_RESERVE(buffer->text, buffer->capacity, buffer->length + (size_t)length + 1)) {
    buffer->failed = true;
    return;
  }
  vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, arguments);
  buffer->length += (size_t)length;
}

void strbuf_append(StrBuf* buffer, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  strbuf_append_v(buffer, format, arguments);
  va_end(arguments);
}

void strbuf_release(StrBuf* buffer) {
  mem_free(buffer->text);
  memset(buffer, 0, sizeof *buffer);
}

char* str_format(const char* format, ...) {
  StrBuf buffer = {0};
  va_list arguments;
  va_start(arguments, format);
  strbuf_append_v(&buffer, format, arguments);
  va_end(arguments);
  if (!buffer.failed) return buffer.text;
  strbuf_release(&buffer);
  return NULL;
}

/* OrtStatus: NULL is success, so nothing here ever returns NULL for a failure. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api_slots.h"
#include "base/base.h"

#define MOST_REPEATED 4 /* parts of a cause that may be in its context: provider, slot, node */

struct OrtStatus {
  OrtErrorCode code;
  bool is_static;
  char message[];
};

/* Given out when there is no memory for a real one; ReleaseStatus leaves it alone. */
static struct {
  OrtErrorCode code;
  bool is_static;
  char message[16];
} out_of_memory = {ORT_FAIL, true, "out of memory"};

OrtStatus* status_no_memory(void) {
  return (OrtStatus*)(void*)&out_of_memory;
}

static OrtStatus* status_from_text(OrtErrorCode code, const char* text, size_t length) {
  OrtStatus* status = mem_alloc(sizeof(OrtStatus) + length + 1);
  if (status == NULL) return status_no_memory();
  status->code = code;
  status->is_static = false;
  memcpy(status->message, text, length);
  status->message[length] = '\0';
  return status;
}

OrtStatus* status_new_v(OrtErrorCode code, const char* format, va_list arguments) {
  va_list measured;
  va_copy(measured, arguments);
  int length = vsnprintf(NULL, 0, format, measured);
  va_end(measured);
  if (length < 0) return status_from_text(code, format, strlen(format));
  OrtStatus* status = mem_alloc(sizeof(OrtStatus) + (size_t)length + 1);
  if (status == NULL) return status_no_memory();
  status->code = code;
  status->is_static = false;
  vsnprintf(status->message, (size_t)length + 1, format, arguments);
  return status;
}

OrtStatus* status_new(OrtErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OrtStatus* status = status_new_v(code, format, arguments);
  va_end(arguments);
  return status;
}

/* True if `text` has these words, and not just as parts of longer ones. */
static bool has_words(const char* text, const char* words, size_t length) {
  for (const char* at = text; (at = strchr(at, words[0])) != NULL; at++) {
    bool starts = at == text || !isalnum((unsigned char)at[-1]);
    if (starts && strncmp(at, words, length) == 0 && !isalnum((unsigned char)at[length])) return true;
  }
  return false;
}

/* Appends `message`, but what it begins with only if that is new: plugins put their name, or a slot's, in
 * front of what they say, and the text has it already. */
static void append_cause(StrBuf* text, const char* message) {
  for (int i = 0; i < MOST_REPEATED; i++) {
    const char* end = strstr(message, ": ");
    size_t length = end != NULL ? (size_t)(end - message) : 0;
    if (length == 0 || memchr(message, '\n', length) != NULL || text->failed) break;
    if (!has_words(text->text, message, length)) strbuf_append(text, "%.*s: ", (int)length, message);
    message = end + 2;
  }
  strbuf_append(text, "%s", message);
}

OrtStatus* status_wrap_v(OrtStatus* cause, const char* format, va_list arguments) {
  OrtErrorCode code = cause->code != ORT_OK ? cause->code : ORT_FAIL;
  StrBuf text = {0};
  OrtStatus* context = status_new_v(code, format, arguments);
  strbuf_append(&text, "%s: ", context->message);
  append_cause(&text, cause->message);
  OrtStatus* wrapped =
      text.failed ? status_no_memory() : status_from_text(code, text.text, strlen(text.text));
  strbuf_release(&text);
  status_release(context);
  if (wrapped == status_no_memory() && cause->code != ORT_OK) return cause; /* the cause says more */
  status_release(cause);
  return wrapped;
}

OrtStatus* status_wrap(OrtStatus* cause, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OrtStatus* wrapped = status_wrap_v(cause, format, arguments);
  va_end(arguments);
  return wrapped;
}

OrtErrorCode status_code(const OrtStatus* status) {
  return status == NULL ? ORT_OK : status->code;
}

const char* status_message(const OrtStatus* status) {
  return status == NULL ? "" : status->message;
}

void status_release(OrtStatus* status) {
  if (status != NULL && !status->is_static) mem_free(status);
}

const char* slot_of(const char* function_name) {
  return strncmp(function_name, "api_", 4) == 0 ? function_name + 4 : function_name;
}

/* A NULL message makes an empty one. ORT_OK makes a real status, too: the caller asked for one. */
OrtStatus* ORT_API_CALL api_CreateStatus(OrtErrorCode code, const char* msg) {
  if (msg == NULL) msg = "";
  return status_from_text(code, msg, strlen(msg));
}

OrtErrorCode ORT_API_CALL api_GetErrorCode(const OrtStatus* status) {
  return status_code(status);
}

const char* ORT_API_CALL api_GetErrorMessage(const OrtStatus* status) {
  return status_message(status);
}

void ORT_API_CALL api_ReleaseStatus(OrtStatus* input) {
  status_release(input);
}

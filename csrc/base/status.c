/* OrtStatus: NULL is success, so nothing here ever returns NULL for a failure. */
#include <stdio.h>
#include <string.h>

#include "api_slots.h"
#include "base/base.h"

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

OrtStatus* status_wrap(OrtStatus* cause, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OrtStatus* context = status_new_v(cause->code, format, arguments);
  va_end(arguments);
  OrtStatus* wrapped = status_new(cause->code, "%s: %s", context->message, cause->message);
  status_release(context);
  if (wrapped == status_no_memory()) return cause; /* the cause says more */
  status_release(cause);
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

/* Logging. Callable from any thread, also before an environment exists and after it is gone. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_slots.h"
#include "base/base.h"

static const OrtLogger stderr_logger = {log_to_stderr, NULL, ORT_LOGGING_LEVEL_WARNING, "ort_abi"};
static _Atomic(const OrtLogger*) default_logger = &stderr_logger;
static _Atomic uint64_t unreported_failures = 0;

void ORT_API_CALL log_to_stderr(void* param, OrtLoggingLevel severity, const char* category,
                                const char* logid, const char* code_location, const char* message) {
  static const char* const letters[] = {"V", "I", "W", "E", "F"};
  (void)param;
  (void)category;
  const char* letter = (unsigned)severity < 5 ? letters[severity] : "?";
  fprintf(stderr, "[%s:%s %s] %s\n", letter, logid, code_location, message);
}

const OrtLogger* log_default(void) {
  return atomic_load_explicit(&default_logger, memory_order_acquire);
}

void log_set_default(const OrtLogger* logger) {
  atomic_store_explicit(&default_logger, logger ? logger : &stderr_logger, memory_order_release);
}

static void log_text(const OrtLogger* logger, OrtLoggingLevel level, const char* file, int line,
                     const char* function, const char* message) {
  char location[256];
  const char* name = strrchr(file, '/');
  snprintf(location, sizeof location, "%s:%d %s", name ? name + 1 : file, line, function);
  logger->function(logger->param, level, "ort_abi", logger->id ? logger->id : "", location, message);
}

static void log_write_v(const OrtLogger* logger, OrtLoggingLevel level, const char* file, int line,
                        const char* function, const char* format, va_list arguments) {
  char small[512];
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(small, sizeof small, format, arguments);
  char* large = length >= (int)sizeof small ? mem_alloc((size_t)length + 1) : NULL;
  if (large != NULL) vsnprintf(large, (size_t)length + 1, format, again);
  va_end(again);
  log_text(logger, level, file, line, function, large ? large : small);
  mem_free(large);
}

void log_write(const OrtLogger* logger, OrtLoggingLevel level, const char* file, int line,
               const char* function, const char* format, ...) {
  if (logger == NULL) logger = log_default();
  if (level < logger->severity) return;
  va_list arguments;
  va_start(arguments, format);
  log_write_v(logger, level, file, line, function, format, arguments);
  va_end(arguments);
}

void log_unreported(const char* slot_name, const char* format, ...) {
  atomic_fetch_add(&unreported_failures, 1);
  va_list arguments;
  va_start(arguments, format);
  log_write_v(log_default(), ORT_LOGGING_LEVEL_ERROR, __FILE__, __LINE__, slot_name, format, arguments);
  va_end(arguments);
}

uint64_t log_unreported_failures(void) {
  return atomic_load(&unreported_failures);
}

void log_unimplemented_slot(const char* slot_name) {
  log_unreported(slot_name, "%s is not implemented", slot_name);
}

OrtStatus* ORT_API_CALL api_Logger_LogMessage(const OrtLogger* logger, OrtLoggingLevel log_severity_level,
                                              const char* message, const ORTCHAR_T* file_path,
                                              int line_number, const char* func_name) {
  REQUIRE_ARG(logger);
  REQUIRE_ARG(message);
  if (log_severity_level < logger->severity) return NULL;
  log_text(logger, log_severity_level, file_path ? file_path : "", line_number, func_name ? func_name : "",
           message);
  return NULL;
}

OrtStatus* ORT_API_CALL api_Logger_GetLoggingSeverityLevel(const OrtLogger* logger, OrtLoggingLevel* out) {
  REQUIRE_ARG(logger);
  REQUIRE_ARG(out);
  *out = logger->severity;
  return NULL;
}

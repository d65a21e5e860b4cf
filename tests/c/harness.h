/* What the C tests share: checks that count instead of stopping, and out-of-memory loops.
 *
 * A test program is `int main(void) { RUN(test_this); RUN(test_that); return finish(); }`. */
#ifndef TESTS_C_HARNESS_H
#define TESTS_C_HARNESS_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ort_abi_host.h"

static _Atomic int failed_checks; /* any thread */

static inline const OrtApi* api(void) {
  return OrtGetApiBase()->GetApi(ORT_API_VERSION);
}

static inline bool check_at(const char* file, int line, bool ok, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
static inline bool check_at(const char* file, int line, bool ok, const char* format, ...) {
  if (ok) return true;
  failed_checks++;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return false;
}

/* releases `status`. */
static inline bool check_ok_at(const char* file, int line, OrtStatus* status, const char* call) {
  bool ok = check_at(file, line, status == NULL, "%s: unexpected error: %s", call,
                     status ? api()->GetErrorMessage(status) : "");
  api()->ReleaseStatus(status);
  return ok;
}

/* releases `status`. */
static inline bool check_fails_at(const char* file, int line, OrtStatus* status, OrtErrorCode code,
                                  const char* part, const char* call) {
  bool ok = check_at(file, line, status != NULL, "%s: expected an error", call);
  if (!ok) return false;
  const char* message = api()->GetErrorMessage(status);
  ok = check_at(file, line, api()->GetErrorCode(status) == code && strstr(message, part) != NULL,
                "%s: expected error %d with '%s', got %d: %s", call, (int)code, part,
                (int)api()->GetErrorCode(status), message);
  api()->ReleaseStatus(status);
  return ok;
}

#define CHECK(condition)              check_at(__FILE__, __LINE__, (condition), "failed: %s", #condition)
#define CHECK_OK(call)                check_ok_at(__FILE__, __LINE__, (call), #call)
#define CHECK_FAILS(call, code, part) check_fails_at(__FILE__, __LINE__, (call), (code), (part), #call)
#define CHECK_TEXT(text, expected)                                                                        \
  check_at(__FILE__, __LINE__, (text) != NULL && strcmp((text), (expected)) == 0, "%s is '%s', not '%s'", \
           #text, (text) ? (text) : "NULL", (expected))

/* Calls `make`, which creates something and releases it, with each of its allocations failing in turn: every
 * time it must give an error. Leaks are found by the sanitizer that tests run under. */
static inline void check_allocation_failures(const char* name, OrtStatus* (*make)(void)) {
  for (int64_t n = 0;; n++) {
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = make();
    ortabi_fail_allocation(-1);
    bool injected = ortabi_allocation_count() - before > n;
    bool ok = status == NULL;
    api()->ReleaseStatus(status);
    if (!injected) {
      check_at(__FILE__, __LINE__, ok, "%s: fails without an injected failure", name);
      check_at(__FILE__, __LINE__, n > 0, "%s: allocates nothing, so this tests nothing", name);
      return;
    }
    if (!check_at(__FILE__, __LINE__, !ok, "%s: allocation %lld fails unnoticed", name, (long long)n)) return;
  }
}
#define CHECK_ALLOCATION_FAILURES(make) check_allocation_failures(#make, make)

#define RUN(test)                                                               \
  do {                                                                          \
    int failed_before = failed_checks;                                          \
    test();                                                                     \
    printf("%s %s\n", failed_checks == failed_before ? "ok  " : "FAIL", #test); \
  } while (0)

static inline int finish(void) {
  printf("%d failed checks\n", failed_checks);
  return failed_checks == 0 ? 0 : 1;
}

#endif

/* What the measuring programs have in common: clocks, memory, failures, and the API of a host library. */
#ifndef BENCHMARKS_MEASURE_H
#define BENCHMARKS_MEASURE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ort_abi.h"

static inline double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Sorts the numbers. */
static inline double median(double* numbers, size_t count) {
  qsort(numbers, count, sizeof *numbers, by_value);
  return numbers[count / 2];
}

static inline long resident_kb(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Ends the program if `status` is a failure; `what` failed. */
static inline void must(const OrtApi* api, OrtStatus* status, const char* what) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", what, api->GetErrorMessage(status));
  exit(1);
}

/* The API of the host library at `path`, which stays loaded. */
static inline const OrtApi* load_host(const char* path, uint32_t version) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != NULL ? dlsym(library, "OrtGetApiBase") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  const OrtApi* api = ((const OrtApiBase*(ORT_API_CALL*)(void))(uintptr_t)symbol)()->GetApi(version);
  if (api == NULL) {
    fprintf(stderr, "%s has no API version %u\n", path, version);
    exit(1);
  }
  return api;
}

#endif

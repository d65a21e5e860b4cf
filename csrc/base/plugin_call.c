/* What surrounds calls into plugins: the guard against C++ exceptions, and who is at work. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/base.h"
#include "base/cxx_guard.h"

#define GUARD_NAME "libort_abi_cxx_guard.so"

_Thread_local AtWork at_work __attribute__((tls_model("initial-exec")));

AtWork at_work_begin(const char* kind, const char* owner, const char* node_name, const char* op_type) {
  AtWork before = at_work;
  at_work.kind = kind;
  at_work.owner = owner;
  at_work.node_name = node_name;
  at_work.op_type = op_type;
  return before;
}

/* ---- Exceptions ---- */

const GuardedCalls* plugin_guard = NULL;
static pthread_mutex_t load_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_given_up = false; /* the warning was given; under load_mutex */

/* Who calls names EP and slot. */
static OrtStatus* exception_failure(const char* type, const char* what) {
  if (what != NULL) return status_new(ORT_RUNTIME_EXCEPTION, "C++ exception %s: %s", type, what);
  return status_new(ORT_RUNTIME_EXCEPTION, "unknown C++ exception%s%s", type != NULL ? " of type " : "",
                    type != NULL ? type : "");
}

static void exception_unreturned(const char* slot, const char* type, const char* what, OrtStatus** thrown) {
  OrtStatus* status = exception_failure(type, what);
  if (thrown != NULL && *thrown == NULL) {
    *thrown = status_wrap(status, "%s", slot);
    return;
  }
  if (thrown != NULL) { /* the first one is told */
    status_release(status);
    return;
  }
  if (at_work.owner != NULL)
    log_unreported(slot, "%s '%s': %s: %s", at_work.kind, at_work.owner, slot, status_message(status));
  else
    log_unreported(slot, "%s: %s", slot, status_message(status));
  status_release(status);
}

static const GuardHost guard_host = {exception_failure, exception_unreturned};

/* What throws has a C++ library, or carries one and leaves the unwinding to the C compiler's. */
static bool is_mapped(const char* soname) {
  void* handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != NULL) dlclose(handle);
  return handle != NULL;
}

/* gives (caller releases with mem_free): the guard lies beside this library. NULL: no memory. */
static char* guard_path(void) {
  Dl_info info;
  bool is_known = dladdr(&guard_host, &info) != 0 && info.dli_fname != NULL;
  char* folder = str_folder(is_known ? info.dli_fname : "");
  char* path = folder != NULL ? str_format("%s/%s", folder, GUARD_NAME) : NULL;
  mem_free(folder);
  return path;
}

/* NULL, with *why (borrowed until the next dl call), when it cannot be used. It stays loaded. */
static const GuardedCalls* open_guard(const char* path, const char** why) {
  union { /* ISO C has no cast from void* to a function */
    void* symbol;
    CxxGuardEntry* call;
  } entry;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  entry.symbol = handle != NULL ? dlsym(handle, "ortabi_cxx_guard") : NULL;
  if (entry.symbol == NULL) {
    *why = dlerror();
    return NULL;
  }
  *why = "it is of another build";
  return entry.call(&guard_host, sizeof(GuardedCalls));
}

/* Under load_mutex. */
static OrtStatus* load_guard(void) {
  const char* why = NULL;
  char* path = guard_path();
  if (path == NULL) return status_no_memory();
  const GuardedCalls* calls = open_guard(path, &why);
  mem_free(path);
  __atomic_store_n(&plugin_guard, calls, __ATOMIC_RELEASE);
  is_given_up = calls == NULL;
  if (is_given_up)
    LOG(NULL, WARNING, "C++ exceptions of plugins will end the process: %s cannot be used: %s", GUARD_NAME,
        why != NULL ? why : "no reason given");
  return NULL;
}

OrtStatus* plugin_guard_load(void) {
  OrtStatus* status = NULL;
  if (guarded_calls() != NULL || (!is_mapped("libstdc++.so.6") && !is_mapped("libgcc_s.so.1"))) return NULL;
  pthread_mutex_lock(&load_mutex);
  if (guarded_calls() == NULL && !is_given_up) status = load_guard();
  pthread_mutex_unlock(&load_mutex);
  return status;
}

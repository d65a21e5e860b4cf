/* Custom op domains: operators that a client or an EP brings along, listed by domain. */
#include <dlfcn.h>

#include "api_slots.h"
#include "objects/objects.h"

/* gives (caller releases with ReleaseCustomOpDomain). */
OrtStatus* ORT_API_CALL api_CreateCustomOpDomain(const char* domain, OrtCustomOpDomain** out) {
  REQUIRE_ARG(domain);
  REQUIRE_ARG(out);
  OrtCustomOpDomain* made = mem_calloc(1, sizeof *made);
  char* name = str_copy(str_equal(domain, "ai.onnx") ? "" : domain);
  if (made == NULL || name == NULL) {
    mem_free(made);
    mem_free(name);
    return status_no_memory();
  }
  made->name = name;
  *out = made;
  return NULL;
}

void ORT_API_CALL api_ReleaseCustomOpDomain(OrtCustomOpDomain* input) {
  if (input == NULL) return;
  mem_free(input->name);
  mem_free(input->ops);
  mem_free(input);
}

/* borrows `op`: it must outlive the domain and all sessions that know it. */
OrtStatus* ORT_API_CALL api_CustomOpDomain_Add(OrtCustomOpDomain* custom_op_domain, const OrtCustomOp* op) {
  REQUIRE_ARG(custom_op_domain);
  REQUIRE_ARG(op);
  TRY(plugin_guard_load()); /* the program may be written in C++ */
  OrtStatus* thrown = NULL;
  if (op->GetName == NULL || op->GetInputType == NULL || op->GetInputTypeCount == NULL ||
      op->GetOutputType == NULL || op->GetOutputTypeCount == NULL ||
      call_OrtCustomOp_GetName(op, &thrown) == NULL)
    return thrown != NULL
               ? thrown
               : status_new(
                     ORT_INVALID_ARGUMENT,
                     "CustomOpDomain_Add: an operator of domain '%s' has no name, or its functions for the "
                     "types of inputs and outputs are NULL",
                     custom_op_domain->name);
  if (!ARRAY_RESERVE(custom_op_domain->ops, custom_op_domain->capacity, custom_op_domain->count + 1))
    return status_no_memory();
  custom_op_domain->ops[custom_op_domain->count++] = op;
  return NULL;
}

bool session_options_add_custom_ops(OrtSessionOptions* options, const OrtCustomOpDomain* domain) {
  if (!ARRAY_RESERVE(options->custom_op_domains, options->custom_op_domain_capacity,
                     options->custom_op_domain_count + 1))
    return false;
  options->custom_op_domains[options->custom_op_domain_count++] = domain;
  return true;
}

/* borrows `custom_op_domain`: it must outlive all sessions created with these options or copies of them. */
OrtStatus* ORT_API_CALL api_AddCustomOpDomain(OrtSessionOptions* options,
                                              OrtCustomOpDomain* custom_op_domain) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(custom_op_domain);
  return session_options_add_custom_ops(options, custom_op_domain) ? NULL : status_no_memory();
}

/* ---- Libraries that add domains to session options ---- */

struct CustomOpLibrary {
  void* handle;
  _Atomic int references;
};

CustomOpLibrary* custom_op_library_retain(CustomOpLibrary* library) {
  atomic_fetch_add(&library->references, 1);
  return library;
}

void custom_op_library_release(CustomOpLibrary* library) {
  if (atomic_fetch_sub(&library->references, 1) != 1) return;
  if (dlclose(library->handle) != 0) LOG(NULL, ERROR, "custom op library: dlclose: %s", dlerror());
  mem_free(library);
}

/* `function` is RegisterCustomOps of the library at `path`, or another name. */
static OrtStatus* register_operators(OrtSessionOptions* options, void* handle, const char* function,
                                     const char* path) {
  /* ISO C has no cast from void* to a function. */
  union {
    void* symbol;
    RegisterCustomOpsFn call;
  } found = {.symbol = dlsym(handle, function)};
  if (found.symbol == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "custom op library '%s' has no function %s", path, function);
  TRY(plugin_guard_load());
  OrtStatus* status = call_RegisterCustomOpsFn(found.call, options, OrtGetApiBase());
  return status != NULL ? status_wrap(status, "custom op library '%s': %s failed", path, function) : NULL;
}

static OrtStatus* open_library(const char* path, void** handle) {
  *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (*handle != NULL) return NULL;
  const char* reason = dlerror();
  return status_new(ORT_FAIL, "custom op library '%s' cannot be loaded: %s", path,
                    reason != NULL ? reason : "no reason given");
}

/* gives *library_handle, dlopen's (caller releases with dlclose, after the last session that uses the
 * library's operators). */
OrtStatus* ORT_API_CALL api_RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* library_path,
                                                     void** library_handle) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(library_path);
  REQUIRE_ARG(library_handle);
  void* handle = NULL;
  TRY(open_library(library_path, &handle));
  OrtStatus* status = register_operators(options, handle, "RegisterCustomOps", library_path);
  if (status != NULL)
    dlclose(handle);
  else
    *library_handle = handle;
  return status;
}

/* The options, copies of them and their sessions keep the library alive. */
OrtStatus* ORT_API_CALL api_RegisterCustomOpsLibrary_V2(OrtSessionOptions* options,
                                                        const ORTCHAR_T* library_name) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(library_name);
  CustomOpLibrary* library = mem_calloc(1, sizeof *library);
  if (library == NULL || !ARRAY_RESERVE(options->custom_op_libraries, options->custom_op_library_capacity,
                                        options->custom_op_library_count + 1)) {
    mem_free(library);
    return status_no_memory();
  }
  atomic_init(&library->references, 1);
  OrtStatus* status = open_library(library_name, &library->handle);
  if (status != NULL) {
    mem_free(library);
    return status;
  }
  size_t domain_count = options->custom_op_domain_count;
  status = register_operators(options, library->handle, "RegisterCustomOps", library_name);
  if (status != NULL) {
    options->custom_op_domain_count = domain_count;
    custom_op_library_release(library);
    return status;
  }
  options->custom_op_libraries[options->custom_op_library_count++] = library;
  return NULL;
}

/* For libraries that the program is linked to. */
OrtStatus* ORT_API_CALL api_RegisterCustomOpsUsingFunction(OrtSessionOptions* options,
                                                           const char* registration_func_name) {
  REQUIRE_ARG(options);
  REQUIRE_ARG(registration_func_name);
  if (registration_func_name[0] == '\0')
    return status_new(ORT_INVALID_ARGUMENT, "RegisterCustomOpsUsingFunction: the function has no name");
  return register_operators(options, RTLD_DEFAULT, registration_func_name, "(the program)");
}

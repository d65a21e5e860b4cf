/* RunAsync: a Run on a thread of its own. */
#include "api_slots.h"
#include "run/run.h"

/* What the caller promises to keep until the callback was called. */
typedef struct AsyncRun {
  OrtSession* session;
  const OrtRunOptions* options;
  const char* const* input_names;
  const OrtValue* const* inputs;
  size_t input_count;
  const char* const* output_names;
  size_t output_count;
  OrtValue** outputs;
  RunAsyncCallbackFn callback;
  void* user_data;
} AsyncRun;

static void* run_thread(void* argument) {
  AsyncRun run = *(AsyncRun*)argument;
  mem_free(argument);
  OrtStatus* status = api_Run(run.session, run.options, run.input_names, run.inputs, run.input_count,
                              run.output_names, run.output_count, run.outputs);
  run.callback(run.user_data, run.outputs, run.output_count, status);
  return NULL;
}

/* Returns at once; `run_async_callback` is called on another thread when the outputs are there. borrows
 * everything until then. gives the callback its status (released with ReleaseStatus) and the outputs. After a
 * failure of RunAsync itself the callback is not called. */
OrtStatus* ORT_API_CALL api_RunAsync(OrtSession* session, const OrtRunOptions* run_options,
                                     const char* const* input_names, const OrtValue* const* input,
                                     size_t input_len, const char* const* output_names,
                                     size_t output_names_len, OrtValue** output,
                                     RunAsyncCallbackFn run_async_callback, void* user_data) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(run_async_callback);
  if (session->options->intra_op_threads == 1) /* a client that allows one thread gets no second one */
    return status_new(ORT_INVALID_ARGUMENT,
                      "RunAsync: the session may use one thread, the caller's (SetIntraOpNumThreads is 1)");
  AsyncRun* run = mem_alloc(sizeof *run);
  if (run == NULL) return status_no_memory();
  *run = (AsyncRun){session,          run_options, input_names,        input,    input_len, output_names,
                    output_names_len, output,      run_async_callback, user_data};
  pthread_t thread;
  int error = pthread_create(&thread, NULL, run_thread, run);
  if (error != 0) {
    mem_free(run);
    return status_new(ORT_RUNTIME_EXCEPTION, "RunAsync: no thread could be started (error %d)", error);
  }
  pthread_detach(thread);
  return NULL;
}

/* One execution: bytes to a session, small inputs as the model declares them (now and then not quite), Run,
 * every byte of every output.
 *
 * A watchdog thread ends what does not end by itself: it counts the processor time of the thread that runs,
 * so that a busy machine changes nothing. After LIMIT_MS it calls RunOptionsSetTerminate, as a client would;
 * what goes on for HANG_MS after all is a hang, and the program is aborted. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fuzz.h"
#include "ort_abi_host.h"

#define LIMIT_MS   10
#define HANG_MS    20000
#define MOST       4096 /* elements of an input */
#define MAX_RANK   40
#define MAX_NAMES  32
#define TYPE(name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##name

struct Runner {
  const OrtApi* api;
  OrtEnv* env;
  OrtSessionOptions* options;
  OrtRunOptions* run_options;
  OrtAllocator* allocator;
  pthread_t watchdog;
  clockid_t clock; /* of the thread that runs models */
  pthread_mutex_t lock;
  bool is_active, is_terminated, is_closing; /* under the lock, as is `start_ms` */
  int64_t start_ms;
};

static void require(const Runner* runner, OrtStatus* status, const char* what) {
  if (status == NULL) return;
  fprintf(stderr, "%s: %s\n", what, runner->api->GetErrorMessage(status));
  abort();
}

/* releases. False for an error, which must have a code and say something. */
static bool is_ok(const Runner* runner, OrtStatus* status) {
  if (status == NULL) return true;
  bool is_sound =
      runner->api->GetErrorCode(status) != ORT_OK && runner->api->GetErrorMessage(status)[0] != '\0';
  if (getenv("FUZZ_VERBOSE") != NULL) fprintf(stderr, "%s\n", runner->api->GetErrorMessage(status));
  runner->api->ReleaseStatus(status);
  if (!is_sound) {
    fprintf(stderr, "a status without a code or a message\n");
    abort();
  }
  return false;
}

/* ---- The watchdog ---- */

static int64_t thread_ms(const Runner* runner) {
  struct timespec now;
  clock_gettime(runner->clock, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void* watch(void* argument) {
  Runner* runner = argument;
  bool is_closing = false;
  while (!is_closing) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    pthread_mutex_lock(&runner->lock);
    int64_t elapsed = runner->is_active ? thread_ms(runner) - runner->start_ms : 0;
    if (elapsed > LIMIT_MS && !runner->is_terminated) {
      require(runner, runner->api->RunOptionsSetTerminate(runner->run_options), "RunOptionsSetTerminate");
      runner->is_terminated = true;
    }
    if (elapsed > HANG_MS) {
      fprintf(stderr, "does not end, not even when it is terminated\n");
      abort();
    }
    is_closing = runner->is_closing;
    pthread_mutex_unlock(&runner->lock);
  }
  return NULL;
}

static void start_watch(Runner* runner) {
  pthread_mutex_lock(&runner->lock);
  runner->is_active = true;
  runner->start_ms = thread_ms(runner);
  pthread_mutex_unlock(&runner->lock);
}

/* Whether it was terminated. */
static bool stop_watch(Runner* runner) {
  pthread_mutex_lock(&runner->lock);
  bool was_terminated = runner->is_terminated;
  runner->is_active = runner->is_terminated = false;
  if (was_terminated)
    require(runner, runner->api->RunOptionsUnsetTerminate(runner->run_options), "RunOptionsUnsetTerminate");
  pthread_mutex_unlock(&runner->lock);
  return was_terminated;
}

Runner* runner_open(void) {
  Runner* runner = calloc(1, sizeof *runner);
  if (runner == NULL) exit(1);
  const OrtApi* api = runner->api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  require(runner, api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "fuzz", &runner->env), "CreateEnv");
  require(runner, api->CreateSessionOptions(&runner->options), "CreateSessionOptions");
  require(runner, api->SetSessionLogSeverityLevel(runner->options, ORT_LOGGING_LEVEL_FATAL), "log level");
  require(runner, api->CreateRunOptions(&runner->run_options), "CreateRunOptions");
  require(runner, api->GetAllocatorWithDefaultOptions(&runner->allocator), "the allocator");
  pthread_mutex_init(&runner->lock, NULL);
  pthread_getcpuclockid(pthread_self(), &runner->clock);
  if (pthread_create(&runner->watchdog, NULL, watch, runner) != 0) exit(1);
  return runner;
}

void runner_close(Runner* runner) {
  pthread_mutex_lock(&runner->lock);
  runner->is_closing = true;
  pthread_mutex_unlock(&runner->lock);
  pthread_join(runner->watchdog, NULL);
  pthread_mutex_destroy(&runner->lock);
  runner->api->ReleaseRunOptions(runner->run_options);
  runner->api->ReleaseSessionOptions(runner->options);
  runner->api->ReleaseEnv(runner->env);
  free(runner);
}

/* ---- Inputs ---- */

typedef struct Names {
  size_t count;
  char* names[MAX_NAMES]; /* of the allocator's */
} Names;

typedef struct Call {
  Names inputs, outputs;
  OrtValue *values[MAX_NAMES], *results[MAX_NAMES];
} Call;

/* Up to MAX_NAMES of the session's inputs or outputs: in a model with more, some are missing. */
static void read_names(const Runner* runner, const OrtSession* session, bool is_input, Names* names) {
  const OrtApi* api = runner->api;
  size_t count = 0;
  require(runner,
          is_input ? api->SessionGetInputCount(session, &count) : api->SessionGetOutputCount(session, &count),
          "count");
  names->count = count < MAX_NAMES ? count : MAX_NAMES;
  for (size_t i = 0; i < names->count; i++)
    require(runner,
            is_input ? api->SessionGetInputName(session, i, runner->allocator, &names->names[i])
                     : api->SessionGetOutputName(session, i, runner->allocator, &names->names[i]),
            "name");
}

static void release_names(const Runner* runner, Names* names) {
  for (size_t i = 0; i < names->count; i++) runner->allocator->Free(runner->allocator, names->names[i]);
}

typedef struct Shape {
  enum ONNXTensorElementDataType type;
  size_t rank;
  int64_t dims[MAX_RANK];
} Shape;

/* What the session says of an input; what is no tensor gets one all the same. */
static Shape declared_shape(const Runner* runner, const OrtSession* session, size_t index) {
  const OrtApi* api = runner->api;
  Shape shape = {.type = TYPE(FLOAT)};
  OrtTypeInfo* type = NULL;
  const OrtTensorTypeAndShapeInfo* tensor = NULL;
  if (!is_ok(runner, api->SessionGetInputTypeInfo(session, index, &type))) return shape; /* none is known */
  require(runner, api->CastTypeInfoToTensorInfo(type, &tensor), "CastTypeInfoToTensorInfo");
  if (tensor != NULL) {
    require(runner, api->GetTensorElementType(tensor, &shape.type), "GetTensorElementType");
    require(runner, api->GetDimensionsCount(tensor, &shape.rank), "GetDimensionsCount");
    if (shape.rank > MAX_RANK) shape.rank = MAX_RANK;
    if (shape.rank != 0) require(runner, api->GetDimensions(tensor, shape.dims, shape.rank), "GetDimensions");
  }
  api->ReleaseTypeInfo(type);
  return shape;
}

/* Dimensions that are open become small, those that are too large smaller. */
static size_t settle_shape(Rng* rng, Shape* shape) {
  size_t count = 1;
  if (rng_often(rng, 20)) shape->type = 1 + rng_below(rng, 26);
  if (rng_often(rng, 20)) shape->rank = rng_below(rng, rng_often(rng, 200) ? MAX_RANK : 8);
  for (size_t i = 0; i < shape->rank; i++) {
    int64_t* dim = &shape->dims[i];
    if (*dim < 0 || rng_often(rng, 10)) *dim = rng_often(rng, 50) ? 0 : 1 + rng_below(rng, 3);
    if (*dim > (int64_t)(count != 0 ? MOST / count : MOST)) *dim = 1;
    count *= (size_t)*dim;
  }
  return count;
}

static OrtStatus* fill_strings(const Runner* runner, OrtValue* value, size_t count) {
  OrtStatus* status = NULL;
  for (size_t i = 0; i < count && status == NULL; i++)
    status = runner->api->FillStringTensorElement(value, i % 2 ? "a longer text than fits in place" : "x", i);
  return status;
}

/* False if there can be no such tensor. */
static bool make_input(const Runner* runner, const OrtSession* session, size_t index, Rng* rng,
                       OrtValue** value) {
  const OrtApi* api = runner->api;
  Shape shape = declared_shape(runner, session, index);
  size_t count = settle_shape(rng, &shape), size = 0;
  void* data = NULL;
  if (!is_ok(runner,
             api->CreateTensorAsOrtValue(runner->allocator, shape.dims, shape.rank, shape.type, value)))
    return false;
  if (shape.type == TYPE(STRING)) return is_ok(runner, fill_strings(runner, *value, count));
  require(runner, api->GetTensorSizeInBytes(*value, &size), "GetTensorSizeInBytes");
  require(runner, api->GetTensorMutableData(*value, &data), "GetTensorMutableData");
  if (size == count * element_bytes(shape.type))
    fill_elements(rng, shape.type, count, rng_below(rng, 3) == 0 ? 100 : 0, data);
  else
    memset(data, 0x5a, size); /* several elements a byte */
  return true;
}

static bool make_inputs(const Runner* runner, const OrtSession* session, Rng* rng, Call* call) {
  for (size_t i = 0; i < call->inputs.count; i++) {
    if (!make_input(runner, session, i, rng, &call->values[i])) return false;
  }
  return true;
}

static void release_values(const Runner* runner, OrtValue** values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    runner->api->ReleaseValue(values[i]);
    values[i] = NULL;
  }
}

/* ---- Outputs ---- */

static uint64_t hash_bytes(uint64_t hash, const void* data, size_t size) {
  const uint8_t* bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t hash_strings(const Runner* runner, uint64_t hash, const OrtValue* value, size_t count) {
  for (size_t i = 0; i < count; i++) {
    size_t size = 0;
    require(runner, runner->api->GetStringTensorElementLength(value, i, &size), "a text's length");
    char* text = malloc(size + 1);
    if (text == NULL) exit(1);
    require(runner, runner->api->GetStringTensorElement(value, size, i, text), "a text");
    hash = hash_bytes(hash, text, size);
    free(text);
  }
  return hash;
}

/* Reads everything, so that what is not there is noticed. */
static uint64_t hash_value(const Runner* runner, uint64_t hash, const OrtValue* value) {
  const OrtApi* api = runner->api;
  enum ONNXTensorElementDataType type;
  const int64_t* dims = NULL;
  const void* data = NULL;
  size_t rank = 0, size = 0, count = 1;
  require(runner, api->GetTensorElementTypeAndShapeDataReference(value, &type, &dims, &rank), "shape");
  for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
  hash = hash_bytes(hash, dims, rank * sizeof *dims);
  if (type == TYPE(STRING)) return hash_strings(runner, hash, value, count);
  require(runner, api->GetTensorSizeInBytes(value, &size), "size");
  require(runner, api->GetTensorData(value, &data), "data");
  return hash_bytes(hash, data, size);
}

/* ---- Runs ---- */

/* `outputs` that are not NULL are written over. `*hash` is of all outputs. */
static bool run_once(const Runner* runner, OrtSession* session, Call* call, uint64_t* hash) {
  const OrtApi* api = runner->api;
  OrtStatus* status = api->Run(session, runner->run_options, (const char* const*)call->inputs.names,
                               (const OrtValue* const*)call->values, call->inputs.count,
                               (const char* const*)call->outputs.names, call->outputs.count, call->results);
  if (!is_ok(runner, status)) return false;
  *hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < call->outputs.count; i++) *hash = hash_value(runner, *hash, call->results[i]);
  return true;
}

/* Half of the time results stay where they are, as outputs that the next run is given. */
static void leave_results(const Runner* runner, Rng* rng, Call* call) {
  if (rng_below(rng, 2) == 0) release_values(runner, call->results, call->outputs.count);
}

/* The same inputs give the same outputs: else a kernel read what nobody wrote. */
static void run_again(const Runner* runner, OrtSession* session, Call* call, uint64_t first) {
  uint64_t hash;
  if (!run_once(runner, session, call, &hash) || hash == first) return;
  fprintf(stderr, "two runs with the same inputs have different outputs\n");
  abort();
}

static bool run_session(const Runner* runner, OrtSession* session, Rng* rng) {
  Call call = {.inputs = {.count = 0}};
  uint64_t hash;
  read_names(runner, session, true, &call.inputs);
  read_names(runner, session, false, &call.outputs);
  bool is_run = make_inputs(runner, session, rng, &call) && run_once(runner, session, &call, &hash);
  if (is_run && rng_below(rng, 4) == 0) {
    leave_results(runner, rng, &call);
    run_again(runner, session, &call, hash);
  }
  if (is_run && rng_below(rng, 4) == 0) { /* other shapes in what the first run left */
    release_values(runner, call.values, call.inputs.count);
    leave_results(runner, rng, &call);
    if (make_inputs(runner, session, rng, &call)) run_once(runner, session, &call, &hash);
  }
  release_values(runner, call.values, call.inputs.count);
  release_values(runner, call.results, call.outputs.count);
  release_names(runner, &call.inputs);
  release_names(runner, &call.outputs);
  return is_run;
}

Outcome run_model(Runner* runner, Model model, Rng* rng) {
  OrtSession* session = NULL;
  bool is_run = false;
  start_watch(runner);
  bool is_loaded = is_ok(runner, runner->api->CreateSessionFromArray(runner->env, model.data, model.size,
                                                                     runner->options, &session));
  if (is_loaded) is_run = run_session(runner, session, rng);
  runner->api->ReleaseSession(session);
  if (stop_watch(runner)) return TERMINATED;
  return is_run ? RAN : is_loaded ? NOT_RUN : NOT_LOADED;
}

/* Sessions over devices: models in words, the EPs that run them, and what a Run must give and cost.
 *
 * A model is a text like "Mul x w2 a; Sigmoid a y": nodes as op, inputs, output. Values that begin with x are
 * inputs, with y outputs, with w initializers without dimensions (w2 is 2). All are floats, but xs is
 * strings. "Output xs" makes an output of an input. Shapes are left open. */
#ifndef TESTS_DEVICE_SESSIONS_H
#define TESTS_DEVICE_SESSIONS_H

#include <math.h>

#include "devices.h"
#include "onnx_writer.h"

enum { COUNT = 4, MOST_NAMES = 8, NAME_SIZE = 16, MOST_VALUES = 32 };

/* ---- Models ---- */

typedef struct Node {
  char op[NAME_SIZE], names[3][NAME_SIZE]; /* of inputs, then of the output */
  int count;
} Node;

/* Reads the first node of `text`. The text behind it; NULL: it was the last one. */
static inline const char* read_node(const char* text, Node* node) {
  node->count = sscanf(text, " %15s %15[^ ;] %15[^ ;] %15[^ ;]", node->op, node->names[0], node->names[1],
                       node->names[2]) -
                1;
  const char* end = strchr(text, ';');
  return end != NULL ? end + 1 : NULL;
}

typedef struct Names {
  char text[MOST_NAMES][NAME_SIZE];
  const char* list[MOST_NAMES];
  size_t count;
} Names;

/* The names in a model that begin with `kind`, each once, in order. */
static inline void find_names(const char* model, char kind, Names* out) {
  Node node;
  out->count = 0;
  for (const char* text = model; text != NULL;) {
    text = read_node(text, &node);
    for (int i = 0; i < node.count; i++) {
      size_t known = 0;
      while (known < out->count && strcmp(out->text[known], node.names[i]) != 0) known++;
      if (node.names[i][0] != kind || known < out->count) continue;
      memcpy(out->text[known], node.names[i], NAME_SIZE);
      out->list[known] = out->text[known];
      out->count++;
    }
  }
}

static inline Message open_value(const char* name) {
  Message tensor = {.size = 0}, type = {.size = 0}, value = {.size = 0};
  put_int(&tensor, 1, name[1] == 's' ? ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING : FLOAT);
  put_message(&type, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  return value;
}

static inline Message number_tensor(const char* name) {
  Message tensor = {.size = 0};
  float number = strtof(name + 1, NULL);
  put_int(&tensor, 2, FLOAT);
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, &number, sizeof number);
  return tensor;
}

static inline Message write_model(const char* model) {
  Message graph = {.size = 0};
  Node node;
  for (const char* text = model; text != NULL;) {
    text = read_node(text, &node);
    if (node.count == 1) {
      Message output = open_value(node.names[0]);
      put_message(&graph, 12, &output);
      continue;
    }
    bool is_unary = node.count == 2;
    Message proto =
        node_proto(node.op, node.names[0], is_unary ? NULL : node.names[1], node.names[node.count - 1]);
    put_message(&graph, 1, &proto);
  }
  put_text(&graph, 2, "words");
  static const struct {
    char kind;
    unsigned field;
  } kinds[] = {{'w', 5}, {'x', 11}, {'y', 12}};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    Names names;
    find_names(model, kinds[kind].kind, &names);
    for (size_t i = 0; i < names.count; i++) {
      Message part = kinds[kind].kind == 'w' ? number_tensor(names.list[i]) : open_value(names.list[i]);
      put_message(&graph, kinds[kind].field, &part);
    }
  }
  return model_proto(&graph);
}

/* What the inputs of a run hold: input k has first + 100k, first + 100k + 1, ... */
static inline float input_number(float first, size_t input, size_t element) {
  return first + 100 * (float)input + (float)element;
}

static inline float apply(const char* op, float a, float b) {
  if (strcmp(op, "Add") == 0) return a + b;
  if (strcmp(op, "Mul") == 0) return a * b;
  if (strcmp(op, "Relu") == 0) return a > 0 ? a : 0;
  if (strcmp(op, "Neg") == 0) return -a;
  if (strcmp(op, "Sigmoid") == 0) return 1 / (1 + expf(-a));
  return a; /* Identity */
}

/* What element `element` of the value `name` is. */
static inline float evaluate(const char* model, const char* name, float first, size_t element) {
  Names inputs;
  Node node;
  if (name[0] == 'w') return strtof(name + 1, NULL);
  find_names(model, 'x', &inputs);
  for (size_t i = 0; i < inputs.count; i++) {
    if (strcmp(inputs.list[i], name) == 0) return input_number(first, i, element);
  }
  for (const char* text = model; text != NULL;) {
    text = read_node(text, &node);
    if (strcmp(node.names[node.count - 1], name) != 0) continue;
    float a = evaluate(model, node.names[0], first, element);
    return apply(node.op, a, node.count == 3 ? evaluate(model, node.names[1], first, element) : 0);
  }
  return NAN;
}

/* ---- Sessions ---- */

typedef struct Use {
  const Device* device;
  const char* option; /* "ops=Mul", of the device's EP; NULL: none */
} Use;

/* gives (caller releases with ReleaseSessionOptions): the uses in this order; the last may be {NULL}. */
static inline OrtSessionOptions* session_options(const Use* uses, size_t count) {
  OrtSessionOptions* options = NULL;
  CHECK_OK(api()->CreateSessionOptions(&options));
  for (size_t i = 0; i < count && uses[i].device != NULL; i++) {
    char key[64] = "";
    const char *keys[] = {key}, *values[] = {""};
    if (uses[i].option != NULL) {
      size_t length = strcspn(uses[i].option, "=");
      memcpy(key, uses[i].option, length);
      values[0] = uses[i].option + length + 1;
    }
    CHECK_OK(api()->SessionOptionsAppendExecutionProvider_V2(options, env, &uses[i].device->ep_device, 1,
                                                             keys, values, uses[i].option != NULL));
  }
  return options;
}

static inline OrtStatus* try_session(const char* model, const Use* uses, size_t count, OrtSession** out) {
  Message bytes = write_model(model);
  OrtSessionOptions* options = session_options(uses, count);
  OrtStatus* status = api()->CreateSessionFromArray(env, bytes.bytes, bytes.size, options, out);
  api()->ReleaseSessionOptions(options);
  return status;
}

/* gives (caller releases with ReleaseSession): a session that must come to be. */
static inline OrtSession* open_session(const char* model, const Use* uses, size_t count) {
  OrtSession* session = NULL;
  if (!CHECK_OK(try_session(model, uses, count, &session))) exit(1);
  return session;
}

/* The same on one device alone, and the CPU. */
static inline OrtSession* session_on(const Device* device, const char* model) {
  return open_session(model, (Use[]){{device, NULL}}, 1);
}

/* ---- Runs ---- */

static inline bool is_close(float a, float b) {
  return fabsf(a - b) <= 1e-5f * fmaxf(1, fabsf(b));
}

static inline bool is_output(const char* model, const char* name, float first, OrtValue* value) {
  if (value == NULL) return false;
  for (size_t i = 0; i < COUNT; i++) {
    if (!is_close(data_of(value)[i], evaluate(model, name, first, i))) return false;
  }
  return true;
}

/* Runs with tensors of the host. *is_right: every output is what it must be. Any thread. */
static inline OrtStatus* try_run(OrtSession* session, const char* model, const OrtRunOptions* options,
                                 float first, bool* is_right) {
  Names inputs, outputs;
  OrtValue *given[MOST_NAMES] = {NULL}, *made[MOST_NAMES] = {NULL};
  find_names(model, 'x', &inputs);
  find_names(model, 'y', &outputs);
  for (size_t i = 0; i < inputs.count; i++) given[i] = host_tensor(COUNT, input_number(first, i, 0));
  OrtStatus* status = api()->Run(session, options, inputs.list, (const OrtValue* const*)given, inputs.count,
                                 outputs.list, outputs.count, made);
  *is_right = status == NULL;
  for (size_t i = 0; i < outputs.count; i++) {
    if (status == NULL) *is_right = *is_right && is_output(model, outputs.list[i], first, made[i]);
    api()->ReleaseValue(made[i]);
  }
  for (size_t i = 0; i < inputs.count; i++) api()->ReleaseValue(given[i]);
  return status;
}

static inline bool run_is_right_at(const char* file, int line, OrtSession* session, const char* model,
                                   float first) {
  bool is_right = false;
  check_ok_at(file, line, try_run(session, model, NULL, first, &is_right), model);
  return check_at(file, line, is_right, "'%s' gives wrong results", model);
}
#define CHECK_RUN(session, model, first) run_is_right_at(__FILE__, __LINE__, session, model, first)

/* ---- What a device did ---- */

typedef struct Counts {
  uint64_t to_device, to_host, on_device, with_stream;
  uint64_t waits_on_device, waits_on_host, notifications, activations;
  uint64_t launches, run_starts, run_ends, flushes, syncs, streams;
} Counts;

static inline Counts counts_of(const Device* device) {
  const VirtualDeviceControl* c = device->control;
  return (Counts){c->copies_to_device,
                  c->copies_to_host,
                  c->copies_on_device,
                  c->copies_with_stream,
                  c->waits_on_device,
                  c->waits_on_host,
                  c->notifications,
                  c->activations,
                  c->launches,
                  c->run_starts,
                  c->run_ends,
                  c->flushes,
                  c->syncs,
                  c->streams};
}

/* What happened since `was` must be what is said, and nothing else. */
static inline bool did_at(const char* file, int line, const Device* device, Counts was, Counts expected) {
  static const char* const names[] = {"copies to the device",
                                      "copies to the host",
                                      "copies on the device",
                                      "copies with a stream",
                                      "waits on the device",
                                      "waits on the host",
                                      "notifications",
                                      "activations",
                                      "launches",
                                      "run starts",
                                      "run ends",
                                      "flushes",
                                      "syncs",
                                      "streams"};
  enum { FIELDS = sizeof names / sizeof *names };
  _Static_assert(sizeof(Counts) == FIELDS * sizeof(uint64_t), "a name for each counter");
  Counts now = counts_of(device);
  uint64_t before[FIELDS], after[FIELDS], wanted[FIELDS];
  bool ok = true;
  memcpy(before, &was, sizeof before);
  memcpy(after, &now, sizeof after);
  memcpy(wanted, &expected, sizeof wanted);
  for (size_t i = 0; i < FIELDS; i++)
    ok = check_at(file, line, after[i] - before[i] == wanted[i], "'%s': %llu %s, not %llu", device->name,
                  (unsigned long long)(after[i] - before[i]), names[i], (unsigned long long)wanted[i]) &&
         ok;
  return ok;
}
#define CHECK_DID(device, was, ...) did_at(__FILE__, __LINE__, device, was, (Counts){__VA_ARGS__})

/* What is alive on a device. */
typedef struct Alive {
  int64_t objects, chunks;
} Alive;

static inline Alive alive_on(const Device* device) {
  return (Alive){device->control->live_objects, device->control->live_chunks};
}

static inline bool is_alive_at(const char* file, int line, const Device* device, Alive was) {
  Alive now = alive_on(device);
  return check_at(file, line, now.objects == was.objects && now.chunks == was.chunks,
                  "'%s' has %lld objects and %lld chunks, not %lld and %lld", device->name,
                  (long long)now.objects, (long long)now.chunks, (long long)was.objects,
                  (long long)was.chunks);
}
#define CHECK_ALIVE(device, was) is_alive_at(__FILE__, __LINE__, device, was)

#endif

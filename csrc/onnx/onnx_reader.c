/* ModelProto: from a file or from bytes to an OrtModel. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/reader.h"

enum {
  MODEL_IR_VERSION = 1,
  MODEL_PRODUCER_NAME = 2,
  MODEL_PRODUCER_VERSION = 3,
  MODEL_DOMAIN = 4,
  MODEL_VERSION = 5,
  MODEL_DOC_STRING = 6,
  MODEL_GRAPH = 7,
  MODEL_OPSET_IMPORT = 8,
  MODEL_METADATA = 14,
  MODEL_FUNCTIONS = 25,
};

OrtStatus* check_wire(const Wire* wire, const char* what, const char* name) {
  if (wire->error == NULL) return NULL;
  return status_new(ORT_INVALID_PROTOBUF, "malformed %s '%s': %s", what, name, wire->error);
}

/* Bytes of the UTF-8 character at `text`; 0 if it is none. Surrogates and overlong forms are none. */
static size_t utf8_length(const uint8_t* text, size_t left) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (text[0] < 0x80) return 1;
  size_t length = text[0] >= 0xf8 ? 0 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
  if (length == 0 || length > left) return 0;
  uint32_t character = text[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
    character = character << 6 | (text[i] & 0x3f);
  }
  bool is_surrogate = character >= 0xd800 && character < 0xe000;
  return character < smallest[length] || character > 0x10ffff || is_surrogate ? 0 : length;
}

static bool is_utf8(const uint8_t* text, size_t size) {
  for (size_t at = 0; at < size;) {
    size_t length = utf8_length(text + at, size - at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

/* Copies a string field. It ends at its first NUL for those who read it as a C string. */
static OrtStatus* read_text(Reader* reader, const WireField* field, const char* what, char** out) {
  if (!is_utf8(field->data, field->size))
    return status_new(ORT_INVALID_PROTOBUF, "%s: a text is not UTF-8", what);
  char* text = arena_str(&reader->model->arena, (const char*)field->data, field->size);
  if (text == NULL) return status_no_memory();
  *out = text;
  return NULL;
}

OrtStatus* read_name(Reader* reader, const WireField* field, const char* what, char** out) {
  char* text = NULL;
  TRY(read_text(reader, field, what, &text));
  if (strlen(text) != field->size)
    return status_new(ORT_INVALID_GRAPH, "%s '%s': a name holds a NUL byte", what, text);
  *out = text;
  return NULL;
}

/* An OperatorSetIdProto: domain = 1, version = 2. */
OrtStatus* read_opset(Reader* reader, const WireField* field, OpsetImport* opsets, size_t* count) {
  OpsetImport import = {(char*)"", 0};
  uint64_t version = 0;
  Wire wire = wire_of_field(field);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_BYTES)) TRY(read_name(reader, &part, "opset import", &import.domain));
    if (part.tag == WIRE_TAG(2, WIRE_VARINT)) version = part.value;
  }
  TRY(check_wire(&wire, "opset import", import.domain));
  if (strcmp(import.domain, "ai.onnx") == 0) import.domain = (char*)"";
  if (version <= INT64_MAX) TRY(check_opset_version(import.domain, version));
  import.version = version > INT_MAX ? -1 : (int)version;
  if (import.version < 1)
    return status_new(ORT_INVALID_GRAPH, "opset import of domain '%s' has no valid version", import.domain);
  size_t at = 0;
  while (at < *count && strcmp(opsets[at].domain, import.domain) < 0) at++;
  if (at == *count || strcmp(opsets[at].domain, import.domain) != 0) {
    for (size_t i = (*count)++; i > at; i--) opsets[i] = opsets[i - 1];
  }
  opsets[at] = import;
  return NULL;
}

/* A StringStringEntryProto: key = 1, value = 2. */
static OrtStatus* read_metadata(Reader* reader, const WireField* field) {
  Wire wire = wire_of_field(field);
  WireField part;
  char *key = (char*)"", *value = (char*)"";
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(1, WIRE_BYTES)) TRY(read_text(reader, &part, "metadata", &key));
    if (part.tag == WIRE_TAG(2, WIRE_BYTES)) TRY(read_text(reader, &part, "metadata", &value));
  }
  TRY(check_wire(&wire, "metadata", key));
  return key_values_set(reader->model->metadata.custom, key, value) ? NULL : status_no_memory();
}

/* One field that says something about the model as a whole. */
static OrtStatus* read_property(Reader* reader, const WireField* part) {
  OrtModel* model = reader->model;
  switch (part->tag) {
    case WIRE_TAG(MODEL_IR_VERSION, WIRE_VARINT):
      model->ir_version = (int64_t)part->value;
      return check_ir_version(model->ir_version);
    case WIRE_TAG(MODEL_PRODUCER_NAME, WIRE_BYTES):
      return read_text(reader, part, "model", &model->metadata.producer_name);
    case WIRE_TAG(MODEL_PRODUCER_VERSION, WIRE_BYTES):
      return read_text(reader, part, "model", &model->metadata.producer_version);
    case WIRE_TAG(MODEL_DOMAIN, WIRE_BYTES):
      return read_text(reader, part, "model", &model->metadata.domain);
    case WIRE_TAG(MODEL_VERSION, WIRE_VARINT):
      model->metadata.model_version = (int64_t)part->value;
      return NULL;
    case WIRE_TAG(MODEL_DOC_STRING, WIRE_BYTES):
      return read_text(reader, part, "model", &model->metadata.description);
    case WIRE_TAG(MODEL_OPSET_IMPORT, WIRE_BYTES):
      return read_opset(reader, part, model->opsets, &model->opset_count);
    case WIRE_TAG(MODEL_METADATA, WIRE_BYTES):
      return read_metadata(reader, part);
    case WIRE_TAG(MODEL_FUNCTIONS, WIRE_BYTES):
      return read_function(reader, part);
    default:
      return NULL;
  }
}

/* GraphProto.doc_string = 10 of the main graph. */
static OrtStatus* read_graph_description(Reader* reader, const WireField* graph) {
  Wire wire = wire_of_field(graph);
  WireField part;
  while (wire_next(&wire, &part)) {
    if (part.tag == WIRE_TAG(10, WIRE_BYTES))
      TRY(read_text(reader, &part, "graph description", &reader->model->metadata.graph_description));
  }
  return NULL;
}

static OrtStatus* check_properties(const OrtModel* model) {
  if (model->ir_version < 1) return status_new(ORT_INVALID_PROTOBUF, "no ONNX model: it has no IR version");
  if (model->opset_count == 0) return status_new(ORT_INVALID_GRAPH, "the model imports no operator set");
  return NULL;
}

static OrtStatus* read_model(Reader* reader, const void* data, size_t size) {
  OrtModel* model = reader->model;
  Wire wire = wire_of(data, size);
  WireField part, graph = {0};
  size_t opset_count = 0, graph_count = 0;
  while (wire_next(&wire, &part)) {
    opset_count += part.tag == WIRE_TAG(MODEL_OPSET_IMPORT, WIRE_BYTES);
    if (part.tag != WIRE_TAG(MODEL_GRAPH, WIRE_BYTES)) continue;
    graph = part;
    graph_count++;
  }
  TRY(check_wire(&wire, "message", "ModelProto"));
  if (graph_count != 1)
    return status_new(ORT_INVALID_PROTOBUF, "no ONNX model: it has %zu graphs", graph_count);
  if (opset_count > MAX_OPSET_IMPORTS)
    return status_new(ORT_INVALID_GRAPH, "the model imports %zu operator sets, more than %d", opset_count,
                      MAX_OPSET_IMPORTS);
  model->opsets = arena_calloc(&model->arena, opset_count + 1, sizeof *model->opsets);
  if (model->opsets == NULL) return status_no_memory();
  wire = wire_of(data, size);
  while (wire_next(&wire, &part)) TRY(read_property(reader, &part));
  /* The first two IR versions had no imports: everything was version 1. */
  if (opset_count == 0 && model->ir_version < 3 && model->ir_version > 0)
    model->opsets[model->opset_count++] = (OpsetImport){(char*)"", 1};
  TRY(check_properties(model));
  TRY(read_graph_description(reader, &graph));
  TRY(read_graph(reader, &graph, NULL, &model->graph));
  model->metadata.graph_name = model->graph->name;
  return model_infer_types(model);
}

/* Sets the model's path and the folder that confines external data. */
static OrtStatus* resolve_paths(Reader* reader, const ModelSource* source) {
  OrtModel* model = reader->model;
  char *path = NULL, *folder = NULL;
  OrtStatus* status = NULL;
  if (source->path != NULL) {
    path = realpath(source->path, NULL);
    if (path == NULL) return status_new(ORT_NO_SUCHFILE, "File doesn't exist (%s)", strerror(errno));
    /* A link to a model: the names of its external data are looked up beside the link. */
    char* beside = str_folder(source->path);
    if (beside == NULL) status = status_no_memory();
    folder = beside != NULL ? realpath(source->folder != NULL ? source->folder : beside, NULL) : NULL;
    mem_free(beside);
    if (source->folder == NULL && status == NULL) {
      const char* slash = strrchr(path, '/'); /* a real path has one */
      reader->real_folder = str_copy_n(path, slash == path ? 1 : (size_t)(slash - path));
      if (reader->real_folder == NULL) status = status_no_memory();
    }
  } else {
    if (source->data_path != NULL) path = realpath(source->data_path, NULL);
    if (source->folder != NULL) folder = realpath(source->folder, NULL);
  }
  model->path = arena_str(&model->arena, path != NULL ? path : "", path != NULL ? strlen(path) : 0);
  if (folder != NULL) reader->folder = str_copy(folder);
  if (model->path == NULL || (folder != NULL && reader->folder == NULL)) status = status_no_memory();
  free(path);
  free(folder);
  return status;
}

static OrtStatus* open_bytes(Reader* reader, const ModelSource* source, const void** data, size_t* size) {
  const Mapping* mapping = NULL;
  *data = source->data;
  *size = source->size;
  if (source->data == NULL)
    TRY(read_file(reader->model, source->path, &mapping));
  else if (source->copy_data)
    TRY(copy_bytes(reader->model, source->data, source->size, &mapping));
  if (mapping != NULL) {
    *data = mapping->data;
    *size = mapping->size;
  }
  return NULL;
}

/* True for what stock ORT calls its own format: a flatbuffer, whose first number is where its table begins.
 */
static bool is_ort_format(const uint8_t* data, size_t size) {
  uint32_t table = 0;
  if (size < 8 || memcmp(data + 4, "ORTM", 4) != 0) return false;
  memcpy(&table, data, sizeof table);
  return table >= 8 && table < size;
}

/* takes `cause`, gives it with stock ORT's words in front, which clients look for. `data`: NULL if there is
 * none. */
static OrtStatus* load_failure(OrtStatus* cause, const ModelSource* source, const void* data, size_t size) {
  const char* path = source->path != NULL ? source->path : source->data_path;
  if (data != NULL && is_ort_format(data, size)) {
    status_release(cause);
    cause =
        status_new(ORT_FAIL,
                   "it is in ORT format (as .ort files are), which this host does not read: load the ONNX "
                   "model that it was made from");
  }
  bool is_protobuf = status_code(cause) == ORT_INVALID_PROTOBUF;
  if (path != NULL)
    return status_wrap(cause, "Load model from %s failed%s", path,
                       is_protobuf ? ":Protobuf parsing failed" : "");
  return status_wrap(cause, "Failed to load model%s", is_protobuf ? " because protobuf parsing failed" : "");
}

OrtStatus* model_read(const ModelSource* source, OrtModel** out) {
  OrtModel* model = mem_calloc(1, sizeof *model);
  if (model == NULL) return status_no_memory();
  Reader reader = {.model = model, .source = source};
  OrtStatus* status = NULL;
  OrtModelMetadata* metadata = &model->metadata;
  metadata->producer_name = metadata->producer_version = metadata->graph_name = (char*)"";
  metadata->domain = metadata->description = metadata->graph_description = (char*)"";
  metadata->model_version = INT64_MAX; /* stock ORT's word for none */
  metadata->custom = key_values_new();
  const void* data = NULL;
  size_t size = 0;
  if (metadata->custom == NULL) {
    status = status_no_memory();
    goto done;
  }
  TRY_DONE(resolve_paths(&reader, source));
  TRY_DONE(open_bytes(&reader, source, &data, &size));
  status = read_model(&reader, data, size);
done:
  if (status != NULL) status = load_failure(status, source, data, size);
  scopes_release(&reader);
  name_map_release(&reader.functions);
  mem_free(reader.folder);
  mem_free(reader.real_folder);
  if (status != NULL)
    model_release(model);
  else
    *out = model;
  return status;
}

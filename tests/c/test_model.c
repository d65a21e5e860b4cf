/* Models: external data stays in the model's folder, memory runs out at every point, arguments are checked.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "onnx_writer.h"

enum { FLOAT = 1 };

/* ---- External data ---- */

static void write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static void put_entry(Message* tensor, const char* key, const char* value) {
  Message entry = {.size = 0};
  put_text(&entry, 1, key);
  put_text(&entry, 2, value);
  put_message(tensor, 13, &entry);
}

/* y = x + w, w being `count` floats in another file. NULL `offset` and `length`: not given. */
static Message external_model(const char* location, const char* offset, const char* length, int64_t count) {
  Message tensor = {.size = 0}, graph = {.size = 0};
  put_int(&tensor, 1, count);
  put_int(&tensor, 2, FLOAT);
  put_text(&tensor, 8, "w");
  put_int(&tensor, 14, 1);
  if (location != NULL) put_entry(&tensor, "location", location);
  if (offset != NULL) put_entry(&tensor, "offset", offset);
  if (length != NULL) put_entry(&tensor, "length", length);
  put_entry(&tensor, "checksum", "not looked at");
  Message node = node_proto("Add", "x", "w", "y"), x = value_info("x", FLOAT, count);
  Message y = value_info("y", FLOAT, count);
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "g");
  put_message(&graph, 5, &tensor);
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  return model_proto(&graph);
}

static OrtStatus* load_external(const char* location, const char* offset, const char* length, int64_t count,
                                OrtModel** model) {
  Message bytes = external_model(location, offset, length, count);
  write_file("folder/model.onnx", bytes.bytes, bytes.size);
  return ortabi_load_model("folder/model.onnx", NULL, 0, model);
}

static const OrtValueInfo* only_initializer(const OrtModel* model) {
  const OrtValueInfo* value = NULL;
  size_t count = 0;
  CHECK_OK(api()->Graph_GetNumInitializers(ortabi_model_graph(model), &count));
  if (CHECK(count == 1)) CHECK_OK(api()->Graph_GetInitializers(ortabi_model_graph(model), &value, 1));
  return value;
}

/* The model reads `count` floats that start with `first`. */
static void check_external(const char* location, const char* offset, const char* length, float first) {
  OrtModel* model = NULL;
  if (!CHECK_OK(load_external(location, offset, length, 2, &model))) return;
  const OrtValueInfo* w = only_initializer(model);
  const OrtValue* tensor = NULL;
  void* data = NULL;
  CHECK_OK(api()->ValueInfo_GetInitializerValue(w, &tensor));
  CHECK_OK(api()->GetTensorMutableData((OrtValue*)(uintptr_t)tensor, &data));
  CHECK(((uintptr_t)data & 3) == 0);
  CHECK(((float*)data)[0] == first && ((float*)data)[1] == first + 1);
  OrtExternalInitializerInfo* info = NULL;
  CHECK_OK(api()->ValueInfo_GetExternalInitializerInfo(w, &info));
  CHECK_TEXT(api()->ExternalInitializerInfo_GetFilePath(info), location);
  CHECK(api()->ExternalInitializerInfo_GetFileOffset(info) == (offset ? atoi(offset) : 0));
  CHECK(api()->ExternalInitializerInfo_GetByteSize(info) == 8);
  api()->ReleaseExternalInitializerInfo(info);
  api()->ReleaseModel(model);
}

/* folder/{w.bin, sub/w.bin, inside -> w.bin, out -> ../secret.bin, away -> .., odd.bin}, secret.bin, pipe */
static void make_files(void) {
  static bool made;
  if (made) return;
  made = true;
  float numbers[] = {1, 2, 3, 4};
  char odd[9] = {0};
  memcpy(odd + 1, &numbers[2], 8);
  CHECK(mkdir("folder", 0700) == 0 && mkdir("folder/sub", 0700) == 0);
  write_file("folder/w.bin", numbers, sizeof numbers);
  write_file("folder/sub/w.bin", numbers + 2, sizeof(float) * 2);
  write_file("folder/odd.bin", odd, sizeof odd);
  write_file("folder/..data", numbers, sizeof numbers);
  write_file("folder/empty.bin", "", 0);
  write_file("secret.bin", numbers, sizeof numbers);
  CHECK(symlink("w.bin", "folder/inside") == 0);
  CHECK(symlink("../secret.bin", "folder/out") == 0);
  CHECK(symlink("..", "folder/away") == 0);
  CHECK(mkfifo("folder/pipe", 0600) == 0);
}

static void test_external_data_is_read(void) {
  make_files();
  check_external("w.bin", NULL, NULL, 1);
  check_external("w.bin", "4", "8", 2);
  check_external("w.bin", "8", NULL, 3);
  check_external("sub/w.bin", "0", "8", 3);
  check_external("..data", NULL, NULL, 1);
  check_external("inside", NULL, NULL, 1);
  check_external("odd.bin", "1", "8", 3); /* misaligned in the file: copied */
}

static void test_external_data_stays_in_the_folder(void) {
  OrtModel* model = NULL;
  char absolute[4200];
  make_files();
  CHECK(getcwd(absolute, 4096) != NULL);
  strcat(absolute, "/folder/w.bin");
  CHECK_FAILS(load_external(absolute, NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "not a path below");
  CHECK_FAILS(load_external("../secret.bin", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "not a path below");
  CHECK_FAILS(load_external("sub/../../secret.bin", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "not a path");
  CHECK_FAILS(load_external("sub/..", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "not a path below");
  CHECK_FAILS(load_external("", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "not a path below");
  CHECK_FAILS(load_external("out", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "leaves the model's folder");
  CHECK_FAILS(load_external("away/secret.bin", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "leaves");
  CHECK_FAILS(load_external(NULL, NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "without a location");
  CHECK(model == NULL);
}

static void test_external_data_that_is_no_file(void) {
  OrtModel* model = NULL;
  make_files();
  CHECK_FAILS(load_external("missing.bin", NULL, NULL, 2, &model), ORT_NO_SUCHFILE, "'w'");
  CHECK_FAILS(load_external("sub", NULL, NULL, 2, &model), ORT_FAIL, "regular file");
  CHECK_FAILS(load_external("pipe", NULL, NULL, 2, &model), ORT_FAIL, "regular file");
  CHECK_FAILS(load_external("w.bin/x", NULL, NULL, 2, &model), ORT_NO_SUCHFILE, "w.bin/x");
}

static void test_external_data_is_as_long_as_the_tensor(void) {
  OrtModel* model = NULL;
  make_files();
  CHECK_FAILS(load_external("w.bin", "12", NULL, 2, &model), ORT_INVALID_GRAPH, "initializer 'w'");
  CHECK_FAILS(load_external("w.bin", "17", NULL, 2, &model), ORT_INVALID_GRAPH, "offset 17");
  CHECK_FAILS(load_external("w.bin", NULL, NULL, 5, &model), ORT_INVALID_GRAPH, "needs 20 bytes");
  CHECK_FAILS(load_external("w.bin", NULL, "12", 2, &model), ORT_INVALID_GRAPH, "12 bytes");
  CHECK_FAILS(load_external("w.bin", NULL, "4", 2, &model), ORT_INVALID_GRAPH, "4 bytes");
  CHECK_FAILS(load_external("w.bin", "-4", NULL, 2, &model), ORT_INVALID_GRAPH, "offset '-4'");
  CHECK_FAILS(load_external("w.bin", "4x", NULL, 2, &model), ORT_INVALID_GRAPH, "offset '4x'");
  CHECK_FAILS(load_external("w.bin", "99999999999999999999", NULL, 2, &model), ORT_INVALID_GRAPH, "offset");
  CHECK_FAILS(load_external("w.bin", "9223372036854775806", NULL, 2, &model), ORT_INVALID_GRAPH, "offset");
  CHECK_FAILS(load_external("w.bin", NULL, NULL, INT64_MAX / 2, &model), ORT_INVALID_GRAPH, "'w'");
  CHECK_FAILS(load_external("empty.bin", NULL, NULL, 2, &model), ORT_INVALID_GRAPH, "0 bytes");
  CHECK_OK(load_external("empty.bin", NULL, NULL, 0, &model));
  api()->ReleaseModel(model);
}

static void test_external_data_of_bytes_needs_a_folder(void) {
  OrtModel* model = NULL;
  make_files();
  Message bytes = external_model("w.bin", NULL, NULL, 2);
  CHECK_FAILS(ortabi_load_model(NULL, bytes.bytes, bytes.size, &model), ORT_INVALID_ARGUMENT, "folder");
  CHECK_OK(ortabi_load_model("folder/any name", bytes.bytes, bytes.size, &model));
  api()->ReleaseModel(model);
}

/* ---- Loading ---- */

static void test_files_that_are_no_models(void) {
  OrtModel* model = NULL;
  make_files();
  write_file("text.onnx", "hello, world", 12);
  CHECK_FAILS(ortabi_load_model("no.onnx", NULL, 0, &model), ORT_NO_SUCHFILE, "no.onnx");
  CHECK_FAILS(ortabi_load_model("text.onnx", NULL, 0, &model), ORT_INVALID_PROTOBUF, "text.onnx");
  CHECK_FAILS(ortabi_load_model("folder", NULL, 0, &model), ORT_FAIL, "regular file");
  CHECK_FAILS(ortabi_load_model("folder/empty.bin", NULL, 0, &model), ORT_INVALID_PROTOBUF, "graphs");
  CHECK_FAILS(ortabi_load_model("folder/pipe", NULL, 0, &model), ORT_FAIL, "regular file");
  CHECK_FAILS(ortabi_load_model(NULL, NULL, 0, &model), ORT_INVALID_ARGUMENT, "NULL");
  CHECK_FAILS(ortabi_load_model("text.onnx", NULL, 0, NULL), ORT_INVALID_ARGUMENT, "model");
}

/* If(c): then y = Neg(x), else y = x + w; with a view of it, and a Constant of strings inside. */
static Message branching_model(void) {
  Message then_graph = {.size = 0}, else_graph = {.size = 0}, graph = {.size = 0}, node = {.size = 0};
  Message neg = node_proto("Neg", "x", NULL, "a"), add = node_proto("Add", "x", "w", "b");
  Message a = value_info("a", FLOAT, 2), b = value_info("b", FLOAT, 2), x = value_info("x", FLOAT, 2);
  Message c = value_info("c", 9, 1), y = value_info("y", FLOAT, 2), weights = {.size = 0};
  put_message(&then_graph, 1, &neg);
  put_text(&then_graph, 2, "then");
  put_message(&then_graph, 12, &a);
  put_message(&else_graph, 1, &add);
  put_text(&else_graph, 2, "else");
  put_message(&else_graph, 12, &b);
  put_text(&node, 1, "c");
  put_text(&node, 2, "y");
  put_text(&node, 4, "If");
  const char* names[] = {"then_branch", "else_branch"};
  const Message* branches[] = {&then_graph, &else_graph};
  for (size_t i = 0; i < 2; i++) {
    Message attribute = {.size = 0};
    put_text(&attribute, 1, names[i]);
    put_message(&attribute, 6, branches[i]);
    put_int(&attribute, 20, 5);
    put_message(&node, 5, &attribute);
  }
  put_int(&weights, 1, 2);
  put_int(&weights, 2, FLOAT);
  put_bytes(&weights, 4, (const float[]){1, 2}, 8);
  put_text(&weights, 8, "w");
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "main");
  put_message(&graph, 5, &weights);
  put_message(&graph, 11, &c);
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  return model_proto(&graph);
}

static OrtStatus* load_and_view(void) {
  Message bytes = branching_model();
  OrtModel* model = NULL;
  OrtStatus* status = ortabi_load_model(NULL, bytes.bytes, bytes.size, &model);
  if (status != NULL) return status;
  const OrtGraph* graph = ortabi_model_graph(model);
  const OrtNode* node = NULL;
  OrtGraph* view = NULL;
  OrtModelMetadata* metadata = NULL;
  status = api()->Graph_GetNodes(graph, &node, 1);
  if (status == NULL) status = api()->Graph_GetGraphView(graph, &node, 1, &view);
  if (status == NULL) status = api()->Graph_GetModelMetadata(graph, &metadata);
  api()->ReleaseModelMetadata(metadata);
  api()->ReleaseGraph(view);
  api()->ReleaseModel(model);
  return status;
}

/* y = Twice(x), Twice being a function of the model: t = Neg(a), b = Neg(t) */
static OrtStatus* load_functions(void) {
  Message function = {.size = 0}, graph = {.size = 0}, opset = {.size = 0};
  Message first = node_proto("Neg", "a", NULL, "t"), second = node_proto("Neg", "t", NULL, "b");
  put_text(&function, 1, "Twice");
  put_text(&function, 4, "a");
  put_text(&function, 5, "b");
  put_message(&function, 7, &first);
  put_message(&function, 7, &second);
  put_int(&opset, 2, 17);
  put_message(&function, 9, &opset);
  put_text(&function, 10, "own");
  Message call = node_proto("Twice", "x", NULL, "y"), x = value_info("x", FLOAT, 2),
          y = value_info("y", FLOAT, 2);
  put_text(&call, 7, "own");
  put_message(&graph, 1, &call);
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  Message bytes = model_proto(&graph);
  put_message(&bytes, 25, &function);
  OrtModel* model = NULL;
  OrtStatus* status = ortabi_load_model(NULL, bytes.bytes, bytes.size, &model);
  size_t count = 0;
  if (status == NULL) status = api()->Graph_GetNumNodes(ortabi_model_graph(model), &count);
  if (status == NULL) CHECK(count == 2);
  api()->ReleaseModel(model);
  return status;
}

static void test_every_allocation_may_fail(void) {
  CHECK_ALLOCATION_FAILURES(load_and_view);
  CHECK_ALLOCATION_FAILURES(load_functions);
}

static void test_what_belongs_to_a_model_is_not_released_through_its_parts(void) {
  Message bytes = branching_model();
  OrtModel* model = NULL;
  const OrtNode* node = NULL;
  const OrtValueInfo* output = NULL;
  const OrtOpAttr* attributes[2] = {NULL};
  if (!CHECK_OK(ortabi_load_model(NULL, bytes.bytes, bytes.size, &model))) return;
  const OrtGraph* graph = ortabi_model_graph(model);
  CHECK_OK(api()->Graph_GetNodes(graph, &node, 1));
  CHECK_OK(api()->Node_GetOutputs(node, &output, 1));
  CHECK_OK(api()->Node_GetAttributes(node, attributes, 2));
  api()->ReleaseOpAttr((OrtOpAttr*)(uintptr_t)attributes[0]);
  api()->ReleaseValueInfo((OrtValueInfo*)(uintptr_t)output);
  api()->ReleaseNode((OrtNode*)(uintptr_t)node);
  api()->ReleaseGraph((OrtGraph*)(uintptr_t)graph);
  const char* name = NULL;
  CHECK_OK(api()->GetValueInfoName(output, &name));
  CHECK_TEXT(name, "y");
  CHECK_OK(api()->Graph_GetName(graph, &name));
  CHECK_TEXT(name, "main");
  api()->ReleaseModel(model);
  api()->ReleaseModel(NULL);
  api()->ReleaseGraph(NULL);
}

/* ---- Attributes that a client makes ---- */

static OrtStatus* make_attribute(void) {
  const char* texts[] = {"one", "", "three"};
  OrtOpAttr* attribute = NULL;
  OrtStatus* status = api()->CreateOpAttr("names", texts, 3, ORT_OP_ATTR_STRINGS, &attribute);
  api()->ReleaseOpAttr(attribute);
  return status;
}

static void check_attribute(const void* data, int len, OrtOpAttrType type, const void* expected,
                            size_t size) {
  OrtOpAttr* attribute = NULL;
  OrtOpAttrType found;
  char buffer[64] = {0};
  size_t needed = 99;
  const char* name = NULL;
  if (!CHECK_OK(api()->CreateOpAttr("a", data, len, type, &attribute))) return;
  CHECK_OK(api()->OpAttr_GetName(attribute, &name));
  CHECK_TEXT(name, "a");
  CHECK_OK(api()->OpAttr_GetType(attribute, &found));
  CHECK(found == type);
  if (size != 0)
    CHECK_FAILS(api()->ReadOpAttr(attribute, type, buffer, size - 1, &needed), ORT_INVALID_ARGUMENT, "'a'");
  if (size != 0) CHECK(needed == size);
  CHECK_OK(api()->ReadOpAttr(attribute, type, buffer, sizeof buffer, &needed));
  CHECK(needed == size && memcmp(buffer, expected, size) == 0);
  api()->ReleaseOpAttr(attribute);
}

static void test_attributes_of_every_type(void) {
  int64_t ints[] = {INT64_MIN, 7};
  float floats[] = {0.5f, -1};
  const char* texts[] = {"ab", ""};
  check_attribute(ints, 1, ORT_OP_ATTR_INT, ints, 8);
  check_attribute(ints, 2, ORT_OP_ATTR_INTS, ints, 16);
  check_attribute(NULL, 0, ORT_OP_ATTR_INTS, "", 0);
  check_attribute(floats, 1, ORT_OP_ATTR_FLOAT, floats, 4);
  check_attribute(floats, 2, ORT_OP_ATTR_FLOATS, floats, 8);
  check_attribute("text", 4, ORT_OP_ATTR_STRING, "text", 4);
  check_attribute(texts, 2, ORT_OP_ATTR_STRINGS, "ab\0", 4);
  CHECK_ALLOCATION_FAILURES(make_attribute);
}

static void test_attributes_that_cannot_be(void) {
  OrtOpAttr* attribute = NULL;
  int64_t number = 1;
  size_t size = 0;
  CHECK_FAILS(api()->CreateOpAttr(NULL, &number, 1, ORT_OP_ATTR_INT, &attribute), ORT_INVALID_ARGUMENT,
              "'name'");
  CHECK_FAILS(api()->CreateOpAttr("a", NULL, 1, ORT_OP_ATTR_INT, &attribute), ORT_INVALID_ARGUMENT, "'data'");
  CHECK_FAILS(api()->CreateOpAttr("a", &number, 1, ORT_OP_ATTR_INT, NULL), ORT_INVALID_ARGUMENT, "'op_attr'");
  CHECK_FAILS(api()->CreateOpAttr("a", &number, -1, ORT_OP_ATTR_INTS, &attribute), ORT_INVALID_ARGUMENT,
              "len");
  CHECK_FAILS(api()->CreateOpAttr("a", &number, 1, ORT_OP_ATTR_GRAPH, &attribute), ORT_INVALID_ARGUMENT,
              "type 7");
  CHECK_FAILS(api()->CreateOpAttr("a", &number, 1, (OrtOpAttrType)99, &attribute), ORT_INVALID_ARGUMENT,
              "99");
  CHECK(attribute == NULL);
  CHECK_OK(api()->CreateOpAttr("a", &number, 1, ORT_OP_ATTR_INT, &attribute));
  CHECK_FAILS(api()->ReadOpAttr(attribute, ORT_OP_ATTR_FLOAT, &number, 8, &size), ORT_INVALID_ARGUMENT,
              "'a'");
  CHECK_FAILS(api()->ReadOpAttr(attribute, ORT_OP_ATTR_INT, NULL, 8, &size), ORT_INVALID_ARGUMENT, "'data'");
  CHECK_FAILS(api()->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &number, 8, NULL), ORT_INVALID_ARGUMENT, "'out'");
  OrtValue* tensor = NULL;
  CHECK_FAILS(api()->OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor), ORT_INVALID_ARGUMENT, "'a'");
  api()->ReleaseOpAttr(attribute);
  api()->ReleaseOpAttr(NULL);
}

int main(void) {
  RUN(test_external_data_is_read);
  RUN(test_external_data_stays_in_the_folder);
  RUN(test_external_data_that_is_no_file);
  RUN(test_external_data_is_as_long_as_the_tensor);
  RUN(test_external_data_of_bytes_needs_a_folder);
  RUN(test_files_that_are_no_models);
  RUN(test_every_allocation_may_fail);
  RUN(test_what_belongs_to_a_model_is_not_released_through_its_parts);
  RUN(test_attributes_of_every_type);
  RUN(test_attributes_that_cannot_be);
  return finish();
}

/* What a session does with a model: constants become initializers, views leave constants out. */
#include <stdlib.h>

#include "harness.h"
#include "onnx/onnx.h"
#include "onnx_writer.h"

enum { FLOAT = 1 };

static Message constant(const char* output, const char* attribute_name, int onnx_type, Message attribute) {
  Message node = {.size = 0};
  put_text(&attribute, 1, attribute_name);
  put_int(&attribute, 20, onnx_type);
  put_text(&node, 2, output);
  put_text(&node, 4, "Constant");
  put_message(&node, 5, &attribute);
  return node;
}

/* Three constants in the main graph; the branch of an If captures one of them and has one of its own. */
static Message constants_model(void) {
  Message ints = {.size = 0}, text = {.size = 0}, tensor = {.size = 0}, value = {.size = 0},
          one = {.size = 0};
  Message branch = {.size = 0}, graph = {.size = 0}, node = {.size = 0};
  put_int(&ints, 8, 3);
  put_int(&ints, 8, -4);
  put_text(&text, 4, "hello");
  put_int(&tensor, 1, 2);
  put_int(&tensor, 2, FLOAT);
  put_bytes(&tensor, 9, (const float[]){1, 2}, 8);
  put_message(&value, 5, &tensor);
  put_varint(&one, 2 << 3 | 5);
  memcpy(one.bytes + one.size, (const float[]){0.5f}, 4);
  one.size += 4;
  Message a = constant("a", "value_ints", 7, ints), b = constant("b", "value_string", 3, text);
  Message c = constant("c", "value", 4, value), own = constant("own", "value_float", 1, one);
  Message add = node_proto("Add", "c", "own", "z"), z = value_info("z", FLOAT, 2),
          y = value_info("y", FLOAT, 2);
  Message condition = value_info("p", 9, 1);
  put_message(&branch, 1, &own);
  put_message(&branch, 1, &add);
  put_message(&branch, 12, &z);
  put_text(&node, 1, "p");
  put_text(&node, 2, "y");
  put_text(&node, 4, "If");
  for (size_t i = 0; i < 2; i++) {
    Message attribute = {.size = 0};
    put_text(&attribute, 1, i == 0 ? "then_branch" : "else_branch");
    put_message(&attribute, 6, &branch);
    put_int(&attribute, 20, 5);
    put_message(&node, 5, &attribute);
  }
  put_message(&graph, 1, &a);
  put_message(&graph, 1, &b);
  put_message(&graph, 1, &c);
  put_message(&graph, 1, &node);
  put_message(&graph, 11, &condition);
  put_message(&graph, 12, &y);
  return model_proto(&graph);
}

static OrtModel* read_model(const Message* bytes) {
  OrtModel* model = NULL;
  ModelSource source = {.data = bytes->bytes, .size = bytes->size, .copy_data = true};
  CHECK_OK(model_read(&source, &model));
  return model;
}

static void check_main_constants(const OrtGraph* graph) {
  const OrtValueInfo* a = graph_find_value(graph, "a", false);
  const OrtValueInfo* b = graph_find_value(graph, "b", false);
  if (!CHECK(a->initializer != NULL && b->initializer != NULL)) return;
  CHECK(a->is_constant && a->producer == NULL && a->initializer->rank == 1);
  CHECK(a->initializer->element_type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 &&
        ((int64_t*)a->initializer->data)[1] == -4);
  CHECK(b->initializer->rank == 0 && b->initializer->element_count == 1);
  CHECK_TEXT(((StringElement*)b->initializer->data)->text, "hello");
  CHECK(a->type->tensor->has_shape && a->type->tensor->rank == 1 && a->type->tensor->dims[0] == 2);
}

static void test_constants_become_initializers(void) {
  Message bytes = constants_model();
  OrtModel* model = read_model(&bytes);
  if (model == NULL) return;
  OrtGraph* graph = model->graph;
  CHECK(graph->node_count == 4 && graph->initializer_count == 0);
  CHECK_OK(model_lift_constants(model));
  CHECK(graph->node_count == 1 && graph->initializer_count == 3);
  check_main_constants(graph);
  OrtGraph* branch = graph->nodes[0]->subgraphs[0];
  CHECK(branch->node_count == 1 && branch->initializer_count == 1);
  const OrtValueInfo* c = graph_find_value(branch, "c", false);
  CHECK(c->outer == graph_find_value(graph, "c", false) && value_root(c) == c->outer);
  CHECK(c->is_constant && c->initializer == c->outer->initializer && c->type == c->outer->type);
  CHECK(graph_find_value(branch, "p", false) == NULL && graph_find_value(branch, "p", true) != NULL);
  CHECK(graph_find_value(branch, "own", false)->is_constant);
  CHECK_OK(model_lift_constants(model)); /* nothing is left to do */
  CHECK(graph->initializer_count == 3);
  model_release(model);
}

static void test_a_constant_without_a_value_is_refused(void) {
  Message graph = {.size = 0}, node = {.size = 0};
  put_text(&node, 2, "a");
  put_text(&node, 3, "empty");
  put_text(&node, 4, "Constant");
  put_message(&graph, 1, &node);
  Message bytes = model_proto(&graph);
  OrtModel* model = read_model(&bytes);
  if (model == NULL) return;
  CHECK_FAILS(model_lift_constants(model), ORT_INVALID_GRAPH, "'empty'");
  model_release(model);
}

static OrtStatus* read_and_lift(void) {
  Message bytes = constants_model();
  OrtModel* model = NULL;
  ModelSource source = {.data = bytes.bytes, .size = bytes.size, .copy_data = true};
  OrtStatus* status = model_read(&source, &model);
  if (status == NULL) status = model_lift_constants(model);
  model_release(model);
  return status;
}

static void test_lifting_may_run_out_of_memory(void) {
  CHECK_ALLOCATION_FAILURES(read_and_lift);
}

static void test_views_with_and_without_constants(void) {
  Message bytes = constants_model();
  OrtModel* model = read_model(&bytes);
  if (model == NULL) return;
  CHECK_OK(model_lift_constants(model));
  OrtGraph *all = NULL, *dropped = NULL;
  CHECK_OK(graph_view_new(model->graph, model->graph->nodes, 1, "fused", false, &all));
  CHECK_OK(graph_view_new(model->graph, model->graph->nodes, 1, "fused", true, &dropped));
  CHECK_TEXT(all->name, "fused");
  CHECK(all->input_count == 2 && all->initializer_count == 1 && all->output_count == 1);
  CHECK_TEXT(all->inputs[1]->name, "c");
  CHECK(all->inputs[1]->is_constant && all->inputs[1]->origin == graph_find_value(model->graph, "c", false));
  CHECK(dropped->input_count == 1 && dropped->initializer_count == 1);
  CHECK(node_root(all->nodes[0]) == model->graph->nodes[0]);
  CHECK(all->nodes[0]->graph == all && all->outputs[0]->producer == all->nodes[0]);
  graph_view_release(dropped);
  graph_view_release(all);
  model_release(model);
}

/* A captured value in a view of a subgraph: it is an input, and still from outside. */
static void test_view_in_a_subgraph(void) {
  Message bytes = constants_model();
  OrtModel* model = read_model(&bytes);
  if (model == NULL) return;
  OrtGraph *branch = model->graph->nodes[3]->subgraphs[0], *view = NULL;
  CHECK_OK(graph_view_new(branch, &branch->nodes[1], 1, "part", false, &view));
  CHECK(view->input_count == 2 && view->captured_count == 1 && view->parent_node == model->graph->nodes[3]);
  CHECK(view->captured[0]->outer != NULL && view->captured[0]->is_graph_input);
  CHECK(value_root(view->captured[0]) == graph_find_value(model->graph, "c", false));
  graph_view_release(view);
  model_release(model);
}

int main(void) {
  RUN(test_constants_become_initializers);
  RUN(test_a_constant_without_a_value_is_refused);
  RUN(test_lifting_may_run_out_of_memory);
  RUN(test_views_with_and_without_constants);
  RUN(test_view_in_a_subgraph);
  return finish();
}

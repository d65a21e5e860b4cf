/* Graphs: the launches of one run are recorded with their addresses; replaying them needs no host code and no
 * kernels. A real device does this with a captured stream. */
#include <stdlib.h>

#include "device.h"

#define WARM_UP_RUNS 1 /* memory that a run allocates is there in the next one */

typedef struct Recorded {
  Launch launch;
  Stream* stream; /* NULL: none */
} Recorded;

struct Graph {
  int id, runs;
  bool is_complete, is_broken;
  Recorded* launches;
  size_t count, capacity;
  Graph* next;
};

static Graph* find_graph(const Capture* capture, int id) {
  Graph* graph = capture->graphs;
  while (graph != NULL && graph->id != id) graph = graph->next;
  return graph;
}

OrtStatus* capture_begin(Capture* capture, int id) {
  Graph* graph = find_graph(capture, id);
  if (graph == NULL) {
    graph = calloc(1, sizeof *graph);
    if (graph == NULL) return fail(capture->factory, ORT_FAIL, "no memory for a graph");
    graph->id = id;
    graph->next = capture->graphs;
    capture->graphs = graph;
    control.live_objects++;
  }
  graph->count = 0;
  graph->is_broken = false;
  capture->recording = graph->runs++ < WARM_UP_RUNS ? NULL : graph;
  return NULL;
}

OrtStatus* capture_launch(Capture* capture, const Launch* launch, Stream* stream, bool* is_recorded) {
  Graph* graph = capture->recording;
  *is_recorded = graph != NULL;
  if (graph == NULL) return NULL;
  if (graph->count == graph->capacity) {
    size_t capacity = graph->capacity != 0 ? 2 * graph->capacity : 8;
    Recorded* grown = realloc(graph->launches, capacity * sizeof *grown);
    if (grown == NULL) return fail(capture->factory, ORT_FAIL, "no memory for a graph");
    graph->launches = grown;
    graph->capacity = capacity;
  }
  graph->launches[graph->count++] = (Recorded){*launch, stream};
  return NULL;
}

void capture_abort(Capture* capture) {
  if (capture->recording != NULL) capture->recording->is_broken = true;
}

static OrtStatus* replay(const Capture* capture, const Graph* graph) {
  OrtStatus* status = NULL;
  for (size_t i = 0; i < graph->count; i++)
    TRY(launch_start(capture->factory, &graph->launches[i].launch, graph->launches[i].stream));
done:
  for (size_t i = 0; i < graph->count; i++) {
    if (graph->launches[i].stream != NULL) stream_flush(graph->launches[i].stream);
  }
  return status;
}

OrtStatus* capture_end(Capture* capture) {
  Graph* graph = capture->recording;
  if (graph == NULL) return NULL; /* also where several runs go on at once: then nothing is written */
  capture->recording = NULL;
  if (graph->is_broken) return NULL;
  graph->is_complete = true;
  control.captures++;
  return replay(capture, graph);
}

bool capture_has(const Capture* capture, int id) {
  const Graph* graph = find_graph(capture, id);
  return graph != NULL && graph->is_complete;
}

OrtStatus* capture_replay(Capture* capture, int id) {
  if (!capture_has(capture, id))
    return fail(capture->factory, ORT_INVALID_ARGUMENT, "there is no graph %d", id);
  control.replays++;
  return replay(capture, find_graph(capture, id));
}

void capture_drop(Capture* capture, int id) {
  for (Graph** link = &capture->graphs; *link != NULL; link = &(*link)->next) {
    Graph* graph = *link;
    if (graph->id != id) continue;
    *link = graph->next;
    control.live_objects--;
    free(graph->launches);
    free(graph);
    return;
  }
}

void capture_close(Capture* capture) {
  while (capture->graphs != NULL) capture_drop(capture, capture->graphs->id);
}

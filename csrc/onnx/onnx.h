/* onnx: from the bytes of a model to its graph. A bounds-checked reader of the wire format, and what else is
 * done before a session looks at the graph. */
#ifndef ORT_ABI_ONNX_H
#define ORT_ABI_ONNX_H

#include "graph/graph.h"

/* ---- onnx_reader.c ---- */

/* Where a model comes from. Exactly one of path and data; `folder` confines external data (NULL: path's
 * folder). `data_path`: the file that data was read from and may have been changed since; NULL: none. */
typedef struct ModelSource {
  const char *path, *data_path;
  const void* data; /* borrows until the model is released */
  size_t size;
  const char* folder;
  bool copy_data; /* copies `data` instead of borrowing it */
  /* Initializers of the main graph that get other values, which are copied; their own are not looked at. */
  const char* const* replaced;
  const OrtValue* const* replacements;
  size_t replaced_count;
} ModelSource;
/* gives (caller releases with model_release). The graph is faithful to the file: Constant nodes are nodes.
 * Errors: ORT_NO_SUCHFILE, ORT_INVALID_PROTOBUF, ORT_INVALID_GRAPH (names node, value and what is wrong). */
OrtStatus* model_read(const ModelSource* source, OrtModel** out);

/* ---- resolve.c ---- */

/* Turns Constant nodes into initializers, in subgraphs too (as stock ORT does when it loads). */
OrtStatus* model_lift_constants(OrtModel* model);

/* ---- drop_pages.c ---- */

/* Lets go of the pages of the model's bytes that no tensor needs in memory: the text around tensors, those
 * that were copied or released, and all of a file, which is read again where need be. When the model is
 * complete. */
void model_drop_unread_pages(const OrtModel* model);

#endif

/* reader: what the files that read ONNX messages share. Private to model/. */
#ifndef ORT_ABI_READER_H
#define ORT_ABI_READER_H

#include "model/model.h"
#include "model/wire.h"

/* Subgraphs in subgraphs, and types in types; deeper ones are refused. */
#define MAX_GRAPH_DEPTH 64
#define MAX_TYPE_DEPTH  32

/* A file mapped for a model's tensors, released with the model. */
typedef struct Mapping Mapping;
struct Mapping {
  Mapping* next;
  char* location; /* of external data, as the model writes it; NULL for the model file */
  uint8_t* data;
  size_t size;
  bool is_heap; /* a copy of the caller's bytes */
};

typedef struct Reader {
  OrtModel* model;
  char* folder;      /* real path of the folder for external data; NULL when there is none */
  NameMap functions; /* "domain:name" -> anything: the model's own functions */
  unsigned depth;    /* of the graph that is being read */
} Reader;

/* ---- onnx_reader.c ---- */

/* ORT_INVALID_PROTOBUF unless the message was read to its end; `what` and `name` say which one it was. */
OrtStatus* check_wire(const Wire* wire, const char* what, const char* name);
/* Copies a string field into the model's arena. It must be UTF-8 without a NUL byte. */
OrtStatus* read_name(Reader* reader, const WireField* field, const char* what, char** out);

/* ---- mapping.c ---- */

/* Maps a file, gives it to the model. `location`: as for Mapping. borrows the result. */
OrtStatus* map_file(OrtModel* model, const char* path, const char* location, const Mapping** out);
/* Maps a file that external data points to, once. Refuses a location that is not below reader->folder. */
OrtStatus* map_external(Reader* reader, const char* location, const Mapping** out);
/* Copies the caller's bytes into memory of the model. borrows the result. */
OrtStatus* copy_bytes(OrtModel* model, const void* data, size_t size, const Mapping** out);
void mappings_release(OrtModel* model); /* releases */

/* ---- onnx_types.c ---- */

/* Reads a TypeProto into the model's arena. `value`: whose type it is. *out is NULL for an empty message. */
OrtStatus* read_type(Reader* reader, const WireField* field, const char* value, OrtTypeInfo** out);
/* The type of a tensor, in the model's arena. NULL: no memory. */
OrtTypeInfo* type_of_tensor(OrtModel* model, const OrtValue* tensor);

/* ---- onnx_tensor.c, onnx_sparse.c ---- */

typedef struct TensorResult {
  char* name;      /* "" when it has none */
  OrtValue* value; /* owned by the model */
  OrtExternalInitializerInfo* external;
} TensorResult;
/* Reads a TensorProto. `what` says in messages what it is: "initializer", "tensor". */
OrtStatus* read_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out);
/* Reads a SparseTensorProto as a dense tensor; its name is that of its values. */
OrtStatus* read_sparse_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out);
/* takes `value`: the model releases it; on failure it is released at once. */
OrtStatus* model_own_value(OrtModel* model, OrtValue* value);

/* ---- onnx_graph.c, onnx_node.c ---- */

/* Reads a GraphProto; `parent` is the node whose attribute it is, NULL for the main graph. */
OrtStatus* read_graph(Reader* reader, const WireField* field, OrtNode* parent, OrtGraph** out);
/* The first of a node's two readings: makes the node and its output values. */
OrtStatus* read_node_outputs(Reader* reader, const WireField* field, OrtGraph* graph, OrtNode** out);
/* The second one, when all values of the graph exist: inputs, attributes, subgraphs. */
OrtStatus* read_node_inputs(Reader* reader, const WireField* field, OrtNode* node);
OrtStatus* read_attribute(Reader* reader, const WireField* field, OrtNode* node, OrtOpAttr* out);

/* ---- graph.c: building ---- */

/* borrows (the model's arena owns it); NULL: no memory. */
OrtGraph* graph_new(OrtModel* model, OrtNode* parent);
/* A new value of the graph; ORT_INVALID_GRAPH if it has one of that name. `name` is not copied. */
OrtStatus* graph_add_value(OrtGraph* graph, char* name, OrtValueInfo** out);
/* The value that `name` means in the graph: its own, or one of an enclosing graph, which is captured. *out is
 * NULL when there is none. */
OrtStatus* graph_use_value(OrtGraph* graph, const char* name, OrtValueInfo** out);
/* Sorts the nodes, fills in implicit inputs (from the subgraphs, which are finished) and consumers. */
OrtStatus* graph_finish(OrtGraph* graph);
/* Fills in consumers from the nodes' inputs; anew after nodes were added or removed. */
OrtStatus* graph_link_consumers(OrtGraph* graph);
/* For messages: "node 'n' (Conv)", "node #3 (Conv)" without a name. gives (caller releases with mem_free). */
char* node_text(const OrtNode* node);

#endif

/* reader: what the files that read ONNX messages share. Private to onnx/. */
#ifndef ORT_ABI_READER_H
#define ORT_ABI_READER_H

#include "infer/infer.h"
#include "onnx/onnx.h"
#include "onnx/wire.h"

/* Subgraphs in subgraphs, and types in types; deeper ones are refused. */
#define MAX_GRAPH_DEPTH 64
#define MAX_TYPE_DEPTH  32
/* Calls of the model's own functions in each other, and what they may become: a few bytes can ask for very
 * much. */
#define MAX_CALL_DEPTH     64
#define MAX_EXPANDED_NODES 500000
#define MAX_EXPANDED_BYTES ((size_t)256 << 20)
/* Lists that are searched from the front. */
#define MAX_OPSET_IMPORTS   1000
#define MAX_CALL_ATTRIBUTES 1000

/* A FunctionProto. */
typedef struct Function {
  char *name, *domain, *overload;
  WireField field;
  OpsetImport* opsets;
  size_t opset_count;
} Function;

/* A function's formal input or output and what the call gives for it: texts as the caller writes them. */
typedef struct FormalName {
  char* actual; /* "": not given */
  bool is_output;
} FormalName;

/* An output of a function that is one of its inputs, or another output once more. */
typedef struct OutputAgain {
  char *formal, *actual;
} OutputAgain;

/* An attribute that a call gives to its function, or the function's default. */
typedef struct CallAttribute {
  char* name;
  WireField field;
} CallAttribute;

/* One call of a function whose body is put in its place. Names in the body that are not formal ones get a
 * prefix; graphs in the body (OrtGraph.scope) have all their own names prefixed too. */
typedef struct FunctionScope FunctionScope;
struct FunctionScope {
  FunctionScope* next;   /* Reader.scopes */
  FunctionScope* caller; /* the scope that the call stands in; NULL: no function's */
  OrtGraph* graph;       /* where the body's nodes go */
  const Function* function;
  char* prefix;
  NameMap formals; /* name in the body -> FormalName */
  OutputAgain* again;
  size_t again_count;
  CallAttribute* attributes;
  size_t attribute_count;
  unsigned depth;
};

typedef struct Reader {
  OrtModel* model;
  const ModelSource* source;
  char* folder;      /* real path of the folder for external data; NULL when there is none */
  char* real_folder; /* folder of the model's real file: another one where the model is a link; else NULL */
  NameMap functions; /* function_key() -> Function: the model's own functions */
  FunctionScope* scope;                  /* of the node or graph that is being read; NULL: no function's */
  FunctionScope* scopes;                 /* all of them, newest first */
  size_t expanded_nodes, expanded_bytes; /* what calls have become so far */
  unsigned depth;                        /* of the graph that is being read */
} Reader;

/* ---- onnx_reader.c ---- */

/* ORT_INVALID_PROTOBUF unless the message was read to its end; `what` and `name` say which one it was. */
OrtStatus* check_wire(const Wire* wire, const char* what, const char* name);
/* Copies a string field into the model's arena. It must be UTF-8 without a NUL byte. */
OrtStatus* read_name(Reader* reader, const WireField* field, const char* what, char** out);
/* Adds an OperatorSetIdProto to a list that has room; kept sorted by domain, the last import of a domain
 * counts. */
OrtStatus* read_opset(Reader* reader, const WireField* field, OpsetImport* opsets, size_t* count);

/* ---- versions.c ---- */

/* ORT_FAIL for what is newer than this library knows; the message has both numbers. */
OrtStatus* check_ir_version(int64_t version);
OrtStatus* check_opset_version(const char* domain, uint64_t version);

/* ---- mapping.c ---- */

/* Reads a file into memory of the model. borrows the result. */
OrtStatus* read_file(OrtModel* model, const char* path, const Mapping** out);
/* Maps a file that external data points to, once. Refuses a location that is below neither folder of the
 * reader. borrows the result. */
OrtStatus* map_external(Reader* reader, const char* location, const Mapping** out);
/* Copies the caller's bytes into memory of the model. borrows the result. */
OrtStatus* copy_bytes(OrtModel* model, const void* data, size_t size, const Mapping** out);

/* ---- onnx_types.c ---- */

/* Reads a TypeProto into the model's arena. `value`: whose type it is. *out is NULL for an empty message. */
OrtStatus* read_type(Reader* reader, const WireField* field, const char* value, OrtTypeInfo** out);

/* ---- onnx_tensor.c, onnx_sparse.c ---- */

typedef struct TensorResult {
  char* name;      /* "" when it has none */
  OrtValue* value; /* owned by the model */
  OrtExternalInitializerInfo* external;
} TensorResult;
/* Reads a TensorProto. `what` says in messages what it is: "initializer", "tensor". */
OrtStatus* read_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out);
/* The same for an initializer of `graph`, which the client may have replaced. */
OrtStatus* read_initializer(Reader* reader, const WireField* field, const OrtGraph* graph, TensorResult* out);
/* Reads a SparseTensorProto as a dense tensor; its name is that of its values. */
OrtStatus* read_sparse_tensor(Reader* reader, const WireField* field, const char* what, TensorResult* out);
/* Puts the client's value in place of a sparse initializer of `graph`, if it gives one. */
OrtStatus* replace_tensor(Reader* reader, const OrtGraph* graph, TensorResult* tensor);

/* ---- onnx_graph.c, onnx_node.c ---- */

/* Reads a GraphProto; `parent` is the node whose attribute it is, NULL for the main graph. */
OrtStatus* read_graph(Reader* reader, const WireField* field, OrtNode* parent, OrtGraph** out);

/* A node between its two readings. */
typedef struct PendingNode {
  OrtNode* node;
  WireField field;
  FunctionScope* scope;
} PendingNode;
typedef struct NodeList {
  PendingNode* items;
  size_t count, capacity;
} NodeList;
/* The first of a node's two readings: makes the node and its output values, or does so for the body of the
 * function that it calls. Appends to `list`. */
OrtStatus* read_node_outputs(Reader* reader, const WireField* field, OrtGraph* graph, NodeList* list);
/* The second one, when all values of the graph exist: inputs, attributes, subgraphs. */
OrtStatus* read_node_inputs(Reader* reader, const PendingNode* pending);
/* *is_present is false for an attribute that refers to one which the call of the function does not give. */
OrtStatus* read_attribute(Reader* reader, const WireField* field, OrtNode* node, OrtOpAttr* out,
                          bool* is_present);

/* ---- onnx_function.c ---- */

/* Remembers a FunctionProto. */
OrtStatus* read_function(Reader* reader, const WireField* field);
/* The model's function that a node calls; NULL if it is none. borrows. */
OrtStatus* find_function(const Reader* reader, const OrtNode* node, const char* overload,
                         const Function** out);
/* Counts a part of a body (or an attribute that a call gives); refuses the model when it becomes too much. */
OrtStatus* count_expansion(Reader* reader, const WireField* field);
/* Reads the function's body in place of the call. */
OrtStatus* expand_call(Reader* reader, const WireField* call, const OrtNode* node, const Function* function,
                       NodeList* list);

/* ---- onnx_scope.c: what a name means where reader->scope is ---- */

/* The value that `name` means to a node of `graph`: the graph's own, or one of an enclosing graph, which is
 * captured. *out is NULL when there is none. */
OrtStatus* use_value(Reader* reader, OrtGraph* graph, const char* name, OrtValueInfo** out);
/* Makes the value that a node (or the graph itself) calls `name`. `name` is not copied. */
OrtStatus* define_value(Reader* reader, OrtGraph* graph, char* name, OrtValueInfo** out);
/* The name that such a value has, or would have. */
OrtStatus* name_of_value(Reader* reader, const OrtGraph* graph, char* name, char** out);
/* True for a formal input that the call leaves out. */
bool is_missing_formal(const FunctionScope* scope, const OrtGraph* graph, const char* name);
/* What the call gives for the attribute `name` of its function; NULL if nothing. borrows. */
const WireField* scope_attribute(const FunctionScope* scope, const char* name);
void scopes_release(Reader* reader); /* releases */
/* Version of an operator set where the reader is; 0 without an import. */
int scope_opset(const Reader* reader, const char* domain);

#endif

/* graph: what a model is, and every question that can be asked about it. Everything in an OrtModel lives in
 * the model's arena and dies with it. Names are ONNX's. */
#ifndef ORT_ABI_GRAPH_H
#define ORT_ABI_GRAPH_H

#include "objects/objects.h"
#include "schema/schema.h"

typedef struct OpsetImport {
  char* domain; /* "" for ai.onnx */
  int version;
} OpsetImport;

/* A use of a value by a node of the value's own graph. input_index -1: an implicit input (captured by a
 * subgraph of `node`). */
typedef struct ValueConsumer {
  OrtNode* node;
  int64_t input_index;
} ValueConsumer;

struct OrtExternalInitializerInfo {
  char* file_path; /* as the model writes it: relative to its folder */
  int64_t offset;
  size_t size;
};

/* A value as one graph sees it. A subgraph that captures a value of an enclosing graph has a value of its own
 * for it, whose `outer` is the enclosing graph's; a graph view has its own too, whose `origin` is the source
 * graph's. value_root() finds the one and only definition behind both. */
struct OrtValueInfo {
  char* name;
  OrtTypeInfo* type;    /* NULL while unknown */
  bool is_inferred;     /* the type, or its element type, is not the model's own */
  OrtGraph* graph;      /* whose value this is */
  OrtValueInfo* outer;  /* of a captured value: the enclosing graph's; else NULL */
  OrtValueInfo* origin; /* in a graph view: the source graph's; else NULL */
  OrtNode* producer;    /* NULL for graph inputs, initializers and captured values */
  size_t producer_output;
  ValueConsumer* consumers;
  size_t consumer_count;
  OrtValue* initializer; /* owned by the model (released with it); data may lie in the model's bytes */
  OrtExternalInitializerInfo* external;
  bool is_graph_input, is_graph_output;
  bool is_constant; /* it has an initializer that no caller can override */
  /* For run/: the value's place in the session's plan; -1 if none. */
  int64_t slot;
  struct DeviceCopy* copies; /* of the initializer, in the memories of devices */
  bool is_read_on_host;      /* of a constant: a run reads it as it is */
};

struct OrtOpAttr {
  char* name;
  OrtOpAttrType type; /* UNDEFINED for the kinds that only ONNX has: see onnx_type. Of lists of tensors,
                         graphs or types nothing more is kept */
  int onnx_type;      /* AttributeProto.AttributeType */
  int64_t i;          /* INT */
  float f;            /* FLOAT */
  char* s;            /* STRING: NUL-terminated, `count` bytes */
  int64_t* ints;
  float* floats;
  char** strings;
  size_t* string_lengths;
  size_t count;     /* elements of ints, floats, strings; bytes of s */
  OrtValue* tensor; /* TENSOR; of an ONNX SPARSE_TENSOR its dense form. Owned by the model */
  OrtGraph* graph;
  OrtTypeInfo* type_proto; /* ONNX TYPE_PROTO */
  bool is_heap;            /* made by CreateOpAttr: released by ReleaseOpAttr */
};

struct OrtNode {
  size_t id;       /* unique in its graph, stable: views keep it */
  size_t position; /* grows along the graph's order */
  OrtNode* origin; /* in a graph view: the source graph's node; else NULL */
  char* name;
  char* op_type;
  char* domain;
  int since_version; /* of the op's schema; the opset version when there is no schema */
  OrtGraph* graph;
  OrtValueInfo** inputs; /* NULL: a missing optional input */
  size_t input_count;
  OrtValueInfo** outputs; /* NULL: an output that is not wanted */
  size_t output_count;
  OrtValueInfo** implicit_inputs; /* values of this graph that the node's subgraphs capture (they may be
                                     captured ones themselves); order of first use */
  size_t implicit_input_count;
  OrtOpAttr* attributes;
  size_t attribute_count;
  OrtGraph** subgraphs; /* of the GRAPH attributes, in attribute order */
  size_t subgraph_count;
  const char* ep_name; /* borrows from the session; NULL while unassigned; the origin's counts */
  void* assignment;    /* for run/partition */
  const void* paid_by; /* for run/budget: the EP whose budget has what the node needs */
};

struct OrtGraph {
  OrtModel* model;
  char* name;
  OrtNode* parent_node;  /* of a subgraph */
  OrtValueInfo** inputs; /* all, also those that initializers give a default */
  size_t input_count;
  OrtValueInfo** outputs;
  size_t output_count;
  OrtValueInfo** initializers;
  size_t initializer_count;
  OrtNode** nodes; /* topological order */
  size_t node_count;
  OrtValueInfo** captured; /* of a subgraph: values with an `outer`; also in `values`, and possibly outputs */
  size_t captured_count;
  NameMap values; /* name -> OrtValueInfo of this graph */
  size_t next_node_id;
  OrtGraph* next_graph;   /* of the model: see OrtModel.graphs */
  const void* scope;      /* while it is read: the FunctionScope around it */
  const OrtGraph* source; /* of a view: the graph it is a part of; else NULL */
  Arena view_arena;       /* of a view: holds the view itself */
};

struct OrtModelMetadata {
  char *producer_name, *producer_version, *graph_name, *domain, *description, *graph_description;
  int64_t model_version;
  OrtKeyValuePairs* custom;
};

struct OrtModel {
  Arena arena;
  OrtGraph* graph;  /* the main graph */
  OrtGraph* graphs; /* all of them, newest first */
  int64_t ir_version;
  OpsetImport* opsets; /* sorted by domain */
  size_t opset_count;
  /* op_type -> CustomOp (custom_op.c); empty without custom op domains. */
  NameMap custom_ops;
  char* path; /* of the model file, absolute; "" when it came from bytes */
  OrtModelMetadata metadata;
  OrtValue** values; /* every initializer and tensor attribute, to be released */
  size_t value_count, value_capacity;
  void* mappings; /* bytes that tensors lie in, see Mapping */
};

/* ---- model.c ---- */

/* Bytes that a model's tensors lie in, released with the model. */
typedef struct Mapping Mapping;
struct Mapping {
  Mapping* next;
  char* location; /* of external data, as the model writes it; NULL for the model file */
  uint8_t* data;
  size_t size;
  bool is_heap; /* the model file's or the caller's, copied; else a mapped file */
};
void model_release(OrtModel* model); /* releases */
/* takes `value`: the model releases it; on failure it is released at once. */
OrtStatus* model_own_value(OrtModel* model, OrtValue* value);
/* The type of a tensor, in the model's arena. NULL: no memory. */
OrtTypeInfo* type_of_tensor(OrtModel* model, const OrtValue* tensor);

/* ---- node_schema.c: the operator of a node ---- */

/* The domain of operators that read and give channels last; their schemas are ONNX's. */
#define NHWC_DOMAIN "com.ms.internal.nhwc"

/* One operator: its schema, and all OrtCustomOps of its name, which differ in the types that they take.
 * Inputs and outputs are called Input0, Input1, ..., Output0, ..., and so are their type parameters, as in
 * stock ORT. Lives in its model's arena. */
typedef struct CustomOp CustomOp;
struct CustomOp {
  CustomOp* next; /* of the same name, in another domain */
  OpSchema schema;
  const OrtCustomOp** ops; /* borrows them; the first is what the schema was made of */
  size_t count, capacity;
  const OrtCustomOpDomain* origin; /* whose operator this was first */
};
/* borrows: the model's operator of that name; NULL if it has none. */
CustomOp* model_custom_op(const OrtModel* model, const char* domain, const char* op_type);
/* borrows: NULL when the node's operator is none of those. */
const CustomOp* node_custom_op(const OrtNode* node);
/* borrows: the node's schema, a custom operator's or ONNX's; NULL when there is none. */
const OpSchema* node_schema(const OrtNode* node);

/* ---- graph.c ---- */

/* The value of that name in `graph` or, if `outer`, in an enclosing graph. borrows. */
OrtValueInfo* graph_find_value(const OrtGraph* graph, const char* name, bool outer);
/* borrows; NULL if absent. */
OrtOpAttr* node_find_attribute(const OrtNode* node, const char* name);
int find_opset(const OpsetImport* opsets, size_t count, const char* domain); /* 0 if there is none */
/* Opset version that the model imports for a domain; 0 if it does not. "ai.onnx" means "". */
int model_opset(const OrtModel* model, const char* domain);
/* Adds an import that the model does not have. copies. */
OrtStatus* model_import_opset(OrtModel* model, const char* domain, int version);
/* borrows: the definition behind a view's or a captured value. */
OrtValueInfo* value_root(const OrtValueInfo* value);
/* borrows: the source's node of a view's node; `node` itself for any other. */
OrtNode* node_root(const OrtNode* node);

/* ---- graph.c: building ---- */

/* borrows (the model's arena owns it); NULL: no memory. */
OrtGraph* graph_new(OrtModel* model, OrtNode* parent);
/* A new value of the graph; ORT_INVALID_GRAPH if it has one of that name. `name` is not copied. */
OrtStatus* graph_add_value(OrtGraph* graph, char* name, OrtValueInfo** out);
/* The graph's own value for one of the graph around it. */
OrtStatus* graph_capture(OrtGraph* graph, OrtValueInfo* outer, OrtValueInfo** out);
/* Sorts the nodes, fills in implicit inputs (from the subgraphs, which are finished) and consumers. */
OrtStatus* graph_finish(OrtGraph* graph);
/* Fills in consumers from the nodes' inputs; anew after nodes were added or removed. */
OrtStatus* graph_link_consumers(OrtGraph* graph);
/* For messages: "node 'n' (Conv)", "node #3 (Conv)" without a name. gives (caller releases with mem_free). */
char* node_text(const OrtNode* node);
/* "'name' (Op, ai.onnx, version 14)"; of a node without a name: "that makes 'output' (Op, ...)" */
void describe_node(StrBuf* text, const OrtNode* node);
/* borrows: the name of the node's first output; "" if it has none. */
const char* node_first_output(const OrtNode* node);

/* ---- model_metadata.c ---- */

/* gives (caller releases with ReleaseModelMetadata). copies. */
OrtStatus* model_metadata_copy(const OrtModel* model, OrtModelMetadata** out);

/* ---- graph_view.c: graphs over a part of another one, for Compile and Graph_GetGraphView ---- */

/* gives (caller releases with graph_view_release; the source must outlive it): a graph of `nodes` (of
 * `source`, in any order; the view's are in topological order). Nodes and values are its own, with `origin`
 * set, so that inputs, outputs, producers and consumers are what they are inside the view; subgraphs,
 * attributes, types and tensors are the source's. Inputs: values from outside in order of first use by the
 * nodes (explicit inputs, then implicit ones), constant initializers among them unless `drop_constants`
 * (OrtNodeFusionOptions); outputs: values used outside the nodes or graph outputs, in order of production;
 * initializers: those that the nodes read. */
OrtStatus* graph_view_new(const OrtGraph* source, OrtNode* const* nodes, size_t node_count, const char* name,
                          bool drop_constants, OrtGraph** out);
void graph_view_release(OrtGraph* view);

#endif

/* schema: what ONNX says about every version of every operator, and stock ORT about its own. Constant
 * data, made by abigen when the library is built, from the `onnx` package and contrib_schemas.json. It is
 * packed, without pointers, so that loading the library costs nothing for it (packed.h); what is
 * asked for is unpacked into memory of the library's own. Nothing here is allocated or released. */
#ifndef ORT_ABI_SCHEMA_H
#define ORT_ABI_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum OpSchemaOption {
  OP_SCHEMA_SINGLE = 0,
  OP_SCHEMA_OPTIONAL = 1,
  OP_SCHEMA_VARIADIC = 2, /* only the last formal: it stands for all further ones */
} OpSchemaOption;

/* One formal input or output. */
typedef struct OpSchemaFormal {
  const char* name;
  const char* type_str; /* a constraint's name such as "T", or a type such as "tensor(int64)" */
  uint8_t option;       /* OpSchemaOption */
  uint8_t min_arity;    /* of a variadic formal */
  bool is_homogeneous;  /* of a variadic formal: all have one type */
} OpSchemaFormal;

/* A type parameter and the types it may stand for, such as "tensor(float)". */
typedef struct OpSchemaConstraint {
  const char* name;
  const char* const* types;
  size_t type_count;
} OpSchemaConstraint;

/* `type` is an ONNX AttributeProto type: 1 float, 2 int, 3 string, 4 tensor, 5 graph, 6 floats, 7 ints, 8
 * strings, ... The default is in the member that `type` says, if `has_default`; no operator has one of the
 * other types. */
typedef struct OpSchemaAttr {
  const char* name;
  uint8_t type;
  bool required;
  bool has_default;
  float default_float;
  int64_t default_int;
  const char* default_string;
  const int64_t* default_ints;
  const char* const* default_strings;
  uint16_t default_count; /* of a list */
} OpSchemaAttr;

typedef struct OpSchema {
  const char* domain; /* "" is ai.onnx */
  const char* name;
  int since_version;
  bool deprecated;
  int min_input, max_input, min_output, max_output; /* INT_MAX: no limit */
  const OpSchemaFormal* inputs;
  const OpSchemaFormal* outputs;
  const OpSchemaConstraint* constraints;
  const OpSchemaAttr* attributes; /* sorted by name */
  uint16_t input_count, output_count, constraint_count, attribute_count;
} OpSchema;

/* The number of all; they are sorted by domain, name and since_version (bytewise). */
extern const size_t op_schema_count;

typedef struct OpSchemaDomain {
  const char* domain; /* "" is ai.onnx */
  int newest;         /* version that the table knows */
} OpSchemaDomain;
/* ONNX's own domains. */
extern const OpSchemaDomain op_schema_domains[];
extern const size_t op_schema_domain_count;
/* The newest IR version of the onnx package that the table is from. */
extern const int op_schema_newest_ir_version;

/* borrows: the one at a place in that order. */
const OpSchema* op_schema_at(size_t index);
/* borrows: the newest version of an operator that is not newer than `opset_version`, also if it is
 * deprecated; NULL when there is none. "ai.onnx" and NULL mean the "" domain. */
const OpSchema* op_schema_find(const char* domain, const char* op_type, int opset_version);
/* borrows: the formal input (output) that stands for position `index`, counting the last variadic one for all
 * further positions; NULL past the end. */
const OpSchemaFormal* op_schema_input(const OpSchema* schema, size_t index);
const OpSchemaFormal* op_schema_output(const OpSchema* schema, size_t index);
/* borrows: the type parameter of that name; NULL when `name` is none, such as "tensor(int64)". */
const OpSchemaConstraint* op_schema_constraint(const OpSchema* schema, const char* name);
/* borrows: the attribute of that name; NULL when the operator has none. */
const OpSchemaAttr* op_schema_attribute(const OpSchema* schema, const char* name);

#endif /* ORT_ABI_SCHEMA_H */

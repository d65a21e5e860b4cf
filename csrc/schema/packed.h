/* The table of operator schemas as abigen writes it: numbers in place of pointers. What `OpSchema` and its
 * parts have, with texts as offsets into op_schema_texts (0: NULL) and lists as places in the arrays below.
 */
#ifndef ORT_ABI_PACKED_H
#define ORT_ABI_PACKED_H

#include "schema/schema.h"

typedef struct PackedFormal {
  uint16_t name, type_str;
  uint8_t option, min_arity;
  bool is_homogeneous;
} PackedFormal;

typedef struct PackedConstraint {
  uint16_t name, types, type_count;
} PackedConstraint;

typedef struct PackedAttr {
  uint16_t name;
  uint8_t type;
  bool required, has_default;
  float default_float;
  int64_t default_int;
  uint16_t default_string, default_ints, default_strings, int_count, string_count;
} PackedAttr;

typedef struct PackedSchema {
  uint16_t domain, name;
  int since_version;
  bool deprecated;
  int min_input, max_input, min_output, max_output;
  uint16_t inputs, outputs, constraints, attributes;
  uint16_t input_count, output_count, constraint_count, attribute_count;
} PackedSchema;

extern const char op_schema_texts[];
extern const uint16_t op_schema_lists[]; /* of texts */
extern const int64_t op_schema_ints[];
extern const PackedFormal op_schema_formals[];
extern const PackedConstraint op_schema_constraints[];
extern const PackedAttr op_schema_attributes[];
extern const PackedSchema op_schema_rows[];

/* Room for what these become, place for place. Zeros until then: the system gives no memory for those. */
extern const char* unpacked_lists[];
extern OpSchemaFormal unpacked_formals[];
extern OpSchemaConstraint unpacked_constraints[];
extern OpSchemaAttr unpacked_attributes[];
extern OpSchema unpacked_schemas[];

#endif /* ORT_ABI_PACKED_H */

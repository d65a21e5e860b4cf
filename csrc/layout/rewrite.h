/* rewrite: what the files that move Transposes share. Private to layout/. */
#ifndef ORT_ABI_REWRITE_H
#define ORT_ABI_REWRITE_H

#include "graph/graph.h"

/* Of what is converted or moved; tensors of more axes are left alone. */
#define MAX_PERM_RANK 16
#define MAX_NUMBERS   (2 * MAX_PERM_RANK)

/* ---- layout_perm.c: permutations of axes, and tensors that follow them ---- */

/* As Transpose has it: axis i of the output is axis axes[i] of the input. */
typedef struct Perm {
  size_t rank;
  size_t axes[MAX_PERM_RANK];
} Perm;
Perm perm_to_first(size_t rank); /* from channels last to channels first */
Perm perm_inverse(const Perm* perm);
Perm perm_then(const Perm* first, const Perm* second); /* one after the other; of one rank */
bool perm_is_identity(const Perm* perm);
bool perm_equal(const Perm* a, const Perm* b);
/* The permutation of a Transpose of rank `rank` (0: unknown); false if it has no valid one. */
bool perm_of_transpose(const OrtNode* transpose, size_t rank, Perm* out);
/* What is left when the axes of `removed` (by axis of the output) are gone from input and output. */
Perm perm_without(const Perm* perm, const bool* removed);
/* The same when axes are added at the same places of input and output: `added` by axis of the new output. */
Perm perm_with(const Perm* perm, const bool* added, size_t count);

/* The type behind a Transpose; the same one while its shape is unknown. NULL: no memory. */
OrtTypeInfo* type_permuted(Arena* arena, OrtTypeInfo* type, const Perm* perm);
/* True for a constant whose elements can be moved. */
bool is_movable_constant(const OrtValueInfo* value);
/* A constant of the model with the elements of `source`, which may have fewer axes: ones are put in front.
 * The model owns it. */
OrtStatus* constant_permuted(OrtModel* model, const OrtValue* source, const Perm* perm, OrtValue** out);
/* The 1-D constant source[numbers[0]], source[numbers[1]], ... */
OrtStatus* constant_picked(OrtModel* model, const OrtValue* source, const int64_t* numbers, size_t count,
                           OrtValue** out);
/* A 1-D constant of int32 or int64 numbers. */
OrtStatus* constant_of_numbers(OrtModel* model, ONNXTensorElementDataType type, const int64_t* numbers,
                               size_t count, OrtValue** out);
/* Reads a constant of at most MAX_NUMBERS int32 or int64 numbers; false if it is none. */
bool constant_numbers(const OrtValueInfo* value, int64_t* numbers, size_t* count);

/* ---- layout_rule.c: how operators pass a permutation of their input on ---- */

typedef struct LayoutRule LayoutRule;
/* borrows: constant; NULL if the operator needs its axes in their places. */
const LayoutRule* layout_rule(const OrtNode* node);
/* True if input `index` has the axes that are permuted. NULL `rule`: of a converted node without one. */
bool rule_permutes_input(const LayoutRule* rule, size_t index);
/* True if those inputs are broadcast: may have fewer axes, or ones. */
bool rule_broadcasts(const LayoutRule* rule);
/* True if only converted nodes do it: EPs have such operators for one layout only. */
bool rule_is_for_conversion(const LayoutRule* rule);

/* An attribute or an input of the node that becomes another one. */
typedef struct Change {
  const char* attribute; /* NULL: of an input */
  size_t input;
  bool is_list; /* of an attribute: INTS, else INT */
  bool is_pick; /* the numbers say which of the old ones: of an input that is no constant, when the model runs
                 */
  size_t count;
  int64_t numbers[MAX_NUMBERS];
} Change;

/* What becomes of a node when it reads what lies before Transposes instead of what lies behind them. */
typedef struct Move {
  bool is_plain; /* its outputs are what they were */
  Perm output;   /* else: they are what they were behind a Transpose of this. Rank 0: of other axes */
  bool is_shape; /* of Shape: its output is picked from the new one by `picks` */
  Change changes[3];
  size_t change_count;
  size_t pick_count;
  int64_t picks[MAX_PERM_RANK];
} Move;
/* False if the node cannot be moved. */
bool rule_plan(const LayoutRule* rule, const OrtNode* node, const Perm* perm, Move* out);
/* How many axes the node's outputs have, if its data has `rank` (0: unknown); 0: unknown. */
size_t rule_output_rank(const LayoutRule* rule, const OrtNode* node, size_t rank);

/* ---- layout.c ---- */

typedef enum NodeLayout {
  NODE_LAYOUT_FIXED, /* the node stays as it is */
  NODE_LAYOUT_ANY,   /* as it is, or with its axes in another order if its operator lets that be */
  NODE_LAYOUT_CHANNELS_LAST,
} NodeLayout;
/* Puts the nodes that are to have channels last (`wanted` by node id), where the rank of their data is known
 * and at least 2, into NHWC_DOMAIN, with Transposes around them where the values around them are not
 * converted as well; nodes of NODE_LAYOUT_ANY, Transposes among them, are changed where that saves
 * Transposes. *changed: anything was. */
OrtStatus* graph_to_channels_last(OrtGraph* graph, const NodeLayout* wanted, bool* changed);

#endif

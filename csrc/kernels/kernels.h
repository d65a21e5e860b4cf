/* kernels: what kernels EPs have, how one is found for a node, and the weights that they pack. */
#ifndef ORT_ABI_KERNELS_H
#define ORT_ABI_KERNELS_H

#include "infer/infer.h"

/* ---- kernel_def.c: what a kernel can do ---- */

struct OrtDataType {
  ONNXTensorElementDataType type;
};

typedef struct KernelConstraint {
  char* name; /* a type parameter of the op's schema ("T"), or the name of an input or output without one */
  uint64_t types; /* bit n: element type n */
} KernelConstraint;

typedef struct KernelAlias {
  int input, output;
  bool in_place; /* the output may be written over the input; else it is the input under another shape */
} KernelAlias;

typedef struct KernelMemType {
  size_t index;
  bool is_output;
  OrtMemType type;
} KernelMemType;

/* Constant once KernelDefBuilder_Build gave it. */
struct OrtKernelDef {
  _Atomic int references;
  char *op_type, *domain, *ep_name; /* domain "" is ai.onnx */
  int since_start, since_end;       /* INT_MAX: open */
  KernelConstraint* constraints;
  size_t constraint_count, constraint_capacity;
  KernelAlias* aliases;
  size_t alias_count, alias_capacity;
  KernelMemType* mem_types;
  size_t mem_type_count, mem_type_capacity;
};
OrtKernelDef* kernel_def_retain(const OrtKernelDef* def);
void kernel_def_release(OrtKernelDef* def);

/* ---- kernel_registry.c ---- */

typedef struct KernelEntry {
  OrtKernelDef* def; /* a reference */
  OrtKernelCreateFunc create;
  void* create_state; /* the plugin's */
  size_t next;        /* of the same op_type: its place + 1; 0 ends the list */
} KernelEntry;

struct OrtKernelRegistry {
  KernelEntry* entries;
  size_t count, capacity;
  NameMap by_op_type; /* op_type -> place of its first entry + 1 */
};
/* gives (caller releases with kernel_registry_release): a copy that the plugin cannot change; NULL: no
 * memory. */
OrtKernelRegistry* kernel_registry_copy(const OrtKernelRegistry* registry);
void kernel_registry_release(OrtKernelRegistry* registry);
/* keeps alive `def`. Entries of one op_type stay in the order in which they came. False when out of memory.
 */
bool kernel_registry_add(OrtKernelRegistry* registry, const OrtKernelDef* def, OrtKernelCreateFunc create,
                         void* create_state);
/* The entry for a node (domain, op, since-version, EP name, types), or NULL with `why` (may be NULL) appended
 * to: what the EP has instead, such as "has no kernel for Mul". borrows. */
const KernelEntry* kernel_registry_find(const OrtKernelRegistry* registry, const char* ep_name,
                                        const OrtNode* node, StrBuf* why);

/* ---- prepacked_container.c: packed weights that kernels share ---- */

/* The buffers of one packed weight; memory of the CPU allocator. */
typedef struct PackedBuffers {
  void** data; /* one block with `sizes` */
  size_t* sizes;
  size_t count;
} PackedBuffers;
/* takes the buffers on success; copies the arrays. */
OrtStatus* packed_buffers_copy(void* const* data, const size_t* sizes, size_t count, PackedBuffers* out);
void packed_buffers_release(PackedBuffers* buffers); /* releases */

/* gives (caller releases with packed_container_release); NULL: no memory. */
OrtPrepackedWeightsContainer* packed_container_new(void);
/* keeps alive; NULL is fine. gives back `container`. */
OrtPrepackedWeightsContainer* packed_container_retain(OrtPrepackedWeightsContainer* container);
void packed_container_release(OrtPrepackedWeightsContainer* container); /* NULL is fine */
/* takes `buffers`, also on failure. *out: the buffers of an equal weight that the same operator packed
 * before, or these. borrows: as long as the container. Any thread. */
OrtStatus* packed_container_share(OrtPrepackedWeightsContainer* container, const OrtNode* node,
                                  PackedBuffers* buffers, const PackedBuffers** out);

#endif

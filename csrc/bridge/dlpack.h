/* DLPack, the protocol by which Python libraries hand each other tensors: its structs, as its header lays
 * them out (the device and the dtype stand in DLTensor itself), and ours that keeps a Python object alive. */
#ifndef ORT_ABI_BRIDGE_DLPACK_H
#define ORT_ABI_BRIDGE_DLPACK_H

#include <stdint.h>

/* cdef begin */
typedef struct DLTensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code; /* of the dtype, as bits and lanes */
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: row after row */
  uint64_t byte_offset;
} DLTensor;

/* In a capsule named "dltensor". */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(void* managed); /* may be NULL */
} DLManagedTensor;

/* In a capsule named "dltensor_versioned". */
typedef struct DLManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager_ctx;
  void (*deleter)(void* managed); /* may be NULL */
  uint64_t flags;                 /* 1: read-only, 2: a copy, 4: several elements a byte are not packed */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

void* bridge_dlpack_new(const DLTensor* tensor, int versioned, uint64_t flags, uint64_t owner);
const char* bridge_dlpack_name(int versioned, int used);
void bridge_dlpack_capsule_gone(void* capsule);
/* cdef end */

#endif

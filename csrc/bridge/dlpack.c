/* Tensors for other libraries. What a consumer gets is one block of C memory; it keeps a Python object alive
 * by id, so that a deleter may come from any thread, with or without the GIL, and after Python's end. */
#include <Python.h>

#include <stdlib.h>

#include "bridge.h"
#include "dlpack.h"

/* Of the protocol that we speak: float8 types have had their codes since 1.1. */
#define DLPACK_MAJOR 1
#define DLPACK_MINOR 1

typedef struct Managed {
  union {
    DLManagedTensor plain;
    DLManagedTensorVersioned versioned;
  };
  uint64_t owner; /* id of the Python object that is kept alive, 0: none */
  int64_t dims[]; /* shape, strides */
} Managed;

/* Releases a Python object. Once Python is about to end nothing is released any more: the process ends, too.
 */
static void release_owner(uint64_t id) {
  PyObject *type, *value, *traceback;
  if (!bridge_gate_enter()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyErr_Fetch(&type, &value, &traceback); /* consumers free tensors while exceptions pass them */
  bridge_release(NULL, "DLManagedTensor::deleter", "DLPack", id);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(state);
  bridge_gate_leave();
}

static void delete_managed(void* managed) {
  Managed* self = managed;
  if (self->owner) release_owner(self->owner);
  free(self);
}

/* Gives a DLManagedTensor or DLManagedTensorVersioned (its consumer releases with its deleter), NULL without
 * memory. Copies tensor and its shape; strides are those of elements row after row. Takes the object of the
 * id owner, if it succeeds. */
void* bridge_dlpack_new(const DLTensor* tensor, int versioned, uint64_t flags, uint64_t owner) {
  size_t rank = (size_t)tensor->ndim;
  Managed* made = calloc(1, sizeof *made + 2 * rank * sizeof *made->dims);
  if (!made) return NULL;
  DLTensor* copy = versioned ? &made->versioned.dl_tensor : &made->plain.dl_tensor;
  *copy = *tensor;
  copy->shape = made->dims;
  copy->strides = made->dims + rank;
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    copy->shape[i] = tensor->shape[i];
    copy->strides[i] = stride;
    stride *= tensor->shape[i];
  }
  made->owner = owner;
  if (versioned) {
    made->versioned.major = DLPACK_MAJOR;
    made->versioned.minor = DLPACK_MINOR;
    made->versioned.flags = flags;
    made->versioned.deleter = delete_managed;
  } else {
    made->plain.deleter = delete_managed;
  }
  return made;
}

/* The name of a capsule. Static: capsules do not copy their names. */
const char* bridge_dlpack_name(int versioned, int used) {
  if (versioned) return used ? "used_dltensor_versioned" : "dltensor_versioned";
  return used ? "used_dltensor" : "dltensor";
}

/* The destructor of our capsules (with the GIL): what nobody consumed is released here. */
void bridge_dlpack_capsule_gone(void* capsule) {
  for (int versioned = 0; versioned < 2; versioned++) {
    const char* name = bridge_dlpack_name(versioned, 0);
    if (PyCapsule_IsValid(capsule, name)) delete_managed(PyCapsule_GetPointer(capsule, name));
  }
}

/* Models without a session: the functions of ort_abi_host.h. */
#include "onnx/onnx.h"
#include "ort_abi_host.h"

ORT_ABI_EXPORT OrtStatus* ortabi_load_model(const char* path, const void* data, size_t size,
                                            OrtModel** model) {
  if (model == NULL) return status_new(ORT_INVALID_ARGUMENT, "ortabi_load_model: argument 'model' is NULL");
  if (path == NULL && data == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "ortabi_load_model: arguments 'path' and 'data' are both NULL");
  if (data == NULL) return model_read(&(ModelSource){.path = path}, model);
  char* folder = path != NULL ? str_folder(path) : NULL;
  if (path != NULL && folder == NULL) return status_no_memory();
  OrtStatus* status = model_read(&(ModelSource){.data = data, .size = size, .folder = folder}, model);
  mem_free(folder);
  return status;
}

ORT_ABI_EXPORT const OrtGraph* ortabi_model_graph(const OrtModel* model) {
  return model != NULL ? model->graph : NULL;
}

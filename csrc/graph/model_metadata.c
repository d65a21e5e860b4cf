/* The ModelMetadata* slots. The object is a copy of its own: it outlives the model. */
#include <string.h>

#include "graph/query.h"

static bool copy_metadata(const OrtModelMetadata* from, OrtModelMetadata* to) {
  to->producer_name = str_copy(from->producer_name);
  to->producer_version = str_copy(from->producer_version);
  to->graph_name = str_copy(from->graph_name);
  to->domain = str_copy(from->domain);
  to->description = str_copy(from->description);
  to->graph_description = str_copy(from->graph_description);
  to->model_version = from->model_version;
  to->custom = key_values_copy(from->custom);
  return to->producer_name != NULL && to->producer_version != NULL && to->graph_name != NULL &&
         to->domain != NULL && to->description != NULL && to->graph_description != NULL && to->custom != NULL;
}

OrtStatus* model_metadata_copy(const OrtModel* model, OrtModelMetadata** out) {
  OrtModelMetadata* copy = mem_calloc(1, sizeof *copy);
  if (copy == NULL) return status_no_memory();
  if (!copy_metadata(&model->metadata, copy)) {
    api_ReleaseModelMetadata(copy);
    return status_no_memory();
  }
  *out = copy;
  return NULL;
}

/* gives (caller releases with ReleaseModelMetadata). */
OrtStatus* ORT_API_CALL api_Graph_GetModelMetadata(const OrtGraph* graph, OrtModelMetadata** out) {
  REQUIRE_ARG(graph);
  REQUIRE_ARG(out);
  return model_metadata_copy(graph->model, out);
}

void ORT_API_CALL api_ReleaseModelMetadata(OrtModelMetadata* input) {
  if (input == NULL) return;
  mem_free(input->producer_name);
  mem_free(input->producer_version);
  mem_free(input->graph_name);
  mem_free(input->domain);
  mem_free(input->description);
  mem_free(input->graph_description);
  key_values_release(input->custom);
  mem_free(input);
}

/* gives (the client frees it with `allocator`). */
static OrtStatus* give_text(OrtAllocator* allocator, const char* text, char** out) {
  size_t size = strlen(text) + 1;
  char* copy = allocator_alloc(allocator, size);
  if (copy == NULL) return status_no_memory();
  *out = memcpy(copy, text, size);
  return NULL;
}

#define METADATA_TEXT(slot, member)                                                                   \
  OrtStatus* ORT_API_CALL api_##slot(const OrtModelMetadata* model_metadata, OrtAllocator* allocator, \
                                     char** value) {                                                  \
    REQUIRE_ARG(model_metadata);                                                                      \
    REQUIRE_ARG(allocator);                                                                           \
    REQUIRE_ARG(value);                                                                               \
    return give_text(allocator, model_metadata->member, value);                                       \
  }
METADATA_TEXT(ModelMetadataGetProducerName, producer_name)
METADATA_TEXT(ModelMetadataGetGraphName, graph_name)
METADATA_TEXT(ModelMetadataGetDomain, domain)
METADATA_TEXT(ModelMetadataGetDescription, description)
METADATA_TEXT(ModelMetadataGetGraphDescription, graph_description)

OrtStatus* ORT_API_CALL api_ModelMetadataGetVersion(const OrtModelMetadata* model_metadata, int64_t* value) {
  REQUIRE_ARG(model_metadata);
  REQUIRE_ARG(value);
  *value = model_metadata->model_version;
  return NULL;
}

/* *value is NULL when there is no such key. gives (the client frees it with `allocator`). */
OrtStatus* ORT_API_CALL api_ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* model_metadata,
                                                                 OrtAllocator* allocator, const char* key,
                                                                 char** value) {
  REQUIRE_ARG(model_metadata);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(key);
  REQUIRE_ARG(value);
  const char* found = key_values_get(model_metadata->custom, key);
  if (found != NULL) return give_text(allocator, found, value);
  *value = NULL;
  return NULL;
}

/* gives the array and each key (the client frees all with `allocator`); NULL when there are none. */
OrtStatus* ORT_API_CALL api_ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* model_metadata,
                                                                  OrtAllocator* allocator, char*** keys,
                                                                  int64_t* num_keys) {
  REQUIRE_ARG(model_metadata);
  REQUIRE_ARG(allocator);
  REQUIRE_ARG(keys);
  REQUIRE_ARG(num_keys);
  const OrtKeyValuePairs* custom = model_metadata->custom;
  char** copies = NULL;
  OrtStatus* status = NULL;
  size_t made = 0;
  if (custom->count != 0) {
    copies = allocator_alloc(allocator, custom->count * sizeof *copies);
    if (copies == NULL) return status_no_memory();
    for (; made < custom->count && status == NULL; made++)
      status = give_text(allocator, custom->keys[made], &copies[made]);
  }
  if (status != NULL) {
    while (--made > 0) allocator_free(allocator, copies[made - 1]);
    allocator_free(allocator, copies);
    return status;
  }
  *keys = copies;
  *num_keys = (int64_t)custom->count;
  return NULL;
}

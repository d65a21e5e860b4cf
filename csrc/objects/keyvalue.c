/* Key-value pairs, sorted by key. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"

#define MAX_CONFIG_KEY   1024
#define MAX_CONFIG_VALUE (1 << 20)

OrtKeyValuePairs* key_values_new(void) {
  return mem_calloc(1, sizeof(OrtKeyValuePairs));
}

void key_values_release(OrtKeyValuePairs* pairs) {
  if (pairs == NULL) return;
  for (size_t i = 0; i < pairs->count; i++) {
    mem_free(pairs->keys[i]);
    mem_free(pairs->values[i]);
  }
  mem_free(pairs->keys);
  mem_free(pairs->values);
  mem_free(pairs);
}

/* Index of the first key that is not less than `key`. */
static size_t lower_bound(const OrtKeyValuePairs* pairs, const char* key, bool* found) {
  size_t low = 0, high = pairs->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(pairs->keys[middle], key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  *found = low < pairs->count && strcmp(pairs->keys[low], key) == 0;
  return low;
}

bool key_values_set(OrtKeyValuePairs* pairs, const char* key, const char* value) {
  bool found;
  size_t at = lower_bound(pairs, key, &found);
  char* value_copy = str_copy(value);
  if (value_copy == NULL) return false;
  if (found) {
    mem_free(pairs->values[at]);
    pairs->values[at] = value_copy;
    return true;
  }
  char* key_copy = str_copy(key);
  if (key_copy == NULL || !ARRAY_RESERVE(pairs->keys, pairs->keys_capacity, pairs->count + 1) ||
      !ARRAY_RESERVE(pairs->values, pairs->values_capacity, pairs->count + 1)) {
    mem_free(key_copy);
    mem_free(value_copy);
    return false;
  }
  size_t tail = (pairs->count - at) * sizeof(char*);
  memmove(pairs->keys + at + 1, pairs->keys + at, tail);
  memmove(pairs->values + at + 1, pairs->values + at, tail);
  pairs->keys[at] = key_copy;
  pairs->values[at] = value_copy;
  pairs->count++;
  return true;
}

const char* key_values_get(const OrtKeyValuePairs* pairs, const char* key) {
  if (pairs == NULL || key == NULL) return NULL;
  bool found;
  size_t at = lower_bound(pairs, key, &found);
  return found ? pairs->values[at] : NULL;
}

OrtKeyValuePairs* key_values_copy(const OrtKeyValuePairs* pairs) {
  OrtKeyValuePairs* copy = key_values_new();
  if (copy == NULL || pairs == NULL) return copy;
  for (size_t i = 0; i < pairs->count; i++) {
    if (!key_values_set(copy, pairs->keys[i], pairs->values[i])) {
      key_values_release(copy);
      return NULL;
    }
  }
  return copy;
}

OrtStatus* config_entry_set(OrtKeyValuePairs* config, const char* key, const char* value, const char* slot) {
  size_t key_length = strlen(key), value_length = strlen(value);
  if (key_length == 0 || key_length > MAX_CONFIG_KEY || value_length > MAX_CONFIG_VALUE)
    return status_new(ORT_INVALID_ARGUMENT,
                      "%s: a key of %zu bytes and a value of %zu; a key has 1 to %d, a value at most %d",
                      slot, key_length, value_length, MAX_CONFIG_KEY, MAX_CONFIG_VALUE);
  return key_values_set(config, key, value) ? NULL : status_no_memory();
}

bool key_values_equal(const OrtKeyValuePairs* a, const OrtKeyValuePairs* b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++) {
    if (strcmp(a->keys[i], b->keys[i]) != 0 || strcmp(a->values[i], b->values[i]) != 0) return false;
  }
  return true;
}

/* gives (caller releases with ReleaseKeyValuePairs). No status in the ABI: `*out` is NULL when out of memory.
 */
void ORT_API_CALL api_CreateKeyValuePairs(OrtKeyValuePairs** out) {
  if (out == NULL) {
    log_unreported("CreateKeyValuePairs", "argument 'out' is NULL");
    return;
  }
  *out = key_values_new();
  if (*out == NULL) log_unreported("CreateKeyValuePairs", "out of memory");
}

/* copies both. A NULL or empty key is ignored, a NULL value means "". */
void ORT_API_CALL api_AddKeyValuePair(OrtKeyValuePairs* kvps, const char* key, const char* value) {
  if (kvps == NULL || key == NULL || key[0] == '\0')
    log_unreported("AddKeyValuePair", "the pairs and a key that is not empty are needed");
  else if (!key_values_set(kvps, key, value ? value : ""))
    log_unreported("AddKeyValuePair", "out of memory at key '%s'", key);
}

/* borrows: until the pair is changed or removed. */
const char* ORT_API_CALL api_GetKeyValue(const OrtKeyValuePairs* kvps, const char* key) {
  return key_values_get(kvps, key);
}

/* borrows: until the pairs are changed. */
void ORT_API_CALL api_GetKeyValuePairs(const OrtKeyValuePairs* kvps, const char* const** keys,
                                       const char* const** values, size_t* num_entries) {
  if (keys != NULL) *keys = kvps ? (const char* const*)kvps->keys : NULL;
  if (values != NULL) *values = kvps ? (const char* const*)kvps->values : NULL;
  if (num_entries != NULL) *num_entries = kvps ? kvps->count : 0;
}

void ORT_API_CALL api_RemoveKeyValuePair(OrtKeyValuePairs* kvps, const char* key) {
  if (kvps == NULL || key == NULL) return;
  bool found;
  size_t at = lower_bound(kvps, key, &found);
  if (!found) return;
  mem_free(kvps->keys[at]);
  mem_free(kvps->values[at]);
  kvps->count--;
  size_t tail = (kvps->count - at) * sizeof(char*);
  memmove(kvps->keys + at, kvps->keys + at + 1, tail);
  memmove(kvps->values + at, kvps->values + at + 1, tail);
}

void ORT_API_CALL api_ReleaseKeyValuePairs(OrtKeyValuePairs* input) {
  key_values_release(input);
}

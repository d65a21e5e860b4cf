/* Name map: open addressing with linear probing, at most half full. */
#include <string.h>

#include "base/base.h"

static uint64_t hash_name(const char* name, size_t length) { /* FNV-1a */
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
  return hash;
}

/* The entry of `name`, or the free place where it belongs. The map has a free place. */
static NameMapEntry* find_place(const NameMap* map, const char* name, size_t length, uint64_t hash) {
  for (size_t i = hash & (map->capacity - 1);; i = (i + 1) & (map->capacity - 1)) {
    NameMapEntry* entry = &map->entries[i];
    if (entry->name == NULL) return entry;
    if (entry->hash == hash && entry->length == length && memcmp(entry->name, name, length) == 0)
      return entry;
  }
}

void* name_map_get_n(const NameMap* map, const char* name, size_t length) {
  if (map->capacity == 0 || name == NULL) return NULL;
  NameMapEntry* entry = find_place(map, name, length, hash_name(name, length));
  return entry->name != NULL ? entry->value : NULL;
}

void* name_map_get(const NameMap* map, const char* name) {
  return name == NULL ? NULL : name_map_get_n(map, name, strlen(name));
}

static bool grow(NameMap* map) {
  NameMap larger = {NULL, map->count, map->capacity ? map->capacity * 2 : 16};
  larger.entries = mem_calloc(larger.capacity, sizeof *larger.entries);
  if (larger.entries == NULL) return false;
  for (size_t i = 0; i < map->capacity; i++) {
    const NameMapEntry* entry = &map->entries[i];
    if (entry->name != NULL) *find_place(&larger, entry->name, entry->length, entry->hash) = *entry;
  }
  mem_free(map->entries);
  *map = larger;
  return true;
}

bool name_map_put_n(NameMap* map, const char* name, size_t length, void* value) {
  if (map->count * 2 >= map->capacity && !grow(map)) return false;
  uint64_t hash = hash_name(name, length);
  NameMapEntry* entry = find_place(map, name, length, hash);
  if (entry->name == NULL) {
    *entry = (NameMapEntry){name, length, hash, NULL};
    map->count++;
  }
  entry->value = value;
  return true;
}

bool name_map_put(NameMap* map, const char* name, void* value) {
  return name_map_put_n(map, name, strlen(name), value);
}

void name_map_release(NameMap* map) {
  mem_free(map->entries);
  memset(map, 0, sizeof *map);
}

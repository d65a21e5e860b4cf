/* query: what the files behind the Graph_*, Node_* and ValueInfo_* slots share. Private to graph/. */
#ifndef ORT_ABI_QUERY_H
#define ORT_ABI_QUERY_H

#include "api_slots.h"
#include "graph/graph.h"

/* ORT_INVALID_ARGUMENT unless the caller's array holds `needed` entries; names the slot and the argument. */
OrtStatus* query_check_room(const char* slot, const char* argument, const void* array, size_t room,
                            size_t needed);
#define CHECK_ROOM(array, room, needed) \
  TRY(query_check_room(slot_of(__func__), #array, (const void*)(array), (room), (needed)))

#endif

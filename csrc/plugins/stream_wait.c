/* What streams have waited for. */
#include <stdatomic.h>

#include "api_slots.h"
#include "plugins/plugins.h"

uint64_t ORT_API_CALL api_SyncStream_GetSyncId(const OrtSyncStream* stream) {
  return stream != NULL ? atomic_load(&stream->sync_id) : 0;
}

/* 0: `consumer_stream` never waited for `producer_stream`. */
uint64_t ORT_API_CALL api_GetSyncIdForLastWaitOnSyncStream(const OrtSyncStream* producer_stream,
                                                           const OrtSyncStream* consumer_stream) {
  if (consumer_stream == NULL || producer_stream == NULL) return 0;
  for (size_t i = 0; i < consumer_stream->wait_count; i++) {
    const StreamWait* wait = &consumer_stream->waits[i];
    if (wait->producer != producer_stream) continue;
    return wait->producer_serial == producer_stream->serial ? wait->sync_id : 0;
  }
  return 0;
}

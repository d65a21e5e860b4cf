/* Hosts, and what every call into Python has in common: the gate, and a failure that becomes a status. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"
#include "ort_abi_host.h"

#define MAX_HOSTS 64

/* Append-only, so that a BridgeHost* and an index stay good for ever. */
static BridgeHost hosts[MAX_HOSTS];
static uint32_t num_hosts;
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint64_t unreported;

static uint32_t newest_common_version(const OrtApiBase* base) {
  unsigned minor = 0;
  const char* text = base->GetVersionString();
  /* "1.<API version>.<patch>": asking for a version that the host lacks makes some hosts print an error. */
  if (text && sscanf(text, "1.%u", &minor) == 1 && minor < ORT_API_VERSION) return minor;
  return ORT_API_VERSION;
}

/* The tables of the host behind *base*. On failure NULL, and *problem says why. */
const BridgeHost* bridge_host_from_base(const OrtApiBase* base, const char** problem) {
  const OrtApi* api = NULL;
  BridgeHost* host = NULL;
  uint32_t version = newest_common_version(base);
  while (version >= BRIDGE_MIN_API_VERSION && !(api = base->GetApi(version))) version--;
  *problem = "Python providers need a host with ORT API version 24 or later";
  if (!api) return NULL;
  *problem = "the host has no OrtEpApi";
  const OrtEpApi* ep_api = api->GetEpApi();
  if (!ep_api) return NULL;

  pthread_mutex_lock(&hosts_lock);
  for (uint32_t i = 0; i < num_hosts && !host; i++) {
    if (hosts[i].api == api && hosts[i].version == version) host = &hosts[i];
  }
  if (!host && num_hosts < MAX_HOSTS) {
    host = &hosts[num_hosts];
    *host = (BridgeHost){.api = api,
                         .ep_api = ep_api,
                         .version = version,
                         .index = num_hosts++,
                         .is_ours = api == ortabi_get_api_base()->GetApi(version)};
  }
  pthread_mutex_unlock(&hosts_lock);
  *problem = "too many different hosts in this process";
  return host;
}

const BridgeHost* bridge_host_at(uint32_t index) {
  pthread_mutex_lock(&hosts_lock);
  const BridgeHost* host = index < num_hosts ? &hosts[index] : NULL;
  pthread_mutex_unlock(&hosts_lock);
  return host;
}

/* Gives a copy (caller releases with free), NULL without memory. */
char* bridge_copy_string(const char* text) {
  size_t size = strlen(text) + 1;
  char* copy = malloc(size);
  if (copy) memcpy(copy, text, size);
  return copy;
}

OrtStatus* bridge_no_memory(const BridgeHost* host, const char* slot) {
  char text[128];
  snprintf(text, sizeof text, "%s: out of memory", slot);
  return host->api->CreateStatus(ORT_FAIL, text);
}

/* Borrows slot and name until the call ends. The caller goes into Python only if .entered is set. */
BridgeCall bridge_call_begin(const BridgeHost* host, const char* slot, const char* name) {
  return (BridgeCall){.host = host,
                      .slot = slot,
                      .name = name,
                      .entered = bridge_gate_enter(),
                      .code = ORT_RUNTIME_EXCEPTION};
}

static const char* failure_text(const BridgeCall* call) {
  if (!call->entered) return "Python is shutting down";
  return call->text ? call->text
                    : "Python has no answer (no code attached, or an exception escaped; see stderr)";
}

/* Gives the status of a finished call, NULL if it succeeded. Releases what the call holds. */
OrtStatus* bridge_call_end(BridgeCall* call) {
  OrtStatus* status = NULL;
  if (!call->entered || !call->ok) {
    const char* text = failure_text(call);
    size_t size = strlen(call->name) + strlen(call->slot) + strlen(text) + sizeof ": : ";
    char* message = malloc(size);
    if (message) snprintf(message, size, "%s: %s: %s", call->name, call->slot, text);
    status = call->host->api->CreateStatus((OrtErrorCode)call->code, message ? message : call->slot);
    free(message);
  }
  if (call->entered) bridge_gate_leave();
  free(call->text);
  call->text = NULL;
  return status;
}

/* The same for a slot that returns nothing: a failure is counted and printed. Not to the host's logger: these
 * slots are releases, and stock hosts are known to release the logger first. */
void bridge_call_end_void(BridgeCall* call) {
  if (call->entered && !call->ok) {
    atomic_fetch_add(&unreported, 1);
    fprintf(stderr, "%s: %s: %s\n", call->name, call->slot, failure_text(call));
  }
  if (call->entered) bridge_gate_leave();
  free(call->text);
  call->text = NULL;
}

uint64_t bridge_unreported_errors(void) {
  return atomic_load(&unreported);
}

/* Records why the call fails; copies text. OK is no failure: it is turned into ORT_RUNTIME_EXCEPTION. */
void bridge_fail(BridgeCall* call, int code, const char* text) {
  free(call->text);
  call->text = bridge_copy_string(text);
  call->code = code == ORT_OK ? ORT_RUNTIME_EXCEPTION : code;
}

/* The same with what the host says; releases status. */
void bridge_fail_with_status(BridgeCall* call, OrtStatus* status) {
  const OrtApi* api = call->host->api;
  bridge_fail(call, (int)api->GetErrorCode(status), api->GetErrorMessage(status));
  api->ReleaseStatus(status);
}

/* Tells Python that the object with this id is gone. */
void bridge_release(const BridgeHost* host, const char* slot, const char* name, uint64_t id) {
  BridgeCall call = bridge_call_begin(host, slot, name);
  if (call.entered) call.ok = bridge_py_release(&call, id);
  bridge_call_end_void(&call);
}

/* ---- Structs with a Python object behind them ---- */

/* Gives zeroed memory (released with bridge_peer_free) whose peer, at `offset`, is filled in; takes the
 * object of the id, copies name. NULL without memory: then the object is released. */
void* bridge_peer_new(size_t size, size_t offset, const BridgeHost* host, uint64_t id, const char* name,
                      const char* slot) {
  char* made = calloc(1, size);
  char* copy = bridge_copy_string(name);
  if (!made || !copy) {
    free(made);
    free(copy);
    bridge_release(host, slot, name, id);
    return NULL;
  }
  *(BridgePeer*)(made + offset) = (BridgePeer){host, id, copy};
  return made;
}

/* Releases the Python object, then the struct `made` that the peer is in. */
void bridge_peer_free(void* made, BridgePeer* peer, const char* slot) {
  bridge_release(peer->host, slot, peer->name, peer->id);
  free(peer->name);
  free(made);
}

BridgeCall bridge_peer_call(const BridgePeer* peer, const char* slot) {
  return bridge_call_begin(peer->host, slot, peer->name);
}

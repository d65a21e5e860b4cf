/* What every part of a session asks of its EPs. */
#include "session/session.h"

OrtStatus* ep_failure(OrtStatus* cause, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  OrtStatus* failure = status_wrap_v(cause, format, arguments);
  va_end(arguments);
  return failure;
}

OrtStatus* session_ep_sync(const SessionEp* ep) {
  OrtStatus*(ORT_API_CALL * sync)(OrtEp*) = GUARD_SLOT(ep->ep, ep->version, Sync, 25);
  OrtStatus* status = sync != NULL ? call_OrtEp_Sync(ep->ep) : NULL;
  return status != NULL ? ep_failure(status, "EP '%s': OrtEp::Sync failed", ep->name) : NULL;
}

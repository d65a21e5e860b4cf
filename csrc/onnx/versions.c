/* Models of the future: what is newer than this library knows is refused, as in stock ORT. It would run with
 * today's meaning of its operators. */
#include <stdlib.h>
#include <string.h>

#include "onnx/reader.h"

/* Domains of ORT's own, all of which have but one version. */
static const char* const ort_domains[] = {"com.microsoft", "com.microsoft.nchwc",
                                          "com.microsoft.experimental", "org.pytorch.aten"};

/* 0: a domain of somebody else's, whose versions nobody here knows. */
static int newest_version(const char* domain) {
  for (size_t i = 0; i < op_schema_domain_count; i++) {
    if (strcmp(op_schema_domains[i].domain, domain) == 0) return op_schema_domains[i].newest;
  }
  for (size_t i = 0; i < sizeof ort_domains / sizeof *ort_domains; i++) {
    if (strcmp(ort_domains[i], domain) == 0) return 1;
  }
  return 0;
}

OrtStatus* check_ir_version(int64_t version) {
  if (version <= op_schema_newest_ir_version) return NULL;
  return status_new(ORT_FAIL, "Unsupported model IR version: %lld, max supported IR version: %d",
                    (long long)version, op_schema_newest_ir_version);
}

OrtStatus* check_opset_version(const char* domain, uint64_t version) {
  int newest = newest_version(domain);
  if (newest == 0 || version <= (uint64_t)newest) return NULL;
  const char* name = domain[0] == '\0' ? "ai.onnx" : domain;
  /* For models of an ONNX that is not released yet, as in stock. */
  const char* only_released = getenv("ALLOW_RELEASED_ONNX_OPSET_ONLY");
  if (only_released == NULL || strcmp(only_released, "0") != 0)
    return status_new(ORT_FAIL, "the model imports version %llu of domain '%s'; versions up to %d are known",
                      (unsigned long long)version, name, newest);
  LOG(log_default(), WARNING,
      "the model imports version %llu of domain '%s'; versions up to %d are known: its operators are taken "
      "for those of version %d",
      (unsigned long long)version, name, newest, newest);
  return NULL;
}

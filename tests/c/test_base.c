/* The front door: OrtGetApiBase, versions, tables, statuses. */
#include "harness.h"

static void test_get_api_answers_for_1_to_30(void) {
  const OrtApiBase* base = OrtGetApiBase();
  for (uint32_t version = 1; version <= 30; version++) {
    const OrtApi* table = base->GetApi(version);
    CHECK(table != NULL && table->CreateStatus != NULL);
  }
  CHECK(base->GetApi(0) == NULL);
  CHECK(base->GetApi(31) == NULL);
  CHECK(base->GetApi(UINT32_MAX) == NULL);
}

static void test_version_string(void) {
  int major = 0, minor = 0, patch = -1, length = 0;
  const char* text = OrtGetApiBase()->GetVersionString();
  CHECK(sscanf(text, "%d.%d.%d%n", &major, &minor, &patch, &length) == 3);
  CHECK(major == 1 && minor == ORT_API_VERSION && patch >= 0 && text[length] == '\0');
}

static void test_the_other_tables(void) {
  CHECK(api()->GetModelEditorApi() != NULL);
  CHECK(api()->GetCompileApi() != NULL);
  CHECK(api()->GetInteropApi() != NULL);
  CHECK(api()->GetEpApi() != NULL);
  CHECK(api()->GetTrainingApi(ORT_API_VERSION) == NULL);
  CHECK(strlen(api()->GetBuildInfoString()) > 0);
}

static void test_status(void) {
  char message[] = "changed";
  OrtStatus* status = api()->CreateStatus(ORT_EP_FAIL, message);
  message[0] = 'X';
  CHECK(api()->GetErrorCode(status) == ORT_EP_FAIL);
  CHECK_TEXT(api()->GetErrorMessage(status), "changed");
  api()->ReleaseStatus(status);
  api()->ReleaseStatus(NULL);
}

static void test_status_of_odd_arguments(void) {
  OrtStatus* status = api()->CreateStatus(ORT_FAIL, NULL);
  CHECK(status != NULL);
  CHECK_TEXT(api()->GetErrorMessage(status), "");
  api()->ReleaseStatus(status);
  status = api()->CreateStatus((OrtErrorCode)999, "m");
  CHECK(status != NULL && api()->GetErrorCode(status) != ORT_OK);
  api()->ReleaseStatus(status);
  CHECK(api()->GetErrorCode(NULL) == ORT_OK);
  CHECK_TEXT(api()->GetErrorMessage(NULL), "");
}

/* NULL would mean success: without memory there is still a status. */
static void test_status_without_memory(void) {
  ortabi_fail_allocation(0);
  OrtStatus* status = api()->CreateStatus(ORT_EP_FAIL, "lost");
  ortabi_fail_allocation(-1);
  CHECK_FAILS(status, ORT_FAIL, "memory");
}

int main(void) {
  RUN(test_get_api_answers_for_1_to_30);
  RUN(test_version_string);
  RUN(test_the_other_tables);
  RUN(test_status);
  RUN(test_status_of_odd_arguments);
  RUN(test_status_without_memory);
  return finish();
}

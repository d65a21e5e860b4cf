/* A host program that does what its standard input says, one command a line, words separated by tabs, and
 * prints what came of it: "<command>: ok", or "<command>: <code> <message>". Log messages are printed as "log
 * <severity> <text>". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort_abi_host.h"

static const OrtApi* api;
static OrtEnv* env;
static OrtSession* session;

static void ORT_API_CALL print_log(void* param, OrtLoggingLevel severity, const char* category,
                                   const char* logid, const char* location, const char* message) {
  (void)param, (void)category, (void)logid, (void)location;
  printf("log %d %s\n", (int)severity, message);
}

/* releases `status`. */
static bool report(const char* command, OrtStatus* status) {
  if (status == NULL)
    printf("%s: ok\n", command);
  else
    printf("%s: %d %s\n", command, (int)api->GetErrorCode(status), api->GetErrorMessage(status));
  bool is_good = status == NULL;
  api->ReleaseStatus(status);
  return is_good;
}

static void print_pairs(const OrtKeyValuePairs* pairs) {
  const char *const *keys, *const *values;
  size_t count;
  api->GetKeyValuePairs(pairs, &keys, &values, &count);
  for (size_t i = 0; i < count; i++) printf("%s%s=%s", i > 0 ? "," : "", keys[i], values[i]);
}

static void print_memory(const OrtEpDevice* device, OrtDeviceMemoryType type) {
  const OrtMemoryInfo* memory = api->EpDevice_MemoryInfo(device, type);
  OrtAllocator* allocator = NULL;
  const char* name = NULL;
  if (memory == NULL) return;
  api->ReleaseStatus(api->MemoryInfoGetName(memory, &name));
  api->ReleaseStatus(api->GetSharedAllocator(env, memory, &allocator));
  printf("\tmemory=%s:%s", name, allocator != NULL ? "shared" : "none");
}

static void devices(void) {
  const OrtEpDevice* const* all;
  size_t count;
  if (!report("devices", api->GetEpDevices(env, &all, &count))) return;
  for (size_t i = 0; i < count; i++) {
    const OrtHardwareDevice* hardware = api->EpDevice_Device(all[i]);
    printf("device\t%s\t%s\t", api->EpDevice_EpName(all[i]), api->EpDevice_EpVendor(all[i]));
    print_pairs(api->EpDevice_EpMetadata(all[i]));
    printf("\t");
    print_pairs(api->EpDevice_EpOptions(all[i]));
    printf("\thardware=%d:%x:%x", (int)api->HardwareDevice_Type(hardware),
           api->HardwareDevice_VendorId(hardware), api->HardwareDevice_DeviceId(hardware));
    print_memory(all[i], OrtDeviceMemoryType_DEFAULT);
    print_memory(all[i], OrtDeviceMemoryType_HOST_ACCESSIBLE);
    printf("\n");
  }
}

static void hardware(void) {
  const OrtHardwareDevice* all[64];
  size_t count = 0;
  if (!report("hardware", api->GetNumHardwareDevices(env, &count)) || count > 64) return;
  api->ReleaseStatus(api->GetHardwareDevices(env, all, 64));
  for (size_t i = 0; i < count; i++) {
    printf("hardware\t%d\t%x\t%x\t%s\t", (int)api->HardwareDevice_Type(all[i]),
           api->HardwareDevice_VendorId(all[i]), api->HardwareDevice_DeviceId(all[i]),
           api->HardwareDevice_Vendor(all[i]));
    print_pairs(api->HardwareDevice_Metadata(all[i]));
    printf("\n");
  }
}

/* How many lines of the process's maps contain `part`. */
static int mapped(const char* part) {
  char line[8192];
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) count += strstr(line, part) != NULL;
  if (maps != NULL) fclose(maps);
  return count;
}

static void create(const char* allow_virtual) {
  OrtKeyValuePairs* config = NULL;
  api->CreateKeyValuePairs(&config);
  if (allow_virtual != NULL) api->AddKeyValuePair(config, "allow_virtual_devices", allow_virtual);
  OrtEnvCreationOptions options = {.version = ORT_API_VERSION,
                                   .logging_severity_level = ORT_LOGGING_LEVEL_WARNING,
                                   .log_id = "driver",
                                   .custom_logging_function = print_log,
                                   .config_entries = config};
  report("create", api->CreateEnvWithOptions(&options, &env));
  api->ReleaseKeyValuePairs(config);
}

static void cycles(int count, const char* name, const char* path) {
  int registered = 0, unregistered = 0;
  for (int i = 0; i < count; i++) {
    OrtStatus* status = api->RegisterExecutionProviderLibrary(env, name, path);
    registered += status == NULL;
    api->ReleaseStatus(status);
    status = api->UnregisterExecutionProviderLibrary(env, name);
    unregistered += status == NULL;
    api->ReleaseStatus(status);
  }
  printf("cycles: %d %d %d\n", registered, unregistered, mapped(path));
}

/* Registers with each allocation failing in turn, until a registration needs none of the failing ones. One
 * that works all the same (a plugin's void call failed) is unregistered. */
static void out_of_memory(const char* name, const char* path) {
  int failures = 0, left_behind = 0;
  for (int64_t n = 0;; n++) {
    int64_t before = ortabi_allocation_count();
    ortabi_fail_allocation(n);
    OrtStatus* status = api->RegisterExecutionProviderLibrary(env, name, path);
    ortabi_fail_allocation(-1);
    bool is_good = status == NULL;
    api->ReleaseStatus(status);
    if (ortabi_allocation_count() - before <= n) {
      printf("oom: %d failed, %d left something behind, then %s\n", failures, left_behind,
             is_good ? "it worked" : "it failed");
      return;
    }
    failures += !is_good;
    left_behind += !is_good && mapped(path) > 0;
    if (is_good) api->ReleaseStatus(api->UnregisterExecutionProviderLibrary(env, name));
  }
}

static const OrtEpDevice* device_of(const char* ep_name) {
  const OrtEpDevice* const* all = NULL;
  size_t count = 0;
  api->ReleaseStatus(api->GetEpDevices(env, &all, &count));
  for (size_t i = 0; i < count; i++) {
    if (strcmp(api->EpDevice_EpName(all[i]), ep_name) == 0) return all[i];
  }
  return NULL;
}

/* append <EP name> [<other EP name>] [<key> <value>] */
static void append(char** words, int count) {
  OrtSessionOptions* options = NULL;
  OrtKeyValuePairs* config = NULL;
  const OrtEpDevice* chosen[2] = {device_of(words[0]), count % 2 == 0 ? device_of(words[1]) : NULL};
  const char* const* option = (const char* const*)words + (count % 2 == 0 ? 2 : 1);
  api->ReleaseStatus(api->CreateSessionOptions(&options));
  report("append", api->SessionOptionsAppendExecutionProvider_V2(options, env, chosen, count % 2 == 0 ? 2 : 1,
                                                                 option, option + 1, count > 2));
  api->ReleaseStatus(api->GetSessionOptionsConfigEntries(options, &config));
  printf("config\t");
  print_pairs(config);
  printf("\n");
  api->ReleaseKeyValuePairs(config);
  api->ReleaseSessionOptions(options);
}

/* session <model> <EP name> */
static void open_session(const char* model, const char* ep_name) {
  const OrtEpDevice* device = device_of(ep_name);
  OrtSessionOptions* options = NULL;
  api->ReleaseStatus(api->CreateSessionOptions(&options));
  api->ReleaseStatus(api->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, NULL, NULL, 0));
  report("session", api->CreateSession(env, model, options, &session));
  api->ReleaseSessionOptions(options);
}

static void close_session(void) {
  api->ReleaseSession(session);
  session = NULL;
  printf("close: ok\n");
}

static void incompatibility(const char* ep_name, int type) {
  const OrtHardwareDevice *all[64], *chosen = NULL;
  OrtDeviceEpIncompatibilityDetails* details = NULL;
  size_t count = 0;
  api->ReleaseStatus(api->GetNumHardwareDevices(env, &count));
  api->ReleaseStatus(api->GetHardwareDevices(env, all, 64));
  for (size_t i = 0; i < count; i++) {
    if ((int)api->HardwareDevice_Type(all[i]) == type) chosen = all[i];
  }
  if (!report("incompatibility",
              api->GetHardwareDeviceEpIncompatibilityDetails(env, ep_name, chosen, &details)))
    return;
  uint32_t reasons = 99;
  int32_t code = -1;
  const char* notes = NULL;
  api->ReleaseStatus(api->DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &reasons));
  api->ReleaseStatus(api->DeviceEpIncompatibilityDetails_GetErrorCode(details, &code));
  api->ReleaseStatus(api->DeviceEpIncompatibilityDetails_GetNotes(details, &notes));
  printf("reasons %u code %d notes %s\n", reasons, (int)code, notes != NULL ? notes : "none");
  api->ReleaseDeviceEpIncompatibilityDetails(details);
}

/* share create|release <EP name> */
static void share(const char* what, const char* ep_name) {
  OrtAllocator* allocator = NULL;
  const OrtEpDevice* device = device_of(ep_name);
  if (strcmp(what, "create") == 0)
    report("share", api->CreateSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator,
                                               NULL, &allocator));
  else
    report("share", api->ReleaseSharedAllocator(env, device, OrtDeviceMemoryType_DEFAULT));
}

static void run(char** words, int count) {
  const char* command = words[0];
#define IS(name, words_needed) (strcmp(command, name) == 0 && count > (words_needed))
  if (IS("create", 0))
    create(words[1]);
  else if (IS("release", 0))
    api->ReleaseEnv(env), printf("release: ok\n");
  else if (IS("register", 2))
    report("register", api->RegisterExecutionProviderLibrary(env, words[1], words[2]));
  else if (IS("unregister", 1))
    report("unregister", api->UnregisterExecutionProviderLibrary(env, words[1]));
  else if (IS("inject", 4))
    report("inject", ortabi_inject_hardware_device(env, (OrtHardwareDeviceType)atoi(words[1]),
                                                   (uint32_t)strtoul(words[2], NULL, 16),
                                                   (uint32_t)strtoul(words[3], NULL, 16), words[4], NULL));
  else if (IS("devices", 0))
    devices();
  else if (IS("hardware", 0))
    hardware();
  else if (IS("mapped", 1))
    printf("mapped: %d\n", mapped(words[1]));
  else if (IS("cycles", 3))
    cycles(atoi(words[1]), words[2], words[3]);
  else if (IS("oom", 2))
    out_of_memory(words[1], words[2]);
  else if (IS("append", 1))
    append(words + 1, count - 1);
  else if (IS("incompatibility", 2))
    incompatibility(words[1], atoi(words[2]));
  else if (IS("session", 2))
    open_session(words[1], words[2]);
  else if (IS("close", 0))
    close_session();
  else if (IS("share", 2))
    share(words[1], words[2]);
  else
    printf("unknown command %s\n", command), exit(2);
}

int main(void) {
  char line[8192];
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  setvbuf(stdout, NULL, _IOLBF, 0);
  while (fgets(line, sizeof line, stdin) != NULL) {
    char* words[16] = {NULL};
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char* at = line; at != NULL && count < 15;) words[count++] = strsep(&at, "\t");
    run(words, count);
  }
  printf("end\n");
  return 0;
}

/* Memory infos and memory devices: where bytes live. */
#include <string.h>

#include "api_slots.h"
#include "objects/objects.h"
#include "ort_abi_host.h"

#define CPU              OrtMemoryInfoDeviceType_CPU
#define GPU              OrtMemoryInfoDeviceType_GPU
#define NPU              OrtMemoryInfoDeviceType_NPU
#define PLAIN            OrtDeviceMemoryType_DEFAULT
#define HOST_ACCESSIBLE  OrtDeviceMemoryType_HOST_ACCESSIBLE
#define VENDOR_AMD       0x1002
#define VENDOR_MICROSOFT 0x1414
#define VENDOR_NVIDIA    0x10de
#define VENDOR_QUALCOMM  0x5143
#define VENDOR_INTEL     0x8086
#define PAGE             4096

/* What names mean that predate vendor ids, as in stock ORT; checked against it by tests. */
static const struct {
  const char *name, *long_name; /* the info has `name`; `long_name` (NULL: none) is taken as well */
  OrtMemoryDevice device;       /* device_id is the caller's */
} known_names[] = {
    {"Cpu", NULL, {CPU, PLAIN, 0, 0, 0}},
    {"CpuAligned4K", NULL, {CPU, PLAIN, 0, 0, PAGE}},
    {"Cuda", NULL, {GPU, PLAIN, VENDOR_NVIDIA, 0, 0}},
    {"CudaPinned", NULL, {GPU, HOST_ACCESSIBLE, VENDOR_NVIDIA, 0, 0}},
    {"DML", NULL, {GPU, PLAIN, VENDOR_MICROSOFT, 0, 0}},
    {"Hip", NULL, {GPU, PLAIN, VENDOR_AMD, 0, 0}},
    {"HipPinned", NULL, {GPU, HOST_ACCESSIBLE, VENDOR_AMD, 0, 0}},
    {"OpenVINO_GPU", NULL, {GPU, PLAIN, VENDOR_INTEL, 0, 0}},
    {"OpenVINO_RT_NPU", NULL, {NPU, PLAIN, VENDOR_INTEL, 0, 0}},
    {"QnnHtpShared", NULL, {CPU, HOST_ACCESSIBLE, VENDOR_QUALCOMM, 0, 0}},
    {"WebGPU_Buf", "WebGPU_Buffer", {GPU, PLAIN, 0, 0, 0}},
    {"WebNN_Ten", "WebNN_Tensor", {GPU, PLAIN, 0, 0, 0}},
};
#define KNOWN_NAMES (sizeof known_names / sizeof known_names[0])

const OrtMemoryInfo memory_info_cpu = {
    (char*)"Cpu", OrtDeviceAllocator, OrtMemTypeDefault, {CPU, PLAIN, 0, 0, 0}};
const OrtMemoryInfo memory_info_cpu_arena = {
    (char*)"Cpu", OrtArenaAllocator, OrtMemTypeDefault, {CPU, PLAIN, 0, 0, 0}};

ORT_ABI_EXPORT const OrtMemoryInfo* ortabi_host_memory(size_t index) {
  return index == 0 ? &memory_info_cpu : index == 1 ? &memory_info_cpu_arena : NULL;
}

OrtMemoryInfo* memory_info_copy(const OrtMemoryInfo* info) {
  OrtMemoryInfo* copy = mem_alloc(sizeof *copy);
  if (copy == NULL) return NULL;
  *copy = *info;
  copy->name = str_copy(info->name);
  if (copy->name != NULL) return copy;
  mem_free(copy);
  return NULL;
}

void memory_info_release(OrtMemoryInfo* info) {
  if (info == NULL || info == &memory_info_cpu || info == &memory_info_cpu_arena) return;
  mem_free(info->name);
  mem_free(info);
}

bool memory_device_equal(const OrtMemoryDevice* a, const OrtMemoryDevice* b) {
  return a->device_type == b->device_type && a->memory_type == b->memory_type &&
         a->vendor_id == b->vendor_id && a->device_id == b->device_id;
}

bool memory_device_is_host(const OrtMemoryDevice* device) {
  return device->device_type == CPU || device->memory_type == HOST_ACCESSIBLE;
}

bool memory_info_equal(const OrtMemoryInfo* a, const OrtMemoryInfo* b) {
  return a->allocator_type == b->allocator_type && a->mem_type == b->mem_type &&
         memory_device_equal(&a->device, &b->device) && a->device.alignment == b->device.alignment &&
         strcmp(a->name, b->name) == 0;
}

static OrtStatus* create(const char* name, OrtAllocatorType type, OrtMemType mem_type, OrtMemoryDevice device,
                         OrtMemoryInfo** out) {
  OrtMemoryInfo info = {(char*)name, type, mem_type, device};
  OrtMemoryInfo* copy = memory_info_copy(&info);
  if (copy == NULL) return status_no_memory();
  *out = copy;
  return NULL;
}

static bool mem_type_is_valid(OrtMemType type) {
  return type >= OrtMemTypeCPUInput && type <= OrtMemTypeDefault;
}

/* gives: the names that CreateMemoryInfo knows. */
static OrtStatus* unknown_name(const char* name) {
  StrBuf known = {0};
  for (size_t i = 0; i < KNOWN_NAMES; i++)
    strbuf_append(&known, "%s%s", i == 0 ? "" : ", ", known_names[i].name);
  OrtStatus* status =
      status_new(ORT_INVALID_ARGUMENT,
                 "CreateMemoryInfo: unknown device name '%s' (known: %s); CreateMemoryInfo_V2 takes any name",
                 name, known.failed ? "?" : known.text);
  strbuf_release(&known);
  return status;
}

/* gives (caller releases with ReleaseMemoryInfo). Any other device needs CreateMemoryInfo_V2. */
OrtStatus* ORT_API_CALL api_CreateMemoryInfo(const char* name, OrtAllocatorType type, int id,
                                             OrtMemType mem_type, OrtMemoryInfo** out) {
  REQUIRE_ARG(name);
  REQUIRE_ARG(out);
  if (!mem_type_is_valid(mem_type))
    return status_new(ORT_INVALID_ARGUMENT, "CreateMemoryInfo: unknown memory type %d", (int)mem_type);
  for (size_t i = 0; i < KNOWN_NAMES; i++) {
    if (strcmp(name, known_names[i].name) != 0 && !str_equal(name, known_names[i].long_name)) continue;
    OrtMemoryDevice device = known_names[i].device;
    if (i != 0) device.device_id = (uint32_t)id; /* there is one CPU */
    return create(known_names[i].name, type, mem_type, device, out);
  }
  return unknown_name(name);
}

/* gives (caller releases with ReleaseMemoryInfo). */
OrtStatus* ORT_API_CALL api_CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type,
                                                OrtMemoryInfo** out) {
  REQUIRE_ARG(out);
  if (!mem_type_is_valid(mem_type))
    return status_new(ORT_INVALID_ARGUMENT, "CreateCpuMemoryInfo: unknown memory type %d", (int)mem_type);
  return create(memory_info_cpu.name, type, mem_type, memory_info_cpu.device, out);
}

/* gives (caller releases with ReleaseMemoryInfo). copies `name`. */
OrtStatus* ORT_API_CALL api_CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device_type,
                                                uint32_t vendor_id, int32_t device_id,
                                                OrtDeviceMemoryType mem_type, size_t alignment,
                                                OrtAllocatorType allocator_type, OrtMemoryInfo** out) {
  REQUIRE_ARG(name);
  REQUIRE_ARG(out);
  if (device_type > OrtMemoryInfoDeviceType_NPU)
    return status_new(ORT_INVALID_ARGUMENT, "CreateMemoryInfo_V2: unknown device type %d for '%s'",
                      (int)device_type, name);
  if (mem_type != OrtDeviceMemoryType_DEFAULT && mem_type != OrtDeviceMemoryType_HOST_ACCESSIBLE)
    return status_new(ORT_INVALID_ARGUMENT, "CreateMemoryInfo_V2: unknown memory type %d for '%s'",
                      (int)mem_type, name);
  if ((alignment & (alignment - 1)) != 0)
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateMemoryInfo_V2: alignment %zu of '%s' is not a power of two", alignment, name);
  OrtMemoryDevice device = {device_type, mem_type, vendor_id, (uint32_t)device_id, alignment};
  OrtMemType legacy = mem_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? OrtMemTypeCPU : OrtMemTypeDefault;
  return create(name, allocator_type, legacy, device, out);
}

void ORT_API_CALL api_ReleaseMemoryInfo(OrtMemoryInfo* input) {
  memory_info_release(input);
}

/* *out: 0 if equal, else -1. */
OrtStatus* ORT_API_CALL api_CompareMemoryInfo(const OrtMemoryInfo* info1, const OrtMemoryInfo* info2,
                                              int* out) {
  REQUIRE_ARG(info1);
  REQUIRE_ARG(info2);
  REQUIRE_ARG(out);
  *out = memory_info_equal(info1, info2) ? 0 : -1;
  return NULL;
}

/* borrows: as long as the info. */
OrtStatus* ORT_API_CALL api_MemoryInfoGetName(const OrtMemoryInfo* ptr, const char** out) {
  REQUIRE_ARG(ptr);
  REQUIRE_ARG(out);
  *out = ptr->name;
  return NULL;
}

OrtStatus* ORT_API_CALL api_MemoryInfoGetId(const OrtMemoryInfo* ptr, int* out) {
  REQUIRE_ARG(ptr);
  REQUIRE_ARG(out);
  *out = (int)ptr->device.device_id;
  return NULL;
}

OrtStatus* ORT_API_CALL api_MemoryInfoGetMemType(const OrtMemoryInfo* ptr, OrtMemType* out) {
  REQUIRE_ARG(ptr);
  REQUIRE_ARG(out);
  *out = ptr->mem_type;
  return NULL;
}

OrtStatus* ORT_API_CALL api_MemoryInfoGetType(const OrtMemoryInfo* ptr, OrtAllocatorType* out) {
  REQUIRE_ARG(ptr);
  REQUIRE_ARG(out);
  *out = ptr->allocator_type;
  return NULL;
}

void ORT_API_CALL api_MemoryInfoGetDeviceType(const OrtMemoryInfo* ptr, OrtMemoryInfoDeviceType* out) {
  if (ptr == NULL || out == NULL)
    log_unreported("MemoryInfoGetDeviceType", "argument '%s' is NULL", ptr == NULL ? "ptr" : "out");
  else
    *out = ptr->device.device_type;
}

OrtDeviceMemoryType ORT_API_CALL api_MemoryInfoGetDeviceMemType(const OrtMemoryInfo* ptr) {
  return ptr != NULL ? ptr->device.memory_type : OrtDeviceMemoryType_DEFAULT;
}

uint32_t ORT_API_CALL api_MemoryInfoGetVendorId(const OrtMemoryInfo* ptr) {
  return ptr != NULL ? ptr->device.vendor_id : 0;
}

/* borrows: the device is a part of the info. */
const OrtMemoryDevice* ORT_API_CALL api_MemoryInfo_GetMemoryDevice(const OrtMemoryInfo* memory_info) {
  return memory_info != NULL ? &memory_info->device : NULL;
}

bool ORT_API_CALL api_MemoryDevice_AreEqual(const OrtMemoryDevice* a, const OrtMemoryDevice* b) {
  return a == b || (a != NULL && b != NULL && memory_device_equal(a, b));
}

OrtMemoryInfoDeviceType ORT_API_CALL api_MemoryDevice_GetDeviceType(const OrtMemoryDevice* memory_device) {
  return memory_device != NULL ? memory_device->device_type : OrtMemoryInfoDeviceType_CPU;
}

OrtDeviceMemoryType ORT_API_CALL api_MemoryDevice_GetMemoryType(const OrtMemoryDevice* memory_device) {
  return memory_device != NULL ? memory_device->memory_type : OrtDeviceMemoryType_DEFAULT;
}

uint32_t ORT_API_CALL api_MemoryDevice_GetVendorId(const OrtMemoryDevice* memory_device) {
  return memory_device != NULL ? memory_device->vendor_id : 0;
}

uint32_t ORT_API_CALL api_MemoryDevice_GetDeviceId(const OrtMemoryDevice* memory_device) {
  return memory_device != NULL ? memory_device->device_id : 0;
}

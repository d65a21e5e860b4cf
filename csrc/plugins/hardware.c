/* Hardware devices: the CPU, what sysfs shows, and what users inject. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "api_slots.h"
#include "ort_abi_host.h"
#include "plugins/plugins.h"

#define PCI_CLASS_DISPLAY     0x03
#define PCI_CLASS_ACCELERATOR 0x12

typedef struct Vendor {
  uint32_t id;
  const char* name;
} Vendor;
static const Vendor vendors[] = {
    {0x8086, "Intel"}, {0x1022, "AMD"}, {0x1002, "AMD"}, {0x10de, "NVIDIA"}, {0x17cb, "Qualcomm"}};

static const char* vendor_name(uint32_t id) {
  for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
    if (vendors[i].id == id) return vendors[i].name;
  }
  return "unknown";
}

/* ---- The devices and their list ---- */

OrtHardwareDevice* hardware_device_new(OrtHardwareDeviceType type, uint32_t vendor_id, uint32_t device_id,
                                       const char* vendor, const OrtKeyValuePairs* metadata) {
  OrtHardwareDevice* device = mem_calloc(1, sizeof *device);
  if (device == NULL) return NULL;
  device->type = type;
  device->vendor_id = vendor_id;
  device->device_id = device_id;
  device->vendor = str_copy(vendor);
  device->metadata = key_values_copy(metadata);
  if (device->vendor != NULL && device->metadata != NULL) return device;
  hardware_device_release(device);
  return NULL;
}

void hardware_device_release(OrtHardwareDevice* device) {
  if (device == NULL) return;
  mem_free(device->vendor);
  key_values_release(device->metadata);
  mem_free(device);
}

static bool type_is_valid(OrtHardwareDeviceType type) {
  return type == OrtHardwareDeviceType_CPU || type == OrtHardwareDeviceType_GPU ||
         type == OrtHardwareDeviceType_NPU;
}

bool hardware_list_add(HardwareList* list, OrtHardwareDevice* device) {
  if (!ARRAY_RESERVE(list->devices, list->capacity, list->count + 1)) return false;
  size_t at = list->count; /* types sort in the reverse order of their numbers */
  while (at > 0 && list->devices[at - 1]->type < device->type) at--;
  memmove(list->devices + at + 1, list->devices + at, (list->count - at) * sizeof *list->devices);
  list->devices[at] = device;
  list->count++;
  return true;
}

void hardware_list_release(HardwareList* list) {
  for (size_t i = 0; i < list->count; i++) hardware_device_release(list->devices[i]);
  mem_free(list->devices);
  *list = (HardwareList){0};
}

/* ---- Discovery ---- */

static const char* cpu_vendor(uint32_t* id) {
#if defined(__x86_64__) || defined(__i386__)
  union {
    unsigned words[3];
    char text[12];
  } vendor;
  unsigned highest;
  if (__get_cpuid(0, &highest, &vendor.words[0], &vendor.words[2], &vendor.words[1])) {
    if (memcmp(vendor.text, "GenuineIntel", 12) == 0) *id = 0x8086;
    if (memcmp(vendor.text, "AuthenticAMD", 12) == 0) *id = 0x1022;
  }
#endif
  return vendor_name(*id);
}

static bool add_cpu(HardwareList* list) {
  uint32_t vendor_id = 0;
  const char* vendor = cpu_vendor(&vendor_id);
  OrtHardwareDevice* device = hardware_device_new(OrtHardwareDeviceType_CPU, vendor_id, 0, vendor, NULL);
  if (device != NULL && hardware_list_add(list, device)) return true;
  hardware_device_release(device);
  return false;
}

/* Reads a file that holds one number, as sysfs has them ("0x8086"). False when it cannot be read. */
static bool read_number(const char* folder, const char* name, unsigned long* out) {
  char path[PATH_MAX], text[32];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
  FILE* file = fopen(path, "re");
  if (file == NULL) return false;
  bool is_read = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  if (!is_read) return false;
  char* end;
  errno = 0;
  *out = strtoul(text, &end, 0);
  return end != text && errno == 0 && *out <= UINT32_MAX;
}

/* Number of the first entry "<prefix><number>" in a folder; -1 if there is none. */
static int first_index(const char* folder, const char* prefix) {
  DIR* directory = opendir(folder);
  if (directory == NULL) return -1;
  int found = -1;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    int index, length = 0;
    const char* digits = entry->d_name + strlen(prefix);
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    if (sscanf(digits, "%9d%n", &index, &length) == 1 && digits[length] == '\0' && index >= 0 &&
        (found < 0 || index < found))
      found = index;
  }
  closedir(directory);
  return found;
}

static bool is_listed(const HardwareList* list, const char* bus_id) {
  for (size_t i = 0; i < list->count; i++) {
    if (str_equal(key_values_get(list->devices[i]->metadata, "pci_bus_id"), bus_id)) return true;
  }
  return false;
}

static bool set_number(OrtKeyValuePairs* pairs, const char* key, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  return key_values_set(pairs, key, text);
}

/* Adds the device of a sysfs folder; `bus_id` NULL: it is not on a PCI bus. False: out of memory. */
static bool add_device(HardwareList* list, OrtHardwareDeviceType type, const char* folder,
                       const char* bus_id) {
  unsigned long vendor_id = 0, device_id = 0;
  if (!read_number(folder, "vendor", &vendor_id) || !read_number(folder, "device", &device_id))
    vendor_id = device_id = 0;
  OrtHardwareDevice* device = hardware_device_new(type, (uint32_t)vendor_id, (uint32_t)device_id,
                                                  vendor_name((uint32_t)vendor_id), NULL);
  if (device == NULL) return false;
  char path[PATH_MAX];
  int card = -1, accelerator = -1;
  if (snprintf(path, sizeof path, "%s/drm", folder) < (int)sizeof path) card = first_index(path, "card");
  if (snprintf(path, sizeof path, "%s/accel", folder) < (int)sizeof path)
    accelerator = first_index(path, "accel");
  if ((bus_id == NULL || key_values_set(device->metadata, "pci_bus_id", bus_id)) &&
      (card < 0 || set_number(device->metadata, "card_idx", card)) &&
      (accelerator < 0 || set_number(device->metadata, "accel_idx", accelerator)) &&
      hardware_list_add(list, device))
    return true;
  hardware_device_release(device);
  return false;
}

static bool add_pci_device(HardwareList* list, const char* folder, const char* bus_id) {
  unsigned long class = 0;
  if (!read_number(folder, "class", &class)) return true;
  if (class >> 16 == PCI_CLASS_DISPLAY) return add_device(list, OrtHardwareDeviceType_GPU, folder, bus_id);
  if (class >> 16 == PCI_CLASS_ACCELERATOR)
    return add_device(list, OrtHardwareDeviceType_NPU, folder, bus_id);
  return true;
}

/* An accelerator that the kernel's accel subsystem drives; `folder` is its device, on a PCI bus or not. */
static bool add_accelerator(HardwareList* list, const char* folder, const char* name) {
  char device[PATH_MAX], real[PATH_MAX];
  (void)name;
  if (snprintf(device, sizeof device, "%s/device", folder) >= (int)sizeof device) return true;
  if (realpath(device, real) == NULL) return true;
  unsigned long class;
  const char* bus_id = read_number(real, "class", &class) ? strrchr(real, '/') + 1 : NULL;
  if (bus_id != NULL && is_listed(list, bus_id)) return true;
  return add_device(list, OrtHardwareDeviceType_NPU, real, bus_id);
}

/* Calls `add` for each entry of a folder, in the order of names; a folder that is not there has none. */
static bool for_each_entry(HardwareList* list, const char* root, const char* subfolder,
                           bool (*add)(HardwareList* list, const char* folder, const char* name)) {
  char path[PATH_MAX];
  struct dirent** entries = NULL;
  if (snprintf(path, sizeof path, "%s/%s", root, subfolder) >= (int)sizeof path) return true;
  int count = scandir(path, &entries, NULL, alphasort);
  bool is_good = true;
  for (int i = 0; i < count; i++) {
    char folder[PATH_MAX];
    const char* name = entries[i]->d_name;
    if (is_good && name[0] != '.' &&
        snprintf(folder, sizeof folder, "%s/%s", path, name) < (int)sizeof folder)
      is_good = add(list, folder, name);
    free(entries[i]);
  }
  free(entries);
  return is_good;
}

bool hardware_discover(const char* sysfs_root, HardwareList* list) {
  return add_cpu(list) && for_each_entry(list, sysfs_root, "bus/pci/devices", add_pci_device) &&
         for_each_entry(list, sysfs_root, "class/accel", add_accelerator);
}

OrtStatus* ortabi_inject_hardware_device(OrtEnv* env, OrtHardwareDeviceType type, uint32_t vendor_id,
                                         uint32_t device_id, const char* vendor,
                                         const OrtKeyValuePairs* metadata) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(vendor);
  if (!type_is_valid(type))
    return status_new(ORT_INVALID_ARGUMENT, "%s: unknown hardware device type %d", __func__, (int)type);
  OrtHardwareDevice* device = hardware_device_new(type, vendor_id, device_id, vendor, metadata);
  if (device == NULL) return status_no_memory();
  device->is_injected = true;
  pthread_mutex_lock(&env->mutex);
  bool is_added = hardware_list_add(&env->hardware, device);
  pthread_mutex_unlock(&env->mutex);
  if (is_added) return NULL;
  hardware_device_release(device);
  return status_no_memory();
}

/* ---- Slots ---- */

OrtStatus* ORT_API_CALL api_GetNumHardwareDevices(const OrtEnv* env, size_t* num_devices) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(num_devices);
  OrtEnv* locked = (OrtEnv*)env;
  pthread_mutex_lock(&locked->mutex);
  *num_devices = env->hardware.count;
  pthread_mutex_unlock(&locked->mutex);
  return NULL;
}

/* borrows: the devices live as long as the environment. */
OrtStatus* ORT_API_CALL api_GetHardwareDevices(const OrtEnv* env, const OrtHardwareDevice** devices,
                                               size_t num_devices) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(devices);
  OrtEnv* locked = (OrtEnv*)env;
  pthread_mutex_lock(&locked->mutex);
  size_t count = env->hardware.count;
  for (size_t i = 0; i < count && num_devices >= count; i++) devices[i] = env->hardware.devices[i];
  pthread_mutex_unlock(&locked->mutex);
  if (num_devices >= count) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "GetHardwareDevices: room for %zu devices, there are %zu",
                    num_devices, count);
}

OrtHardwareDeviceType ORT_API_CALL api_HardwareDevice_Type(const OrtHardwareDevice* device) {
  if (device != NULL) return device->type;
  log_unreported("HardwareDevice_Type", "argument 'device' is NULL");
  return OrtHardwareDeviceType_CPU;
}

uint32_t ORT_API_CALL api_HardwareDevice_VendorId(const OrtHardwareDevice* device) {
  if (device != NULL) return device->vendor_id;
  log_unreported("HardwareDevice_VendorId", "argument 'device' is NULL");
  return 0;
}

const char* ORT_API_CALL api_HardwareDevice_Vendor(const OrtHardwareDevice* device) {
  if (device != NULL) return device->vendor;
  log_unreported("HardwareDevice_Vendor", "argument 'device' is NULL");
  return NULL;
}

uint32_t ORT_API_CALL api_HardwareDevice_DeviceId(const OrtHardwareDevice* device) {
  if (device != NULL) return device->device_id;
  log_unreported("HardwareDevice_DeviceId", "argument 'device' is NULL");
  return 0;
}

const OrtKeyValuePairs* ORT_API_CALL api_HardwareDevice_Metadata(const OrtHardwareDevice* device) {
  if (device != NULL) return device->metadata;
  log_unreported("HardwareDevice_Metadata", "argument 'device' is NULL");
  return NULL;
}

/* gives (caller releases with ReleaseHardwareDevice): an EP keeps a device that it made until its factory
 * goes. */
OrtStatus* ORT_API_CALL api_CreateHardwareDevice(OrtHardwareDeviceType type, uint32_t vendor_id,
                                                 uint32_t device_id, const char* vendor_name,
                                                 const OrtKeyValuePairs* metadata,
                                                 OrtHardwareDevice** hardware_device) {
  REQUIRE_ARG(vendor_name);
  REQUIRE_ARG(hardware_device);
  if (!type_is_valid(type))
    return status_new(ORT_INVALID_ARGUMENT, "CreateHardwareDevice: unknown hardware device type %d",
                      (int)type);
  OrtHardwareDevice* device = hardware_device_new(type, vendor_id, device_id, vendor_name, metadata);
  if (device == NULL) return status_no_memory();
  *hardware_device = device;
  return NULL;
}

void ORT_API_CALL api_ReleaseHardwareDevice(OrtHardwareDevice* input) {
  hardware_device_release(input);
}

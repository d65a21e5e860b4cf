/* Hardware discovery in a made-up /sys. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "plugins/plugins.h"

static const char* const root = "sysfs";

/* Writes sysfs/<path>; makes its folders. `text` NULL: a folder. */
static void put(const char* path, const char* text) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", root, path);
  for (char* at = strchr(full, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = '\0';
    mkdir(full, 0700);
    *at = '/';
  }
  if (text == NULL) {
    mkdir(full, 0700);
    return;
  }
  FILE* file = fopen(full, "w");
  if (!CHECK(file != NULL)) return;
  fputs(text, file);
  fclose(file);
}

static void put_pci(const char* bus_id, const char* class, const char* vendor, const char* device) {
  const char *names[] = {"class", "vendor", "device"}, *texts[] = {class, vendor, device};
  char path[128];
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "bus/pci/devices/%s/%s", bus_id, names[i]);
    if (texts[i] != NULL) put(path, texts[i]);
  }
}

static void check_device(const OrtHardwareDevice* device, OrtHardwareDeviceType type, uint32_t vendor_id,
                         uint32_t device_id, const char* vendor, const char* bus_id) {
  CHECK(device->type == type && device->vendor_id == vendor_id && device->device_id == device_id);
  CHECK_TEXT(device->vendor, vendor);
  const char* said = key_values_get(device->metadata, "pci_bus_id");
  CHECK(said == bus_id || (said != NULL && bus_id != NULL && strcmp(said, bus_id) == 0));
}

static void test_nothing_to_read_leaves_the_cpu(void) {
  HardwareList list = {0};
  CHECK(hardware_discover("/nonexistent", &list));
  CHECK(list.count == 1 && list.devices[0]->type == OrtHardwareDeviceType_CPU);
  CHECK(list.devices[0]->vendor[0] != '\0');
  hardware_list_release(&list);
}

static void test_devices_are_found_and_sorted(void) {
  HardwareList list = {0};
  put_pci("0000:00:00.0", "0x060000\n", "0x8086\n", "0x0d57\n"); /* a bridge */
  put_pci("0000:01:00.0", "0x030000\n", "0x10de\n", "0x2684\n");
  put("bus/pci/devices/0000:01:00.0/drm/card1", NULL);
  put("bus/pci/devices/0000:01:00.0/drm/renderD129", NULL);
  put_pci("0000:02:00.0", "0x038000\n", "0x1002\n", "0x15bf\n");
  put_pci("0000:00:0b.0", "0x120000\n", "0x8086\n", "0x7d1d\n");
  put("bus/pci/devices/0000:00:0b.0/accel/accel0", NULL);
  put_pci("0000:03:00.0", "rubbish", "0x1\n", "0x1\n");
  put_pci("0000:04:00.0", "0x030000\n", NULL, "0x1\n"); /* no vendor to read */
  put_pci("0000:05:00.0", NULL, NULL, NULL);
  put("bus/pci/devices/0000:06:00.0", "a file where a folder should be");
  put("class/accel/accel0/unused", NULL);
  symlink("../../../bus/pci/devices/0000:00:0b.0", "sysfs/class/accel/accel0/device"); /* the same NPU */
  put("devices/platform/fdab0000.npu/uevent", "");
  put("class/accel/accel1/unused", NULL);
  symlink("../../../devices/platform/fdab0000.npu", "sysfs/class/accel/accel1/device");
  put("class/accel/accel2/unused", NULL); /* no device */
  CHECK(hardware_discover(root, &list));
  if (CHECK(list.count == 6)) {
    check_device(list.devices[0], OrtHardwareDeviceType_NPU, 0x8086, 0x7d1d, "Intel", "0000:00:0b.0");
    CHECK_TEXT(key_values_get(list.devices[0]->metadata, "accel_idx"), "0");
    check_device(list.devices[1], OrtHardwareDeviceType_NPU, 0, 0, "unknown", NULL);
    check_device(list.devices[2], OrtHardwareDeviceType_GPU, 0x10de, 0x2684, "NVIDIA", "0000:01:00.0");
    CHECK_TEXT(key_values_get(list.devices[2]->metadata, "card_idx"), "1");
    check_device(list.devices[3], OrtHardwareDeviceType_GPU, 0x1002, 0x15bf, "AMD", "0000:02:00.0");
    check_device(list.devices[4], OrtHardwareDeviceType_GPU, 0, 0, "unknown", "0000:04:00.0");
    CHECK(list.devices[5]->type == OrtHardwareDeviceType_CPU);
  }
  hardware_list_release(&list);
}

static OrtStatus* discover(void) {
  HardwareList list = {0};
  bool is_good = hardware_discover(root, &list);
  hardware_list_release(&list);
  return is_good ? NULL : status_no_memory();
}

static void test_out_of_memory(void) {
  CHECK_ALLOCATION_FAILURES(discover);
}

int main(void) {
  RUN(test_nothing_to_read_leaves_the_cpu);
  RUN(test_devices_are_found_and_sorted);
  RUN(test_out_of_memory);
  return finish();
}

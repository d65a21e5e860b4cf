/* Memory of EP devices: its descriptions, and the shared allocators that come with it. */
#include "devices.h"

static void test_memory_devices_say_where_bytes_are(void) {
  const OrtEpApi* ep_api = api()->GetEpApi();
  open_env();
  Device device = plug("virtual");
  OrtMemoryInfo* cpu = NULL;
  const char* name = NULL;
  OrtAllocatorType type;
  OrtMemoryInfoDeviceType device_type;
  if (!CHECK(device.memory != NULL && device.host_memory != NULL)) exit(1);
  CHECK_OK(api()->MemoryInfoGetName(device.memory, &name));
  CHECK_TEXT(name, "VirtualDevice");
  CHECK_OK(api()->MemoryInfoGetType(device.memory, &type));
  CHECK(type == OrtDeviceAllocator); /* the read-only one is not shown */
  api()->MemoryInfoGetDeviceType(device.memory, &device_type);
  CHECK(device_type == OrtMemoryInfoDeviceType_GPU);
  CHECK(api()->MemoryInfoGetDeviceMemType(device.memory) == OrtDeviceMemoryType_DEFAULT);
  CHECK(api()->MemoryInfoGetDeviceMemType(device.host_memory) == OrtDeviceMemoryType_HOST_ACCESSIBLE);
  CHECK(api()->MemoryInfoGetVendorId(device.memory) == 0xbe57);

  const OrtMemoryDevice* own = ep_api->MemoryInfo_GetMemoryDevice(device.memory);
  const OrtMemoryDevice* host = ep_api->MemoryInfo_GetMemoryDevice(device.host_memory);
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  const OrtMemoryDevice* cpu_device = ep_api->MemoryInfo_GetMemoryDevice(cpu);
  CHECK(ep_api->MemoryDevice_GetDeviceType(own) == OrtMemoryInfoDeviceType_GPU);
  CHECK(ep_api->MemoryDevice_GetMemoryType(own) == OrtDeviceMemoryType_DEFAULT);
  CHECK(ep_api->MemoryDevice_GetMemoryType(host) == OrtDeviceMemoryType_HOST_ACCESSIBLE);
  CHECK(ep_api->MemoryDevice_GetVendorId(own) == 0xbe57);
  CHECK(ep_api->MemoryDevice_GetDeviceId(own) == 0);
  CHECK(ep_api->MemoryDevice_AreEqual(own, own));
  CHECK(!ep_api->MemoryDevice_AreEqual(own, host));
  CHECK(!ep_api->MemoryDevice_AreEqual(own, cpu_device));

  OrtValue* value = tensor_on(&device, 4);
  CHECK(ep_api->MemoryDevice_AreEqual(ep_api->Value_GetMemoryDevice(value), own));
  api()->ReleaseValue(value);
  api()->ReleaseMemoryInfo(cpu);
  unplug(&device);
  close_env();
}

static void test_two_libraries_are_two_devices(void) {
  open_env();
  Device first = plug("virtual"), second = plug("other");
  int difference = 0;
  CHECK_TEXT(api()->EpDevice_EpName(second.ep_device), "OtherExecutionProvider");
  CHECK_OK(api()->CompareMemoryInfo(first.memory, second.memory, &difference));
  CHECK(difference != 0);
  CHECK(shared_allocator(first.memory) != shared_allocator(second.memory));
  close_env(); /* unregisters both */
}

static void test_registration_makes_the_shared_allocators(void) {
  open_env();
  Device device = plug("virtual");
  const OrtMemoryInfo* info = NULL;
  int difference = 0;
  OrtAllocator *own = shared_allocator(device.memory), *host = shared_allocator(device.host_memory);
  if (!CHECK(own != NULL && host != NULL && own != host)) exit(1);
  CHECK_OK(api()->AllocatorGetInfo(own, &info));
  CHECK_OK(api()->CompareMemoryInfo(info, device.memory, &difference));
  CHECK(difference == 0);
  CHECK(device.control->read_only_allocations == 0);
  CHECK(device.control->live_objects == 3); /* two allocators, one data transfer */
  float* block = NULL;
  CHECK_OK(api()->AllocatorAlloc(host, sizeof *block, (void**)&block));
  *block = 3; /* the host may */
  CHECK_OK(api()->AllocatorFree(host, block));
  CHECK(device.control->live_chunks == 0);
  unplug(&device);
  close_env();
}

static OrtAllocator* allocator_of(const OrtMemoryInfo* memory) {
  OrtAllocator* allocator = shared_allocator(memory);
  CHECK(allocator != NULL);
  return allocator;
}

/* The twin has the same device: the first one's allocators serve both, until the first one goes. */
static void test_neighbours_share_a_device(void) {
  open_env();
  Device first = plug("virtual");
  OrtAllocator* own = allocator_of(first.memory);
  Device twin = plug("twin");
  CHECK(allocator_of(twin.memory) == own);
  CHECK(twin.control->live_objects == 1); /* no allocator: only the data transfer */
  unplug(&twin);
  CHECK(allocator_of(first.memory) == own);
  twin = plug("twin");
  unplug(&first);
  OrtAllocator* twins = allocator_of(twin.memory);
  CHECK(twin.control->live_objects == 3);
  void* block = NULL;
  CHECK_OK(api()->AllocatorAlloc(twins, 100, &block));
  CHECK(twin.control->live_chunks == 1);
  CHECK_OK(api()->AllocatorFree(twins, block));
  unplug(&twin);
  close_env();
}

static void test_a_neighbour_may_replace_the_shared_allocator(void) {
  OrtAllocator* made = NULL;
  open_env();
  Device first = plug("virtual"), twin = plug("twin");
  CHECK_OK(api()->CreateSharedAllocator(env, twin.ep_device, OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator,
                                        NULL, &made));
  CHECK(allocator_of(first.memory) == made);
  CHECK(first.control->live_objects == 2 && twin.control->live_objects == 2);
  unplug(&twin);
  CHECK(allocator_of(first.memory) != NULL);
  CHECK(first.control->live_objects == 3); /* its own again */
  unplug(&first);
  close_env();
}

static void test_shared_allocators_are_replaced_and_released(void) {
  OrtAllocator* made = NULL;
  open_env();
  Device device = plug("virtual");
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  CHECK(made != NULL && allocator_of(device.memory) == made);
  CHECK(device.control->live_objects == 3); /* the replaced one is gone */
  CHECK_OK(api()->ReleaseSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT));
  CHECK(shared_allocator(device.memory) == NULL);
  CHECK(device.control->live_objects == 2);
  CHECK_FAILS(api()->ReleaseSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT),
              ORT_INVALID_ARGUMENT, "VirtualDevice");
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, NULL));
  CHECK(allocator_of(device.memory) != NULL);
  CHECK_FAILS(api()->CreateSharedAllocator(env, device.ep_device, (OrtDeviceMemoryType)17, OrtDeviceAllocator,
                                           NULL, &made),
              ORT_INVALID_ARGUMENT, "memory of type 17");
  CHECK_FAILS(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                           OrtReadOnlyAllocator, NULL, &made),
              ORT_INVALID_ARGUMENT, "allocator type 2");
  unplug(&device);
  close_env();
}

/* Factories with one arena for all give it again and count. */
static void test_a_factory_may_give_the_same_allocator_again(void) {
  OrtAllocator* made = NULL;
  open_env();
  Device device = plug("plain.same");
  OrtAllocator* first = allocator_of(device.memory);
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  CHECK(made == first);
  void* block = NULL;
  CHECK_OK(api()->AllocatorAlloc(made, 8, &block)); /* still there */
  CHECK_OK(api()->AllocatorFree(made, block));
  unplug(&device);
  close_env();
}

static void test_ok_without_an_allocator_means_the_cpu(void) {
  OrtAllocator* made = NULL;
  open_env();
  Device device = plug("plain.null");
  CHECK(shared_allocator(device.memory) == cpu_allocator());
  CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                        OrtDeviceAllocator, NULL, &made));
  CHECK(made == cpu_allocator());
  OrtValue* value = tensor_from(made, 2);
  data_of(value)[1] = 1;
  api()->ReleaseValue(value);
  unplug(&device);
  close_env();
}

static void test_unknown_memory_has_no_shared_allocator(void) {
  OrtMemoryInfo* memory = NULL;
  open_env();
  CHECK_OK(api()->CreateMemoryInfo_V2("Nowhere", OrtMemoryInfoDeviceType_GPU, 1, 2,
                                      OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &memory));
  CHECK(shared_allocator(memory) == NULL);
  api()->ReleaseMemoryInfo(memory);
  close_env();
}

/* The structs end before an unmapped page: what is read too far crashes. */
static void test_old_allocators_are_not_read_past_their_end(void) {
  static const char* const versions[] = {"plain.v1", "plain.v17", "plain.v18", "plain.v22", "plain.v23"};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    OrtAllocator* arena = NULL;
    OrtKeyValuePairs* stats = NULL;
    const char *const *keys, *const *values;
    size_t count = 1;
    open_env();
    Device device = plug(versions[i]);
    OrtAllocator* plain = allocator_of(device.memory);
    OrtValue* value = tensor_from(plain, 3);
    api()->ReleaseValue(value);
    CHECK_OK(api()->AllocatorGetStats(plain, &stats));
    api()->GetKeyValuePairs(stats, &keys, &values, &count);
    CHECK(count == 0);
    api()->ReleaseKeyValuePairs(stats);
    CHECK_OK(api()->CreateSharedAllocator(env, device.ep_device, OrtDeviceMemoryType_DEFAULT,
                                          OrtArenaAllocator, NULL, &arena));
    int64_t allocs = device.plain->allocs;
    void* block = arena->Reserve(arena, 100);
    CHECK(device.plain->reserves == (i < 2 ? 0 : 1)); /* Reserve came with 18 */
    CHECK(device.plain->allocs == allocs + (i < 2 ? 1 : 0));
    arena->Free(arena, block);
    CHECK_OK(arena->Shrink(arena));
    CHECK(device.plain->frees == 2);
    unplug(&device);
    close_env();
  }
}

static const OrtMemoryInfo* own_info;
static int own_blocks;

static void* ORT_API_CALL count_and_alloc(OrtAllocator* this_, size_t size) {
  (void)this_;
  own_blocks++;
  return malloc(size);
}

static void ORT_API_CALL count_and_free(OrtAllocator* this_, void* p) {
  (void)this_;
  own_blocks--;
  free(p);
}

static const OrtMemoryInfo* ORT_API_CALL get_own_info(const OrtAllocator* this_) {
  (void)this_;
  return own_info;
}

static void test_applications_register_allocators(void) {
  OrtMemoryInfo* memory = NULL;
  OrtAllocator own = {.version = 1, .Alloc = count_and_alloc, .Free = count_and_free, .Info = get_own_info};
  open_env();
  CHECK_OK(api()->CreateMemoryInfo_V2("Own", OrtMemoryInfoDeviceType_NPU, 1, 2, OrtDeviceMemoryType_DEFAULT,
                                      0, OrtDeviceAllocator, &memory));
  own_info = memory;
  CHECK_FAILS(api()->UnregisterAllocator(env, memory), ORT_INVALID_ARGUMENT, "'Own'");
  CHECK_OK(api()->RegisterAllocator(env, &own));
  CHECK(shared_allocator(memory) == &own);
  OrtAllocator other = own;
  CHECK_OK(api()->RegisterAllocator(env, &other)); /* replaces */
  CHECK(shared_allocator(memory) == &other);
  CHECK_OK(api()->RegisterAllocator(env, &own));
  CHECK(shared_allocator(memory) == &own);
  OrtValue* value = tensor_from(&own, 2);
  CHECK(own_blocks == 1);
  api()->ReleaseValue(value);
  CHECK(own_blocks == 0);
  CHECK_OK(api()->UnregisterAllocator(env, memory));
  CHECK(shared_allocator(memory) == NULL);
  api()->ReleaseMemoryInfo(memory);
  CHECK_FAILS(api()->RegisterAllocator(env, NULL), ORT_INVALID_ARGUMENT, "'allocator' is NULL");
  Device device = plug("virtual");
  CHECK_FAILS(api()->UnregisterAllocator(env, device.memory), ORT_INVALID_ARGUMENT, "VirtualDevice");
  close_env();
}

int main(void) {
  RUN(test_memory_devices_say_where_bytes_are);
  RUN(test_two_libraries_are_two_devices);
  RUN(test_registration_makes_the_shared_allocators);
  RUN(test_neighbours_share_a_device);
  RUN(test_a_neighbour_may_replace_the_shared_allocator);
  RUN(test_shared_allocators_are_replaced_and_released);
  RUN(test_a_factory_may_give_the_same_allocator_again);
  RUN(test_ok_without_an_allocator_means_the_cpu);
  RUN(test_unknown_memory_has_no_shared_allocator);
  RUN(test_old_allocators_are_not_read_past_their_end);
  RUN(test_applications_register_allocators);
  return finish();
}

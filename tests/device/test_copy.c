/* CopyTensors, with no session: between host and device, on a device, between devices, and what is refused.
 */
#include "devices.h"

#define COUNT 1000

static void test_host_to_device_and_back(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue *source = host_tensor(COUNT, 5), *there = tensor_on(&device, COUNT), *back = host_tensor(COUNT, 0);
  CHECK_OK(copy(source, there, NULL));
  CHECK_OK(copy(there, back, NULL));
  CHECK(holds(back, COUNT, 5));
  CHECK(device.control->copies_to_device == 1 && device.control->copies_to_host == 1);
  CHECK(device.control->copies_with_stream == 0);
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(back);
  CHECK(device.control->live_chunks == 0);
  close_env();
}

static void test_within_one_device(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue *source = host_tensor(COUNT, 7), *one = tensor_on(&device, COUNT),
           *two = tensor_on(&device, COUNT);
  CHECK_OK(copy(source, one, NULL));
  CHECK_OK(copy(one, two, NULL));
  CHECK(device_holds(two, COUNT, 7));
  CHECK(device.control->copies_on_device == 1);
  api()->ReleaseValue(source);
  api()->ReleaseValue(one);
  api()->ReleaseValue(two);
  close_env();
}

static void test_host_memory_of_the_device_is_the_hosts_too(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue* pinned = tensor_from(shared_allocator(device.host_memory), COUNT);
  OrtValue *source = host_tensor(COUNT, 2), *there = tensor_on(&device, COUNT);
  CHECK_OK(copy(source, pinned, NULL));
  CHECK(holds(pinned, COUNT, 2));
  CHECK_OK(copy(pinned, there, NULL));
  CHECK(device_holds(there, COUNT, 2));
  api()->ReleaseValue(pinned);
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  close_env();
}

static void test_host_to_host_needs_no_ep(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue *source = host_tensor(COUNT, 3), *target = host_tensor(COUNT, 0);
  CHECK_OK(copy(source, target, NULL));
  CHECK(holds(target, COUNT, 3));
  CHECK(device.control->copies_to_device + device.control->copies_to_host == 0);
  api()->ReleaseValue(source);
  api()->ReleaseValue(target);
  close_env();
}

/* More than are staged at once; with the stream of either side and without. */
static void copy_across(const Device* from, const Device* to, OrtSyncStream* stream) {
  enum { TENSORS = 40 };
  OrtValue *first[TENSORS], *second[TENSORS];
  for (int i = 0; i < TENSORS; i++) {
    OrtValue* source = host_tensor(10 + i, (float)i);
    first[i] = tensor_on(from, 10 + i);
    second[i] = tensor_on(to, 10 + i);
    CHECK_OK(copy(source, first[i], NULL));
    api()->ReleaseValue(source);
  }
  uint64_t before = from->control->copies_with_stream + to->control->copies_with_stream;
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)first, second, stream, TENSORS));
  CHECK(from->control->copies_with_stream + to->control->copies_with_stream - before ==
        (stream != NULL ? TENSORS : 0));
  for (int i = 0; i < TENSORS; i++) {
    CHECK(device_holds(second[i], 10 + i, (float)i));
    api()->ReleaseValue(first[i]);
    api()->ReleaseValue(second[i]);
  }
}

static void test_between_two_eps_through_the_cpu(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtSyncStream *stream_one = stream_on(&one), *stream_two = stream_on(&two);
  one.control->max_delay_us = two.control->max_delay_us = 500;
  copy_across(&one, &two, NULL);
  copy_across(&two, &one, NULL);
  copy_across(&one, &two, stream_one);
  copy_across(&one, &two, stream_two);
  copy_across(&two, &one, stream_one);
  copy_across(&two, &one, stream_two);
  CHECK(one.control->copies_on_device + two.control->copies_on_device == 0);
  api()->ReleaseSyncStream(stream_one);
  api()->ReleaseSyncStream(stream_two);
  CHECK(one.control->live_chunks == 0 && two.control->live_chunks == 0);
  close_env();
}

/* From a device to the host-accessible memory of another: the second half needs no EP. */
static void test_the_host_does_the_half_that_it_can(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtValue *source = host_tensor(COUNT, 4), *there = tensor_on(&one, COUNT);
  OrtValue* pinned = tensor_from(shared_allocator(two.host_memory), COUNT);
  CHECK_OK(copy(source, there, NULL));
  CHECK_OK(copy(there, pinned, NULL));
  CHECK(holds(pinned, COUNT, 4));
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(pinned);
  close_env();
}

static void test_one_stream_on_the_single_and_the_batched_path(void) {
  open_env();
  Device device = plug("plain");
  OrtSyncStream* stream = stream_on(&device);
  OrtValue *sources[3], *targets[3];
  for (int i = 0; i < 3; i++) sources[i] = host_tensor(4, (float)i), targets[i] = tensor_on(&device, 4);
  CHECK_OK(copy(sources[0], targets[0], stream));
  CHECK(device.plain->last_count == 1 && device.plain->last_streams[0] == stream);
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)sources, targets, stream, 3));
  CHECK(device.plain->copy_calls == 2 && device.plain->last_count == 3); /* the EP gets the batch as one */
  for (int i = 0; i < 3; i++) CHECK(device.plain->last_streams[i] == stream);
  CHECK_OK(copy(sources[0], targets[0], NULL));
  CHECK(!device.plain->last_had_streams);
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)sources, targets, NULL, 3));
  CHECK(device.plain->last_count == 3 && !device.plain->last_had_streams);
  for (int i = 0; i < 3; i++) {
    CHECK(device_holds(targets[i], 4, (float)i));
    api()->ReleaseValue(sources[i]);
    api()->ReleaseValue(targets[i]);
  }
  api()->ReleaseSyncStream(stream);
  close_env();
}

/* The copies may end after the call; the source may change at once, the target holds them once waited for. */
static void test_copies_on_a_stream_are_there_once_waited_for(void) {
  open_env();
  Device device = plug("virtual");
  OrtSyncStream* stream = stream_on(&device);
  OrtValue *source = host_tensor(COUNT, 1), *there = tensor_on(&device, COUNT), *back = host_tensor(COUNT, 0);
  device.control->max_delay_us = 2000;
  CHECK_OK(copy(source, there, stream));
  CHECK_OK(copy(there, back, stream));
  data_of(source)[0] = -1;
  wait_for(stream);
  CHECK(holds(back, COUNT, 1));
  CHECK(device.control->copies_with_stream == 2);
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(back);
  api()->ReleaseSyncStream(stream);
  close_env();
}

static void test_tensors_without_bytes_never_reach_the_ep(void) {
  open_env();
  Device device = plug("plain");
  OrtValue *empty = tensor_from(cpu_allocator(), 0), *empty_there = tensor_on(&device, 0);
  OrtValue *full = host_tensor(4, 9), *full_there = tensor_on(&device, 4);
  OrtValue *sources[] = {empty, full, empty}, *targets[] = {empty_there, full_there, empty_there};
  CHECK_OK(copy(empty, empty_there, NULL));
  CHECK(device.plain->copy_calls == 0);
  CHECK_OK(api()->CopyTensors(env, (const OrtValue* const*)sources, targets, NULL, 3));
  CHECK(device.plain->copy_calls == 1 && device.plain->last_count == 1);
  CHECK(device_holds(full_there, 4, 9));
  CHECK_OK(api()->CopyTensors(env, NULL, NULL, NULL, 0));
  api()->ReleaseValue(empty);
  api()->ReleaseValue(empty_there);
  api()->ReleaseValue(full);
  api()->ReleaseValue(full_there);
  close_env();
}

static void test_without_a_transfer_the_error_names_both_devices(void) {
  open_env();
  Device mute = plug("plain.no-transfer"), able = plug("virtual");
  OrtValue *source = host_tensor(4, 0), *there = tensor_on(&mute, 4), *elsewhere = tensor_on(&able, 4);
  CHECK_FAILS(copy(source, there, NULL), ORT_NOT_IMPLEMENTED,
              "from CPU (vendor 0x0, device 0) to NPU (vendor 0xbe57, device 7)");
  CHECK_FAILS(copy(there, elsewhere, NULL), ORT_NOT_IMPLEMENTED,
              "from NPU (vendor 0xbe57, device 7) to GPU (vendor 0xbe57, device 0)");
  CHECK_FAILS(copy(elsewhere, there, NULL), ORT_NOT_IMPLEMENTED,
              "from GPU (vendor 0xbe57, device 0) to NPU (vendor 0xbe57, device 7)");
  api()->ReleaseValue(source);
  api()->ReleaseValue(there);
  api()->ReleaseValue(elsewhere);
  close_env();
}

static OrtStatus* copy_two(OrtValue* a, OrtValue* to_a, OrtValue* b, OrtValue* to_b) {
  const OrtValue* sources[] = {a, b};
  OrtValue* targets[] = {to_a, to_b};
  return api()->CopyTensors(env, sources, targets, NULL, 2);
}

/* gives: a tensor over a part of another's data. */
static OrtValue* part_of(OrtValue* whole, int64_t first, int64_t count) {
  OrtMemoryInfo* cpu = NULL;
  OrtValue* part = NULL;
  CHECK_OK(api()->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu));
  CHECK_OK(api()->CreateTensorWithDataAsOrtValue(cpu, data_of(whole) + first, (size_t)count * sizeof(float),
                                                 &count, 1, FLOAT, &part));
  api()->ReleaseMemoryInfo(cpu);
  return part;
}

static void test_overlapping_batches_are_refused(void) {
  open_env();
  Device device = plug("virtual");
  OrtValue *whole = host_tensor(40, 0), *low = part_of(whole, 0, 20), *middle = part_of(whole, 19, 20);
  OrtValue *high = part_of(whole, 20, 20), *nothing = part_of(whole, 5, 0);
  OrtValue *other = host_tensor(20, 50), *there = tensor_on(&device, 20), *too = tensor_on(&device, 20);
  CHECK_FAILS(copy_two(other, low, other, middle), ORT_INVALID_ARGUMENT, "two targets of one batch overlap");
  CHECK_FAILS(copy_two(other, middle, other, low), ORT_INVALID_ARGUMENT, "two targets of one batch overlap");
  CHECK_FAILS(copy_two(other, low, middle, other), ORT_INVALID_ARGUMENT, "a source of one batch overlaps");
  CHECK_FAILS(copy_two(low, high, high, low), ORT_INVALID_ARGUMENT, "a source of one batch overlaps");
  CHECK_FAILS(copy_two(other, there, other, there), ORT_INVALID_ARGUMENT, "two targets of one batch overlap");
  CHECK_FAILS(copy_two(there, too, too, there), ORT_INVALID_ARGUMENT, "a source of one batch overlaps");
  CHECK(holds(whole, 40, 0));
  CHECK_OK(copy_two(other, low, other, high));
  CHECK(holds(low, 20, 50) && holds(high, 20, 50));
  CHECK_OK(copy_two(other, low, nothing, nothing));
  CHECK_OK(copy_two(other, there, other, too));
  OrtValue* all[] = {whole, low, middle, high, nothing, other, there, too};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) api()->ReleaseValue(all[i]);
  close_env();
}

static void test_mixed_devices_are_refused(void) {
  open_env();
  Device one = plug("virtual"), two = plug("other");
  OrtValue *host = host_tensor(4, 0), *also = host_tensor(4, 0);
  OrtValue *on_one = tensor_on(&one, 4), *on_two = tensor_on(&two, 4);
  CHECK_FAILS(copy_two(host, on_one, also, on_two), ORT_INVALID_ARGUMENT,
              "target 1 is on another memory device");
  CHECK_FAILS(copy_two(on_one, host, on_two, also), ORT_INVALID_ARGUMENT,
              "source 1 is on another memory device");
  CHECK(one.control->copies_to_device + one.control->copies_to_host == 0);
  api()->ReleaseValue(host);
  api()->ReleaseValue(also);
  api()->ReleaseValue(on_one);
  api()->ReleaseValue(on_two);
  close_env();
}

static void test_bad_pairs_are_refused(void) {
  const int64_t four = 4;
  OrtValue *strings = NULL, *refused = NULL;
  open_env();
  Device device = plug("virtual");
  OrtValue *host = host_tensor(4, 0), *longer = host_tensor(5, 0), *there = tensor_on(&device, 4);
  CHECK_OK(api()->CreateTensorAsOrtValue(cpu_allocator(), &four, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING,
                                         &strings));
  CHECK_FAILS(copy(strings, there, NULL), ORT_INVALID_ARGUMENT, "pair 0 is not two numeric tensors");
  CHECK_FAILS(copy(there, strings, NULL), ORT_INVALID_ARGUMENT, "pair 0 is not two numeric tensors");
  CHECK_FAILS(api()->CreateTensorAsOrtValue(shared_allocator(device.memory), &four, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &refused),
              ORT_INVALID_ARGUMENT, "string tensors live in CPU memory");
  CHECK_FAILS(copy(longer, there, NULL), ORT_INVALID_ARGUMENT, "pair 0 has 20 and 16 bytes");
  CHECK_FAILS(copy(NULL, there, NULL), ORT_INVALID_ARGUMENT, "source 0 is NULL");
  CHECK_FAILS(copy(host, NULL, NULL), ORT_INVALID_ARGUMENT, "target 0 is NULL");
  CHECK_FAILS(api()->CopyTensors(env, NULL, &there, NULL, 1), ORT_INVALID_ARGUMENT, "'src_tensors' is NULL");
  CHECK(device.control->live_chunks == 1 && device.control->copies_to_device == 0);
  api()->ReleaseValue(strings);
  api()->ReleaseValue(host);
  api()->ReleaseValue(longer);
  api()->ReleaseValue(there);
  close_env();
}

int main(void) {
  RUN(test_host_to_device_and_back);
  RUN(test_within_one_device);
  RUN(test_host_memory_of_the_device_is_the_hosts_too);
  RUN(test_host_to_host_needs_no_ep);
  RUN(test_between_two_eps_through_the_cpu);
  RUN(test_the_host_does_the_half_that_it_can);
  RUN(test_one_stream_on_the_single_and_the_batched_path);
  RUN(test_copies_on_a_stream_are_there_once_waited_for);
  RUN(test_tensors_without_bytes_never_reach_the_ep);
  RUN(test_without_a_transfer_the_error_names_both_devices);
  RUN(test_overlapping_batches_are_refused);
  RUN(test_mixed_devices_are_refused);
  RUN(test_bad_pairs_are_refused);
  return finish();
}

/* Shared allocators: one for each device memory, made when a library is registered. What changes the list
 * runs under env_lock. */
#include "api_slots.h"
#include "plugins/plugins.h"

/* borrows: valid until the list changes. Names and alignment do not count. Under the environment's mutex. */
static SharedAllocator* find(OrtEnv* env, const OrtMemoryInfo* memory) {
  for (size_t i = 0; i < env->shared_allocator_count; i++) {
    SharedAllocator* entry = &env->shared_allocators[i];
    if (!entry->is_retired && memory_device_equal(&entry->memory->device, &memory->device)) return entry;
  }
  return NULL;
}

OrtAllocator* env_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory) {
  pthread_mutex_lock(&env->mutex);
  SharedAllocator* entry = find(env, memory);
  OrtAllocator* allocator = entry != NULL ? entry->allocator : NULL;
  pthread_mutex_unlock(&env->mutex);
  bool is_cpu = memory_device_equal(&memory->device, &memory_info_cpu.device);
  return allocator == NULL && is_cpu ? allocator_cpu() : allocator;
}

static void give_back(const OrtEpDevice* owner, OrtAllocator* allocator) {
  owner->factory->ReleaseAllocator(owner->factory, allocator);
}

static bool is_listed(OrtEnv* env, const OrtAllocator* allocator) {
  bool is_found = false;
  pthread_mutex_lock(&env->mutex);
  for (size_t i = 0; i < env->shared_allocator_count; i++)
    is_found = is_found || env->shared_allocators[i].allocator == allocator;
  pthread_mutex_unlock(&env->mutex);
  return is_found;
}

/* Asks the device's factory for an allocator; OK with none means the CPU one. */
static OrtStatus* make(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory,
                       const OrtKeyValuePairs* options, SharedAllocator* out) {
  OrtEpFactory* factory = device->factory;
  OrtAllocator* allocator = NULL;
  if (GUARD_SLOT(factory, device->factory_version, CreateAllocator, 23) == NULL ||
      GUARD_SLOT(factory, device->factory_version, ReleaseAllocator, 23) == NULL)
    return status_new(
        ORT_INVALID_ARGUMENT,
        "%s: OrtEpFactory::CreateAllocator or ReleaseAllocator is NULL, but the device has memory '%s'",
        device->ep_name, memory->name);
  OrtStatus* status = factory->CreateAllocator(factory, memory, options, &allocator);
  if (status != NULL)
    return status_wrap(status, "%s: OrtEpFactory::CreateAllocator for '%s'", device->ep_name, memory->name);
  *out = (SharedAllocator){.allocator = allocator, .memory = memory, .owner = device, .is_made = true};
  if (allocator == NULL) {
    out->allocator = allocator_cpu();
    out->is_made = false;
    return NULL;
  }
  if (allocator != allocator_cpu() && is_listed(env, allocator))
    return status_new(
        ORT_INVALID_ARGUMENT,
        "%s: OrtEpFactory::CreateAllocator for '%s' gave an allocator that is registered already",
        device->ep_name, memory->name);
  status = guard_allocator(allocator, device->ep_name);
  if (status != NULL) give_back(device, allocator);
  return status;
}

/* takes an entry out of the list. Under the environment's mutex. */
static SharedAllocator take_at(OrtEnv* env, size_t at) {
  SharedAllocator entry = env->shared_allocators[at];
  env->shared_allocator_count--;
  for (; at < env->shared_allocator_count; at++) env->shared_allocators[at] = env->shared_allocators[at + 1];
  return entry;
}

/* takes out the entry for a memory, or, while somebody runs on its library, leaves it there unseen. Gives
 * what is to be given back: nothing if `is_made` is false. Under the environment's mutex. */
static SharedAllocator retire(OrtEnv* env, SharedAllocator* entry) {
  const EpLibrary* library = entry->owner->library;
  if (library == NULL || library->users == 0) return take_at(env, (size_t)(entry - env->shared_allocators));
  entry->is_retired = true;
  return (SharedAllocator){0};
}

/* Makes an allocator and puts it in the place of the equal one, if there is one. */
static OrtStatus* add(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory,
                      const OrtKeyValuePairs* options, OrtAllocator** allocator) {
  SharedAllocator made, old = {0};
  TRY(make(env, device, memory, options, &made));
  pthread_mutex_lock(&env->mutex);
  bool is_added =
      ARRAY_RESERVE(env->shared_allocators, env->shared_allocator_capacity, env->shared_allocator_count + 1);
  if (is_added) {
    SharedAllocator* entry = find(env, memory);
    if (entry != NULL) old = retire(env, entry);
    env->shared_allocators[env->shared_allocator_count++] = made;
  }
  pthread_mutex_unlock(&env->mutex);
  if (old.is_made) give_back(old.owner, old.allocator);
  if (!is_added && made.is_made) give_back(device, made.allocator);
  if (!is_added) return status_no_memory();
  if (allocator != NULL) *allocator = made.allocator;
  return NULL;
}

static OrtStatus* ensure(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory) {
  if (memory == NULL) return NULL;
  pthread_mutex_lock(&env->mutex);
  bool is_there = find(env, memory) != NULL;
  pthread_mutex_unlock(&env->mutex);
  return is_there ? NULL : add(env, device, memory, NULL, NULL);
}

OrtStatus* shared_allocators_ensure(OrtEnv* env, OrtEpDevice* device) {
  TRY(ensure(env, device, device->device_memory));
  return ensure(env, device, device->host_accessible_memory);
}

void shared_allocators_drop(OrtEnv* env, const OrtEpDevice* device) {
  for (bool is_found = true; is_found;) {
    SharedAllocator entry = {0};
    is_found = false;
    pthread_mutex_lock(&env->mutex);
    for (size_t i = 0; i < env->shared_allocator_count && !is_found; i++) {
      is_found = env->shared_allocators[i].owner == device;
      if (is_found) entry = take_at(env, i);
    }
    pthread_mutex_unlock(&env->mutex);
    if (entry.is_made) give_back(device, entry.allocator);
  }
}

/* ---- Slots ---- */

/* borrows: of the device. */
static OrtStatus* memory_of(const OrtEpDevice* device, OrtDeviceMemoryType type, const char* slot,
                            const OrtMemoryInfo** out) {
  *out = type == OrtDeviceMemoryType_DEFAULT           ? device->device_memory
         : type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? device->host_accessible_memory
                                                       : NULL;
  if (*out != NULL) return NULL;
  return status_new(ORT_INVALID_ARGUMENT, "%s: the device of %s has no memory of type %d", slot,
                    device->ep_name, (int)type);
}

static OrtStatus* create_shared(OrtEnv* env, OrtEpDevice* device, OrtDeviceMemoryType mem_type,
                                const OrtKeyValuePairs* options, OrtAllocator** allocator) {
  const OrtMemoryInfo* memory = NULL;
  TRY(ep_device_check(env, device, "CreateSharedAllocator"));
  TRY(memory_of(device, mem_type, "CreateSharedAllocator", &memory));
  return add(env, device, memory, options, allocator);
}

/* Replaces the one that is there. borrows: `*allocator` belongs to the environment. */
OrtStatus* ORT_API_CALL api_CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                                  OrtDeviceMemoryType mem_type,
                                                  OrtAllocatorType allocator_type,
                                                  const OrtKeyValuePairs* allocator_options,
                                                  OrtAllocator** allocator) {
  TRY(env_check(env, __func__));
  if (allocator_type == OrtArenaAllocator)
    return status_new(ORT_NOT_IMPLEMENTED, "CreateSharedAllocator: OrtArenaAllocator is not implemented");
  if (allocator_type != OrtDeviceAllocator)
    return status_new(ORT_INVALID_ARGUMENT, "CreateSharedAllocator: allocator type %d", (int)allocator_type);
  env_lock();
  OrtStatus* status = create_shared(env, (OrtEpDevice*)ep_device, mem_type, allocator_options, allocator);
  env_unlock();
  return status;
}

/* borrows: NULL, with no error, when there is none. */
OrtStatus* ORT_API_CALL api_GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                               OrtAllocator** allocator) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(mem_info);
  REQUIRE_ARG(allocator);
  *allocator = env_shared_allocator(env, mem_info);
  return NULL;
}

static OrtStatus* release_shared(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType mem_type) {
  const OrtMemoryInfo* memory = NULL;
  SharedAllocator old = {0};
  TRY(ep_device_check(env, device, "ReleaseSharedAllocator"));
  TRY(memory_of(device, mem_type, "ReleaseSharedAllocator", &memory));
  pthread_mutex_lock(&env->mutex);
  SharedAllocator* entry = find(env, memory);
  if (entry != NULL) old = retire(env, entry);
  pthread_mutex_unlock(&env->mutex);
  if (entry == NULL)
    return status_new(ORT_INVALID_ARGUMENT, "ReleaseSharedAllocator: there is none for '%s' of %s",
                      memory->name, device->ep_name);
  if (old.is_made) give_back(old.owner, old.allocator);
  return NULL;
}

OrtStatus* ORT_API_CALL api_ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                                   OrtDeviceMemoryType mem_type) {
  TRY(env_check(env, __func__));
  env_lock();
  OrtStatus* status = release_shared(env, ep_device, mem_type);
  env_unlock();
  return status;
}

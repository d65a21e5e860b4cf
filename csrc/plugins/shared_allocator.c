/* Shared allocators: one for each device memory, made when a library is registered, or by the application.
 * What changes the list runs under env_lock. */
#include "api_slots.h"
#include "plugins/plugins.h"

/* borrows: valid as long as the environment's mutex is held. Names and alignment do not count. */
static SharedAllocator* find(OrtEnv* env, const OrtMemoryInfo* memory) {
  for (size_t i = 0; i < env->shared_allocator_count; i++) {
    SharedAllocator* entry = env->shared_allocators[i];
    if (!entry->is_retired && memory_device_equal(&entry->memory->device, &memory->device)) return entry;
  }
  return NULL;
}

/* The same for an allocator, also a retired one. */
static SharedAllocator* find_allocator(OrtEnv* env, const OrtAllocator* allocator) {
  for (size_t i = 0; i < env->shared_allocator_count; i++) {
    SharedAllocator* entry = env->shared_allocators[i];
    if (entry->allocator == allocator || entry->made == allocator) return entry;
  }
  return NULL;
}

/* Keeps the entry, its owner's library and the environment. An application's own allocator is the
 * application's to keep: NULL. Under the environment's mutex. */
static SharedAllocator* use(OrtEnv* env, SharedAllocator* entry, LibraryUse as) {
  if (entry == NULL || env->references == 0 || (entry->owner == NULL && entry->arena == NULL)) return NULL;
  EpLibrary* library = entry->owner != NULL ? entry->owner->library : NULL;
  entry->uses++;
  if (library != NULL) library->uses[as]++;
  env->references++;
  return entry;
}

OrtAllocator* env_use_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory, LibraryUse as,
                                       SharedAllocator** used) {
  pthread_mutex_lock(&env->mutex);
  SharedAllocator* entry = find(env, memory);
  OrtAllocator* allocator = entry != NULL ? entry->allocator : NULL;
  if (used != NULL) *used = use(env, entry, as);
  pthread_mutex_unlock(&env->mutex);
  bool is_cpu = memory_device_equal(&memory->device, &memory_info_cpu.device);
  return allocator == NULL && is_cpu ? allocator_cpu() : allocator;
}

void shared_allocator_unuse(SharedAllocator* used, LibraryUse as) {
  if (used == NULL) return;
  EpLibrary* library = used->owner != NULL ? used->owner->library : NULL;
  used->uses--; /* from here on it stays only as long as its library is in use */
  if (library != NULL) library->uses[as]--;
  env_release(env_current());
}

OrtAllocator* env_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory) {
  return env_use_shared_allocator(env, memory, USE_CALL, NULL);
}

OrtAllocator* env_await_shared_allocator(OrtEnv* env, const OrtMemoryInfo* memory, LibraryUse as,
                                         SharedAllocator** used) {
  env_lock();
  OrtAllocator* allocator = env_use_shared_allocator(env, memory, as, used);
  env_unlock();
  return allocator;
}

bool env_allocator_takes_streams(OrtEnv* env, const OrtAllocator* allocator, const EpLibrary* library) {
  pthread_mutex_lock(&env->mutex);
  const SharedAllocator* entry = find_allocator(env, allocator);
  bool is_foreign =
      entry != NULL && entry->arena == NULL && entry->owner != NULL && entry->owner->library != library;
  pthread_mutex_unlock(&env->mutex);
  return !is_foreign && allocator_knows_streams(allocator);
}

/* ---- Tensors keep allocators ---- */

static void* hold(OrtAllocator* allocator) {
  OrtEnv* env = env_current();
  pthread_mutex_lock(&env->mutex);
  SharedAllocator* used = use(env, find_allocator(env, allocator), USE_TENSOR);
  pthread_mutex_unlock(&env->mutex);
  return used;
}

static void drop(void* held) {
  shared_allocator_unuse(held, USE_TENSOR);
}

const AllocatorKeeper shared_allocator_keeper = {hold, drop};

/* ---- Making and giving back ---- */

/* releases the entry and what was made for it; NULL is fine. */
static void give_back(SharedAllocator* entry) {
  if (entry == NULL) return;
  arena_allocator_release(entry->arena);
  if (entry->made != NULL) call_OrtEpFactory_ReleaseAllocator(entry->owner->factory, entry->made, NULL);
  mem_free(entry);
}

/* gives (caller releases with give_back). NULL: no memory. */
static SharedAllocator* entry_new(OrtAllocator* allocator, const OrtMemoryInfo* memory, OrtEpDevice* owner) {
  SharedAllocator* entry = mem_calloc(1, sizeof *entry);
  if (entry != NULL) *entry = (SharedAllocator){.allocator = allocator, .memory = memory, .owner = owner};
  return entry;
}

/* The factory's answer to the request for an allocator; NULL means the CPU one. */
static OrtStatus* ask(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory,
                      const OrtKeyValuePairs* options, OrtAllocator** out) {
  OrtEpFactory* factory = device->factory;
  OrtStatus* status = call_OrtEpFactory_CreateAllocator(factory, memory, options, out);
  if (status != NULL)
    return status_wrap(status, "%s: OrtEpFactory::CreateAllocator for '%s'", device->ep_name, memory->name);
  pthread_mutex_lock(&env->mutex); /* the same again for the same memory is fine: each is released once */
  const SharedAllocator* other = *out != NULL && !allocator_is_cpu(*out) ? find_allocator(env, *out) : NULL;
  bool is_foreign = other != NULL && (other->owner == NULL || other->owner->factory != factory ||
                                      !memory_device_equal(&other->memory->device, &memory->device));
  pthread_mutex_unlock(&env->mutex);
  if (!is_foreign) return NULL;
  return status_new(ORT_INVALID_ARGUMENT,
                    "%s: OrtEpFactory::CreateAllocator for '%s' gave an allocator that is registered already",
                    device->ep_name, memory->name);
}

/* gives (caller releases with give_back): what the device's factory makes. */
static OrtStatus* make(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory,
                       const OrtKeyValuePairs* options, SharedAllocator** out) {
  OrtEpFactory* factory = device->factory;
  if (GUARD_SLOT(factory, device->factory_version, CreateAllocator, 23) == NULL ||
      GUARD_SLOT(factory, device->factory_version, ReleaseAllocator, 23) == NULL)
    return status_new(
        ORT_INVALID_ARGUMENT,
        "%s: OrtEpFactory::CreateAllocator or ReleaseAllocator is NULL, but the device has memory '%s'",
        device->ep_name, memory->name);
  SharedAllocator* entry = entry_new(allocator_cpu(), memory, device);
  if (entry == NULL) return status_no_memory();
  OrtAllocator* made = NULL;
  OrtStatus* status = ask(env, device, memory, options, &made);
  if (status == NULL && made != NULL) {
    entry->allocator = entry->made = made;
    status = guard_allocator(made, device->ep_name);
  }
  if (status != NULL)
    give_back(entry);
  else
    *out = entry;
  return status;
}

/* An EP's own arena gives memory to streams or shrinks; it is used as it is. */
static bool is_plain(const OrtAllocator* allocator) {
  if (allocator_is_cpu(allocator)) return true;
  bool knows_streams = allocator_has(allocator, 23) && allocator->AllocOnStream != NULL;
  return !knows_streams && !(allocator_has(allocator, 25) && allocator->Shrink != NULL);
}

/* Puts our arena around what was made. */
static OrtStatus* wrap(SharedAllocator* entry, const OrtArenaCfg* config) {
  TRY(arena_allocator_new(entry->allocator, config, &entry->arena));
  entry->allocator = arena_allocator_face(entry->arena);
  return NULL;
}

/* ---- The list ---- */

/* takes an entry out of the list. Under the environment's mutex. */
static SharedAllocator* take_at(OrtEnv* env, size_t at) {
  SharedAllocator* entry = env->shared_allocators[at];
  env->shared_allocator_count--;
  for (; at < env->shared_allocator_count; at++) env->shared_allocators[at] = env->shared_allocators[at + 1];
  return entry;
}

static bool is_used(const SharedAllocator* entry) {
  return entry->uses > 0 || (entry->arena != NULL && arena_allocator_in_use(entry->arena) != 0);
}

/* releases the retired entries that nobody uses any more. */
static void release_retired(OrtEnv* env) {
  for (bool is_found = true; is_found;) {
    SharedAllocator* entry = NULL;
    is_found = false;
    pthread_mutex_lock(&env->mutex);
    for (size_t i = 0; i < env->shared_allocator_count && !is_found; i++) {
      const SharedAllocator* at = env->shared_allocators[i];
      is_found = at->is_retired && !is_used(at);
      if (is_found) entry = take_at(env, i);
    }
    pthread_mutex_unlock(&env->mutex);
    give_back(entry);
  }
}

/* Makes what is there for the memory one that is not found any more, and releases it unless it is used. */
static void retire(OrtEnv* env, const OrtMemoryInfo* memory) {
  pthread_mutex_lock(&env->mutex);
  SharedAllocator* entry = find(env, memory);
  if (entry != NULL) entry->is_retired = true;
  pthread_mutex_unlock(&env->mutex);
  release_retired(env);
}

/* takes `made`, also when it fails, and puts it in the place of the equal one, if there is one. */
static OrtStatus* add(OrtEnv* env, SharedAllocator* made) {
  pthread_mutex_lock(&env->mutex);
  bool is_added =
      ARRAY_RESERVE(env->shared_allocators, env->shared_allocator_capacity, env->shared_allocator_count + 1);
  if (is_added) {
    SharedAllocator* entry = find(env, made->memory);
    if (entry != NULL) entry->is_retired = true;
    env->shared_allocators[env->shared_allocator_count++] = made;
  }
  pthread_mutex_unlock(&env->mutex);
  if (!is_added) give_back(made);
  release_retired(env);
  return is_added ? NULL : status_no_memory();
}

/* The owner of what is found for the memory; false: there is none. */
static bool find_owner(OrtEnv* env, const OrtMemoryInfo* memory, const OrtEpDevice** owner) {
  pthread_mutex_lock(&env->mutex);
  const SharedAllocator* entry = find(env, memory);
  if (entry != NULL) *owner = entry->owner;
  pthread_mutex_unlock(&env->mutex);
  return entry != NULL;
}

static OrtStatus* ensure(OrtEnv* env, OrtEpDevice* device, const OrtMemoryInfo* memory) {
  const OrtEpDevice* owner = NULL;
  SharedAllocator* made = NULL;
  if (memory == NULL || find_owner(env, memory, &owner)) return NULL;
  TRY(make(env, device, memory, NULL, &made));
  return add(env, made);
}

OrtStatus* shared_allocators_ensure(OrtEnv* env, OrtEpDevice* device) {
  TRY(ensure(env, device, device->device_memory));
  return ensure(env, device, device->host_accessible_memory);
}

/* releases the entries of an owner. */
static void release_owned(OrtEnv* env, const OrtEpDevice* owner) {
  for (bool is_found = true; is_found;) {
    SharedAllocator* entry = NULL;
    is_found = false;
    pthread_mutex_lock(&env->mutex);
    for (size_t i = 0; i < env->shared_allocator_count && !is_found; i++) {
      is_found = env->shared_allocators[i]->owner == owner;
      if (is_found) entry = take_at(env, i);
    }
    pthread_mutex_unlock(&env->mutex);
    give_back(entry);
  }
}

void shared_allocators_drop(OrtEnv* env, const OrtEpDevice* device) {
  release_owned(env, device);
}

void shared_allocators_clear(OrtEnv* env) {
  release_owned(env, NULL);
}

void shared_allocators_forget_stream(OrtEnv* env, const OrtSyncStream* stream, bool is_gone) {
  pthread_mutex_lock(&env->mutex);
  for (size_t i = 0; i < env->shared_allocator_count; i++) {
    ArenaAllocator* arena = env->shared_allocators[i]->arena;
    if (arena != NULL) arena_allocator_forget_stream(arena, stream, is_gone);
  }
  pthread_mutex_unlock(&env->mutex);
}

/* ---- Slots: of EP devices ---- */

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

/* Our arena, where it was asked for: by type, or by an option and the EP has no arena of its own. */
static OrtStatus* wrap_if_asked(SharedAllocator* made, bool is_arena, const OrtKeyValuePairs* options) {
  OrtArenaCfg config;
  if (!is_arena && !(arena_config_is_asked(options) && is_plain(made->allocator))) return NULL;
  TRY(arena_config_read(options, &config));
  return wrap(made, &config);
}

/* Sessions of EPs look allocators up at any time. */
static bool has_sessions(OrtEnv* env) {
  bool is_found = false;
  pthread_mutex_lock(&env->mutex);
  for (size_t i = 1; i < env->library_count; i++) /* behind the built-in one */
    is_found = is_found || env->libraries[i]->uses[USE_SESSION] > 0;
  pthread_mutex_unlock(&env->mutex);
  return is_found;
}

/* The old one goes first: EPs may have one arena for all, which gets its options when it is made. But while
 * there are sessions, one of the two can always be found. */
static OrtStatus* create_shared(OrtEnv* env, OrtEpDevice* device, OrtDeviceMemoryType mem_type, bool is_arena,
                                const OrtKeyValuePairs* options, OrtAllocator** allocator) {
  const OrtMemoryInfo* memory = NULL;
  SharedAllocator* made = NULL;
  OrtArenaCfg config;
  TRY(ep_device_check(env, device, "CreateSharedAllocator"));
  TRY(memory_of(device, mem_type, "CreateSharedAllocator", &memory));
  if (is_arena) TRY(arena_config_read(options, &config));
  if (!has_sessions(env)) retire(env, memory);
  TRY(make(env, device, memory, options, &made));
  OrtStatus* status = wrap_if_asked(made, is_arena, options);
  if (status != NULL) {
    give_back(made);
    return status;
  }
  OrtAllocator* face = made->allocator;
  TRY(add(env, made));
  if (allocator != NULL) *allocator = face;
  return NULL;
}

/* Replaces the one that is there, which goes first, also when this fails, unless there are sessions; while
 * its memory is in use it is only not found any more. borrows: `*allocator` belongs to the environment.
 * OrtArenaAllocator, or an "arena.<something>" option where the EP's allocator is a plain one, puts our arena
 * around the EP's. */
OrtStatus* ORT_API_CALL api_CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                                  OrtDeviceMemoryType mem_type,
                                                  OrtAllocatorType allocator_type,
                                                  const OrtKeyValuePairs* allocator_options,
                                                  OrtAllocator** allocator) {
  TRY(env_check(env, __func__));
  if (allocator_type != OrtDeviceAllocator && allocator_type != OrtArenaAllocator)
    return status_new(ORT_INVALID_ARGUMENT, "CreateSharedAllocator: allocator type %d", (int)allocator_type);
  env_lock();
  OrtStatus* status = create_shared(env, (OrtEpDevice*)ep_device, mem_type,
                                    allocator_type == OrtArenaAllocator, allocator_options, allocator);
  env_unlock();
  return status;
}

/* borrows: NULL, with no error, when there is none. */
OrtStatus* ORT_API_CALL api_GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                               OrtAllocator** allocator) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(mem_info);
  REQUIRE_ARG(allocator);
  *allocator = env_await_shared_allocator(env, mem_info, USE_CALL, NULL);
  return NULL;
}

static OrtStatus* release_shared(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType mem_type) {
  const OrtMemoryInfo* memory = NULL;
  const OrtEpDevice* owner = NULL;
  TRY(ep_device_check(env, device, "ReleaseSharedAllocator"));
  TRY(memory_of(device, mem_type, "ReleaseSharedAllocator", &memory));
  if (!find_owner(env, memory, &owner))
    return status_new(ORT_INVALID_ARGUMENT, "ReleaseSharedAllocator: there is none for '%s' of %s",
                      memory->name, device->ep_name);
  retire(env, memory);
  return NULL;
}

/* While its memory is in use the allocator is only not found any more. */
OrtStatus* ORT_API_CALL api_ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                                   OrtDeviceMemoryType mem_type) {
  TRY(env_check(env, __func__));
  env_lock();
  OrtStatus* status = release_shared(env, ep_device, mem_type);
  env_unlock();
  return status;
}

/* ---- Slots: of applications ---- */

/* Replaces the one that is there, an EP's too, as stock ORT does. borrows `allocator` until it is replaced,
 * UnregisterAllocator or the end of the environment; sessions that have it by then go on using it. */
OrtStatus* ORT_API_CALL api_RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(allocator);
  TRY(guard_allocator(allocator, "RegisterAllocator"));
  OrtStatus* thrown = NULL;
  const OrtMemoryInfo* memory = call_OrtAllocator_Info(allocator, &thrown);
  TRY(thrown);
  SharedAllocator* entry = entry_new(allocator, memory, NULL);
  if (entry == NULL) return status_no_memory();
  env_lock();
  OrtStatus* status = add(env, entry);
  env_unlock();
  return status;
}

/* Forgets what RegisterAllocator or CreateAndRegisterAllocator registered. While memory of an arena is in use
 * it is only not found any more. */
OrtStatus* ORT_API_CALL api_UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(mem_info);
  const OrtEpDevice* owner = NULL;
  env_lock();
  bool is_there = find_owner(env, mem_info, &owner) && owner == NULL;
  if (is_there) retire(env, mem_info);
  env_unlock();
  if (is_there) return NULL;
  return status_new(ORT_INVALID_ARGUMENT,
                    "UnregisterAllocator: no allocator was registered for the device of '%s'",
                    mem_info->name);
}

/* OrtArenaAllocator: our arena on the CPU; else the plain CPU allocator. */
static OrtStatus* create_and_register(OrtEnv* env, const OrtMemoryInfo* memory, const OrtArenaCfg* config,
                                      const char* slot) {
  OrtArenaCfg standard;
  if (!memory_device_equal(&memory->device, &memory_info_cpu.device))
    return status_new(ORT_INVALID_ARGUMENT,
                      "%s: '%s' is not CPU memory; an EP's memory has CreateSharedAllocator", slot,
                      memory->name);
  TRY(arena_config_read(NULL, &standard));
  SharedAllocator* entry = entry_new(allocator_cpu(), &memory_info_cpu, NULL);
  if (entry == NULL) return status_no_memory();
  bool is_arena = memory->allocator_type == OrtArenaAllocator;
  OrtStatus* status = is_arena ? wrap(entry, config != NULL ? config : &standard) : NULL;
  if (status != NULL) {
    give_back(entry);
    return status;
  }
  entry->memory = call_OrtAllocator_Info(entry->allocator, NULL);
  env_lock();
  status = add(env, entry);
  env_unlock();
  return status;
}

/* copies `arena_cfg`; NULL: the defaults. Replaces the one that is there. */
OrtStatus* ORT_API_CALL api_CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                                       const OrtArenaCfg* arena_cfg) {
  TRY(env_check(env, __func__));
  REQUIRE_ARG(mem_info);
  return create_and_register(env, mem_info, arena_cfg, "CreateAndRegisterAllocator");
}

/* The same, for the CPU EP alone: others have CreateSharedAllocator. Its options mean nothing for the CPU. */
OrtStatus* ORT_API_CALL api_CreateAndRegisterAllocatorV2(
    OrtEnv* env, const char* provider_type, const OrtMemoryInfo* mem_info, const OrtArenaCfg* arena_cfg,
    const char* const* provider_options_keys, const char* const* provider_options_values, size_t num_keys) {
  (void)provider_options_keys, (void)provider_options_values, (void)num_keys;
  TRY(env_check(env, __func__));
  REQUIRE_ARG(provider_type);
  REQUIRE_ARG(mem_info);
  if (!str_equal(provider_type, "CPUExecutionProvider"))
    return status_new(ORT_INVALID_ARGUMENT,
                      "CreateAndRegisterAllocatorV2: '%s': only CPUExecutionProvider; an EP device's memory "
                      "has CreateSharedAllocator",
                      provider_type);
  return create_and_register(env, mem_info, arena_cfg, "CreateAndRegisterAllocatorV2");
}

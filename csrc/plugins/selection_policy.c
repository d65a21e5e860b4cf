/* Which EPs a session gets that was given none: by a policy, or by the application's own choice. */
#include <string.h>

#include "api_slots.h"
#include "plugins/plugins.h"

/* As in stock ORT. */
#define MOST_SELECTED 8

/* Ours: "1" in an EP device's metadata for an EP that no policy chooses. */
#define LAST_RESORT_METADATA_KEY "ort_abi_last_resort"

typedef struct Selection {
  const OrtEpDevice* devices[MOST_SELECTED + 2]; /* and the built-in one, and the last one */
  size_t count;
} Selection;

/* ---- Order of preference ---- */

static int rank_of_type(OrtHardwareDeviceType type) {
  switch (type) {
    case OrtHardwareDeviceType_NPU:
      return 0;
    case OrtHardwareDeviceType_GPU:
      return 1;
    default:
      return 2;
  }
}

static bool is_discrete(const OrtEpDevice* device) {
  const char* value = key_values_get(device->device->metadata, "Discrete");
  return device->device->type == OrtHardwareDeviceType_GPU && str_equal(value, "1");
}

/* True if the EP comes from whoever made the hardware. */
static bool is_vendors_own(const OrtEpDevice* device) {
  uint32_t(ORT_API_CALL * vendor_id)(const OrtEpFactory*) =
      GUARD_SLOT(device->factory, device->factory_version, GetVendorId, 23);
  uint32_t id = vendor_id != NULL ? call_OrtEpFactory_GetVendorId(device->factory, NULL) : 0;
  return (id != 0 && id == device->device->vendor_id) || str_equal(device->device->vendor, device->ep_vendor);
}

static bool is_last_resort(const OrtEpDevice* device) {
  return str_equal(key_values_get(device->ep_metadata, LAST_RESORT_METADATA_KEY), "1");
}

/* True if a session would rather run on `a` than on `b`: NPUs, then GPUs, then CPUs; discrete GPUs first; the
 * hardware vendor's own EP first; the built-in CPU EP last, but for the last resort. */
static bool is_better(const OrtEpDevice* a, const OrtEpDevice* b, const OrtEpDevice* built_in) {
  if (is_last_resort(a) != is_last_resort(b)) return is_last_resort(b);
  int rank_a = rank_of_type(a->device->type), rank_b = rank_of_type(b->device->type);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (is_discrete(a) != is_discrete(b)) return is_discrete(a);
  if (is_vendors_own(a) != is_vendors_own(b)) return is_vendors_own(a);
  if (a == built_in || b == built_in) return a != built_in;
  return strcmp(a->ep_name, b->ep_name) < 0;
}

/* gives (caller releases with mem_free): the environment's devices, best first; equal ones as registered. */
static OrtStatus* ordered_devices(OrtEnv* env, const OrtEpDevice*** out, size_t* count) {
  const OrtEpDevice* built_in = env_cpu_device(env);
  pthread_mutex_lock(&env->mutex);
  size_t device_count = env->device_count;
  const OrtEpDevice** devices = mem_calloc(device_count, sizeof *devices);
  for (size_t i = 0; devices != NULL && i < device_count; i++) devices[i] = env->devices[i];
  pthread_mutex_unlock(&env->mutex);
  if (devices == NULL) return status_no_memory();
  for (size_t i = 1; i < device_count; i++) {
    const OrtEpDevice* device = devices[i];
    size_t place = i;
    for (; place > 0 && is_better(device, devices[place - 1], built_in); place--)
      devices[place] = devices[place - 1];
    devices[place] = device;
  }
  *out = devices;
  *count = device_count;
  return NULL;
}

/* ---- Policies ---- */

static void select_first(Selection* selection, const OrtEpDevice* const* devices, size_t count,
                         OrtHardwareDeviceType type) {
  for (size_t i = 0; i < count; i++) {
    if (devices[i]->device->type != type || is_last_resort(devices[i])) continue;
    selection->devices[selection->count++] = devices[i];
    return;
  }
}

/* The best NPU or GPU, if one is preferred, then the best CPU, then the built-in CPU EP, which has most
 * operators. */
static void select_by_policy(Selection* selection, OrtExecutionProviderDevicePolicy policy,
                             const OrtEpDevice* const* devices, size_t count, const OrtEpDevice* built_in) {
  switch (policy) {
    case OrtExecutionProviderDevicePolicy_PREFER_NPU:
    case OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY:
    case OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER:
      select_first(selection, devices, count, OrtHardwareDeviceType_NPU);
      break;
    case OrtExecutionProviderDevicePolicy_PREFER_GPU:
    case OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE:
      select_first(selection, devices, count, OrtHardwareDeviceType_GPU);
      break;
    default:
      break;
  }
  select_first(selection, devices, count, OrtHardwareDeviceType_CPU);
  bool has_built_in = selection->count != 0 && selection->devices[selection->count - 1] == built_in;
  if (built_in != NULL && !has_built_in) selection->devices[selection->count++] = built_in;
}

/* ---- The application's choice ---- */

/* gives (caller releases with key_values_release): what a model says about itself, by the names of ONNX's
 * fields. NULL: no memory. */
static OrtKeyValuePairs* model_pairs(const OrtModel* model) {
  const OrtModelMetadata* metadata = &model->metadata;
  char* version = str_format("%lld", (long long)metadata->model_version);
  OrtKeyValuePairs* pairs = key_values_new();
  bool is_good =
      version != NULL && pairs != NULL && key_values_set(pairs, "producer_name", metadata->producer_name) &&
      key_values_set(pairs, "producer_version", metadata->producer_version) &&
      key_values_set(pairs, "domain", metadata->domain) && key_values_set(pairs, "model_version", version) &&
      key_values_set(pairs, "doc_string", metadata->description) &&
      key_values_set(pairs, "graph_name", metadata->graph_name) &&
      key_values_set(pairs, "graph_description", metadata->graph_description);
  for (size_t i = 0; is_good && i < metadata->custom->count; i++)
    is_good = key_values_set(pairs, metadata->custom->keys[i], metadata->custom->values[i]);
  mem_free(version);
  if (is_good) return pairs;
  key_values_release(pairs);
  return NULL;
}

static OrtStatus* check_choice(OrtEnv* env, const Selection* selection) {
  const size_t count = selection->count;
  if (count == 0) return status_new(ORT_FAIL, "EP selection delegate did not select anything");
  if (count > MOST_SELECTED)
    return status_new(ORT_FAIL, "EP selection delegate says that it selected %zu EP devices; there can be %d",
                      count, MOST_SELECTED);
  for (size_t i = 0; i < count; i++) {
    TRY(ep_device_check(env, selection->devices[i], "EP selection delegate"));
    for (size_t j = 0; j < i; j++) {
      if (selection->devices[i] == selection->devices[j])
        return status_new(ORT_FAIL, "EP selection delegate selected a device of EP '%s' twice",
                          selection->devices[i]->ep_name);
    }
  }
  return NULL;
}

static OrtStatus* select_by_delegate(Selection* selection, OrtEnv* env, const EpPolicy* policy,
                                     const OrtModel* model, const OrtEpDevice** devices, size_t count) {
  OrtStatus* status = NULL;
  OrtKeyValuePairs* metadata = model_pairs(model);
  OrtKeyValuePairs* runtime_metadata = key_values_new(); /* nothing yet, as in stock ORT */
  if (metadata == NULL || runtime_metadata == NULL) {
    status = status_no_memory();
    goto done;
  }
  status =
      call_EpSelectionDelegate(policy->delegate, devices, count, metadata, runtime_metadata,
                               selection->devices, MOST_SELECTED, &selection->count, policy->delegate_state);
  if (status != NULL) {
    OrtStatus* failure = status_new(ORT_FAIL, "EP selection delegate failed: %s", status_message(status));
    status_release(status);
    status = failure;
    goto done;
  }
  status = check_choice(env, selection);
done:
  key_values_release(metadata);
  key_values_release(runtime_metadata);
  return status;
}

/* ---- Into the options ---- */

/* Adds the devices of the selection's EP number `first` as one EP. */
static OrtStatus* add_ep(OrtSessionOptions* options, const Selection* selection, size_t first) {
  const OrtEpDevice** devices = mem_calloc(selection->count, sizeof *devices);
  if (devices == NULL || !ARRAY_RESERVE(options->eps, options->ep_capacity, options->ep_count + 1)) {
    mem_free(devices);
    return status_no_memory();
  }
  EpSelection* ep = &options->eps[options->ep_count++];
  *ep = (EpSelection){.devices = devices};
  for (size_t i = first; i < selection->count; i++) {
    const OrtEpDevice* device = selection->devices[i];
    if (!str_equal(device->ep_name, selection->devices[first]->ep_name)) continue;
    devices[ep->count++] = device;
    TRY(ep_device_default_options(device, options->config));
  }
  return NULL;
}

static bool is_first_of_ep(const Selection* selection, size_t index) {
  for (size_t i = 0; i < index; i++) {
    if (str_equal(selection->devices[i]->ep_name, selection->devices[index]->ep_name)) return false;
  }
  return true;
}

static void drop(Selection* selection, const OrtEpDevice* device) {
  size_t kept = 0;
  for (size_t i = 0; i < selection->count; i++) {
    if (selection->devices[i] != device) selection->devices[kept++] = selection->devices[i];
  }
  selection->count = kept;
}

OrtStatus* selection_policy_apply(OrtEnv* env, const OrtModel* model, OrtSessionOptions* options) {
  if (!options->ep_policy.is_set || options->ep_count != 0) return NULL;
  OrtStatus* status = NULL;
  const OrtEpDevice** devices = NULL;
  size_t count = 0;
  Selection selection = {.count = 0};
  env_lock(); /* the devices stay while their names and hardware are looked at */
  const OrtEpDevice* built_in = env_cpu_device(env);
  TRY_DONE(ordered_devices(env, &devices, &count));
  if (options->ep_policy.delegate != NULL)
    TRY_DONE(select_by_delegate(&selection, env, &options->ep_policy, model, devices, count));
  else
    select_by_policy(&selection, options->ep_policy.policy, devices, count, built_in);
  if (session_options_config(options, "session.disable_cpu_ep_fallback", "0")[0] == '1')
    drop(&selection, built_in);
  options->env = env;
  for (size_t i = 0; i < selection.count; i++) {
    if (is_first_of_ep(&selection, i)) TRY_DONE(add_ep(options, &selection, i));
  }
done:
  env_unlock();
  mem_free(devices);
  return status;
}

/* ---- OrtApi ---- */

/* Lets sessions that are given no EP choose some. */
OrtStatus* ORT_API_CALL api_SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* session_options,
                                                               OrtExecutionProviderDevicePolicy policy) {
  REQUIRE_ARG(session_options);
  if (policy < OrtExecutionProviderDevicePolicy_DEFAULT ||
      policy > OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER)
    return status_new(ORT_INVALID_ARGUMENT, "SessionOptionsSetEpSelectionPolicy: unknown policy %d",
                      (int)policy);
  session_options->ep_policy = (EpPolicy){.is_set = true, .policy = policy};
  return NULL;
}

/* borrows `delegate_state`, as long as sessions are created with these options or copies of them. The
 * delegate is called on the thread that creates the session. */
OrtStatus* ORT_API_CALL api_SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions* session_options,
                                                                       EpSelectionDelegate delegate,
                                                                       void* delegate_state) {
  REQUIRE_ARG(session_options);
  REQUIRE_ARG(delegate);
  session_options->ep_policy =
      (EpPolicy){.is_set = true, .delegate = delegate, .delegate_state = delegate_state};
  return NULL;
}

/* Streams are worker threads with a queue; notifications are counters that a stream reaches. */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

struct Stream {
  OrtSyncStreamImpl base;
  Factory* factory;
  pthread_t thread;
  pthread_mutex_t mutex;   /* guards all below */
  pthread_cond_t has_work; /* a task came, or `stopping` */
  pthread_cond_t is_idle;  /* the queue ran empty and nothing runs */
  Task *first, *last;
  bool running, stopping;
  unsigned seed;
  Stream* next; /* of the factory's list */
};

/* Shared by the notification, the tasks that signal it and the tasks that wait for it. */
typedef struct Signal {
  pthread_mutex_t mutex;
  pthread_cond_t reached;
  uint64_t asked, done; /* activations asked for, and reached by the stream */
  int references;
} Signal;

typedef struct Notification {
  OrtSyncNotificationImpl base;
  Stream* stream;
  Signal* signal;
} Notification;

typedef struct SignalTask {
  Task task;
  Signal* signal; /* a reference */
  uint64_t activation;
} SignalTask;

/* ---- Streams ---- */

static void* stream_main(void* argument) {
  Stream* stream = argument;
  pthread_mutex_lock(&stream->mutex);
  for (;;) {
    while (stream->first == NULL && !stream->stopping) pthread_cond_wait(&stream->has_work, &stream->mutex);
    if (stream->first == NULL) break; /* stopping, and all work done */
    Task* task = stream->first;
    stream->first = task->next;
    if (stream->first == NULL) stream->last = NULL;
    stream->running = true;
    pthread_mutex_unlock(&stream->mutex);
    int delay = control.max_delay_us;
    if (delay > 0) usleep((unsigned)(rand_r(&stream->seed) % delay));
    task->run(task);
    pthread_mutex_lock(&stream->mutex);
    stream->running = false;
    if (stream->first == NULL) pthread_cond_broadcast(&stream->is_idle);
  }
  pthread_mutex_unlock(&stream->mutex);
  return NULL;
}

void stream_enqueue(Stream* stream, Task* task) {
  task->next = NULL;
  pthread_mutex_lock(&stream->mutex);
  if (stream->last != NULL)
    stream->last->next = task;
  else
    stream->first = task;
  stream->last = task;
  pthread_cond_signal(&stream->has_work);
  pthread_mutex_unlock(&stream->mutex);
}

void stream_flush(Stream* stream) {
  pthread_mutex_lock(&stream->mutex);
  while (stream->first != NULL || stream->running) pthread_cond_wait(&stream->is_idle, &stream->mutex);
  pthread_mutex_unlock(&stream->mutex);
}

void flush_all_streams(Factory* factory) {
  pthread_mutex_lock(&factory->streams_mutex);
  for (Stream* stream = factory->streams; stream != NULL; stream = stream->next) stream_flush(stream);
  pthread_mutex_unlock(&factory->streams_mutex);
}

static void ORT_API_CALL stream_release(OrtSyncStreamImpl* this_ptr) {
  Stream* stream = (Stream*)this_ptr;
  Factory* factory = stream->factory;
  pthread_mutex_lock(&stream->mutex);
  stream->stopping = true;
  pthread_cond_signal(&stream->has_work);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  memory_forget_stream(factory, stream);
  pthread_mutex_lock(&factory->streams_mutex);
  for (Stream** link = &factory->streams; *link != NULL; link = &(*link)->next) {
    if (*link != stream) continue;
    *link = stream->next;
    break;
  }
  pthread_mutex_unlock(&factory->streams_mutex);
  pthread_cond_destroy(&stream->is_idle);
  pthread_cond_destroy(&stream->has_work);
  pthread_mutex_destroy(&stream->mutex);
  control.live_objects--;
  free(stream);
}

Stream* stream_of(const Factory* factory, const OrtSyncStream* stream) {
  const OrtSyncStreamImpl* impl = stream != NULL ? factory->ep_api->SyncStream_GetImpl(stream) : NULL;
  return impl != NULL && impl->Release == stream_release ? (Stream*)impl : NULL;
}

static void* ORT_API_CALL stream_get_handle(OrtSyncStreamImpl* this_ptr) {
  return this_ptr; /* what kernels get from KernelContext_GetGPUComputeStream */
}

static OrtStatus* ORT_API_CALL stream_impl_flush(OrtSyncStreamImpl* this_ptr) {
  Stream* stream = (Stream*)this_ptr;
  OrtStatus* status = asked_to_fail(stream->factory, "Flush");
  control.flushes++;
  stream_flush(stream);
  return status;
}

static OrtStatus* ORT_API_CALL stream_on_session_run_end(OrtSyncStreamImpl* this_ptr) {
  Stream* stream = (Stream*)this_ptr;
  OrtStatus* status = asked_to_fail(stream->factory, "OnSessionRunEnd");
  control.run_ends++;
  stream_flush(stream);
  memory_forget_stream(stream->factory, stream);
  return status;
}

/* ---- Notifications ---- */

static void signal_drop(Signal* signal) {
  pthread_mutex_lock(&signal->mutex);
  int left = --signal->references;
  pthread_mutex_unlock(&signal->mutex);
  if (left != 0) return;
  pthread_cond_destroy(&signal->reached);
  pthread_mutex_destroy(&signal->mutex);
  free(signal);
}

static void run_signal(Task* task) {
  SignalTask* this = (SignalTask*)task;
  pthread_mutex_lock(&this->signal->mutex);
  if (this->signal->done < this->activation) this->signal->done = this->activation;
  pthread_cond_broadcast(&this->signal->reached);
  pthread_mutex_unlock(&this->signal->mutex);
  signal_drop(this->signal);
  free(this);
}

static void wait_for(Signal* signal, uint64_t activation) {
  pthread_mutex_lock(&signal->mutex);
  while (signal->done < activation) pthread_cond_wait(&signal->reached, &signal->mutex);
  pthread_mutex_unlock(&signal->mutex);
}

static void run_wait(Task* task) {
  SignalTask* this = (SignalTask*)task;
  wait_for(this->signal, this->activation);
  signal_drop(this->signal);
  free(this);
}

/* gives a task that holds a reference of the signal; NULL: no memory. */
static Task* signal_task(Signal* signal, void (*run)(Task*), bool is_activation) {
  SignalTask* task = calloc(1, sizeof *task);
  if (task == NULL) return NULL;
  task->task.run = run;
  task->signal = signal;
  pthread_mutex_lock(&signal->mutex);
  signal->references++;
  task->activation = is_activation ? ++signal->asked : signal->asked;
  pthread_mutex_unlock(&signal->mutex);
  return &task->task;
}

static OrtStatus* ORT_API_CALL notification_activate(OrtSyncNotificationImpl* this_ptr) {
  Notification* notification = (Notification*)this_ptr;
  OrtStatus* status = asked_to_fail(notification->stream->factory, "Activate");
  if (status != NULL) return status;
  Task* task = signal_task(notification->signal, run_signal, true);
  if (task == NULL) return fail(notification->stream->factory, ORT_FAIL, "no memory for a signal");
  control.activations++;
  stream_enqueue(notification->stream, task);
  return NULL;
}

static bool wait_is_dropped(_Atomic uint64_t* counter) {
  int64_t number = (int64_t)(control.waits_on_device + control.waits_on_host);
  (*counter)++;
  return number == control.drop_wait;
}

static OrtStatus* ORT_API_CALL notification_wait_on_device(OrtSyncNotificationImpl* this_ptr,
                                                           OrtSyncStream* consumer_stream) {
  Notification* notification = (Notification*)this_ptr;
  Factory* factory = notification->stream->factory;
  OrtStatus* status = asked_to_fail(factory, "WaitOnDevice");
  if (status != NULL) return status;
  Stream* consumer = stream_of(factory, consumer_stream);
  if (consumer == NULL)
    return fail(factory, ORT_INVALID_ARGUMENT, "WaitOnDevice: the consumer's stream is not one of ours");
  if (wait_is_dropped(&control.waits_on_device)) return NULL;
  Task* task = signal_task(notification->signal, run_wait, false);
  if (task == NULL) return fail(factory, ORT_FAIL, "no memory for a wait");
  stream_enqueue(consumer, task);
  return NULL;
}

static OrtStatus* ORT_API_CALL notification_wait_on_host(OrtSyncNotificationImpl* this_ptr) {
  Notification* notification = (Notification*)this_ptr;
  OrtStatus* status = asked_to_fail(notification->stream->factory, "WaitOnHost");
  if (status != NULL) return status;
  if (wait_is_dropped(&control.waits_on_host)) return NULL;
  pthread_mutex_lock(&notification->signal->mutex);
  uint64_t activation = notification->signal->asked;
  pthread_mutex_unlock(&notification->signal->mutex);
  wait_for(notification->signal, activation);
  return NULL;
}

static void ORT_API_CALL notification_release(OrtSyncNotificationImpl* this_ptr) {
  Notification* notification = (Notification*)this_ptr;
  signal_drop(notification->signal);
  control.live_objects--;
  free(notification);
}

static OrtStatus* ORT_API_CALL stream_create_notification(OrtSyncStreamImpl* this_ptr,
                                                          OrtSyncNotificationImpl** out) {
  Stream* stream = (Stream*)this_ptr;
  OrtStatus* status = asked_to_fail(stream->factory, "CreateNotification");
  *out = NULL;
  if (status != NULL || asked_for_nothing("CreateNotification")) return status;
  Notification* notification = calloc(1, sizeof *notification);
  Signal* signal = calloc(1, sizeof *signal);
  if (notification == NULL || signal == NULL) {
    free(notification);
    free(signal);
    return fail(stream->factory, ORT_FAIL, "no memory for a notification");
  }
  pthread_mutex_init(&signal->mutex, NULL);
  pthread_cond_init(&signal->reached, NULL);
  signal->references = 1;
  notification->stream = stream;
  notification->signal = signal;
  notification->base.ort_version_supported = stream->factory->api_version;
  notification->base.Activate = notification_activate;
  notification->base.WaitOnDevice = notification_wait_on_device;
  notification->base.WaitOnHost = notification_wait_on_host;
  notification->base.Release = notification_release;
  control.notifications++;
  control.live_objects++;
  *out = &notification->base;
  return NULL;
}

OrtStatus* stream_create(Factory* factory, OrtSyncStreamImpl** out) {
  OrtStatus* status = asked_to_fail(factory, "CreateSyncStreamForDevice");
  *out = NULL;
  if (status != NULL || asked_for_nothing("CreateSyncStreamForDevice")) return status;
  Stream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) return fail(factory, ORT_FAIL, "no memory for a stream");
  stream->factory = factory;
  stream->seed = (unsigned)++control.streams;
  stream->base.ort_version_supported = factory->api_version;
  stream->base.Release = stream_release;
  stream->base.GetHandle = stream_get_handle;
  stream->base.CreateNotification = stream_create_notification;
  stream->base.Flush = stream_impl_flush;
  stream->base.OnSessionRunEnd = stream_on_session_run_end;
  pthread_mutex_init(&stream->mutex, NULL);
  pthread_cond_init(&stream->has_work, NULL);
  pthread_cond_init(&stream->is_idle, NULL);
  if (pthread_create(&stream->thread, NULL, stream_main, stream) != 0) {
    free(stream);
    return fail(factory, ORT_FAIL, "no thread for a stream");
  }
  pthread_mutex_lock(&factory->streams_mutex);
  stream->next = factory->streams;
  factory->streams = stream;
  pthread_mutex_unlock(&factory->streams_mutex);
  control.live_objects++;
  *out = &stream->base;
  return NULL;
}

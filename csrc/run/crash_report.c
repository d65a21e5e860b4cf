/* What a plugin that crashes leaves: a line that says who was at work. Everything here runs in a signal
 * handler: no memory, no locks, no stdio. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api_slots.h"
#include "ort_abi_host.h"
#include "run/run.h"

#define LINE_ROOM 1024

static const struct {
  int number;
  const char* name;
} signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)

static struct sigaction before[SIGNAL_COUNT]; /* who else wants to know */
static _Atomic bool is_installed;

typedef struct Line {
  char text[LINE_ROOM];
  size_t length;
} Line;

static void append(Line* line, const char* text) {
  for (; *text != '\0' && line->length < LINE_ROOM - 1; text++) line->text[line->length++] = *text;
}

static void append_quoted(Line* line, const char* before_it, const char* text) {
  append(line, before_it);
  append(line, "'");
  append(line, text);
  append(line, "'");
}

static void append_node(Line* line, const char* kind, const char* name, const char* op_type) {
  append_quoted(line, kind, name);
  append(line, " (");
  append(line, op_type);
  append(line, ")");
}

static void append_step(Line* line, const Step* step, const char* slot) {
  const Unit* unit = step->unit;
  append_quoted(line, " in EP ", unit->ep->name);
  append(line, ", slot ");
  if (slot != NULL)
    append(line, slot);
  else if (unit->is_copy)
    append(line, "OrtDataTransferImpl::CopyTensors");
  else
    append(line, unit->kernel != NULL ? "OrtKernelImpl::Compute" : "OrtNodeComputeInfo::Compute");
  if (unit->is_fused) append_quoted(line, ", fused node ", unit->node->name);
  if (unit->is_fused)
    append_node(line, " with node ", unit->nodes[0]->name, unit->nodes[0]->op_type);
  else
    append_node(line, ", node ", unit->node->name, unit->node->op_type);
}

static void append_work(Line* line) {
  const AtWork* work = &at_work;
  const Step* step = work->step != NULL ? *work->step : NULL;
  if (step != NULL) {
    append_step(line, step, work->slot);
  } else if (work->slot == NULL) {
    append(line, ", no execution provider was at work on this thread");
  } else {
    if (work->owner != NULL) {
      append(line, " in ");
      append(line, work->kind);
      append_quoted(line, " ", work->owner);
    }
    append(line, ", slot ");
    append(line, work->slot);
    if (work->owner != NULL && work->node_name != NULL)
      append_node(line, ", node ", work->node_name, work->op_type);
  }
}

static void on_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  int saved = errno;
  Line line = {.length = 0};
  size_t at = 0;
  while (at < SIGNAL_COUNT - 1 && signals[at].number != number) at++;
  append(&line, "ort-abi: fatal: ");
  append(&line, signals[at].name);
  append_work(&line);
  line.text[line.length++] = '\n';
  ssize_t written = write(STDERR_FILENO, line.text, line.length);
  (void)written;
  sigaction(number, &before[at], NULL);  /* the next one is for whoever was there before us */
  if (info->si_code <= 0) raise(number); /* sent by somebody; a fault comes again by itself */
  errno = saved;
}

void ortabi_report_crashes(void) {
  struct sigaction action;
  if (atomic_exchange(&is_installed, true)) return;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < SIGNAL_COUNT; i++) sigaction(signals[i].number, &action, &before[i]);
}

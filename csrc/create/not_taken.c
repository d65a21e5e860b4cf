/* Which nodes an EP did not take, and why: the error when nobody takes one, the log, what a session records.
 */
#include <string.h>

#include "api_slots.h"
#include "create/create.h"
#include "infer/infer.h"

/* "in then_branch of If 'cond' in body of Loop 'loop'"; nothing for a node of the main graph. */
static void describe_place(StrBuf* text, const OrtGraph* graph) {
  for (; graph->parent_node != NULL; graph = graph->parent_node->graph) {
    const OrtNode* parent = graph->parent_node;
    const char* attribute = "a subgraph";
    for (size_t i = 0; i < parent->attribute_count; i++) {
      if (parent->attributes[i].graph == graph) attribute = parent->attributes[i].name;
    }
    const char* space = text->text != NULL ? " " : "";
    if (parent->name[0] != '\0')
      strbuf_append(text, "%sin %s of %s '%s'", space, attribute, parent->op_type, parent->name);
    else
      strbuf_append(text, "%sin %s of the %s that makes '%s'", space, attribute, parent->op_type,
                    node_first_output(parent));
  }
}

static void describe_node_and_place(StrBuf* text, const OrtNode* node) {
  StrBuf place = {0};
  describe_node(text, node);
  describe_place(&place, node->graph);
  if (place.text != NULL) strbuf_append(text, " %s", place.text);
  text->failed = text->failed || place.failed;
  strbuf_release(&place);
}

static bool is_fused(const OrtNode* node) {
  return node_unit(node) != NULL && node_unit(node)->is_fused;
}

/* ---- Reasons ---- */

/* "has kernels for Mul of versions 7 to 12, the model has 14". *fits: the EP has a kernel for the node. */
static void explain(StrBuf* text, const SessionEp* ep, const OrtNode* node, bool* fits) {
  *fits = false;
  if (ep->registry == NULL) {
    strbuf_append(text, "has no kernels, and did not claim it to compile it");
    return;
  }
  if (kernel_registry_find(ep->registry, ep->name, node, text) == NULL) return;
  *fits = true;
  strbuf_release(text); /* why others do not fit */
  strbuf_append(text, "has a kernel for it, and did not claim it");
}

/* ---- Nodes that nobody takes ---- */

/* An EPContext node is a model that another EP compiled: say which one. */
static void describe_source(StrBuf* text, const OrtNode* node) {
  if (strcmp(node->op_type, "EPContext") != 0) return;
  const OrtOpAttr* source = node_find_attribute(node, "source");
  if (source != NULL && source->type == ORT_OP_ATTR_STRING)
    strbuf_append(text, " compiled by EP '%s', which the session needs", source->s);
}

/* Appends the node's lines. *fits: an EP has a kernel for it. */
static void list_node(const OrtSession* session, const OrtNode* node, StrBuf* text, bool* fits) {
  *fits = false;
  strbuf_append(text, "\n  ");
  describe_node_and_place(text, node);
  describe_source(text, node);
  describe_custom_op(text, session, node);
  for (size_t i = 0; i < session->ep_count; i++) {
    const SessionEp* ep = &session->eps[i];
    StrBuf reason = {0};
    bool fits_ep;
    if (ep->registry == NULL) continue; /* it compiles: nothing is known */
    explain(&reason, ep, node, &fits_ep);
    strbuf_append(text, "\n    EP '%s' %s", ep->name, reason.text != NULL ? reason.text : "");
    text->failed = text->failed || reason.failed;
    *fits = *fits || fits_ep;
    strbuf_release(&reason);
  }
}

/* An If of which an EP has the kernel is not listed if a node inside is: that is why it was left. */
static size_t list_unclaimed(const OrtSession* session, const OrtGraph* graph, StrBuf* text) {
  size_t count = 0;
  for (size_t i = 0; i < graph->node_count; i++) {
    const OrtNode* node = graph->nodes[i];
    StrBuf lines = {0};
    size_t inside = 0;
    bool fits = false;
    if (is_fused(node)) continue;
    if (node_unit(node) == NULL) list_node(session, node, &lines, &fits);
    for (size_t k = 0; k < node->subgraph_count; k++)
      inside += list_unclaimed(session, node->subgraphs[k], text);
    bool is_listed = node_unit(node) == NULL && !(fits && inside != 0);
    if (is_listed) strbuf_append(text, "%s", lines.text != NULL ? lines.text : "");
    text->failed = text->failed || lines.failed;
    strbuf_release(&lines);
    count += inside + is_listed;
  }
  return count;
}

OrtStatus* refuse_unclaimed(const OrtSession* session) {
  OrtStatus* status = NULL;
  StrBuf nodes = {0}, eps = {0};
  size_t count = list_unclaimed(session, session->model->graph, &nodes);
  for (size_t i = 0; i < session->ep_count; i++)
    strbuf_append(&eps, "%s'%s'", i == 0 ? "" : ", ", session->eps[i].name);
  if (count != 0 && (nodes.failed || eps.failed)) {
    status = status_no_memory();
  } else if (count != 0) {
    bool no_fallback =
        session_options_config(session->options, "session.disable_cpu_ep_fallback", "0")[0] == '1';
    status =
        status_new(no_fallback ? ORT_FAIL : ORT_NOT_IMPLEMENTED,
                   "no execution provider takes %zu node%s of the model%s. Asked: %s. Nobody's:%s", count,
                   count == 1 ? "" : "s",
                   no_fallback ? " (session.disable_cpu_ep_fallback is 1: the CPU EP was not asked)" : "",
                   session->ep_count != 0 ? eps.text : "nobody", nodes.text);
  }
  strbuf_release(&nodes);
  strbuf_release(&eps);
  return status;
}

/* ---- Nodes that an EP left to one behind it ---- */

static OrtStatus* copy_text(OrtSession* session, const StrBuf* text, const char** out) {
  *out =
      text->text != NULL && !text->failed ? arena_str(&session->arena, text->text, strlen(text->text)) : "";
  return text->failed || *out == NULL ? status_no_memory() : NULL;
}

static OrtStatus* record(OrtSession* session, const SessionEp* ep, const OrtNode* node,
                         const StrBuf* reason) {
  NotTaken* list = &session->not_taken;
  OrtAbiNotTaken entry = {.ep_name = ep->name,
                          .node_name = node->name,
                          .output_name = node_first_output(node),
                          .op_type = node->op_type,
                          .domain = node->domain,
                          .since_version = node->since_version};
  StrBuf place = {0};
  describe_place(&place, node->graph);
  OrtStatus* status = copy_text(session, &place, &entry.place);
  strbuf_release(&place);
  TRY(status);
  TRY(copy_text(session, reason, &entry.reason));
  if (!ARRAY_RESERVE(list->entries, list->capacity, list->count + 1)) return status_no_memory();
  list->entries[list->count++] = entry;
  return NULL;
}

static OrtStatus* note_node(OrtSession* session, const SessionEp* ep, const OrtNode* node) {
  StrBuf text = {0}, reason = {0};
  bool fits;
  explain(&reason, ep, node, &fits);
  describe_node_and_place(&text, node);
  LOG(&session->logger, VERBOSE, "EP '%s' did not take %s: it %s", ep->name, text.failed ? "?" : text.text,
      reason.failed ? "?" : reason.text);
  OrtStatus* status = session->records_not_taken ? record(session, ep, node, &reason) : NULL;
  strbuf_release(&text);
  strbuf_release(&reason);
  return status;
}

static OrtStatus* note_graph(OrtSession* session, const OrtGraph* graph) {
  for (size_t i = 0; i < graph->node_count; i++) {
    const OrtNode* node = graph->nodes[i];
    const SessionEp* taker = node_unit(node)->ep;
    for (const SessionEp* ep = session->eps; ep < taker; ep++) TRY(note_node(session, ep, node));
    for (size_t k = 0; k < node->subgraph_count && !is_fused(node); k++)
      TRY(note_graph(session, node->subgraphs[k]));
  }
  return NULL;
}

OrtStatus* note_not_taken(OrtSession* session) {
  if (!session->records_not_taken && session->logger.severity > ORT_LOGGING_LEVEL_VERBOSE) return NULL;
  return note_graph(session, session->model->graph);
}

ORT_ABI_EXPORT size_t ortabi_session_not_taken_count(const OrtSession* session) {
  return session != NULL ? session->not_taken.count : 0;
}

ORT_ABI_EXPORT OrtStatus* ortabi_session_not_taken(const OrtSession* session, size_t index,
                                                   OrtAbiNotTaken* out) {
  REQUIRE_ARG(session);
  REQUIRE_ARG(out);
  if (index >= session->not_taken.count)
    return status_new(ORT_INVALID_ARGUMENT, "ortabi_session_not_taken: index %zu is not below %zu", index,
                      session->not_taken.count);
  *out = session->not_taken.entries[index];
  return NULL;
}

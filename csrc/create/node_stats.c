/* What nodes need, as stock ORT has recorded it: the file that its session option
 * session.collect_node_memory_stats_to_file names. One line a node: its name with a number, then bytes of
 * inputs, initializers, outputs and temporaries. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "create/budget.h"

#define SIZE_FIELDS 4

/* ---- The file ---- */

/* *gives* the path (caller releases with mem_free): relative ones start at the model, as in stock ORT. The
 * file is named by the session's user, so it may be anywhere. NULL: no memory. */
static char* stats_path(const OrtModel* model, const char* file) {
  if (file[0] == '/' || model->path[0] == '\0') return str_copy(file);
  char* folder = str_folder(model->path);
  char* path = folder != NULL ? str_format("%s/%s", folder, file) : NULL;
  mem_free(folder);
  return path;
}

/* `*text`: gives (caller releases with mem_free). */
static OrtStatus* read_file(const char* path, char** text, size_t* size) {
  OrtStatus* status = NULL;
  struct stat info;
  char* data = NULL;
  size_t length = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return status_new(ORT_FAIL, "cannot open '%s': %s", path, strerror(errno));
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
    TRY_DONE(status_new(ORT_FAIL, "'%s' is not a regular file", path));
  data = mem_alloc((size_t)info.st_size + 1);
  if (data == NULL) TRY_DONE(status_no_memory());
  while (length < (size_t)info.st_size) {
    ssize_t count = read(file, data + length, (size_t)info.st_size - length);
    if (count < 0) TRY_DONE(status_new(ORT_FAIL, "cannot read '%s': %s", path, strerror(errno)));
    if (count == 0) break; /* it has become shorter */
    length += (size_t)count;
  }
  data[length] = '\0';
  *text = data;
  *size = length;
  data = NULL;
done:
  mem_free(data);
  close(file);
  return status;
}

/* ---- A line ---- */

static bool read_number(const char* text, const char* end, uint64_t* out) {
  uint64_t number = 0;
  if (text == end) return false;
  for (; text != end; text++) {
    uint64_t digit = (uint64_t)(*text - '0');
    if (*text < '0' || *text > '9' || number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  *out = number;
  return true;
}

/* "name,1,2,3,4": the name and the sum. Names may have commas in them. */
static bool split_line(const char* line, const char* end, size_t* name_length, uint64_t* bytes) {
  *bytes = 0;
  for (int i = 0; i < SIZE_FIELDS; i++) {
    const char* comma = end;
    uint64_t size;
    while (comma != line && comma[-1] != ',') comma--;
    if (comma == line || !read_number(comma, end, &size)) return false;
    *bytes = *bytes > UINT64_MAX - size ? UINT64_MAX : *bytes + size;
    end = comma - 1;
  }
  *name_length = (size_t)(end - line);
  return true;
}

/* Reads what `stats->text` says, line by line; a later line of a name replaces an earlier one. */
static OrtStatus* read_lines(NodeStats* stats, size_t size, const char* path) {
  const char *line = stats->text, *end = stats->text + size;
  for (size_t number = 1; line < end; number++) {
    const char* newline = memchr(line, '\n', (size_t)(end - line));
    const char* next = newline != NULL ? newline + 1 : end;
    const char* stop = newline != NULL ? newline : end;
    if (stop != line && stop[-1] == '\r') stop--;
    if (stop != line && line[0] != '#') {
      size_t length;
      uint64_t* bytes = arena_alloc(&stats->arena, sizeof *bytes);
      if (bytes == NULL) return status_no_memory();
      if (!split_line(line, stop, &length, bytes))
        return status_new(ORT_INVALID_ARGUMENT, "'%s', line %zu: a name and four numbers are expected", path,
                          number);
      if (length != 0 && !name_map_put_n(&stats->bytes, line, length, bytes)) return status_no_memory();
    }
    line = next;
  }
  return NULL;
}

OrtStatus* node_stats_read(const OrtModel* model, const char* file, NodeStats* out) {
  size_t size = 0;
  char* path = stats_path(model, file);
  OrtStatus* status = path != NULL ? read_file(path, &out->text, &size) : status_no_memory();
  if (status == NULL) status = read_lines(out, size, path);
  mem_free(path);
  return status;
}

void node_stats_close(NodeStats* stats) {
  name_map_release(&stats->bytes);
  arena_release(&stats->arena);
  mem_free(stats->text);
}

/* ---- A node's name in the file ---- */

static uint32_t rotate(uint32_t word, unsigned by) {
  return word << by | word >> (32 - by);
}

static uint32_t scramble(uint32_t word) {
  word = (word ^ word >> 16) * UINT32_C(0x85ebca6b);
  word = (word ^ word >> 13) * UINT32_C(0xc2b2ae35);
  return word ^ word >> 16;
}

/* Mixes up to 16 bytes into the lanes. */
static void mix_block(uint32_t lanes[4], const char* data, size_t size) {
  static const uint32_t factors[] = {0x239b961b, 0xab0e9789, 0x38b34ae5, 0xa1e38b93};
  static const uint32_t offsets[] = {0x561ccd1b, 0x0bcaa747, 0x96cd1c35, 0x32ac3b17};
  static const unsigned turns[] = {19, 17, 15, 13};
  uint32_t words[4] = {0};
  memcpy(words, data, size);
  for (unsigned i = 0; i < 4; i++) {
    lanes[i] ^= rotate(words[i] * factors[i], 15 + i) * factors[(i + 1) % 4];
    if (size == sizeof words) lanes[i] = (rotate(lanes[i], turns[i]) + lanes[(i + 1) % 4]) * 5 + offsets[i];
  }
}

static void sum_lanes(uint32_t lanes[4]) {
  lanes[0] += lanes[1] + lanes[2] + lanes[3];
  for (int i = 1; i < 4; i++) lanes[i] += lanes[0];
}

/* MurmurHash3, the form for 32-bit machines with 128 bits; the first lane is the seed. */
static void hash_text(uint32_t lanes[4], const char* text) {
  size_t size = strlen(text), done = 0;
  for (int i = 1; i < 4; i++) lanes[i] = lanes[0];
  for (; size - done >= 16; done += 16) mix_block(lanes, text + done, 16);
  mix_block(lanes, text + done, size - done);
  for (int i = 0; i < 4; i++) lanes[i] ^= (uint32_t)size;
  sum_lanes(lanes);
  for (int i = 0; i < 4; i++) lanes[i] = scramble(lanes[i]);
  sum_lanes(lanes);
}

static void hash_names(uint32_t lanes[4], OrtValueInfo* const* values, size_t count) {
  for (size_t i = 0; i < count; i++) hash_text(lanes, values[i] != NULL ? values[i]->name : "");
}

bool node_stats_find(const NodeStats* stats, const OrtNode* node, uint64_t* bytes) {
  uint32_t lanes[4] = {0};
  hash_names(lanes, node->inputs, node->input_count);
  hash_names(lanes, node->outputs, node->output_count);
  char* name = str_format("%s_%" PRIu64, node->name[0] != '\0' ? node->name : node->op_type,
                          lanes[0] | (uint64_t)lanes[1] << 32);
  if (name == NULL) return false;
  const uint64_t* found = name_map_get(&stats->bytes, name);
  *bytes = found != NULL ? *found : 0;
  mem_free(name);
  return true;
}

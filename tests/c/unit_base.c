/* base/, from inside: arenas, name maps, growing texts, statuses. Linked with the library's objects. */
#include <stdlib.h>

#include "base/base.h"
#include "harness.h"

static void test_sizes_overflow(void) {
  size_t out = 9;
  CHECK(size_mul(3, 4, &out) && out == 12);
  CHECK(!size_mul(SIZE_MAX / 2, 3, &out));
  CHECK(size_add(3, 4, &out) && out == 7);
  CHECK(!size_add(SIZE_MAX, 1, &out));
  CHECK(mem_calloc(SIZE_MAX / 2, 4) == NULL);
}

static void test_array_reserve(void) {
  int* items = NULL;
  size_t capacity = 0;
  CHECK(ARRAY_RESERVE(items, capacity, 3));
  CHECK(capacity >= 3);
  items[2] = 42;
  int* before = items;
  CHECK(!ARRAY_RESERVE(items, capacity, SIZE_MAX / 2));
  CHECK(items == before && items[2] == 42);
  ortabi_fail_allocation(0);
  CHECK(!ARRAY_RESERVE(items, capacity, 1000));
  CHECK(items == before && capacity < 1000);
  CHECK(ARRAY_RESERVE(items, capacity, 1000));
  CHECK(capacity >= 1000 && items[2] == 42);
  mem_free(items);
}

static void test_injected_failure_happens_once(void) {
  ortabi_fail_allocation(1);
  void* first = mem_alloc(8);
  void* second = mem_alloc(8);
  void* third = mem_alloc_aligned(8);
  CHECK(first != NULL && second == NULL && third != NULL);
  CHECK((size_t)third % MEM_ALIGNMENT == 0);
  mem_free(first);
  mem_free_aligned(third);
}

static void test_arena(void) {
  Arena arena = {0};
  for (size_t i = 1; i < 3000; i++) {
    unsigned char* item = arena_alloc(&arena, i % 97 == 0 ? 20000 : i % 50);
    CHECK(item != NULL && (size_t)item % 16 == 0);
    size_t size = i % 97 == 0 ? 20000 : i % 50;
    for (size_t k = 0; k < size; k += 1 + size / 8) CHECK(item[k] == 0);
    memset(item, 0xff, size);
  }
  char* text = arena_str(&arena, "abcdef", 3);
  CHECK_TEXT(text, "abc");
  CHECK(arena_alloc(&arena, SIZE_MAX) == NULL);
  CHECK(arena_calloc(&arena, SIZE_MAX / 2, 4) == NULL);
  CHECK(arena_str(&arena, "", SIZE_MAX) == NULL);
  arena_release(&arena);
  CHECK(arena.blocks == NULL);
}

static void test_name_map(void) {
  static char names[2000][16];
  NameMap map = {0};
  CHECK(name_map_get(&map, "a") == NULL);
  for (int i = 0; i < 2000; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i);
    CHECK(name_map_put(&map, names[i], &names[i]));
  }
  for (int i = 0; i < 2000; i++) CHECK(name_map_get(&map, names[i]) == &names[i]);
  CHECK(name_map_get(&map, "n2000") == NULL);
  CHECK(name_map_get(&map, NULL) == NULL);
  CHECK(name_map_get_n(&map, "n12xx", 3) == &names[12]);
  CHECK(name_map_put(&map, "n12", &map));
  CHECK(name_map_get(&map, "n12") == &map && map.count == 2000);
  name_map_release(&map);
}

static void test_name_map_survives_failed_growth(void) {
  NameMap map = {0};
  ortabi_fail_allocation(0);
  CHECK(!name_map_put(&map, "a", &map));
  CHECK(name_map_put(&map, "a", &map));
  CHECK(name_map_get(&map, "a") == &map);
  name_map_release(&map);
}

static void test_strings(void) {
  StrBuf buffer = {0};
  strbuf_append(&buffer, "%s-%d", "x", 7);
  for (int i = 0; i < 100; i++) strbuf_append(&buffer, "%03d", i);
  CHECK(buffer.length == 303 && strncmp(buffer.text, "x-7000001", 9) == 0);
  strbuf_release(&buffer);
  char* text = str_format("%s %zu", "n", (size_t)3);
  CHECK_TEXT(text, "n 3");
  mem_free(text);
  ortabi_fail_allocation(0);
  CHECK(str_format("x") == NULL);
  CHECK(str_copy(NULL) == NULL);
  CHECK(str_equal(NULL, NULL) && str_equal("a", "a") && !str_equal("a", NULL) && !str_equal("a", "b"));
}

static void test_texts_are_replaced_by_copies(void) {
  char text[] = "second", *field = str_copy("first");
  CHECK_OK(str_set(&field, text));
  text[0] = '?';
  CHECK_TEXT(field, "second");
  ortabi_fail_allocation(0);
  CHECK_FAILS(str_set(&field, "third"), ORT_FAIL, "out of memory");
  CHECK_TEXT(field, "second");
  mem_free(field);
}

static void test_folders_of_paths(void) {
  static const char* const all[][2] = {{"a/b/c.onnx", "a/b/"}, {"/c.onnx", "/"}, {"c.onnx", "."}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char* folder = str_folder(all[i][0]);
    CHECK_TEXT(folder, all[i][1]);
    mem_free(folder);
  }
}

static void test_status_wrap_keeps_the_code(void) {
  OrtStatus* status = status_wrap(status_new(ORT_NO_SUCHFILE, "no '%s'", "f"), "loading %d", 3);
  CHECK_FAILS(status, ORT_NO_SUCHFILE, "loading 3: no 'f'");
}

static void test_status_wrap_says_nothing_twice(void) {
  static const char* const causes[][2] = {
      {"MyEp: OrtEp::Compile: node 'n': it broke: twice: twice",
       "EP 'MyEp': OrtEp::Compile of 'n' failed: node 'n': it broke: twice: twice"},
      {"My: it broke", "EP 'MyEp': OrtEp::Compile of 'n' failed: My: it broke"},
      {"it broke", "EP 'MyEp': OrtEp::Compile of 'n' failed: it broke"},
      {": MyEp", "EP 'MyEp': OrtEp::Compile of 'n' failed: : MyEp"},
      {"", "EP 'MyEp': OrtEp::Compile of 'n' failed: "}};
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    OrtStatus* cause = status_new(ORT_EP_FAIL, "%s", causes[i][0]);
    OrtStatus* status = status_wrap(cause, "EP '%s': OrtEp::Compile of '%s' failed", "MyEp", "n");
    CHECK_TEXT(status_message(status), causes[i][1]);
    status_release(status);
  }
  OrtStatus* odd =
      status_wrap(status_new(ORT_OK, "a plugin made this"), "context"); /* no failure becomes OK */
  CHECK_FAILS(odd, ORT_FAIL, "context: a plugin made this");
}

/* A failure must stay a failure, and keep its code, whichever allocation fails on its way up. */
static void test_statuses_without_memory(void) {
  for (int64_t n = 0; n < 6; n++) {
    OrtStatus* cause = status_new(ORT_NO_SUCHFILE, "cause");
    ortabi_fail_allocation(n);
    OrtStatus* status = status_wrap(cause, "context");
    ortabi_fail_allocation(-1);
    CHECK_FAILS(status, ORT_NO_SUCHFILE, "cause");
  }
  ortabi_fail_allocation(0);
  OrtStatus* status = status_new(ORT_NO_SUCHFILE, "lost");
  CHECK_FAILS(status, ORT_FAIL, "out of memory");
  CHECK_FAILS(status_no_memory(), ORT_FAIL, "out of memory");
}

int main(void) {
  RUN(test_sizes_overflow);
  RUN(test_array_reserve);
  RUN(test_injected_failure_happens_once);
  RUN(test_arena);
  RUN(test_name_map);
  RUN(test_name_map_survives_failed_growth);
  RUN(test_strings);
  RUN(test_texts_are_replaced_by_copies);
  RUN(test_folders_of_paths);
  RUN(test_status_wrap_keeps_the_code);
  RUN(test_status_wrap_says_nothing_twice);
  RUN(test_statuses_without_memory);
  return finish();
}

/* Runs hostile models: generated ones, damaged ones, and both. See README.md in this folder.
 *
 *   fuzz_models [--seed S] [--from A] [--to B] [--hostility H] [--write FOLDER] [MODEL...]
 *
 * Executions A to B-1. Execution n of a seed is always the same. With --hostility all models are generated,
 * with H bad choices in a thousand. --write keeps the models as FOLDER/n.onnx and runs nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

/* Of the sanitizers, where the program has them. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

#define LEAKS_EACH 5000

typedef struct Options {
  uint64_t seed, from, to;
  const char* write;
  int hostility; /* -1: all kinds of models */
  Model* corpus; /* owned, as their bytes */
  size_t corpus_count;
} Options;

static struct {
  uint64_t seed, number;
} now; /* what is executed: for the one message that a dying program has left */

static void say_where(void) {
  fprintf(stderr, "fuzz_models: seed %llu, execution %llu (--seed %llu --from %llu --to %llu)\n",
          (unsigned long long)now.seed, (unsigned long long)now.number, (unsigned long long)now.seed,
          (unsigned long long)now.number, (unsigned long long)now.number + 1);
}

static Model read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    perror(path);
    exit(2);
  }
  size_t size = (size_t)ftell(file);
  uint8_t* data = malloc(size + 1);
  rewind(file);
  if (data == NULL || fread(data, 1, size, file) != size) {
    perror(path);
    exit(2);
  }
  fclose(file);
  return (Model){data, size};
}

static Options read_options(int count, char** arguments) {
  Options options = {.seed = 1, .to = 1000, .hostility = -1};
  options.corpus = calloc((size_t)count, sizeof *options.corpus);
  if (options.corpus == NULL) exit(2);
  for (int i = 1; i < count; i++) {
    if (strncmp(arguments[i], "--", 2) != 0) {
      options.corpus[options.corpus_count++] = read_file(arguments[i]);
      continue;
    }
    const char* value = i + 1 < count ? arguments[i + 1] : "";
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(arguments[i], "--seed") == 0) options.seed = number;
    if (strcmp(arguments[i], "--from") == 0) options.from = number;
    if (strcmp(arguments[i], "--to") == 0) options.to = number;
    if (strcmp(arguments[i], "--hostility") == 0) options.hostility = (int)number;
    if (strcmp(arguments[i], "--write") == 0) options.write = value;
    i++;
  }
  return options;
}

static Model any_model(const Options* options, Rng* rng) {
  return options->corpus[rng_below(rng, (uint32_t)options->corpus_count)];
}

/* The model of an execution, in `model`; `scratch` is for what it is made of. */
static void make_model(const Options* options, Rng* rng, Bytes* scratch, Bytes* model) {
  static const uint32_t hostilities[] = {0, 10, 30, 100};
  bool has_corpus = options->corpus_count != 0;
  uint32_t kind = rng_below(rng, has_corpus ? 8 : 4);
  if (options->hostility >= 0) {
    generate_model(rng, (uint32_t)options->hostility, model);
    return;
  }
  if (kind < 3) {
    generate_model(rng, hostilities[rng_below(rng, 4)], model);
    return;
  }
  Model base = {NULL, 0}, other;
  if (kind == 3) {
    generate_model(rng, hostilities[rng_below(rng, 2)], scratch);
    base = (Model){scratch->data, scratch->size};
  } else {
    base = any_model(options, rng);
  }
  other = has_corpus ? any_model(options, rng) : base;
  if (kind == 7)
    damage_bytes(rng, base, other, model);
  else
    damage_fields(rng, base, other, model);
}

static int write_all(const Options* options, Bytes* scratch, Bytes* model) {
  char path[4096];
  for (uint64_t n = options->from; n < options->to; n++) {
    Rng rng = rng_for(options->seed, n);
    make_model(options, &rng, scratch, model);
    snprintf(path, sizeof path, "%s/%llu.onnx", options->write, (unsigned long long)n);
    FILE* file = fopen(path, "wb");
    if (file == NULL || fwrite(model->data, 1, model->size, file) != model->size || fclose(file) != 0) {
      perror(path);
      return 2;
    }
  }
  return 0;
}

static int execute_all(const Options* options, Bytes* scratch, Bytes* model) {
  uint64_t outcomes[OUTCOMES] = {0};
  Runner* runner = runner_open();
  int result = 0;
  for (uint64_t n = options->from; n < options->to && result == 0; n++) {
    now.number = n;
    Rng rng = rng_for(options->seed, n);
    make_model(options, &rng, scratch, model);
    outcomes[run_model(runner, (Model){model->data, model->size}, &rng)]++;
    bool is_time = n % LEAKS_EACH == LEAKS_EACH - 1 || options->to - options->from < LEAKS_EACH / 10;
    if (is_time && __lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check() != 0) {
      fprintf(stderr, "memory leaked in one of the last %d executions, up to this one:\n", LEAKS_EACH);
      say_where();
      result = 1;
    }
  }
  runner_close(runner);
  printf("refused %llu failed %llu terminated %llu ran %llu\n", (unsigned long long)outcomes[NOT_LOADED],
         (unsigned long long)outcomes[NOT_RUN], (unsigned long long)outcomes[TERMINATED],
         (unsigned long long)outcomes[RAN]);
  return result;
}

int main(int count, char** arguments) {
  Options options = read_options(count, arguments);
  Bytes model = {0}, scratch = {0};
  int result;
  now.seed = options.seed;
  if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(say_where);
  if (options.write != NULL)
    result = write_all(&options, &scratch, &model);
  else
    result = execute_all(&options, &scratch, &model);
  for (size_t i = 0; i < options.corpus_count; i++) free((void*)(uintptr_t)options.corpus[i].data);
  free(options.corpus);
  free(model.data);
  free(scratch.data);
  return result;
}

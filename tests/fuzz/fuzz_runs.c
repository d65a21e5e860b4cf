/* libFuzzer target: any bytes are refused, or are a model that runs. See README.md in this folder. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

/* What the model does not say (the inputs' open dimensions and elements) comes from its bytes: the same bytes
 * are the same calls. */
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Runner* runner; /* for the whole process: libFuzzer has no end */
  uint64_t hash = size;
  if (runner == NULL) runner = runner_open();
  for (size_t i = 0; i < size; i++) hash = hash * 31 + data[i];
  Rng rng = rng_for(hash, 0);
  run_model(runner, (Model){data, size}, &rng);
  return 0;
}

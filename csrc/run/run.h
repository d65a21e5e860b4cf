/* run: how a model runs. Partitioning, kernels, the plan, sessions, the executor. */
#ifndef ORT_ABI_RUN_H
#define ORT_ABI_RUN_H

#include "plugins/plugins.h"

#endif

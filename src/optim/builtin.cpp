#include "src/optim/adamw.h"
#include "src/optim/sgd.h"

namespace settrain {

void register_builtin_optimizers(OptimizerRegistry& registry) {
  registry.add(sgd_entry());
  registry.add(adamw_entry());
}

}  // namespace settrain

#include "losses/cross_entropy.h"
#include "losses/noised_topk.h"
#include "losses/noised_topk_imbalanced.h"

namespace settrain {

void register_builtin_losses(LossRegistry& registry) {
  registry.add(cross_entropy_entry());
  registry.add(noised_topk_entry());
  registry.add(noised_topk_imbalanced_entry());
}

}  // namespace settrain

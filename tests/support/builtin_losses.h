// The losses of the program, for tests.
#pragma once

#include "losses/loss.h"

namespace settrain::test {

inline const LossRegistry& builtin_losses() {
  static const LossRegistry registry = [] {
    LossRegistry losses("loss");
    register_builtin_losses(losses);
    return losses;
  }();
  return registry;
}

}  // namespace settrain::test

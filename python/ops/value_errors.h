// settrain's errors as Python's.
#pragma once

#include <c10/util/Exception.h>

#include "src/core/error.h"

namespace settrain {

/// What `function` returns; what it throws because of its arguments becomes Python's ValueError.
template <class Function>
auto with_value_errors(const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

}  // namespace settrain

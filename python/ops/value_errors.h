// settrain's errors as Python's.
#pragma once

#include <c10/util/Exception.h>

#include "src/core/error.h"

namespace settrain {

/// Returns the result of `function`; errors that its arguments cause become ValueError in Python.
template <class Function>
auto with_value_errors(const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    TORCH_CHECK_VALUE(false, error.what());
  }
}

}  // namespace settrain

// Keys of the section `model` that every model has.
#pragma once

#include <string>

#include "src/config/key.h"

namespace settrain {

struct ModelOptions {
  std::string head;

  static config::Keys keys();
};

}  // namespace settrain

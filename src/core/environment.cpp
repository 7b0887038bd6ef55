#include "src/core/environment.h"

#include <cstdlib>

namespace settrain {

std::optional<std::string> environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace settrain

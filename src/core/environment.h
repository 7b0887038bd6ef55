// Environment variables, which tests can set without touching those of their process.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace settrain {

/// An environment variable, or none.
using Environment = std::function<std::optional<std::string>(const char* name)>;

/// That of this process.
std::optional<std::string> environment_variable(const char* name);

}  // namespace settrain

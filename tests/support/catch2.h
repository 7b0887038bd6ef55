// Catch2 of version 2 (Debian 12) or 3 (Debian 13), by the names of version 2.
#pragma once

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
#include <string>
#include <utility>

namespace Catch {

using Matchers::EndsWith;
using Matchers::Message;
using Matchers::StartsWith;

// In version 3 this name is the matcher of a range's element.
inline auto Contains(std::string part) {
  return Matchers::ContainsSubstring(std::move(part));
}

}  // namespace Catch

using Catch::Approx;
#endif

// The nearest valid name for a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace settrain {

/// The candidate with the smallest edit distance to `name` (insertions, deletions, substitutions and swaps of
/// neighbours), or an empty string where none is near enough to be a plausible typo (more than a third of the longer
/// name's length, at least 2), nor where `name` has more than 80 bytes.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace settrain

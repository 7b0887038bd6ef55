#include "src/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace settrain::config {
namespace {

constexpr size_t kMostReported = 100;  // of a file that is no configuration at all

std::string line_of(const Origin& origin, const std::string& path, const std::string& message) {
  return origin.text + ": " + (path.empty() ? "" : path + ": ") + message;
}

}  // namespace

PlacedError::PlacedError(const Origin& origin, const std::string& path, const std::string& message)
    : ConfigError(line_of(origin, path, message)), origin_(origin) {}

void Problems::add(const Origin& origin, const std::string& path, const std::string& message) {
  problems_.push_back({origin, line_of(origin, path, message)});
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  if (problems_.size() == 1) throw ConfigError(problems_.front().line);
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.origin.source, a.origin.line, a.origin.column) <
           std::tie(b.origin.source, b.origin.line, b.origin.column);
  });
  std::string text = fmt::format("{} problems in the configuration:", sorted.size());
  for (size_t i = 0; i < std::min(sorted.size(), kMostReported); ++i) text += "\n  " + sorted[i].line;
  if (sorted.size() > kMostReported) text += fmt::format("\n  and {} more", sorted.size() - kMostReported);
  throw ConfigError(text);
}

}  // namespace settrain::config

#include "src/formats/describe_contents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "src/core/text.h"

namespace settrain {
namespace {

std::string name_of(const KeyPath& path) {
  return displayed(joined(path));
}

}  // namespace

std::string describe_contents(const Contents& contents) {
  size_t name_width = 0, shape_width = 0;
  for (const TensorEntry& entry : contents.tensors) {
    name_width = std::max(name_width, name_of(entry.path).size());
    shape_width = std::max(shape_width, fmt::format("{}", entry.shape).size());
  }
  std::string text;
  std::map<Storage, std::string> owners;
  uint64_t bytes = 0;
  for (const TensorEntry& entry : contents.tensors) {
    const auto [owner, is_first] = owners.emplace(entry.storage, name_of(entry.path));
    text +=
        fmt::format("  {:<{}}  {:<8}  {:<{}}  {:>10}{}\n", name_of(entry.path), name_width, names_of(entry.dtype).name,
                    fmt::format("{}", entry.shape), shape_width, format_bytes(entry.num_bytes()),
                    is_first || entry.num_elements() == 0 ? "" : "  shares the memory of " + owner->second);
    bytes += entry.num_bytes();
  }
  text = fmt::format("tensors: {}, {}\n", format_count(static_cast<int64_t>(contents.tensors.size())),
                     format_bytes(bytes)) +
         text;
  if (!contents.leaves.empty()) text += fmt::format("other values: {}\n", contents.leaves.size());
  for (const Leaf& leaf : contents.leaves) text += fmt::format("  {}: {}\n", name_of(leaf.path), describe(leaf));
  if (!contents.metadata.empty()) text += fmt::format("metadata: {}\n", contents.metadata.size());
  for (const auto& [name, value] : contents.metadata) text += fmt::format("  {}: {}\n", name_of({name}), shown(value));
  return text;
}

}  // namespace settrain

#include "src/train/weight_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "src/core/error.h"
#include "src/formats/contents.h"

namespace settrain {
namespace {

constexpr const char* kKey = "model.pretrained";

// The names of the model's body, without counters, which a file may lack.
std::set<std::string> body_names(const NamedTensors& targets, const std::vector<std::string>& heads) {
  std::set<std::string> names;
  for (const auto& [name, target] : targets) {
    if (!is_of_any(name, heads) && !name.ends_with(kCounter)) names.insert(name);
  }
  return names;
}

// The prefix behind which the file has more than half of the model's body, and more than without a prefix: "backbone."
// of mmpretrain, whose head lies elsewhere. Empty where there is none. Throws KeyError where several prefixes have as
// much.
std::string prefix_of_body(const FileTensors& entries, const std::set<std::string>& body, const std::string& path) {
  constexpr size_t kLongestName = 512;  // a hostile one would take long
  std::map<std::string, size_t> found{{"", 0}};
  for (const auto& entry : entries) {
    const std::string& name = entry.first;
    if (name.size() > kLongestName) continue;
    found[""] += body.count(name);
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (body.contains(name.substr(dot + 1))) ++found[name.substr(0, dot + 1)];
    }
  }
  size_t most = 0;
  std::vector<std::string> prefixes;
  for (const auto& [prefix, count] : found) {
    if (count < most) continue;
    if (count > most) prefixes.clear();
    most = count;
    prefixes.push_back(prefix);
  }
  if (2 * most <= body.size() || prefixes.front().empty()) return "";
  if (prefixes.size() == 1) return prefixes.front();
  for (std::string& prefix : prefixes) prefix = shown(prefix);
  throw KeyError(kKey,
                 fmt::format("'{}' has the model's weights several times, with the prefixes {} before their names; "
                             "keep those of one in the file",
                             path, fmt::join(prefixes, " and ")));
}

// The only layer of the file that is none of the model's and can be a head: its weights are a matrix of as many
// features, and it has nothing else than a bias. An empty text where there is none.
std::string other_head(const FileTensors& entries, const NamedTensors& targets, int64_t features) {
  std::set<std::string> known, heads, others;
  for (const auto& target : targets) known.insert(target.first);
  for (const auto& [name, entry] : entries) {
    if (known.contains(name)) continue;
    const size_t dot = std::min(name.rfind('.'), name.size());
    const std::string module = name.substr(0, dot), part = name.substr(dot);
    const bool is_matrix = entry.shape.size() == 2 && std::ranges::count(entry.shape, features) > 0;
    if (part == ".weight" && is_matrix) {
      heads.insert(module);
    } else if (part != ".bias") {
      others.insert(module);
    }
  }
  std::erase_if(heads, [&](const std::string& module) { return others.contains(module); });
  return heads.size() == 1 ? *heads.begin() : "";
}

}  // namespace

FileTensors with_names_of_model(FileTensors entries, const NamedTensors& targets, const std::vector<std::string>& heads,
                                int64_t features, const std::string& path, std::string& from) {
  const auto note = [&from](const std::string& what) { from += (from.empty() ? "" : ", ") + what; };
  const auto rename = [&](const std::string& before, const std::string& after) {
    FileTensors renamed;
    for (auto& [name, entry] : entries) {
      const std::string now = name.starts_with(before) ? after + name.substr(before.size()) : name;
      if (!renamed.emplace(now, std::move(entry)).second) {
        throw KeyError(kKey, fmt::format("'{}': two of its tensors would be named {}", path, shown(now)));
      }
    }
    entries = std::move(renamed);
  };
  if (const std::string prefix = prefix_of_body(entries, body_names(targets, heads), path); !prefix.empty()) {
    rename(prefix, "");
    note(fmt::format("without the prefix {}", displayed(prefix)));
  }
  const std::string& head = heads.front();
  if (std::ranges::any_of(entries, [&](const auto& entry) { return is_of(entry.first, head); })) return entries;
  if (const std::string other = other_head(entries, targets, features); !other.empty()) {
    rename(other + ".", head + ".");
    note(fmt::format("its head is {}", displayed(other)));
  }
  return entries;
}

}  // namespace settrain

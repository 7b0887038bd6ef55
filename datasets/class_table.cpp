#include "datasets/class_table.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string_view>
#include <unordered_map>

#include "datasets/file_bytes.h"
#include "datasets/image_list.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

std::string trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

constexpr size_t kShown = 80;          // bytes of a text in a message, since a line may be megabytes long
constexpr size_t kSeveral = SIZE_MAX;  // marks a name of several classes

// The index of each class, by key and by name. Keys take precedence over names.
std::unordered_map<std::string, size_t> places_of(const std::vector<std::string>& classes,
                                                  const std::vector<std::string>& keys) {
  std::unordered_map<std::string, size_t> places, named;
  for (size_t c = 0; c < keys.size(); ++c) places.emplace(keys[c], c);
  for (size_t c = 0; c < classes.size(); ++c) {
    const auto [found, is_new] = named.emplace(classes[c], c);
    if (!is_new) found->second = kSeveral;
  }
  places.insert(named.begin(), named.end());
  return places;
}

}  // namespace

std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  const std::unordered_map<std::string, size_t> index_of = places_of(classes, keys);

  std::vector<std::string> texts(classes.size());
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, std::string_view(kByteOrderMark).size());
    if (trimmed(line).empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", file.string(), number, what));
    };
    const size_t comma = line.find(',');
    const std::string text = comma == std::string::npos ? "" : trimmed(std::string_view(line).substr(comma + 1));
    if (text.empty()) fail(fmt::format("expected 'class,text', got '{}'", trimmed(line).substr(0, kShown)));
    const std::string name = trimmed(std::string_view(line).substr(0, comma));
    const auto found = index_of.find(name);
    if (found == index_of.end()) {
      const std::string suggestion = did_you_mean(name, keys);
      fail(fmt::format("there is no class '{}'{}", name.substr(0, kShown),
                       suggestion.empty() ? did_you_mean(name, classes) : suggestion));
    }
    if (found->second == kSeveral)
      fail(fmt::format("several classes are called '{}'{}", name,
                       keys.empty() ? "" : "; name them by their keys, such as " + keys[0]));
    if (!texts[found->second].empty()) fail(fmt::format("the class '{}' has a line above", name));
    texts[found->second] = text;
  }
  if (stream.bad()) throw data_file_error("read", file);
  for (size_t c = 0; c < classes.size(); ++c) {
    if (texts[c].empty())
      throw DataError(
          fmt::format("{}: no line for the class '{}'", file.string(), keys.empty() ? classes[c] : keys[c]));
  }
  return texts;
}

}  // namespace settrain

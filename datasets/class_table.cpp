#include "datasets/class_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datasets/file_bytes.h"
#include "datasets/image_list.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {

std::string trimmed(std::string_view text) {
  constexpr const char* kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

namespace {

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

struct ClassLine {
  int64_t number = 0;  // 0: there is none
  std::string text{};  // behind the first comma
};

// [classes] the line of each. Where `header` is not null, it takes a first line that begins with no class.
std::vector<ClassLine> read_class_lines(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                        const std::vector<std::string>& keys, std::string* header) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  const std::unordered_map<std::string, size_t> index_of = places_of(classes, keys);

  std::vector<ClassLine> lines(classes.size());
  std::string line;
  bool is_first = true;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, std::string_view(kByteOrderMark).size());
    if (trimmed(line).empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", file.string(), number, what));
    };
    const size_t comma = line.find(',');
    const std::string name = trimmed(std::string_view(line).substr(0, comma));
    const auto found = index_of.find(name);
    if (std::exchange(is_first, false) && header && found == index_of.end()) {
      *header = line;
      continue;
    }
    const std::string text = comma == std::string::npos ? "" : trimmed(std::string_view(line).substr(comma + 1));
    if (text.empty()) fail(fmt::format("expected 'class,text', got '{}'", trimmed(line).substr(0, kShown)));
    if (found == index_of.end()) {
      const std::string suggestion = did_you_mean(name, keys);
      fail(fmt::format("there is no class '{}'{}", name.substr(0, kShown),
                       suggestion.empty() ? did_you_mean(name, classes) : suggestion));
    }
    if (found->second == kSeveral)
      fail(fmt::format("several classes are called '{}'{}", name,
                       keys.empty() ? "" : "; name them by their keys, such as " + keys[0]));
    ClassLine& of_class = lines[found->second];
    if (of_class.number > 0) fail(fmt::format("the class '{}' has a line above", name));
    of_class = {number, text};
  }
  if (stream.bad()) throw data_file_error("read", file);
  for (size_t c = 0; c < classes.size(); ++c) {
    if (lines[c].number > 0) continue;
    const bool took = header && !header->empty();
    throw DataError(fmt::format("{}: no line for the class '{}'{}", file.string(), keys.empty() ? classes[c] : keys[c],
                                took ? fmt::format("; the first line, '{}', begins with no class, and was taken as the "
                                                   "ranks' names",
                                                   trimmed(*header).substr(0, kShown))
                                     : ""));
  }
  return lines;
}

std::vector<std::string> cells_of(std::string_view text) {
  std::vector<std::string> cells;
  while (true) {
    const size_t comma = text.find(',');
    cells.push_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys) {
  std::vector<std::string> texts;
  for (ClassLine& line : read_class_lines(file, classes, keys, nullptr)) texts.push_back(std::move(line.text));
  return texts;
}

Taxonomy read_taxonomy(const std::filesystem::path& file, const std::vector<std::string>& classes,
                       const std::vector<std::string>& keys) {
  std::string header;
  const std::vector<ClassLine> lines = read_class_lines(file, classes, keys, &header);
  std::vector<std::vector<std::string>> paths;
  for (const ClassLine& line : lines) paths.push_back(cells_of(line.text));
  std::vector<std::string> ranks = header.empty() ? std::vector<std::string>{} : cells_of(header);
  for (size_t r = 0; header.empty() && r <= paths.front().size(); ++r)
    ranks.push_back(r == 0 ? "class" : fmt::format("rank {}", r));
  for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
    if (rank->empty()) throw DataError(fmt::format("{}:1: a rank without a name", file.string()));
    if (std::find(ranks.begin(), rank, *rank) != rank)
      throw DataError(fmt::format("{}:1: the rank '{}' is there twice", file.string(), *rank));
  }
  for (size_t c = 0; c < paths.size(); ++c) {
    if (paths[c].size() + 1 == ranks.size()) continue;
    throw DataError(fmt::format("{}:{}: {} names behind the class, and {} has {}", file.string(), lines[c].number,
                                paths[c].size(), header.empty() ? "the first class" : "the first line",
                                ranks.size() - 1));
  }
  return make_taxonomy(std::move(ranks), paths);
}

ListedClasses read_listed_classes(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                  const std::vector<std::string>& keys, bool with_weights) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  const std::unordered_map<std::string, size_t> index_of = places_of(classes, keys);
  ListedClasses result{std::vector<double>(classes.size())};
  std::vector<char> listed(classes.size());
  bool is_first = true;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, std::string_view(kByteOrderMark).size());
    if (trimmed(line).empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw DataError(fmt::format("{}:{}: {}", file.string(), number, what));
    };
    const size_t comma = with_weights ? line.rfind(',') : std::string::npos;
    const std::string name = trimmed(std::string_view(line).substr(0, comma));
    const std::string text = comma == std::string::npos ? "" : trimmed(std::string_view(line).substr(comma + 1));
    const auto found = index_of.find(name);
    double weight = 1;
    if (with_weights) {
      weight = parse_number<double>(text).value_or(-1);
      const bool is_header = is_first && !text.empty() && !parse_number<double>(text) && found == index_of.end();
      is_first = false;
      if (is_header) continue;
      if (!(weight >= 0 && std::isfinite(weight)))
        fail(fmt::format("expected 'class,weight' with a weight of at least 0, got '{}'",
                         trimmed(line).substr(0, kShown)));
    }
    if (found == index_of.end()) {
      result.unknown.push_back(name);
      continue;
    }
    if (found->second == kSeveral) fail(fmt::format("several classes are called '{}'", name));
    if (std::exchange(listed[found->second], 1)) fail(fmt::format("the class '{}' has a line above", name));
    result.weights[found->second] = weight;
  }
  if (stream.bad()) throw data_file_error("read", file);
  return result;
}

}  // namespace settrain

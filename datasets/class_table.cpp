#include "datasets/class_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datasets/text_lines.h"
#include "src/core/error.h"
#include "src/core/log.h"
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

using Names = std::vector<std::string>;

// The index of each class by its name, which people see; by its key; and by its `earlier` name. The first of these
// counts where a text is several of them.
std::unordered_map<std::string, size_t> places_of(const Names& classes, const Names& keys, const Names& earlier) {
  std::unordered_map<std::string, size_t> places;
  for (const Names* texts : {&classes, &keys, &earlier}) {
    std::unordered_map<std::string, size_t> named;
    for (size_t c = 0; c < texts->size(); ++c) {
      const auto [found, is_new] = named.emplace((*texts)[c], c);
      if (!is_new) found->second = kSeveral;
    }
    for (const auto& [text, c] : named) {
      const auto found = places.emplace(text, c).first;
      if (found->second == kSeveral) found->second = c;
    }
  }
  return places;
}

// The end of a line's first cell: the first comma, behind the quotes of a cell that is quoted.
size_t end_of_cell(std::string_view line) {
  if (!trimmed(line).starts_with('"')) return line.find(',');
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') is_quoted = !is_quoted;
    if (line[i] == ',' && !is_quoted) return i;
  }
  return std::string_view::npos;
}

// A cell without blanks at its ends and without the quotes around it, in which a quote is doubled.
std::string cell_text(std::string_view cell) {
  const std::string text = trimmed(cell);
  const bool is_quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
  if (!is_quoted || end_of_cell(text) != std::string::npos) return text;
  std::string inside;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '"' && text[i + 1] == '"') ++i;
    if (i + 1 < text.size()) inside += text[i];
  }
  return inside;
}

struct ClassLine {
  int64_t number = 0;  // 0: there is none
  std::string text{};  // behind the first comma
};

/// The lines of a text file that are not blank, and the classes that they begin with.
class ClassLines {
 public:
  ClassLines(const std::filesystem::path& file, const Names& classes, const Names& keys, const Names& earlier)
      : lines_(file), keys_(keys), index_of_(places_of(classes, keys, earlier)), has_line_(classes.size()) {
    for (size_t c = 0; c < keys.size(); ++c) key_index_.emplace(keys[c], c);
  }

  /// Goes to the next line; false behind the last. Throws what TextLines::next() throws.
  bool next() {
    while (lines_.next()) {
      if (!trimmed(line()).empty()) return true;
    }
    return false;
  }

  const std::string& line() const { return lines_.line(); }
  int64_t number() const { return lines_.number(); }
  [[noreturn]] void fail(const std::string& what) const { lines_.fail(what); }

  bool is_class(const std::string& name) const { return index_of_.contains(name); }

  /// The class of that name, which is one. Fails where several have it, and where a line above was of it.
  size_t take(const std::string& name) {
    const size_t found = index_of_.at(name);
    if (found == kSeveral)
      fail(fmt::format("several classes are called '{}'{}", name,
                       keys_.empty() ? "" : "; name them by their keys, such as " + keys_[0]));
    if (std::exchange(has_line_[found], 1)) fail(fmt::format("the class '{}' has a line above", name));
    const auto key = key_index_.find(name);
    if (key != key_index_.end() && key->second != found && !std::exchange(is_told_, true)) {
      log::warning(
          fmt::format("[data] {}: {} is the name of one class and the key of another, and stands for the one of that "
                      "name; so do others like it",
                      lines_.place(), in_quotes(name)));
    }
    return found;
  }

 private:
  TextLines lines_;
  const Names& keys_;
  std::unordered_map<std::string, size_t> index_of_;
  std::unordered_map<std::string_view, size_t> key_index_{};
  std::vector<char> has_line_;  // [classes]
  bool is_told_ = false;
};

// [classes] the line of each. `header` becomes a first line that begins with no class.
std::vector<ClassLine> read_class_lines(const std::filesystem::path& file, const Names& classes, const Names& keys,
                                        const Names& earlier, std::string& header) {
  ClassLines reader(file, classes, keys, earlier);
  std::vector<ClassLine> lines(classes.size());
  for (bool is_first = true; reader.next(); is_first = false) {
    const std::string& line = reader.line();
    const size_t comma = end_of_cell(line);
    const std::string name = cell_text(std::string_view(line).substr(0, comma));
    const std::string text = comma == std::string::npos ? "" : trimmed(std::string_view(line).substr(comma + 1));
    if (cell_text(text).empty())
      reader.fail(fmt::format("expected 'class,text', got '{}'", trimmed(line).substr(0, kShown)));
    if (is_first && !reader.is_class(name)) {
      header = line;
      continue;
    }
    if (!reader.is_class(name)) {
      const std::string suggestion = did_you_mean(name, keys);
      reader.fail(fmt::format("there is no class '{}'{}", name.substr(0, kShown),
                              suggestion.empty() ? did_you_mean(name, classes) : suggestion));
    }
    lines[reader.take(name)] = {reader.number(), text};
  }
  for (size_t c = 0; c < classes.size(); ++c) {
    if (lines[c].number > 0) continue;
    const std::string typo = cell_text(std::string_view(header).substr(0, end_of_cell(header)));
    throw DataError(fmt::format(
        "{}: no line for the class '{}'; {} of {} classes have one{}", file.string(),
        keys.empty() ? classes[c] : keys[c],
        std::ranges::count_if(lines, [](const ClassLine& line) { return line.number > 0; }), classes.size(),
        header.empty()
            ? ""
            : fmt::format("; the first line, '{}', begins with no class, and was taken as a header{}",
                          trimmed(header).substr(0, kShown), did_you_mean(typo, keys.empty() ? classes : keys))));
  }
  return lines;
}

std::vector<std::string> cells_of(std::string_view text) {
  std::vector<std::string> cells;
  while (true) {
    const size_t comma = end_of_cell(text);
    cells.push_back(cell_text(text.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<std::string> read_class_table(const std::filesystem::path& file, const std::vector<std::string>& classes,
                                          const std::vector<std::string>& keys,
                                          const std::vector<std::string>& earlier) {
  std::vector<std::string> texts;
  std::string header;
  for (const ClassLine& line : read_class_lines(file, classes, keys, earlier, header))
    texts.push_back(cell_text(line.text));
  return texts;
}

Taxonomy read_taxonomy(const std::filesystem::path& file, const std::vector<std::string>& classes,
                       const std::vector<std::string>& keys, const std::vector<std::string>& earlier) {
  std::string header;
  const std::vector<ClassLine> lines = read_class_lines(file, classes, keys, earlier, header);
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
  ClassLines reader(file, classes, keys, {});
  ListedClasses result{std::vector<double>(classes.size())};
  for (bool is_first = true; reader.next(); is_first = false) {
    const std::string& line = reader.line();
    const size_t comma = with_weights ? line.rfind(',') : std::string::npos;
    const std::string name = cell_text(std::string_view(line).substr(0, comma));
    double weight = 1;
    if (with_weights) {
      const std::string text = comma == std::string::npos ? "" : cell_text(std::string_view(line).substr(comma + 1));
      const std::optional<double> number = parse_number<double>(text);
      if (is_first && !text.empty() && !number && !reader.is_class(name)) continue;  // a header
      weight = number.value_or(-1);
      if (!(weight >= 0 && std::isfinite(weight)))
        reader.fail(fmt::format("expected 'class,weight' with a weight of at least 0, got '{}'",
                                trimmed(line).substr(0, kShown)));
    }
    if (reader.is_class(name)) {
      result.weights[reader.take(name)] = weight;
    } else {
      result.unknown.push_back(name);
    }
  }
  return result;
}

}  // namespace settrain

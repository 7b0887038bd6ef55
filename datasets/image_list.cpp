#include "datasets/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "datasets/text_lines.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr const char* kBlanksInLine = " \t";

// The start of a text, for messages: a line may be megabytes long.
std::string start_of(std::string_view text) {
  constexpr size_t kShown = 80;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "...";
}

// A line of the file, for messages.
struct ListLine {
  const std::filesystem::path& file;
  int64_t number;
  std::string_view text;

  std::string start() const { return start_of(text); }
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("{}:{}: {}", file.string(), number, what));
  }
};

std::vector<int64_t> parse_labels(const ListLine& line, std::string_view text, int64_t num_classes) {
  std::vector<int64_t> labels;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    int64_t label = 0;
    const auto [rest, error] = std::from_chars(at, end, label);
    if (error == std::errc::result_out_of_range) label = -1;
    if ((error != std::errc() && label >= 0) || (rest != end && *rest != ',')) {
      line.fail(fmt::format("expected 'path label' or 'path label,label,...' with whole numbers for labels, got '{}'",
                            line.start()));
    }
    if (label < 0 || label >= num_classes) {
      line.fail(fmt::format("expected labels from 0 to {} (data.num_classes is {}), got {}", num_classes - 1,
                            num_classes, std::string_view(at, static_cast<size_t>(rest - at))));
    }
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) {
      line.fail(fmt::format("label {} is named twice", label));
    }
    labels.push_back(label);
    if (rest == end) return labels;
    at = rest + 1;
  }
}

void parse_line(const ListLine& line, int64_t num_classes, ImageList& list, FileTable& files) {
  const size_t gap = line.text.find_last_of(kBlanksInLine);
  const size_t path_end = gap == std::string_view::npos ? gap : line.text.find_last_not_of(kBlanksInLine, gap);
  if (path_end == std::string_view::npos) {
    line.fail(fmt::format("expected 'path label' or 'path label,label,...', got '{}'", line.start()));
  }
  const std::vector<int64_t> labels = parse_labels(line, line.text.substr(gap + 1), num_classes);
  if (line.text[path_end] == ',')
    line.fail(fmt::format("expected labels without blanks between them, got '{}'", line.start()));
  list.lines.push_back(line.number);
  files.add(line.text.substr(0, path_end + 1));
  // Label sets are stored once a line has several labels; most lists have no such line.
  if (labels.size() > 1 && list.label_sets.empty()) {
    for (const int64_t& label : list.labels) list.label_sets.add({&label, 1});
  }
  list.labels.push_back(labels.front());
  if (labels.size() > 1 || !list.label_sets.empty()) list.label_sets.add(labels);
}

}  // namespace

std::string ImageList::place(int64_t i) const {
  return fmt::format("{}:{}", source.string(), lines.at(static_cast<size_t>(i)));
}

ImageList read_image_list(const std::filesystem::path& file, int64_t num_classes, FileTable& files) {
  TextLines lines(file);
  ImageList list{.source = file, .lines = {}, .first_file = files.size(), .labels = {}, .label_sets = {}};
  while (lines.next()) {
    const std::string_view text = lines.line();
    const size_t end = text.find_last_not_of(" \t\r");
    if (end == std::string_view::npos) continue;
    parse_line({file, lines.number(), text.substr(0, end + 1)}, num_classes, list, files);
  }
  if (list.labels.empty()) throw DataError(fmt::format("'{}' lists no image", file.string()));
  return list;
}

void find_listed_files(const ImageList& list, FileTable& files) {
  const std::optional<int64_t> missing = files.measure();
  if (!missing) return;
  throw DataError(
      fmt::format("{}: no image file for '{}' in '{}'{}. Put it back, or take its line out of the list; where "
                  "all images have moved, --set data.root=FOLDER",
                  list.place(*missing - list.first_file), start_of(files.name(*missing)), files.root().string(),
                  shell_hint(files.name(*missing))));
}

}  // namespace settrain

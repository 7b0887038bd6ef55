#include "datasets/imagenet_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "datasets/data_file_error.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr std::string_view kKaggle = "ImageId,PredictionString";
constexpr const char* kMakeSynsets =
    "python3 -c \"from scipy.io import loadmat; print(*[s[1] for s in loadmat('meta.mat', "
    "squeeze_me=True)['synsets'][:1000]], sep='\\n')\" >synsets.txt";

struct NumberedLine {
  int64_t number;
  std::string text;
};

// The lines that are not empty, without blanks at their ends.
std::vector<NumberedLine> read_lines(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  std::vector<NumberedLine> lines;
  std::string text;
  for (int64_t number = 1; std::getline(stream, text); ++number) {
    const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    if (begin != std::string::npos) lines.push_back({number, text.substr(begin, end - begin + 1)});
  }
  if (stream.bad()) throw data_file_error("read", file);
  return lines;
}

[[noreturn]] void fail(const std::filesystem::path& file, int64_t line, const std::string& what) {
  throw DataError(fmt::format("{}:{}: {}", file.string(), line, what));
}

// A text that is a whole number and nothing else.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

class Classes {
 public:
  explicit Classes(const std::vector<std::string>& names) : count_(std::ssize(names)) {
    for (int64_t c = 0; c < count_; ++c) index_of_.emplace(names[static_cast<size_t>(c)], c);
  }

  std::optional<int64_t> by_wnid(const std::string& wnid) const {
    const auto found = index_of_.find(wnid);
    return found == index_of_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<int64_t> by_index(const std::string& text) const {
    const std::optional<int64_t> index = whole_number(text);
    return index && *index >= 0 && *index < count_ ? index : std::nullopt;
  }
  int64_t count() const { return count_; }

 private:
  int64_t count_;
  std::unordered_map<std::string, int64_t> index_of_;
};

// Labels of images by name.
class Labels {
 public:
  Labels(const std::filesystem::path& file, const std::vector<std::string>& names)
      : file_(file), names_(names), labels_(names.size(), kNone) {}

  // Kaggle's names have no ending; those of files are compared with theirs.
  void set(const NumberedLine& line, const std::string& image, bool has_ending, int64_t label) {
    const std::string name = has_ending ? image : image + '.';
    auto found = std::lower_bound(names_.begin(), names_.end(), name);
    if (found == names_.end() || (has_ending ? *found != name : !found->starts_with(name))) {
      fail(file_, line.number, fmt::format("there is no image '{}'", image.substr(0, 80)));
    }
    int64_t& place = labels_[static_cast<size_t>(found - names_.begin())];
    if (place != kNone) fail(file_, line.number, fmt::format("'{}' has a line above", image));
    place = label;
  }
  std::vector<int64_t> all() {
    const auto without = std::find(labels_.begin(), labels_.end(), kNone);
    if (without != labels_.end()) {
      throw DataError(fmt::format("{}: no line for {} of {} images; the first is '{}'", file_.string(),
                                  std::count(labels_.begin(), labels_.end(), kNone), names_.size(),
                                  names_[static_cast<size_t>(without - labels_.begin())]));
    }
    return std::move(labels_);
  }

 private:
  static constexpr int64_t kNone = -1;
  const std::filesystem::path& file_;
  const std::vector<std::string>& names_;
  std::vector<int64_t> labels_;
};

std::vector<int64_t> read_devkit(const std::filesystem::path& file, const std::vector<NumberedLine>& lines,
                                 const std::filesystem::path& synsets_file, size_t num_images, const Classes& classes) {
  if (synsets_file.empty()) {
    throw KeyError("data.synsets",
                   fmt::format("'{}' has ILSVRC2012_IDs; expected a text file whose line i is the WNID of ID i. In the "
                               "devkit's folder data/ this makes it: {}",
                               file.string(), kMakeSynsets));
  }
  const std::vector<NumberedLine> synsets = read_lines(synsets_file);
  std::set<std::string_view> above;
  for (const NumberedLine& synset : synsets) {
    if (!above.insert(synset.text).second) {
      fail(synsets_file, synset.number, fmt::format("'{}' has a line above", synset.text.substr(0, 80)));
    }
  }
  if (lines.size() != num_images) {
    throw DataError(
        fmt::format("'{}' has {} lines, expected {}, one an image of val", file.string(), lines.size(), num_images));
  }
  std::vector<int64_t> labels;
  for (const NumberedLine& line : lines) {
    const std::optional<int64_t> id = whole_number(line.text);
    if (!id) fail(file, line.number, fmt::format("expected an ILSVRC2012_ID, got '{}'", line.text.substr(0, 80)));
    if (*id < 1 || *id > std::ssize(synsets)) {
      fail(file, line.number,
           fmt::format("expected IDs from 1 to {}, the lines of '{}'; got {}", synsets.size(), synsets_file.string(),
                       *id));
    }
    const NumberedLine& synset = synsets[static_cast<size_t>(*id - 1)];
    const std::optional<int64_t> label = classes.by_wnid(synset.text);
    if (!label) {
      fail(synsets_file, synset.number, fmt::format("'{}' is no folder of train", synset.text.substr(0, 80)));
    }
    labels.push_back(*label);
  }
  return labels;
}

}  // namespace

std::vector<int64_t> read_imagenet_labels(const std::filesystem::path& file, const std::filesystem::path& synsets,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& class_names) {
  const Classes classes(class_names);
  const std::vector<NumberedLine> lines = read_lines(file);
  if (lines.empty()) throw DataError(fmt::format("'{}' is empty", file.string()));
  const bool is_kaggle = lines[0].text.starts_with(kKaggle);
  if (!is_kaggle && whole_number(lines[0].text)) return read_devkit(file, lines, synsets, names.size(), classes);

  Labels labels(file, names);
  for (size_t i = is_kaggle ? 1 : 0; i < lines.size(); ++i) {
    const std::string& text = lines[i].text;
    const size_t gap = is_kaggle ? text.find(',') : text.find_last_of(" \t");
    const size_t end = gap == std::string::npos ? gap : text.find_last_not_of(" \t", gap - 1);
    if (end == std::string::npos) {
      fail(file, lines[i].number,
           fmt::format("expected '{}', got '{}'", is_kaggle ? "IMAGE,WNID ..." : "FILE WNID' or 'FILE INDEX",
                       text.substr(0, 80)));
    }
    const std::string image = std::filesystem::path(text.substr(0, is_kaggle ? gap : end + 1)).filename().string();
    const std::string rest = text.substr(gap + 1);
    const std::string label = is_kaggle ? rest.substr(0, rest.find(' ')) : rest;
    std::optional<int64_t> index = classes.by_wnid(label);
    if (!index && !is_kaggle) index = classes.by_index(label);
    if (!index) {
      fail(file, lines[i].number,
           fmt::format("'{}' is no folder of train{}", label.substr(0, 80),
                       is_kaggle ? "" : fmt::format(" and no index from 0 to {}", classes.count() - 1)));
    }
    labels.set(lines[i], image, /*has_ending=*/!is_kaggle, *index);
  }
  return labels.all();
}

}  // namespace settrain

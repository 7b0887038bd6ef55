#include "src/data_tools/split_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/validation_split.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected = "expected a folder for every class";
using Paths = std::vector<fs::path>;

// Refuses names that read_image_list() and read_class_table() would not read back unchanged.
void check_name(const fs::path& path, const std::string& name, bool is_class) {
  const bool blank_end = !name.empty() && (std::string_view(" \t").find(name.front()) != std::string_view::npos ||
                                           std::string_view(" \t").find(name.back()) != std::string_view::npos);
  if (name.find_first_of("\n\r") == std::string::npos && !(is_class && blank_end)) return;
  throw DataError(fmt::format("'{}': a list of images cannot hold this name: rename it, without {}", path.string(),
                              is_class ? "line breaks, and blanks at the ends" : "line breaks"));
}

// A number that depends only on the class' name. Two classes may share a number, and then have the same order.
uint32_t number_of(const std::string& name) {
  return static_cast<uint32_t>(std::stoul(sha256(name).substr(0, 8), nullptr, 16));
}

ClassSplit split_class(std::string name, const std::vector<fs::path>& files, const SplitRule& rule, uint64_t seed) {
  ClassSplit split{std::move(name), {}, {}, {}, {}};
  const auto n = static_cast<int64_t>(files.size());
  const SplitSizes sizes = rule.sizes(n);
  if (sizes == SplitSizes{}) {
    split.train = files;
    return split;
  }
  const std::vector<int64_t> order = permutation(n, seed, Stream::kDataSplit, number_of(split.name));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t after_test = i - sizes.val - sizes.test;
    auto& part = i < sizes.val                    ? split.val
                 : after_test < 0                 ? split.test
                 : after_test < sizes.calibration ? split.calibration
                                                  : split.train;
    part.push_back(files[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  }
  for (auto* part : {&split.train, &split.val, &split.calibration, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

// Reads all images, and returns whether each can be read, [images].
std::vector<bool> readable_images(const FileTable& files, const std::vector<int64_t>& labels,
                                  const std::vector<std::string>& classes, int64_t readers, FolderSplit& split) {
  Dataset all;
  all.class_names = classes;
  all.train = make_split("train", std::make_shared<ImageFiles>(files, ImageFileOptions{}), labels);
  VerifyReport report = verify_images(all, {"train"}, readers);
  if (!report.complete()) throw_if_interrupted();
  std::set<std::string> bad;
  for (const BadImage& image : report.bad) bad.insert(image.file);
  std::vector<bool> can_be_read;
  for (int64_t i = 0; i < files.size(); ++i) can_be_read.push_back(!bad.contains(files.path(i).string()));
  split.unreadable = std::move(report.bad);
  split.read = files.size();
  return can_be_read;
}

// The images of each class, and of FolderSplit what does not depend on the division.
std::vector<Paths> images_of(const fs::path& folder, const std::vector<std::string>& classes, int64_t readers,
                             FolderSplit& split) {
  FileTable files(folder);
  const std::vector<int64_t> labels = add_class_images("", classes, files);
  if (const auto gone = files.measure()) {
    throw DataError(fmt::format("'{}' is a link to nothing, or no file", files.path(*gone).string()));
  }
  std::vector<bool> can_be_read;
  if (readers > 0 && files.size() > 0) can_be_read = readable_images(files, labels, classes, readers, split);
  std::vector<Paths> images(classes.size());
  for (int64_t i = 0; i < files.size(); ++i) {
    check_name(files.path(i), files.path(i).string(), false);
    if (!can_be_read.empty() && !can_be_read[static_cast<size_t>(i)]) continue;
    images[static_cast<size_t>(labels[static_cast<size_t>(i)])].emplace_back(files.name(i));
    if (files.file_size(i) == 0 && ++split.empty == 1) split.first_empty = files.path(i).string();
  }
  split.unread = files.unread();
  if (classes.size() > 1) warn_of_inner_classes(folder, classes, files, /*depth=*/1);
  return images;
}

struct Part {
  const char* name;
  Paths ClassSplit::*files;
};
constexpr Part kParts[] = {{"train", &ClassSplit::train},
                           {"val", &ClassSplit::val},
                           {"calibration", &ClassSplit::calibration},
                           {"test", &ClassSplit::test}};

const char* name_of(SplitRule::Kind kind) {
  return kind == SplitRule::Kind::kTenths ? "tenths" : kind == SplitRule::Kind::kFractions ? "fractions" : "plantnet";
}

int64_t images_of(const std::vector<ClassSplit>& classes, const Part& part) {
  int64_t count = 0;
  for (const ClassSplit& class_split : classes) count += std::ssize(class_split.*part.files);
  return count;
}

std::string list_of(const FolderSplit& split, const Part& part) {
  std::string text;
  for (size_t c = 0; c < split.classes.size(); ++c) {
    for (const fs::path& file : split.classes[c].*part.files) text += fmt::format("{} {}\n", file.string(), c);
  }
  return text;
}

std::string class_table_of(const FolderSplit& split) {
  std::string text;
  for (size_t c = 0; c < split.classes.size(); ++c) {
    const std::string& name = split.classes[c].name;
    const bool looks_quoted = name.starts_with('"');
    text += fmt::format("class_{},{}\n", c,
                        looks_quoted ? fmt::format("\"{}\"", replace_characters(name, {{'"', "\"\""}})) : name);
  }
  return text;
}

nlohmann::ordered_json record_of(const SplitRequest& request, const FolderSplit& split, const std::string& digest) {
  nlohmann::ordered_json record;
  record["kind"] = "settrain split";
  record["format_version"] = 1;
  record["folder"] = request.folder.string();
  record["rule"] = name_of(request.rule.kind);
  record["val"] = request.rule.val.text();
  if (request.rule.kind != SplitRule::Kind::kPlantnet) record["calibration"] = request.rule.calibration.text();
  record["test"] = request.rule.test.text();
  record["min_images"] = request.rule.min_images;
  record["seed"] = request.seed;
  record["rng"] = kRngVersion;
  record["classes"] = split.classes.size();
  for (const Part& part : kParts) record["images"][part.name] = images_of(split.classes, part);
  record["left_out"] = nlohmann::ordered_json::object();
  for (const ClassSplit& class_split : split.left_out) record["left_out"][class_split.name] = class_split.size();
  if (split.read > 0) {
    record["unreadable"] = nlohmann::ordered_json::array();
    for (const BadImage& image : split.unreadable) record["unreadable"].push_back(image.file);
  }
  record["sha256"] = digest;
  return record;
}

// Sets of 90 % need so many images: with n of them, the threshold is the ceil(0.9 (n + 1))-th smallest score of n.
constexpr int64_t kImagesOfNinety = 9;

// What the calibration images suffice for: sets that are right for 90 % of all images, or of the images of each class.
std::string describe_promises(const SplitRule& rule, const FolderSplit& split) {
  const int64_t images = images_of(split.classes, kParts[2]);
  if (images == 0) {
    return "sets with a guarantee need images that chose nothing: this rule keeps none for them, and "
           "data.calibration_share takes some of the validation images\n";
  }
  std::string text =
      fmt::format("sets that are right for 90 % of all images need {} calibration images: there are {}\n",
                  kImagesOfNinety, format_count(images));
  const auto enough = std::ranges::count_if(split.classes, [](const ClassSplit& class_split) {
    return std::ssize(class_split.calibration) >= kImagesOfNinety;
  });
  text += fmt::format(
      "sets that are right for 90 % of each class (classwise rules) need {} of the class: {} of {} classes "
      "have them",
      kImagesOfNinety, enough, split.classes.size());
  if (enough == std::ssize(split.classes)) return text + '\n';
  int64_t size = kImagesOfNinety;
  constexpr int64_t kMostImages = 100'000;
  while (size < kMostImages && rule.sizes(size).calibration < kImagesOfNinety) ++size;
  if (size == kMostImages) return text + '\n';
  return text +
         fmt::format(
             "; a class has them from {} images on. The other classes are in every set of such a rule; rules with "
             ":interpolated or :clustered, or one for all images, need fewer\n",
             format_count(size));
}

// The classes with their numbers of images, the largest first, of many the first ones.
std::string names_of(std::vector<ClassSplit> classes) {
  std::ranges::stable_sort(classes, std::greater{}, &ClassSplit::size);
  std::vector<std::string> names;
  for (const ClassSplit& one : classes) names.push_back(fmt::format("{} ({})", one.name, format_count(one.size())));
  return join_first(names, 10);
}

// A config would take "${" for another key.
std::string quoted(const fs::path& path) {
  std::string text = path.string();
  for (size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 3)) text.insert(at, "$");
  return nlohmann::json(text).dump();
}

}  // namespace

Fraction::Fraction(const std::string& text, const std::string& option) : text_(text) {
  const size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  const std::string digits = point == std::string::npos ? "" : text.substr(point + 1);
  const bool is_number = whole.find_first_not_of('0') == std::string::npos && !digits.empty() && digits.size() <= 9 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) {
    numerator_ = std::stoll(digits);
    for (size_t i = 0; i < digits.size(); ++i) denominator_ *= 10;
  }
  if (numerator_ == 0) {
    throw ConfigError(
        fmt::format("{}: expected a fraction between 0 and 1 with at most nine digits, such as 0.1, got "
                    "'{}'",
                    option, text));
  }
}

int64_t Fraction::rounded_up(int64_t n) const {
  return (n * numerator_ + denominator_ - 1) / denominator_;
}

int64_t Fraction::nearest(int64_t n) const {
  return (2 * n * numerator_ + denominator_) / (2 * denominator_);
}

SplitSizes SplitRule::sizes(int64_t n) const {
  if (n <= min_images) return {};
  const auto part = [&](const Fraction& fraction) {
    return kind == Kind::kFractions ? std::max<int64_t>(fraction.nearest(n), 1) : fraction.rounded_up(n);
  };
  SplitSizes sizes{0, part(val), kind == Kind::kPlantnet ? 0 : part(calibration), part(test)};
  sizes.train = n - sizes.val - sizes.calibration - sizes.test;
  return sizes.train >= 1 ? sizes : SplitSizes{};
}

FolderSplit split_folder(const fs::path& folder, const SplitRule& rule, uint64_t seed, int64_t readers) {
  const std::vector<std::string> classes = folders_in(folder, kExpected);
  if (classes.empty()) {
    throw DataError(fmt::format("'{}' holds no folders: expected one for every class", folder.string()));
  }
  if (std::ranges::none_of(classes, [](const std::string& name) { return usual_split(name).empty(); })) {
    throw DataError(
        fmt::format("'{}' holds {}, which are no classes: this data set is divided already (data.name: image_folder "
                    "reads its train/, val/ and test/); name a folder of classes",
                    folder.string(), fmt::join(classes, ", ")));
  }
  for (const std::string& name : classes) check_name(folder / name, name, true);
  FolderSplit split;
  const std::vector<Paths> images = images_of(folder, classes, readers, split);
  for (size_t c = 0; c < classes.size(); ++c) {
    ClassSplit divided = split_class(classes[c], images[c], rule, seed);
    (divided.val.empty() ? split.left_out : split.classes).push_back(std::move(divided));
  }
  if (split.classes.size() < 2) {
    std::string what = fmt::format(
        "{} of the {} classes in '{}' are large enough, expected two at least: a class needs more than {} images ({}), "
        "and one left to train on",
        split.classes.size(), classes.size(), folder.string(), rule.min_images, kImageEndings);
    if (const std::string inner = folders_in_classes(folder, classes); classes.size() == 1 && !inner.empty())
      what += fmt::format(". Are the folders in '{}' the classes ({})?", classes[0], inner);
    for (const std::string& text : unread_texts(split.unread)) what += ". " + text;
    if (!split.unreadable.empty()) {
      what += fmt::format(". {} images cannot be read; the first: {}", split.unreadable.size(),
                          split.unreadable.front().reason);
    }
    throw DataError(what);
  }
  return split;
}

SharedImageSearch shared_images_of(const fs::path& folder, const FolderSplit& split, int64_t most_files) {
  Dataset data;
  FileTable files(folder);
  const std::array<Split*, std::size(kParts)> splits{&data.train, &data.val, &data.calibration, &data.test};
  for (const ClassSplit& one : split.classes) data.class_names.push_back(one.name);
  for (size_t part = 0; part < std::size(kParts); ++part) {
    for (size_t c = 0; c < split.classes.size(); ++c) {
      for (const fs::path& file : split.classes[c].*kParts[part].files) {
        splits[part]->ids.push_back(files.size());
        splits[part]->labels.push_back(static_cast<int64_t>(c));
        files.add(file.native());
      }
    }
  }
  files.measure();
  const auto images = std::make_shared<ImageFiles>(std::move(files), ImageFileOptions{});
  for (Split* part : splits) part->images = images;
  return find_shared_images(data, most_files);
}

void check_out(const SplitRequest& request) {
  for (const fs::path& path : {request.folder, request.out}) {
    if (!is_utf8(fs::absolute(path).string()))
      throw RunError(fmt::format("{}: a config cannot hold this path, which is not UTF-8 text: rename it",
                                 on_one_line(path.string())));
  }
  if (!fs::is_directory(request.folder)) folders_in(request.folder, kExpected);  // says what is wrong with it
  std::error_code missing;
  const bool is_free =
      !fs::exists(request.out, missing) || (fs::is_directory(request.out) && fs::is_empty(request.out));
  if (is_free || (request.overwrite && fs::is_directory(request.out))) return;
  throw RunError(fmt::format("'{}' is there already: choose another --to, or {}", request.out.string(),
                             fs::is_directory(request.out) ? "--overwrite its lists" : "move it away"));
}

void write_split(const SplitRequest& request, const FolderSplit& split) {
  check_out(request);
  std::error_code problem;
  fs::create_directories(request.out, problem);
  if (problem) throw file_error("make the folder", request.out, problem.value());
  fs::remove(request.out / "split.json", problem);

  Sha256 sha;
  const auto write = [&](const std::string& name, const std::string& text) {
    sha.add(fmt::format("{} {}\n", name, text.size())).add(text);
    write_file_atomically(request.out / name, text);
  };
  for (const Part& part : kParts) {
    const std::string name = std::string(part.name) + ".txt";
    if (images_of(split.classes, part) > 0) {
      write(name, list_of(split, part));
    } else {
      fs::remove(request.out / name, problem);  // of another rule
    }
  }
  write("classes.csv", class_table_of(split));
  const std::string record =
      record_of(request, split, sha.hex()).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  write_file_atomically(request.out / "split.json", record + "\n");
}

std::string describe_split(const SplitRule& rule, const FolderSplit& split) {
  std::string text = fmt::format("{:<12}{:>10}{:>12}{:>12}\n", "", "images", "fewest", "most");
  for (const Part& part : kParts) {
    int64_t least = INT64_MAX, most = 0;
    for (const ClassSplit& class_split : split.classes) {
      least = std::min<int64_t>(least, std::ssize(class_split.*part.files));
      most = std::max<int64_t>(most, std::ssize(class_split.*part.files));
    }
    if (most == 0) continue;
    text += fmt::format("{:<12}{:>10}{:>12}{:>12}\n", part.name, format_count(images_of(split.classes, part)),
                        format_count(least), format_count(most));
  }
  text += fmt::format("{} classes; fewest and most: images of one class\n", format_count(std::ssize(split.classes)));
  if (!split.left_out.empty()) {
    text +=
        fmt::format("left out: {} {} with {} images in all; a class needs more than {}, and one left to train on: {}\n",
                    format_count(std::ssize(split.left_out)), split.left_out.size() == 1 ? "class" : "classes",
                    format_count(images_of(split.left_out, kParts[0])), rule.min_images, names_of(split.left_out));
  }
  for (const BadImage& image : split.unreadable) {
    text += fmt::format("left out: unreadable, class {}: {}\n", image.classes, image.reason);
  }
  for (const std::string& unread : unread_texts(split.unread)) text += "left out: " + unread + '\n';
  if (split.read > 0) {
    text += fmt::format("read: all {} images; {}\n", format_count(split.read),
                        split.unreadable.empty()
                            ? "each can be read"
                            : fmt::format("{} cannot be read", format_count(std::ssize(split.unreadable))));
  } else if (split.empty > 0) {
    text += fmt::format(
        "empty: {} of the images {} 0 bytes; the first is '{}'. Training refuses them, or skips them with "
        "data.on_bad_image: skip\n",
        format_count(split.empty), split.empty == 1 ? "has" : "have", split.first_empty);
  }
  return text + describe_promises(rule, split);
}

std::string quoted_path(const fs::path& path) {
  return quoted(fs::absolute(path).lexically_normal());
}

std::string list_path(const SplitRequest& request, const std::string& name) {
  const fs::path out = fs::absolute(request.out).lexically_normal();
  const fs::path from_images = out.lexically_relative(fs::absolute(request.folder / ".").lexically_normal()) / name;
  std::error_code ignored;
  const bool leads_there = fs::equivalent(request.folder / from_images, out / name, ignored);
  return leads_there ? quoted(from_images) : quoted_path(out / name);
}

std::string data_lines(const SplitRequest& request, const FolderSplit& split) {
  const auto out = [&](const char* name) { return list_path(request, name); };
  const bool calibrates = images_of(split.classes, kParts[2]) > 0;
  return fmt::format(
      "data: {{name: file_list, root: {}, num_classes: {},\n"
      "       train: {}, val: {},{} test: {}, class_names: {}}}\n",
      quoted_path(request.folder), split.classes.size(), out("train.txt"), out("val.txt"),
      calibrates ? fmt::format(" calibration: {},", out("calibration.txt")) : "", out("test.txt"), out("classes.csv"));
}

}  // namespace settrain

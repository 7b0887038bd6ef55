#include "src/data_tools/split_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/core/atomic_file.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/streams.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

struct Part {
  const char* name;
  Paths ClassSplit::*files;
};
constexpr Part kParts[] = {{"train", &ClassSplit::train}, {"val", &ClassSplit::val}, {"test", &ClassSplit::test}};

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
  for (size_t c = 0; c < split.classes.size(); ++c) text += fmt::format("class_{},{}\n", c, split.classes[c].name);
  return text;
}

nlohmann::ordered_json record_of(const SplitRequest& request, const FolderSplit& split, const std::string& digest) {
  nlohmann::ordered_json record;
  record["kind"] = "settrain split";
  record["format_version"] = 1;
  record["folder"] = request.folder.string();
  record["rule"] = request.rule.name;
  record["val"] = request.rule.val.text();
  record["test"] = request.rule.test.text();
  record["min_images"] = request.rule.min_images;
  record["seed"] = request.seed;
  record["rng"] = kRngVersion;
  record["classes"] = split.classes.size();
  for (const Part& part : kParts) record["images"][part.name] = images_of(split.classes, part);
  record["left_out"] = nlohmann::ordered_json::object();
  for (const ClassSplit& class_split : split.left_out) record["left_out"][class_split.name] = class_split.size();
  record["sha256"] = digest;
  return record;
}

// JSON's quotes are YAML's too.
std::string quoted(const fs::path& path) {
  return nlohmann::json(fs::absolute(path).lexically_normal().string()).dump();
}

}  // namespace

void check_out(const SplitRequest& request) {
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
  for (const Part& part : kParts) write(std::string(part.name) + ".txt", list_of(split, part));
  write("classes.csv", class_table_of(split));
  const std::string record =
      record_of(request, split, sha.hex()).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  write_file_atomically(request.out / "split.json", record + "\n");
}

std::string describe_split(const SplitRequest& request, const FolderSplit& split) {
  std::string text = fmt::format("{:<8}{:>10}{:>12}{:>12}\n", "", "images", "fewest", "most");
  for (const Part& part : kParts) {
    int64_t least = INT64_MAX, most = 0;
    for (const ClassSplit& class_split : split.classes) {
      least = std::min<int64_t>(least, std::ssize(class_split.*part.files));
      most = std::max<int64_t>(most, std::ssize(class_split.*part.files));
    }
    text += fmt::format("{:<8}{:>10}{:>12}{:>12}\n", part.name, format_count(images_of(split.classes, part)),
                        format_count(least), format_count(most));
  }
  text += fmt::format("{} classes; fewest and most: images of one class\n", format_count(std::ssize(split.classes)));
  if (!split.left_out.empty()) {
    text += fmt::format("left out: {} classes with {} images in all, too small for the rule; the first is {} with {}\n",
                        format_count(std::ssize(split.left_out)), format_count(images_of(split.left_out, kParts[0])),
                        split.left_out.front().name, format_count(split.left_out.front().size()));
  }
  if (split.outside > 0) {
    text += fmt::format("left out: {} images in no class' folder\n", format_count(split.outside));
  }
  const auto out = [&](const char* name) { return quoted(request.out / name); };
  return text + fmt::format(
                    "\nThese lines of a config use it:\ndata: {{name: file_list, root: {}, num_classes: {},\n"
                    "       train: {}, val: {}, test: {}, class_names: {}}}\n",
                    quoted(request.folder), split.classes.size(), out("train.txt"), out("val.txt"), out("test.txt"),
                    out("classes.csv"));
}

}  // namespace settrain

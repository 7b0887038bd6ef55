#include "src/measure/check/parameter_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/measure/check/json_place.h"

namespace settrain {
namespace {

constexpr int64_t kMostClasses = 1'000'000;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.empty()) throw DataError(file.string() + ": cannot be read, or is empty");
  return lines;
}

// "resnet18" of resnet18.params.txt
std::string name_of(const std::filesystem::path& file) {
  return file.stem().stem().string();
}

bool is_remark(const std::string& line) {
  return line.starts_with('#');
}

std::vector<std::string> lines_of(const Model& model) {
  std::set<std::string> buffers;
  for (const auto& item : model.named_buffers()) buffers.insert(item.key());
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : state_dict(model)) {
    const char* dtype = tensor.is_floating_point() ? "float32" : "int64";
    lines.push_back(fmt::format("{}\t{}\t[{}]\t{}{}", lines.size(), dtype, fmt::join(tensor.sizes().vec(), ","), name,
                                buffers.count(name) ? "\tbuffer" : ""));
  }
  return lines;
}

}  // namespace

GoldenModel listed_model(const std::filesystem::path& file) {
  const std::filesystem::path results = file.parent_path() / (name_of(file) + ".json");
  if (std::filesystem::exists(results)) return golden_model(read_json(results));
  const std::string first = lines_of(file).front();
  const size_t comma = first.find(", ");
  int64_t classes = 0;
  if (first.starts_with("# ") && comma != std::string::npos) {
    std::from_chars(first.data() + comma + 2, first.data() + first.size(), classes);
  }
  if (classes <= 0 || classes > kMostClasses || first.find(" classes:", comma) == std::string::npos) {
    throw DataError(fmt::format("{}:1: expected \"# NAME, N classes: ...\", got \"{:.60}\"", file.string(), first));
  }
  const std::string name = first.substr(2, comma - 2);
  return {name, settings_named(name), classes, {}};
}

CheckRow check_parameter_list(const std::filesystem::path& file, const std::string& name, const Model& model) {
  std::vector<std::string> expected = lines_of(file);
  std::erase_if(expected, is_remark);
  const std::vector<std::string> got = lines_of(model);
  int64_t wrong = 0;
  std::string note;
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    const std::string wanted = i < expected.size() ? expected[i] : "no entry";
    const std::string have = i < got.size() ? got[i] : "no entry";
    if (wanted == have) continue;
    if (wrong++ == 0) note = fmt::format("{}: entry {}: expected {}; got {}", file.string(), i, wanted, have);
  }
  return {
      name, fmt::format("names and shapes of {} entries", expected.size()), static_cast<double>(wrong), 0, wrong == 0,
      note};
}

}  // namespace settrain

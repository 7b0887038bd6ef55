#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "src/checkpoint/tensor_file.h"
#include "src/core/error.h"
#include "src/formats/weight_file.h"
#include "src/measure/check/checks.h"
#include "src/measure/check/closed_fill.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/tolerance.h"

namespace settrain {
namespace {

using nlohmann::json;

constexpr double kUnread = std::numeric_limits<double>::infinity();

// A path as the golden files have it: ["optimizer", "state", 0].
std::string dump(const KeyPath& path) {
  json keys = json::array();
  for (const auto& key : path) std::visit([&keys](const auto& value) { keys.push_back(value); }, key);
  return keys.dump();
}

json value_of(const Leaf& leaf) {
  if (std::holds_alternative<std::monostate>(leaf.value)) return nullptr;
  if (const auto* truth = std::get_if<bool>(&leaf.value)) return *truth;
  if (const auto* integer = std::get_if<int64_t>(&leaf.value)) return *integer;
  if (const auto* real = std::get_if<double>(&leaf.value)) return *real;
  if (const auto* opaque = std::get_if<Opaque>(&leaf.value)) return json::object({{"opaque", opaque->name}});
  return std::get<std::string>(leaf.value);
}

// The largest difference of the values; what is recorded has been rounded to the tensor's type.
double value_error(const at::Tensor& tensor, const json& recorded) {
  const at::Tensor values = tensor.to(at::kDouble).flatten();
  if (recorded.size() != static_cast<size_t>(values.numel())) return kUnread;
  const double* got = values.const_data_ptr<double>();
  WorstError worst;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (!recorded[i].is_number()) return kUnread;
    auto expected = recorded[i].get<double>();
    if (tensor.scalar_type() == at::kFloat) expected = static_cast<float>(expected);
    if (expected != got[i]) worst.add(std::abs(expected - got[i]), "");
  }
  return worst.error;
}

// Compares one file of weights with what is recorded of it.
class FileCheck {
 public:
  FileCheck(const std::filesystem::path& path, const json& recorded) : file_(path), recorded_(recorded) {}

  CheckRow run(const std::string& name) {
    check_tensors();
    check_leaves();
    const std::string what =
        fmt::format("{} tensors, {} other values", recorded_.at("tensors").size(), recorded_.at("other_leaves").size());
    return worst_.row(name, what, 0);
  }

 private:
  void check_tensors() {
    std::map<std::string, const TensorEntry*> entries;
    for (const TensorEntry& entry : file_.contents().tensors) entries[dump(entry.path)] = &entry;
    const json& recorded = recorded_.at("tensors");
    if (entries.size() != recorded.size()) worst_.add(kUnread, fmt::format("{} tensors", entries.size()));
    for (const json& tensor : recorded) {
      const std::string path = tensor.at("path").dump();
      const auto found = entries.find(path);
      if (found == entries.end()) {
        worst_.add(kUnread, path + " is missing");
        continue;
      }
      const TensorEntry& entry = *found->second;
      const bool is_same = names_of(entry.dtype).name == tensor.at("dtype").get<std::string>() &&
                           entry.shape == tensor.at("shape").get<std::vector<int64_t>>() &&
                           entry.stride == tensor.at("stride").get<std::vector<int64_t>>() &&
                           entry.offset == tensor.at("storage_offset");
      worst_.add(is_same ? value_error(read_tensor(file_, entry), tensor.at("values")) : kUnread, path);
    }
  }

  void check_leaves() {
    std::map<std::string, json> leaves;
    for (const Leaf& leaf : file_.contents().leaves) leaves[dump(leaf.path)] = value_of(leaf);
    const json& recorded = recorded_.at("other_leaves");
    if (leaves.size() != recorded.size()) worst_.add(kUnread, fmt::format("{} other values", leaves.size()));
    for (const json& leaf : recorded) {
      const auto found = leaves.find(leaf.at("path").dump());
      const json& value = leaf.at("value");
      // 1 and 1.0 are equal to the library, and not the same.
      const bool is_same =
          found != leaves.end() && found->second == value && found->second.is_number_float() == value.is_number_float();
      if (!is_same) worst_.add(kUnread, leaf.at("path").dump());
    }
  }

  WeightFile file_;
  const json& recorded_;
  WorstError worst_;
};

CheckRow check_readable(const std::filesystem::path& folder, const json& recorded) {
  const auto name = recorded.at("file").get<std::string>();
  try {
    return FileCheck(folder / name, recorded).run(name);
  } catch (const RunError& problem) {
    return {name, "is read", kUnread, 0, false, problem.what()};
  }
}

CheckRow check_hostile(const std::filesystem::path& folder, const json& recorded) {
  const auto name = recorded.at("file").get<std::string>();
  const std::string what = fmt::format("is refused: {}", recorded.at("why").get<std::string>());
  if (!exists(folder / name)) return {name, what, kUnread, 0, false, "the file is not there"};
  try {
    WeightFile file(folder / name);
    for (const TensorEntry& entry : file.contents().tensors) read_tensor(file, entry);
    return {name, what, kUnread, 0, false, "it was read"};
  } catch (const RunError&) {
    return {name, what, 0, 0, true, ""};
  }
}

CheckRow check_logits(const std::filesystem::path& folder, const json& recorded) {
  const auto name = recorded.at("file").get<std::string>();
  WeightFile file(folder / name);
  const StateDict weights = find_state_dict(file.contents(), name);
  const auto get = [&](const char* key) { return read_tensor(file, weights.tensors.at(key)); };
  at::Tensor images = closed_input(recorded.at("input_shape").get<std::vector<int64_t>>(), 0).to(at::kFloat);
  images = at::conv2d(images, get("conv.weight"));
  images = at::batch_norm(images, get("bn.weight"), get("bn.bias"), get("bn.running_mean"), get("bn.running_var"),
                          false, 0, 1e-5, false);
  const at::Tensor logits = at::linear(images.relu().mean({2, 3}), get("fc.weight"), get("fc.bias"));
  json values = json::array();
  for (const json& row : recorded.at("logits")) values.insert(values.end(), row.begin(), row.end());
  const double error = value_error(logits, values), allowed = network_tolerance(at::kFloat);
  return {name, "logits", error, allowed, error <= allowed, ""};
}

}  // namespace

std::vector<CheckRow> check_weights(const std::vector<std::filesystem::path>& files) {
  std::vector<CheckRow> rows;
  for (const auto& path : files) {
    const json golden = read_json(path);
    try {
      for (const json& file : golden.at("files")) rows.push_back(check_readable(path.parent_path(), file));
      for (const json& file : golden.at("hostile")) rows.push_back(check_hostile(path.parent_path(), file));
      if (golden.contains("tiny_eval_output")) {
        rows.push_back(check_logits(path.parent_path(), golden.at("tiny_eval_output")));
      }
    } catch (const json::exception& problem) {
      throw DataError(fmt::format("{}: {}", path.string(), problem.what()));
    }
  }
  return rows;
}

}  // namespace settrain

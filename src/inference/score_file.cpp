#include "src/inference/score_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "metrics/split_scores.h"
#include "src/checkpoint/tensor_file.h"
#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/core/taxonomy.h"
#include "src/core/text.h"
#include "src/formats/contents.h"
#include "src/formats/npz.h"

namespace settrain {
namespace {

constexpr const char *kScores = "scores", *kLabels = "labels", *kTrainCounts = "train_counts",
                     *kSuperclassOf = "superclass_of", *kTaxonomy = "taxonomy", *kLabelSets = "label_sets",
                     *kClassNames = "class_names", *kProbability = "probability", *kNoGuaranteeKey = "no_guarantee",
                     *kModel = "checkpoint.sha256";
constexpr size_t kMostDepth = 4;
constexpr int64_t kMostImages = int64_t{1} << 40;  // of a class

Safetensors read_arrays(const std::filesystem::path& file) {
  if (file.extension() == ".npz" && !is_zip(file)) {
    throw RunError(fmt::format("'{}' is no .npz file, as numpy.savez writes it", file.string()));
  }
  if (is_npy(file)) {
    throw RunError(
        fmt::format("'{}' is a .npy file, which holds one array; a file of scores has two: an .npz file, as "
                    "numpy.savez(file, {}=..., {}=...) writes it",
                    file.string(), kScores, kLabels));
  }
  if (!is_zip(file)) return read_safetensors(file);
  Safetensors arrays;
  for (const auto& [name, array] : read_npz(file, {kScores, kLabels, kTrainCounts, kSuperclassOf, kLabelSets})) {
    const at::TensorOptions options = at::dtype(scalar_type(array.dtype));
    at::Tensor tensor = at::empty_strided(array.shape, array.stride, options);
    std::memcpy(tensor.mutable_data_ptr(), array.bytes.data(), array.bytes.size());
    arrays.tensors.emplace(name, tensor.contiguous());
  }
  return arrays;
}

class ScoreFileReader {
 public:
  explicit ScoreFileReader(const std::filesystem::path& file)
      : place_("'" + file.string() + "'"), arrays_(read_arrays(file)) {}

  /// `needs_sets`: all labels must be there.
  ScoreFile read(bool needs_sets) {
    ScoreFile result = read_scores();
    SplitScores& scores = result.scores;
    const bool has_labels = arrays_.tensors.contains(kLabels);
    if (needs_sets || arrays_.tensors.contains(kLabelSets)) scores.label_sets = label_sets(scores.scores.sizes());
    if (!has_labels && scores.label_sets.defined()) {
      scores.labels = scores.label_sets.to(at::kLong).argmax(1);
      return result;
    }
    scores.labels = integers(kLabels, wanted(kLabels), scores.scores.size(0), "image");
    check_labels(scores.labels, result.facts.classes);
    return result;
  }

 private:
  // All but the labels.
  ScoreFile read_scores() {
    ScoreFile result;
    const at::Tensor& scores = wanted(kScores);
    if (scores.dim() != 2 || !scores.is_floating_point()) {
      fail(fmt::format("{} must be [images, classes] of floating-point numbers", kScores));
    }
    result.scores.scores = scores.scalar_type() == at::kDouble ? scores : scores.to(at::kFloat);
    check_score_layout(place_ + ": " + kScores, result.scores.scores);
    check_finite(result.scores.scores);
    const int64_t classes = scores.size(1);
    result.facts.classes = classes;
    result.facts.train_counts = numbers(kTrainCounts, classes);
    result.facts.superclass_of = numbers(kSuperclassOf, classes);
    read_metadata(result.facts);
    read_taxonomy(result.facts);
    if (const auto found = arrays_.metadata.find(kModel); found != arrays_.metadata.end()) result.model = found->second;
    if (const auto found = arrays_.metadata.find(kNoGuaranteeKey); found != arrays_.metadata.end()) {
      result.no_guarantee = printable(found->second);
    }
    return result;
  }

  // [images, classes] bool
  at::Tensor label_sets(at::IntArrayRef sizes) const {
    const at::Tensor& given = wanted(kLabelSets);
    if (!at::isIntegralType(given.scalar_type(), /*includeBool=*/true) || given.sizes() != sizes) {
      fail(fmt::format("{} must be [{}] bool or integers, and are [{}] {}", kLabelSets, fmt::join(sizes, ", "),
                       fmt::join(given.sizes(), ", "), c10::toString(given.scalar_type())));
    }
    const at::Tensor numbers = given.to(at::kLong);
    if (numbers.ne(0).logical_and_(numbers.ne(1)).any().item<bool>()) {
      fail(fmt::format("{} hold other numbers than 0 and 1", kLabelSets));
    }
    const at::Tensor sets = numbers.ne(0), without = sets.any(1).logical_not_().nonzero();
    if (without.size(0) > 0) fail(fmt::format("image {} has no label", without[0].item<int64_t>()));
    return sets;
  }

  void read_taxonomy(ClassFacts& facts) {
    const auto found = arrays_.metadata.find(kTaxonomy);
    if (found == arrays_.metadata.end()) return;
    constexpr size_t kMostDepth = 2;
    try {
      facts.taxonomy =
          taxonomy_from_json(parse_strict_json(found->second, kMostDepth), static_cast<size_t>(facts.classes));
    } catch (const std::invalid_argument& problem) {
      fail(fmt::format("has in the metadata's {} {}", kTaxonomy, problem.what()));
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw RunError(place_ + ": " + what); }

  const at::Tensor& wanted(const char* name) const {
    const auto found = arrays_.tensors.find(name);
    if (found == arrays_.tensors.end()) {
      fail(fmt::format("has no {}; a file of scores has {} [images, classes], and {} [images] or {} [images, classes]",
                       name, kScores, kLabels, kLabelSets));
    }
    return found->second;
  }

  // Converts to int64, since few operations take unsigned integers of more than 8 bits. `of`: "image" or "class".
  at::Tensor integers(const char* name, const at::Tensor& tensor, int64_t count, const char* of) const {
    if (!at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) || tensor.dim() != 1 ||
        tensor.size(0) != count) {
      fail(fmt::format("{} must be [{}] integers, and are [{}] {}", name, count, fmt::join(tensor.sizes(), ", "),
                       c10::toString(tensor.scalar_type())));
    }
    at::Tensor numbers = tensor.to(at::kLong);
    if (tensor.scalar_type() == at::kUInt64) check_fits(name, numbers, of);
    return numbers;
  }

  // Throws where a number of uint64 was above the largest of int64, and has become negative.
  void check_fits(const char* name, const at::Tensor& numbers, const char* of) const {
    for (int64_t i = 0; i < numbers.size(0); ++i) {
      const int64_t number = numbers.const_data_ptr<int64_t>()[i];
      if (number >= 0) continue;
      fail(fmt::format("{}: the number of {} {} is {}, above the largest of int64", name, of, i,
                       static_cast<uint64_t>(number)));
    }
  }

  void check_finite(const at::Tensor& scores) const {
    const at::Tensor wrong = at::isfinite(scores).logical_not_().flatten().nonzero();
    if (wrong.size(0) == 0) return;
    const int64_t first = wrong[0].item<int64_t>(), image = first / scores.size(1), category = first % scores.size(1);
    const auto score = scores[image][category].item<double>();
    const char* advice = score < 0
                             ? ": in place of the logarithm of 0 take that of the smallest probability that can be "
                               "told from 0, such as -20"
                             : "";
    fail(fmt::format("the score of image {} for class {} is {}; scores are finite{}", image, category, score, advice));
  }

  void check_labels(const at::Tensor& labels, int64_t classes) const {
    for (int64_t i = 0; i < labels.size(0); ++i) {
      const int64_t label = labels.const_data_ptr<int64_t>()[i];
      if (label < 0 || label >= classes) {
        fail(fmt::format("the label of image {} is {}, and there are {} classes, counted from 0", i, label, classes));
      }
    }
  }

  // Empty where the file does not have it.
  std::vector<int64_t> numbers(const char* name, int64_t classes) const {
    const auto found = arrays_.tensors.find(name);
    if (found == arrays_.tensors.end()) return {};
    const at::Tensor values = integers(name, found->second, classes, "class");
    std::vector<int64_t> list(values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + classes);
    const bool is_superclass = name == std::string_view(kSuperclassOf);
    for (const int64_t value : list) {
      if (value < 0 || value > kMostImages || (is_superclass && value >= classes))
        fail(fmt::format("{} holds {}", name, value));
    }
    return list;
  }

  void read_metadata(ClassFacts& facts) const {
    if (const auto found = arrays_.metadata.find(kProbability); found != arrays_.metadata.end()) {
      if (found->second != "softmax" && found->second != "sigmoid")
        fail(fmt::format("{} is neither softmax nor sigmoid", kProbability));
      if (found->second == "sigmoid") facts.probability = ProbabilityKind::kSigmoid;
    }
    const auto found = arrays_.metadata.find(kClassNames);
    if (found == arrays_.metadata.end()) return;
    try {
      facts.names = parse_strict_json(found->second, kMostDepth).get<std::vector<std::string>>();
    } catch (const std::exception& problem) {
      fail(fmt::format("{} is no JSON list of texts: {}", kClassNames, shown(problem.what())));
    }
    if (std::ssize(facts.names) != facts.classes) {
      fail(fmt::format("{} has {} names for {} classes", kClassNames, facts.names.size(), facts.classes));
    }
  }

  std::string place_;
  Safetensors arrays_;
};

// Names of folders need not be UTF-8.
std::string as_utf8(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void write_score_file(const std::filesystem::path& file, const ScoreFile& scores,
                      const std::map<std::string, std::string>& origin) {
  TensorMap tensors{{kScores, scores.scores.scores}, {kLabels, scores.scores.labels}};
  if (scores.scores.label_sets.defined()) tensors[kLabelSets] = scores.scores.label_sets;
  if (!scores.facts.train_counts.empty()) tensors[kTrainCounts] = at::tensor(scores.facts.train_counts, at::kLong);
  if (!scores.facts.superclass_of.empty()) tensors[kSuperclassOf] = at::tensor(scores.facts.superclass_of, at::kLong);
  TextMap metadata(origin);
  metadata["kind"] = "settrain scores";
  metadata[kProbability] = scores.facts.probability == ProbabilityKind::kSigmoid ? "sigmoid" : "softmax";
  if (!scores.model.empty()) metadata[kModel] = scores.model;
  if (!scores.no_guarantee.empty()) metadata[kNoGuaranteeKey] = scores.no_guarantee;
  if (!scores.facts.taxonomy.empty()) metadata[kTaxonomy] = as_utf8(to_json(scores.facts.taxonomy));
  if (!scores.facts.names.empty()) metadata[kClassNames] = as_utf8(scores.facts.names);
  write_tensor_file(file, tensors, metadata);
}

ScoreFile read_score_file(const std::filesystem::path& file) {
  return ScoreFileReader(file).read(/*needs_sets=*/false);
}

ScoreFile read_label_set_file(const std::filesystem::path& file) {
  return ScoreFileReader(file).read(/*needs_sets=*/true);
}

ScoreScale scale_of(const at::Tensor& scores) {
  // Rounding to 4 digits leaves out up to half of the last digit of each probability.
  const double rounding = std::clamp(5e-5 * static_cast<double>(scores.size(1)), 0.05, 0.25);
  constexpr double kBelowZero = -1e-6;  // 1 - p may be rounded to less than 0
  if (scores.numel() == 0 || scores.min().item<double>() < kBelowZero) return ScoreScale::kLogits;
  const at::Tensor sums = scores.sum(1, /*keepdim=*/false, at::kDouble);
  const double least = sums.min().item<double>(), largest = sums.max().item<double>();
  const double highest = scores.max().item<double>();  // no part is above the whole
  const auto is_about = [&](double whole) {
    return least >= whole * (1 - rounding) && largest <= whole * (1 + rounding) && highest <= whole * 1.001;
  };
  if (is_about(1)) return ScoreScale::kProbabilities;
  return is_about(100) ? ScoreScale::kPercentages : ScoreScale::kLogits;
}

std::vector<std::string> warnings_of_scale(const ScoreFile& scores, const std::string& file) {
  if (scores.facts.probability == ProbabilityKind::kSigmoid) return {};
  const ScoreScale scale = scale_of(scores.scores.scores);
  if (scale == ScoreScale::kLogits) return {};
  const auto [sum, kind] =
      scale == ScoreScale::kProbabilities ? std::pair(1, "probabilities") : std::pair(100, "percentages");
  return {
      fmt::format("'{}': each image's scores sum to {}, as {} do; scores are expected as they are before the "
                  "softmax: store the logits, or the logarithms of the {}",
                  file, sum, kind, kind)};
}

void check_same_model(const std::string& name, const ScoreFile& file, const std::string& other_name,
                      const ScoreFile& other_file) {
  if (!file.model.empty() && !other_file.model.empty() && file.model != other_file.model) {
    throw ConfigError(fmt::format("'{}' and '{}' are scores of two models", name, other_name));
  }
  const ClassFacts &facts = file.facts, &other = other_file.facts;
  if (facts.classes != other.classes) {
    throw ConfigError(
        fmt::format("'{}' has {} classes, and '{}' has {}", name, facts.classes, other_name, other.classes));
  }
  if (facts.probability != other.probability) {
    throw ConfigError(
        fmt::format("one of '{}' and '{}' has scores of a softmax, the other of sigmoids", name, other_name));
  }
  if (facts.names.empty() || other.names.empty()) return;
  for (size_t c = 0; c < facts.names.size(); ++c) {
    if (facts.names[c] == other.names[c]) continue;
    throw ConfigError(fmt::format("class {} is {} in '{}' and {} in '{}'", c, shown(facts.names[c]), name,
                                  shown(other.names[c]), other_name));
  }
}

}  // namespace settrain

// The rules that answer with sets as operators: torch.ops.settrain.calibrate, sets_of and set_quality.
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/label_shift.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "metrics/sets/set_quality.h"
#include "metrics/split_scores.h"
#include "python/ops/value_errors.h"
#include "src/core/shape.h"
#include "src/core/taxonomy.h"

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;

/// Throws ShapeError unless there is one number for each class, or none at all.
void check_numbers_of_classes(const char* name, at::IntArrayRef numbers, int64_t classes) {
  if (numbers.empty() || std::ssize(numbers) == classes) return;
  throw ShapeError(fmt::format("{}: expected {}, one a class, got {}", name, classes, numbers.size()));
}

/// The calibrated rule as JSON, which sets_of() takes.
std::string calibrate_op(const std::string& rule, const at::Tensor& scores, const at::Tensor& labels,
                         at::IntArrayRef train_counts, at::IntArrayRef superclass_of, const std::string& taxonomy,
                         bool sigmoid, int64_t seed) {
  return with_value_errors([&] {
    const SetRule wanted = parse_set_rule(rule);
    if (!wanted.takes_label_sets() || labels.dim() == 1) check_split({scores, labels});
    check_numbers_of_classes("train_counts", train_counts, scores.size(1));
    check_numbers_of_classes("superclass_of", superclass_of, scores.size(1));
    const Json lists = Json::parse(taxonomy);
    if (!lists.empty() && std::ssize(lists) != scores.size(1) + 1)
      throw ShapeError(
          fmt::format("taxonomy: expected {} lists, one a class, got {}", scores.size(1), lists.size() - 1));
    const auto tree = [&] {
      try {
        return taxonomy_from_json(lists, static_cast<size_t>(scores.size(1)));
      } catch (const std::invalid_argument& problem) {
        throw ShapeError(std::string("taxonomy: ") + problem.what());
      }
    };
    const ClassFacts facts{.classes = scores.size(1),
                           .train_counts = train_counts.vec(),
                           .superclass_of = superclass_of.vec(),
                           .taxonomy = tree(),
                           .probability = sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax};
    return to_json(calibrate(wanted, facts, scores, labels, static_cast<uint64_t>(seed))).dump();
  });
}

struct RuleOfText {
  CalibratedRule rule;
  CalibratedPlace place;  // without classes: none
};

RuleOfText read_rule(const std::string& text, int64_t classes) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw ConfigError(std::string("a calibrated rule: ") + error.what());
  }
  // Its numbers are checked for the classes that it says; that the scores are of others is no damage.
  if (const auto of_rule = json.is_object() ? json.value("classes", Json()) : Json();
      of_rule.is_number_unsigned() && of_rule.get<uint64_t>() != static_cast<uint64_t>(classes)) {
    throw ShapeError(fmt::format("scores: expected [images, {}], the classes of the rule, got {} classes",
                                 of_rule.get<uint64_t>(), classes));
  }
  RuleOfText read{rule_from_json(json, classes), {}};
  if (!json.contains("place")) return read;
  read.place = place_from_json(json["place"], classes);
  if (needs_images(read.rule.rule)) read.rule = for_place(read.rule, place_weights(read.rule, read.place.prior));
  return read;
}

/// Throws ValueError where `text` is not what calibrate_op() returns, with a member "place" where it is for one. Read
/// once: thresholds of a thousand classes take longer than the sets of a batch.
const RuleOfText& rule_of(const std::string& text, int64_t classes) {
  constexpr size_t kMostKept = 16;
  thread_local std::map<std::string, RuleOfText> read;
  if (const auto found = read.find(text); found != read.end() && found->second.rule.classes == classes) {
    return found->second;
  }
  if (read.size() >= kMostKept) read.clear();
  return read.insert_or_assign(text, read_rule(text, classes)).first->second;
}

at::Tensor sets_op(const at::Tensor& scores, const std::string& rule, int64_t first_image) {
  return with_value_errors([&] {
    check_scores("scores", scores);
    const RuleOfText& made = rule_of(rule, scores.size(1));
    if (made.place.prior.empty()) return sets_of(made.rule, scores, first_image).to(scores.device());
    const at::Tensor occurs = at::tensor(made.place.prior, at::kDouble).gt(0);
    const at::Tensor sets = sets_of(made.rule, with_offsets(scores, made.place.offsets), first_image);
    return sets.logical_and(occurs).to(scores.device());
  });
}

at::Tensor sets_meta(const at::Tensor& scores, const std::string& /*rule*/, int64_t /*first_image*/) {
  return at::empty_symint(scores.sym_sizes(), scores.options().dtype(at::kBool));
}

/// SetQuality as JSON; null for what is undefined.
std::string quality_op(const at::Tensor& sets, const at::Tensor& labels, double wanted, at::IntArrayRef train_counts) {
  return with_value_errors([&] {
    const at::Tensor rows = sets.cpu().contiguous(), row_labels = labels.cpu().contiguous();
    if (rows.dim() != 2 || rows.scalar_type() != at::kBool || rows.numel() == 0) {
      throw ShapeError(fmt::format("sets: expected [images, classes] bool, of one image and class at least, got {} {}",
                                   shape_text(rows.sizes()), c10::toString(rows.scalar_type())));
    }
    if (row_labels.dim() == 2) {
      check_label_sets(row_labels, rows);
    } else {
      check_split_layout({rows.to(at::kFloat), row_labels});
    }
    check_numbers_of_classes("train_counts", train_counts, rows.size(1));
    const SetQuality quality = set_quality(rows, row_labels, wanted, train_counts.vec());
    Json json{{"images", quality.images},
              {"coverage", quality.coverage},
              {"interval", quality.interval},
              {"mean_size", quality.mean_size},
              {"median_size", quality.median_size},
              {"macro_coverage", quality.macro_coverage},
              {"below_half", quality.below_half},
              {"undercoverage_gap", quality.undercoverage_gap},
              {"coverage_gap", quality.coverage_gap},
              {"size_stratified_violation", quality.size_stratified_violation},
              {"empty", quality.empty},
              {"full", quality.full},
              {"classes_without_images", quality.classes_without_images},
              {"class_coverage", quality.class_coverage}};
    if (!train_counts.empty()) {
      json["few_coverage"] = quality.shot_coverage[0];
      json["medium_coverage"] = quality.shot_coverage[1];
      json["many_coverage"] = quality.shot_coverage[2];
    }
    return json.dump();
  });
}

double wanted_coverage_op(const std::string& rule) {
  return with_value_errors([&] { return parse_set_rule(rule).wanted_coverage(); });
}

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.def("wanted_coverage(str rule) -> float", wanted_coverage_op);
  library.def(
      "calibrate(str rule, Tensor scores, Tensor labels, int[] train_counts, int[] superclass_of, str taxonomy, bool sigmoid, int seed) "
      "-> str");
  library.def("sets_of(Tensor scores, str rule, int first_image) -> Tensor");
  library.def("set_quality(Tensor sets, Tensor labels, float wanted, int[] train_counts) -> str");
}

void implement_sets(torch::Library& library) {
  library.impl("calibrate", calibrate_op);
  library.impl("sets_of", sets_op);
  library.impl("set_quality", quality_op);
}

TORCH_LIBRARY_IMPL(settrain, CPU, library) {
  implement_sets(library);
}

TORCH_LIBRARY_IMPL(settrain, CUDA, library) {
  implement_sets(library);
}

TORCH_LIBRARY_IMPL(settrain, Meta, library) {
  library.impl("sets_of", sets_meta);
}

}  // namespace
}  // namespace settrain

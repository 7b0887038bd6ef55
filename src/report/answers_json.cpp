#include "src/report/answers_json.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "metrics/class_hits.h"
#include "src/report/confusions.h"
#include "src/report/example_choice.h"
#include "src/report/thumbnail.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr size_t kPairs = 15, kExamples = 8, kShownClasses = 12;
constexpr int64_t kThumbnailSide = 96;

// Of an int64 or bool tensor with one dimension.
template <class T>
std::vector<T> to_vector(const at::Tensor& tensor) {
  const at::Tensor integers = tensor.to(at::kCPU, at::kLong).contiguous();
  const int64_t* first = integers.const_data_ptr<int64_t>();
  return std::vector<T>(first, first + integers.size(0));
}

// What is asked of every image.
struct Outcome {
  at::Tensor predicted;  // [samples] int64, the best class
  at::Tensor hits;       // [samples] bool, whether the set holds the label
};

Outcome outcome_of(const Answers& answers) {
  const at::Tensor labels = answers.scores.labels;
  return {answers.scores.scores.argmax(1), answers.sets.in_set.gather(1, labels.unsqueeze(1)).squeeze(1)};
}

ordered_json class_rows(const Answers& answers, const Outcome& outcome) {
  const at::Tensor& labels = answers.scores.labels;
  const int64_t classes = answers.dataset.num_classes();
  const ClassHits best = count_hits(outcome.predicted == labels, labels, classes);
  const ClassHits sets = count_hits(outcome.hits, labels, classes);
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < best.total.size(); ++i) {
    rows.push_back(
        {answers.dataset.class_names[i], answers.train_counts[i], best.total[i], best.hits[i], sets.hits[i]});
  }
  return rows;
}

ordered_json confusions_json(const std::vector<int64_t>& labels, const std::vector<int64_t>& predicted,
                             const Names& names) {
  int64_t errors = 0;
  for (size_t i = 0; i < labels.size(); ++i) errors += labels[i] != predicted[i] ? 1 : 0;
  ordered_json pairs = ordered_json::array();
  for (const Confusion& pair : most_confused(labels, predicted, kPairs)) {
    pairs.push_back({names[static_cast<size_t>(pair.truth)], names[static_cast<size_t>(pair.predicted)], pair.count,
                     std::count(labels.begin(), labels.end(), pair.truth)});
  }
  return {{"errors", errors}, {"pairs", std::move(pairs)}};
}

ordered_json example_json(const Answers& answers, int64_t sample) {
  const Names& names = answers.dataset.class_names;
  const Split& split = split_named(answers.dataset, answers.split);
  const at::Tensor row = answers.sets.probabilities.select(0, sample).to(at::kCPU, at::kDouble).contiguous();
  const double* probabilities = row.const_data_ptr<double>();
  const auto in_set = to_vector<bool>(answers.sets.in_set.select(0, sample));
  const auto truth = static_cast<size_t>(answers.scores.labels.select(0, sample).item<int64_t>());

  std::vector<size_t> held;
  for (size_t i = 0; i < in_set.size(); ++i) {
    if (in_set[i]) held.push_back(i);
  }
  std::stable_sort(held.begin(), held.end(), [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  ordered_json set = ordered_json::array();
  for (size_t i = 0; i < std::min(held.size(), kShownClasses); ++i) {
    set.push_back({names[held[i]], probabilities[held[i]]});
  }
  const int64_t id = split.ids[static_cast<size_t>(sample)];
  return {{"picture", picture_uri(thumbnail(*split.images, id, kThumbnailSide))},
          {"truth", names[truth]},
          {"truth_probability", probabilities[truth]},
          {"hit", static_cast<bool>(in_set[truth])},
          {"size", held.size()},
          {"set", std::move(set)}};
}

void add_examples(const Answers& answers, const Outcome& outcome, ordered_json& json) {
  const int64_t samples = answers.scores.labels.size(0);
  if (samples != split_named(answers.dataset, answers.split).size()) {
    json["examples_missing"] =
        "Some images of the split could not be read and were left out, so it is not known which answer is of which image.";
    return;
  }
  const ChosenExamples chosen =
      choose_examples(to_vector<int64_t>(answers.sets.in_set.sum(1)), to_vector<bool>(outcome.hits), kExamples);
  const auto shown = [&](const std::vector<int64_t>& places) {
    ordered_json examples = ordered_json::array();
    for (const int64_t place : places) examples.push_back(example_json(answers, place));
    return examples;
  };
  try {
    json["examples"] = {
        {"correct", shown(chosen.correct)}, {"missed", shown(chosen.missed)}, {"large", shown(chosen.large)}};
  } catch (const std::exception& problem) {  // the counts are worth having without pictures
    json["examples_missing"] = problem.what();
  }
}

}  // namespace

ordered_json answers_json(const Answers& answers) {
  const Outcome outcome = outcome_of(answers);
  const auto labels = to_vector<int64_t>(answers.scores.labels), predicted = to_vector<int64_t>(outcome.predicted);
  const Dataset& dataset = answers.dataset;
  ordered_json json{{"checkpoint", answers.checkpoint},
                    {"split", answers.split},
                    {"images", labels.size()},
                    {"sets", answers.sets.name},
                    {"threshold", nullptr},
                    {"probability", answers.sets.is_sigmoid ? "sigmoid" : "softmax"},
                    {"classes", class_rows(answers, outcome)},
                    {"confusions", confusions_json(labels, predicted, dataset.class_names)}};
  const std::optional<double> threshold = answers.sets.threshold;
  if (threshold && std::isfinite(*threshold)) json["threshold"] = *threshold;
  if (!dataset.superclass_of.empty()) {
    json["superclasses"] = confusions_json(to_superclasses(labels, dataset.superclass_of),
                                           to_superclasses(predicted, dataset.superclass_of), dataset.superclass_names);
  }
  add_examples(answers, outcome, json);
  return json;
}

}  // namespace settrain

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "datasets/decoding/decode_image.h"
#include "metrics/average_k_threshold.h"
#include "metrics/class_hits.h"
#include "src/core/metric_name.h"
#include "src/inference/trained_run.h"
#include "src/loader/pixel_writer.h"
#include "src/loader/transform.h"
#include "src/report/report_parts.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

// The place of the K that the metrics of `select` are of, else of the largest.
template <class K, class Name>
size_t chosen(const std::vector<K>& ks, const config::Texts& select, Name name_of) {
  for (const std::string& metric : select) {
    for (size_t i = 0; i < ks.size(); ++i) {
      const std::string name = name_of(ks[i]), sets = judged_by_all_labels(metric);
      if (sets.ends_with("/" + name) || sets.ends_with("_" + name)) return i;
    }
  }
  return static_cast<size_t>(std::max_element(ks.begin(), ks.end()) - ks.begin());
}

at::Tensor largest_scores(const at::Tensor& scores, int64_t k) {
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const at::Tensor in_set = at::zeros(scores.sizes(), scores.options().dtype(at::kBool));
  return in_set.scatter(1, order.narrow(1, 0, std::min(k, scores.size(1))), true);
}

std::string shown_split(const config::Texts& splits) {
  return std::find(splits.begin(), splits.end(), "test") == splits.end() ? splits.back() : "test";
}

std::vector<int64_t> spread(const std::vector<int64_t>& samples, size_t most) {
  if (samples.size() <= most) return samples;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(samples[i * samples.size() / most]);
  return chosen;
}

View shrunk_view(int64_t height, int64_t width, int64_t side) {
  View view = whole_view(height, width);
  const int64_t longer = std::max(height, width);
  if (longer <= side) return view;
  view.height = std::max<int64_t>(1, height * side / longer);
  view.width = std::max<int64_t>(1, width * side / longer);
  view.crop = {0, 0, view.height, view.width};
  return view;
}

using nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr size_t kPairs = 15, kExamples = 8, kShownClasses = 12;
constexpr int64_t kThumbnailSide = 96;

// The values of an int64 or bool tensor with one dimension.
template <class T>
std::vector<T> to_vector(const at::Tensor& tensor) {
  const at::Tensor integers = tensor.to(at::kCPU, at::kLong).contiguous();
  const int64_t* first = integers.const_data_ptr<int64_t>();
  return std::vector<T>(first, first + integers.size(0));
}

// `predicted` [samples] int64 the best class, `set_hits` [samples] bool whether the set holds the label.
ordered_json class_rows(const Answers& answers, const at::Tensor& predicted, const at::Tensor& set_hits) {
  const at::Tensor& labels = answers.scores.labels;
  const int64_t classes = answers.dataset.num_classes();
  const ClassHits best = count_hits(predicted == labels, labels, classes);
  const ClassHits sets = count_hits(set_hits, labels, classes);
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < best.total.size(); ++i) {
    rows.push_back(
        {answers.dataset.class_names[i], answers.train_counts[i], best.total[i], best.hits[i], sets.hits[i]});
  }
  return rows;
}

// `best`, `hits` [samples] whether the best class is the label and whether the set holds it; `sizes` [samples].
ordered_json organs_json(const Names& organs, const std::vector<bool>& best, const std::vector<bool>& hits,
                         const std::vector<int64_t>& sizes) {
  struct Counts {
    int64_t images = 0, best = 0, hits = 0, classes = 0;
  };
  std::map<std::string, Counts> by_organ;
  for (size_t i = 0; i < organs.size(); ++i) {
    Counts& counts = by_organ[organs[i]];
    ++counts.images;
    counts.best += best[i] ? 1 : 0;
    counts.hits += hits[i] ? 1 : 0;
    counts.classes += sizes[i];
  }
  const int64_t without = by_organ[""].images;
  by_organ.erase("");
  std::vector<std::pair<std::string, Counts>> sorted(by_organ.begin(), by_organ.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& organ) { return organ.second.images; });
  ordered_json rows = ordered_json::array();
  for (const auto& [organ, counts] : sorted) {
    const double size = static_cast<double>(counts.classes) / static_cast<double>(counts.images);
    rows.push_back({organ, counts.images, counts.best, counts.hits, size});
  }
  return {{"without", without}, {"rows", std::move(rows)}};
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

void add_examples(const Answers& answers, const std::vector<bool>& hits, ordered_json& json) {
  const int64_t samples = answers.scores.labels.size(0);
  if (samples != split_named(answers.dataset, answers.split).size()) {
    json["examples_missing"] =
        "Some images of the split could not be read and were left out, so it is not known which answer is of which image.";
    return;
  }
  const ChosenExamples chosen = choose_examples(to_vector<int64_t>(answers.sets.in_set.sum(1)), hits, kExamples);
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

JudgedSets judged_sets(const AnswerOptions& rule, const SplitScores& split, const MetricContext& context) {
  JudgedSets sets;
  sets.is_sigmoid = !rule.average_k.average_k.empty() && rule.average_k.average_k_score == AverageKScore::kSigmoid;
  const at::Tensor logits = split.scores.mul(context.score_scale);
  sets.probabilities = sets.is_sigmoid ? at::sigmoid(logits) : at::softmax(logits, 1);
  if (!rule.average_k.average_k.empty()) {
    const size_t place = chosen(rule.average_k.average_k, rule.select, average_k_name);
    const AverageKValues compared = average_k_values(rule.average_k, split, context);
    sets.name = average_k_name(rule.average_k.average_k[place]);
    sets.threshold = compared.shown(compared.lambdas[place]);
    sets.in_set = returned_classes(compared.values, compared.lambdas[place], compared.ties);
    return sets;
  }
  if (rule.top_k.top_k.empty()) throw std::invalid_argument("judged_sets: neither average-K nor top-K");
  const int64_t k = rule.top_k.top_k[chosen(rule.top_k.top_k, rule.select, topk_name)];
  sets.name = topk_name(k);
  sets.in_set = largest_scores(split.scores, k);
  return sets;
}

Answers evaluate_answers(const Registries& registries, at::Device device, const std::filesystem::path& run,
                         const std::string& checkpoint, const std::vector<std::string>& settings, ProgressBar& bar) {
  TrainedRun trained = open_trained_run(registries, run, {checkpoint}, device, settings);
  Experiment& experiment = trained.experiment;
  load_weights(experiment, trained.checkpoints.front());
  const std::string split = shown_split(experiment.eval.splits);
  const JudgedScores judged = score_with_thresholds(experiment, split, bar);
  MetricContext context{experiment.train_counts, experiment.loss->score_scale(), nullptr};
  if (judged.thresholds) context.threshold_scores = &*judged.thresholds;
  const AnswerOptions rule{experiment.config.read<AverageKOptions>("eval"),
                           experiment.config.read<TopkAccuracyOptions>("eval"), trained.select};
  JudgedSets sets = judged_sets(rule, judged.split, context);
  Names organs = organs_of(records_of(registries.datasets, experiment.config), split_named(experiment.dataset, split));
  return {checkpoint,
          std::move(experiment.dataset),
          split,
          std::move(experiment.train_counts),
          judged.split,
          std::move(sets),
          std::move(organs)};
}

std::vector<std::string> organs_of(const ImageRecords& records, const Split& split) {
  Names organs;
  if (records.empty()) return organs;
  for (const int64_t id : split.ids) {
    const ImageRecord* record = records.of(*split.images, id);
    organs.push_back(record ? record->organ : "");
  }
  return organs;
}

std::vector<Confusion> most_confused(const std::vector<int64_t>& labels, const std::vector<int64_t>& predicted,
                                     size_t limit) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != predicted[i]) ++counts[{labels[i], predicted[i]}];
  }
  std::vector<Confusion> pairs;
  for (const auto& [pair, count] : counts) pairs.push_back({pair.first, pair.second, count});
  // The map's order, by class, stays among equals.
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  pairs.resize(std::min(pairs.size(), limit));
  return pairs;
}

std::vector<int64_t> to_superclasses(std::vector<int64_t> classes, const std::vector<int64_t>& superclass_of) {
  for (int64_t& label : classes) label = superclass_of.at(static_cast<size_t>(label));
  return classes;
}

ChosenExamples choose_examples(const std::vector<int64_t>& sizes, const std::vector<bool>& hits, size_t each) {
  std::vector<int64_t> right, missed;
  for (size_t i = 0; i < hits.size(); ++i) (hits[i] ? right : missed).push_back(static_cast<int64_t>(i));
  ChosenExamples chosen{spread(right, each), spread(missed, each), {}};
  if (std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end()) return chosen;
  chosen.large.resize(sizes.size());
  std::iota(chosen.large.begin(), chosen.large.end(), 0);
  std::stable_sort(chosen.large.begin(), chosen.large.end(),
                   [&](int64_t a, int64_t b) { return sizes[static_cast<size_t>(a)] > sizes[static_cast<size_t>(b)]; });
  chosen.large.resize(std::min(chosen.large.size(), each));
  return chosen;
}

Image thumbnail(const ImageSource& images, int64_t id, int64_t side) {
  View view;
  ImagePart part;
  images.read_part(
      id,
      [&](int64_t height, int64_t width) {
        view = shrunk_view(height, width, side);
        return needed_pixels(view);
      },
      part);
  const auto channels = static_cast<size_t>(part.pixels.channels);
  const PixelWriter writer({std::vector<float>(channels, 0.0F), std::vector<float>(channels, 1.0F)},
                           {PixelType::kByte, true});
  Image image{view.height, view.width, part.pixels.channels, {}};
  image.pixels.resize(static_cast<size_t>(view.height * view.width) * channels);
  ViewRenderer().render(part, view, writer, image.pixels.data());
  return image;
}

std::string picture_uri(const Image& image) {
  return "data:image/png;base64," + to_base64(encode_png(image));
}

ordered_json answers_json(const Answers& answers) {
  const at::Tensor best = answers.scores.scores.argmax(1);
  const at::Tensor hits = answers.sets.in_set.gather(1, answers.scores.labels.unsqueeze(1)).squeeze(1);
  const auto labels = to_vector<int64_t>(answers.scores.labels), predicted = to_vector<int64_t>(best);
  const Dataset& dataset = answers.dataset;
  ordered_json json{{"checkpoint", answers.checkpoint},
                    {"split", answers.split},
                    {"images", labels.size()},
                    {"sets", answers.sets.name},
                    {"threshold", nullptr},
                    {"probability", answers.sets.is_sigmoid ? "sigmoid" : "softmax"},
                    {"classes", class_rows(answers, best, hits)},
                    {"confusions", confusions_json(labels, predicted, dataset.class_names)}};
  const std::optional<double> threshold = answers.sets.threshold;
  if (threshold && std::isfinite(*threshold)) json["threshold"] = *threshold;
  if (!dataset.superclass_of.empty()) {
    json["superclasses"] = confusions_json(to_superclasses(labels, dataset.superclass_of),
                                           to_superclasses(predicted, dataset.superclass_of), dataset.superclass_names);
  }
  // Where images were left out, it is not known which answer is of which image: add_examples() says so.
  if (!answers.organs.empty() && answers.organs.size() == labels.size()) {
    json["organs"] = organs_json(answers.organs, to_vector<bool>(best == answers.scores.labels), to_vector<bool>(hits),
                                 to_vector<int64_t>(answers.sets.in_set.sum(1)));
  }
  add_examples(answers, to_vector<bool>(hits), json);
  return json;
}

}  // namespace settrain

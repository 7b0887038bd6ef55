#include "src/probe/probe.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "datasets/feature_file.h"
#include "datasets/shared_images.h"
#include "datasets/validation_split.h"
#include "metrics/class_hits.h"
#include "metrics/label_rank.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/probe/logistic.h"

namespace settrain {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
constexpr float kLargest = 1e15F;  // the square of a vector of such numbers is far from float32's limit
constexpr int64_t kHeldOut = 10;   // every tenth training image chooses C where there are no validation images
constexpr int64_t kRowsToScore = 8192;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ------------------------------------------------------------------------------------------------- files

LabelledFeatures features_in(const std::filesystem::path& path, const FeatureFile& file) {
  const std::string place = fmt::format("'{}'", path.string());
  if (file.labels.empty()) throw DataError(place + " has no labels: a probe compares answers with labels");
  return labelled_features(*file.features, file.labels, place);
}

Split split_of(const char* name, const std::filesystem::path& path, FeatureFile file) {
  const std::vector<int64_t> labels = file.labels;
  return make_split(name, std::make_shared<FeatureRows>(path, std::move(file)), labels);
}

// --------------------------------------------------------------------------------------------- judgement

/// `scores` [images, classes]; a label without a score, -infinity, is in no set.
at::Tensor label_is_among(const at::Tensor& scores, const at::Tensor& labels, int64_t k) {
  const at::Tensor label_scores = scores.gather(1, labels.unsqueeze(1)).squeeze(1);
  return label_ranks(scores, labels).lt(k).logical_and_(label_scores.isfinite());
}

// ----------------------------------------------------------------------------------- logistic regression

LabelledFeatures rows_of(const LabelledFeatures& data, const std::vector<int64_t>& rows) {
  const at::Tensor index = at::tensor(rows, at::kLong);
  return {data.features.index_select(0, index), data.labels.index_select(0, index)};
}

// The training images in two parts. Every tenth image, counted class by class, is in the second, so that its classes
// are as frequent as in the whole; a class with a single image stays in the first.
std::pair<LabelledFeatures, LabelledFeatures> hold_out(const LabelledFeatures& train, int64_t classes) {
  std::vector<std::vector<int64_t>> images(classes);
  const auto* const labels = train.labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < train.labels.size(0); ++i) images[labels[i]].push_back(i);
  std::vector<int64_t> kept, held_out;
  int64_t counted = 0;
  for (const auto& of_class : images) {
    if (of_class.size() == 1) kept.push_back(of_class[0]);
    if (of_class.size() < 2) continue;
    size_t left = of_class.size();
    for (const int64_t i : of_class) {
      const bool holds = ++counted % kHeldOut == 0 && left > 1;
      (holds ? held_out : kept).push_back(i);
      left -= holds ? 1 : 0;
    }
  }
  if (held_out.empty()) {
    throw DataError(
        fmt::format("{} training images are too few to hold some out for the choice of C: name a "
                    "validation file, or a single C",
                    train.labels.size(0)));
  }
  std::ranges::sort(kept);
  return {rows_of(train, kept), rows_of(train, held_out)};
}

// Logistic regression over the classes that have training images. The bias of another would go to -infinity.
class Regression {
 public:
  /// `start`: parameters of another regression over the same classes, or undefined.
  Regression(const LabelledFeatures& train, int64_t classes, const at::Tensor& start,
             std::function<void(double c, const std::string&)> tell)
      : classes_(classes),
        present_(train.labels.bincount({}, classes).nonzero().view({-1})),
        objective_(train.features, positions(train.labels), check_classes(present_.size(0))),
        parameters_(start.defined() ? start : objective_.zeros()),
        tell_(std::move(tell)) {}

  /// Fits from where the last fit ended.
  LogisticFit fit(double c) {
    LogisticFit last = fit_logistic(objective_, {.c = c}, parameters_, [&](int64_t iteration, double objective) {
      throw_if_interrupted();
      tell_(c, fmt::format("iteration {}  objective {:.6g}", iteration, objective));
    });
    parameters_ = last.parameters;
    return last;
  }

  /// [images, classes], by the last fit.
  at::Tensor scores(const at::Tensor& features) const {
    at::Tensor all = at::full({features.size(0), classes_}, -std::numeric_limits<float>::infinity(), at::kFloat);
    for (int64_t first = 0; first < features.size(0); first += kRowsToScore) {
      const int64_t rows = std::min(kRowsToScore, features.size(0) - first);
      all.narrow(0, first, rows)
          .index_copy_(1, present_, objective_.logits(parameters_, features.narrow(0, first, rows)));
    }
    return all;
  }

 private:
  at::Tensor positions(const at::Tensor& labels) const {
    at::Tensor position = at::full({classes_}, -1, at::kLong);
    for (int64_t i = 0; i < present_.size(0); ++i) position[present_[i].item<int64_t>()] = i;
    return position.index_select(0, labels);
  }

  static int64_t check_classes(int64_t present) {
    if (present < 2) throw DataError("all training images have one class, and logistic regression needs two");
    return present;
  }

  int64_t classes_;
  at::Tensor present_;  // the classes with training images, ascending
  LogisticObjective objective_;
  at::Tensor parameters_;
  std::function<void(double c, const std::string&)> tell_;
};

// Fits with every C to images that another set judges, and sets `chosen` but for the final fit. Returns the best fit's
// parameters.
at::Tensor choose_c(Regression& regression, const LabelledFeatures& judging, const std::function<void()>& after_fit,
                    ChosenC& chosen) {
  double best = -1;
  at::Tensor parameters;
  for (const double c : chosen.tried) {
    const LogisticFit fit = regression.fit(c);
    const at::Tensor hits = label_is_among(regression.scores(judging.features), judging.labels, 1);
    chosen.accuracy.push_back(hits.mean(at::kDouble).item<double>());
    if (chosen.accuracy.back() > best) {
      best = chosen.accuracy.back();
      chosen.c = c;
      parameters = fit.parameters;
    }
    after_fit();
  }
  const bool differs = std::ranges::any_of(chosen.accuracy, [&](double accuracy) { return accuracy < best; });
  if (differs && (chosen.c == chosen.tried.front() || chosen.c == chosen.tried.back())) {
    log::warning(fmt::format("[probe] the best C of {} is the {}: try others beyond it", fmt::join(chosen.tried, ", "),
                             chosen.c == chosen.tried.front() ? "smallest" : "largest"));
  }
  return parameters;
}

void normalise(LabelledFeatures& data) {
  const at::Tensor length = data.features.square().sum(1, /*keepdim=*/true, at::kDouble).sqrt_();
  data.features = data.features.div(length.clamp_min_(std::numeric_limits<float>::min()).to(at::kFloat));
}

}  // namespace

ProbeResult judged_scores(std::string name, std::string title, const at::Tensor& scores, const at::Tensor& labels,
                          double seconds) {
  const int64_t classes = scores.size(1);
  const ClassHits first = count_hits(label_is_among(scores, labels, 1), labels, classes);
  const ClassHits five = count_hits(label_is_among(scores, labels, 5), labels, classes);
  return {std::move(name), std::move(title), accuracy(first), macro_accuracy(first).mean, accuracy(five), seconds};
}

LabelledFeatures labelled_features(const FeatureTable& table, const std::vector<int64_t>& labels,
                                   const std::string& place) {
  const int64_t images = table.size(), width = table.width();
  LabelledFeatures read{at::empty({images, width}, at::kFloat), at::tensor(labels, at::kLong)};
  auto* const rows = read.features.mutable_data_ptr<float>();
  at::parallel_for(0, images, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) table.read(i, rows + i * width);
  });
  const at::Tensor too_large = read.features.abs().amax(1).gt(kLargest).nonzero();
  if (too_large.numel() > 0) {
    throw DataError(
        fmt::format("{} has a number above {:g} in row {}", place, kLargest, too_large[0][0].item<int64_t>()));
  }
  return read;
}

ProbeData read_probe_data(const std::filesystem::path& train, const std::filesystem::path& test,
                          const std::filesystem::path& val) {
  FeatureFile train_file = read_feature_file(train);
  ProbeData data{.train = features_in(train, train_file), .test = {}, .val = {}};
  std::string test_digest;
  auto classes = static_cast<int64_t>(train_file.class_names.size());
  Dataset rows;  // two splits may have some in common
  const auto add = [&](const std::filesystem::path& path, Split& split) {
    FeatureFile file = read_feature_file(path);
    check_belongs(train, train_file, path, file);
    if (file.digest == test_digest) {
      throw DataError(fmt::format("'{}' and '{}' are the same file: test images must not be validation images",
                                  test.string(), path.string()));
    }
    if (test_digest.empty()) test_digest = file.digest;
    classes = std::max(classes, static_cast<int64_t>(file.class_names.size()));
    LabelledFeatures features = features_in(path, file);
    split = split_of(split.name.c_str(), path, std::move(file));
    return features;
  };
  data.test = add(test, rows.test);
  if (!val.empty()) data.val = add(val, rows.val);
  const auto count = [&](const LabelledFeatures& part) {
    classes = std::max(classes, part.labels.max().item<int64_t>() + 1);
  };
  count(data.train);
  count(data.test);
  if (data.val) count(*data.val);
  data.classes = classes;
  rows.class_names = train_file.class_names;
  rows.train = split_of("train", train, std::move(train_file));
  for (int64_t c = std::ssize(rows.class_names); c < classes; ++c)
    rows.class_names.push_back(fmt::format("class {}", c));
  find_shared_images(rows, 0).warn();
  return data;
}

ProbeReport probe_features(ProbeData data, const ProbeOptions& options, ProgressBar& bar) {
  if (options.to_unit_length) {
    normalise(data.train);
    normalise(data.test);
    if (data.val) normalise(*data.val);
  }
  const int64_t train_images = data.train.features.size(0), test_images = data.test.features.size(0);
  const auto judged = [&](const char* name, const std::string& title, const at::Tensor& scores, double seconds) {
    return judged_scores(name, title, scores, data.test.labels, seconds);
  };
  ProbeReport report;

  double start = seconds_now();
  const int64_t neighbours = std::min(options.neighbours, train_images);
  const NeighbourScores near =
      nearest_neighbours(data.train, data.test.features, data.classes, neighbours, options.distance, [&](int64_t done) {
        throw_if_interrupted();
        bar.update({.stage = "[probe] neighbours", .done = done, .total = test_images, .figures = {}});
      });
  const double search_seconds = seconds_now() - start;
  report.results.push_back(judged("nearest_neighbour", "nearest neighbour", near.nearest, search_seconds));
  report.results.back().top5 = kNotMeasured;
  const std::string title = fmt::format("{} nearest neighbours", neighbours);
  report.results.push_back(judged("neighbours", title, near.votes, kNotMeasured));

  start = seconds_now();
  const at::Tensor by_means = class_mean_scores(data.train, data.test.features, data.classes, options.distance);
  report.results.push_back(judged("class_means", "nearest class mean", by_means, seconds_now() - start));
  throw_if_interrupted();

  start = seconds_now();
  ChosenC& chosen = report.logistic;
  chosen.tried = options.c;
  std::ranges::sort(chosen.tried);
  chosen.tried.erase(std::ranges::unique(chosen.tried).begin(), chosen.tried.end());
  chosen.c = chosen.tried.front();
  const bool has_choice = chosen.tried.size() > 1;
  const auto fits = static_cast<int64_t>(chosen.tried.size()) + (has_choice ? 1 : 0);
  int64_t done = 0;
  // A fit ends when it has converged, so that its progress is in fits, and no time of arrival follows.
  const auto tell = [&](double c, const std::string& figures) {
    bar.update({.stage = fmt::format("[probe] logistic regression, C = {:g}, fit {} of {}", c, done + 1, fits),
                .done = done,
                .total = fits,
                .figures = figures});
  };
  at::Tensor start_parameters;  // the final fit starts near its end
  if (has_choice) {
    chosen.on_val = data.val.has_value();
    const auto after_fit = [&] { ++done; };
    if (data.val) {
      Regression regression(data.train, data.classes, {}, tell);
      start_parameters = choose_c(regression, *data.val, after_fit, chosen);
    } else {
      const auto [kept, held_out] = hold_out(data.train, data.classes);
      Regression regression(kept, data.classes, {}, tell);
      start_parameters = choose_c(regression, held_out, after_fit, chosen);
    }
  }
  Regression regression(data.train, data.classes, start_parameters, tell);
  const LogisticFit fit = regression.fit(chosen.c);
  chosen.objective = fit.objective;
  chosen.has_converged = fit.has_converged;
  if (!fit.has_converged) {
    log::warning(fmt::format("[probe] logistic regression had not converged after {} iterations; a smaller C does",
                             fit.iterations));
  }
  const at::Tensor by_regression = regression.scores(data.test.features);
  report.results.push_back(
      judged("logistic", fmt::format("logistic regression, C = {:g}", chosen.c), by_regression, seconds_now() - start));
  bar.hide();
  return report;
}

std::string format_probe(const ProbeReport& report) {
  const auto percent = [](double share) { return std::isnan(share) ? "-" : fmt::format("{:.2f}", 100 * share); };
  std::vector<std::vector<std::string>> rows;
  for (const ProbeResult& result : report.results) {
    rows.push_back({result.title, percent(result.top1), percent(result.top5), percent(result.macro_top1),
                    std::isnan(result.seconds) ? "-" : fmt::format("{:.1f}", result.seconds)});
  }
  std::string text =
      markdown_table({"accuracy on the test images, %", "top-1", "top-5", "macro top-1", "seconds"}, rows);
  const ChosenC& logistic = report.logistic;
  if (!logistic.accuracy.empty()) {
    std::vector<std::string> tried;
    for (size_t i = 0; i < logistic.tried.size(); ++i) {
      tried.push_back(fmt::format("{:g}: {}", logistic.tried[i], percent(logistic.accuracy[i])));
    }
    text += fmt::format(
        "\nC was chosen by top-1 accuracy on {} ({}). The regression above was fitted to all training images alone.\n",
        logistic.on_val ? "the validation images" : "a tenth of the training images", join(tried, ", "));
  }
  return text;
}

nlohmann::json probe_json(const ProbeReport& report) {
  nlohmann::json results = nlohmann::json::array();
  for (const ProbeResult& result : report.results) {
    results.push_back({{"name", result.name},
                       {"title", result.title},
                       {"top1", result.top1},
                       {"top5", result.top5},
                       {"macro_top1", result.macro_top1},
                       {"seconds", result.seconds}});
  }
  const ChosenC& logistic = report.logistic;
  nlohmann::json tried = nlohmann::json::array();
  for (size_t i = 0; i < logistic.accuracy.size(); ++i) {
    tried.push_back({{"c", logistic.tried[i]}, {"top1", logistic.accuracy[i]}});
  }
  const char* chosen_on = logistic.accuracy.empty() ? "none" : logistic.on_val ? "val" : "train tenth";
  return {{"results", results},
          {"logistic",
           {{"c", logistic.c},
            {"chosen_on", chosen_on},
            {"tried", tried},
            {"objective", logistic.objective},
            {"has_converged", logistic.has_converged}}}};
}

}  // namespace settrain

#include "src/inference/results.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/metric_name.h"
#include "src/eval/results_table.h"
#include "src/inference/trained_run.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::vector<MetricValue>& values) {
  ordered_json object = ordered_json::object();
  for (const MetricValue& value : values)
    object[value.name] = std::isfinite(value.value) ? ordered_json(value.value) : nullptr;
  return object;
}

std::vector<at::Tensor> tensors_of(const Model& model) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : state_dict(model)) tensors.push_back(tensor);
  return tensors;
}

// The columns by their titles: "test", "test Bayes".
ordered_json to_json(const std::vector<ResultsColumn>& columns) {
  ordered_json object = ordered_json::object();
  for (const ResultsColumn& column : columns) object[column.title] = to_json(column.values);
  return object;
}

// The digests of the training split and of those that were evaluated.
std::map<std::string, std::string> digests_of(const Dataset& dataset, const std::vector<SplitResult>& results) {
  std::map<std::string, std::string> digests{{"train", dataset.train.digest}};
  for (const SplitResult& result : results) digests[result.split] = split_named(dataset, result.split).digest;
  return digests;
}

}  // namespace

std::vector<CheckpointResults> evaluate_checkpoints(Experiment& run, const std::vector<std::filesystem::path>& files,
                                                    ProgressBar& bar) {
  ProcessGroup& group = *run.group;
  const at::Tensor count = at::full({1}, std::ssize(files), at::kLong);
  group.broadcast({count});
  std::vector<CheckpointResults> results;
  std::map<int64_t, size_t> by_step;
  for (int64_t i = 0; i < count.item<int64_t>(); ++i) {
    const at::Tensor reached = at::zeros({2}, at::kLong);  // epoch and step
    CheckpointResults result;
    group.first_does([&] {
      const std::filesystem::path& file = files[static_cast<size_t>(i)];
      const Checkpoint checkpoint = load_weights(run, file);
      result.checkpoint = file.stem().string();
      reached[0] = checkpoint.integer("state.epoch");
      reached[1] = checkpoint.integer("state.step");
    });
    group.broadcast(tensors_of(*run.model));
    group.broadcast({reached});
    result.epoch = reached[0].item<int64_t>();
    const auto [same, is_new] = by_step.emplace(reached[1].item<int64_t>(), results.size());
    if (is_new) {
      result.splits = evaluate_splits(run, run.eval.splits, run.eval.view_use(), bar);
      result.columns = results_columns(run.config, run.dataset, run.label_noise, result.splits);
      result.digests = digests_of(run.dataset, result.splits);
    } else {
      result.splits = results[same->second].splits;
      result.columns = results[same->second].columns;
      result.digests = results[same->second].digests;
    }
    results.push_back(std::move(result));
  }
  return results;
}

void log_skipped_images(const SkippedImages& skipped) {
  if (const int64_t batches = skipped.batches_of_one(); batches > 0) {
    log::warning(fmt::format(
        "[data] training batches of which a single image could be read, and which were left out: {}, since the start "
        "or the last resume",
        batches));
  }
  const int64_t count = skipped.count();
  if (count == 0) return;
  log::warning(fmt::format(
      "[data] images that could not be read and were left out: {}; each is named above, since the start or the last resume",
      count));
}

std::string format_results(const std::vector<CheckpointResults>& results) {
  std::string text;
  for (const CheckpointResults& result : results) {
    text += fmt::format("{}{} (epoch {})\n", text.empty() ? "" : "\n", result.checkpoint, result.epoch);
    text += format_results(result.columns);
    const SplitResult& last = result.splits.back();
    for (const SetSizeHistogram& sizes : last.result.set_sizes) {
      if (!is_of_all_samples(sizes.metric)) continue;
      text += fmt::format("\nset sizes, {} on {}\n", sizes.metric, last.split) + format_set_sizes(sizes);
    }
  }
  return text;
}

ordered_json results_json(const std::vector<CheckpointResults>& results) {
  ordered_json all = ordered_json::array();
  for (const CheckpointResults& result : results) {
    ordered_json sizes = ordered_json::object();
    for (const SplitResult& split : result.splits) {
      for (const SetSizeHistogram& histogram : split.result.set_sizes)
        sizes[split.split][histogram.metric] = histogram.counts;
    }
    all.push_back({{"checkpoint", result.checkpoint},
                   {"epoch", result.epoch},
                   {"metrics", to_json(result.columns)},
                   {"set_sizes", sizes},
                   {"digests", result.digests}});
  }
  return all;
}

void write_results(const RunFolder& folder, const std::vector<CheckpointResults>& results) {
  // The JSON comes last, since it marks a run as finished.
  write_file_atomically(folder.results_text(), format_results(results));
  write_file_atomically(folder.results_json(), results_json(results).dump(1) + "\n");
}

}  // namespace settrain

#include "src/train/experiment_schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "datasets/calibration_split.h"
#include "datasets/label_noise.h"
#include "datasets/load_data.h"
#include "datasets/long_tail.h"
#include "losses/make_loss.h"
#include "models/model_options.h"
#include "src/config/config.h"
#include "src/config/schema.h"
#include "src/core/text.h"
#include "src/eval/evaluator.h"
#include "src/loader/augmentation.h"
#include "src/loader/data_options.h"
#include "src/optim/schedule.h"
#include "src/parallel/process_group.h"
#include "src/run_folder/run_folder.h"
#include "src/train/mix.h"
#include "src/train/run_options.h"

namespace settrain {
namespace {

bool contains(const config::Texts& texts, const char* text) {
  return std::ranges::count(texts, text) > 0;
}

config::Section eval_section(const Registries& registries) {
  config::Section section{"eval", "Evaluation: metrics and splits.", EvalOptions::keys(), "", "", {}};
  for (const MetricEntry& metric : registries.metrics.entries()) {
    section.keys = config::joined(std::move(section.keys), metric.keys);
  }
  return section;
}

// Keys that every data set has.
config::Keys data_keys(const Registries& registries) {
  return config::joined(loader_keys(registries.datasets), ClassOptions::keys(), LongTailOptions::keys(),
                        CalibrationOptions::keys());
}

config::Rule head_rule(const Registries& registries) {
  return [&losses = registries.losses](const config::Config& config) {
    const auto& loss = config.get<std::string>("loss.name");
    const auto& head = config.get<std::string>("model.head");
    const LossRequirements& needs = losses.at(loss).requirements;
    if (needs.normalised_head && head != "normalised") {
      config.fail("model.head",
                  "the loss " + loss + " needs the scores of a normalised head; set model.head: normalised");
    }
    if (needs.two_heads != (head == "two_head")) {
      config.fail("model.head", "the loss " + loss +
                                    (needs.two_heads ? " trains two heads; set model.head: two_head"
                                                     : " trains one head, and a second would stay as it was drawn; set "
                                                       "model.head: linear"));
    }
  };
}

config::Rule class_weight_rule(const Registries& registries) {
  return [&losses = registries.losses](const config::Config& config) {
    check_class_weights(losses, config);
    const auto first = config.get<int64_t>("loss.class_weights_from_epoch");
    const auto epochs = config.get<int64_t>("train.epochs");
    if (epochs > 0 && first >= epochs) {
      config.fail("loss.class_weights_from_epoch",
                  "must be less than train.epochs, " + std::to_string(epochs) + ": the weights would never come");
    }
  };
}

void warmup_rule(const config::Config& config) {
  const auto warmup = config.get<double>("schedule.warmup_epochs");
  const auto epochs = config.get<int64_t>("train.epochs");
  if (epochs == 0 || warmup <= static_cast<double>(epochs)) return;
  config.fail(
      "schedule.warmup_epochs",
      fmt::format("{} are more than train.epochs, {}: the rate would never reach optimizer.lr", warmup, epochs));
}

// Two metrics must not share a file: a rule's name may hold what RunFolder::checkpoint_name() replaces.
void check_checkpoint_names(const config::Config& config) {
  std::map<std::string, std::string> metrics;
  for (const std::string& metric : config.get<config::Texts>("select")) {
    const auto [other, is_new] = metrics.emplace(RunFolder::checkpoint_name(metric), metric);
    if (is_new) continue;
    config.fail("select", fmt::format("the checkpoints of '{}' and '{}' would have one name, {}; select by one of them",
                                      other->second, metric, other->first));
  }
}

config::Rule select_rule(const Registries& registries) {
  return [&metrics = registries.metrics](const config::Config& config) {
    const std::vector<MetricValue> measured = Evaluator(metrics, config, {}).facts();
    std::vector<std::string> known{RunFolder::kLast};
    for (const std::string& split : config.get<config::Texts>("eval.during_training")) {
      for (const MetricValue& value : measured) {
        if (value.better != Better::kNeither) known.push_back(split + "/" + value.name);
      }
    }
    std::vector<std::string> unknown;
    for (const std::string& wanted : config.get<config::Texts>("select")) {
      if (std::find(known.begin(), known.end(), wanted) != known.end()) continue;
      unknown.push_back("'" + wanted + "' is no accuracy that this run measures during training" +
                        did_you_mean(wanted, known));
    }
    if (!unknown.empty()) {
      config.fail("select", fmt::format("{} (eval.during_training says on which splits; eval.top_k, eval.average_k, "
                                        "eval.rules, eval.superclass_accuracy and eval.label_sets say which there are)",
                                        fmt::join(unknown, "\n  ")));
    }
    check_checkpoint_names(config);
  };
}

void measured_rule(const config::Config& config) {
  if (config.get<config::Integers>("eval.top_k").empty() && config.get<config::Reals>("eval.average_k").empty() &&
      config.get<config::Texts>("eval.rules").empty()) {
    config.fail("eval.top_k", "is empty, and so are eval.average_k and eval.rules: nothing would be measured");
  }
  const auto& bounds = config.get<config::Integers>("eval.count_bins");
  if (!std::is_sorted(bounds.begin(), bounds.end())) {
    config.fail("eval.count_bins", "does not ascend; each bound is where one bin ends and the next begins");
  }
}

void part_rates_rule(const config::Config& config) {
  const config::Texts trainable = trained_parts(config);
  const bool trains_head = contains(trainable, ModelOptions::kHead), trains_more = trainable.size() > 1;
  config.refuse_unread(
      "optimizer.head_lr_factor", trains_head && trains_more,
      "head and another part in model.trainable; a part that is trained alone has the rate optimizer.lr");
  config.refuse_unread("optimizer.layer_decay", !trains_head || trains_more,
                       "a part below the head in model.trainable; the head's rate is optimizer.lr");
}

void average_rule(const config::Config& config) {
  config.refuse_unread("train.ema_warmup", config.get<double>("train.ema_decay") > 0, "train.ema_decay above 0");
}

// A run's name becomes a folder.
void name_rule(const config::Config& config) {
  const auto& name = config.get<std::string>("name");
  if (name.find('/') != std::string::npos || name.starts_with('.')) {
    config.fail("name", "'" + name + "' cannot name a folder: no slashes and no dot in front; run.dir takes a path");
  }
  const auto& folder = config.get<std::string>("run.dir");
  const bool is_shells = !shell_part(folder).empty();
  if (folder.starts_with('~') || is_shells) {  // "~ada/runs" too
    config.fail("run.dir", fmt::format("'{}' would make a folder named {}, which is not replaced here; write {}",
                                       folder, folder.substr(0, folder.find('/')),
                                       is_shells ? in_config_words(folder) : "the folder's own path"));
  }
}

// A path that is only read may begin with a folder that has such a name, if there is one.
void shell_rule(const config::Config& config, const config::Entry& entry) {
  const auto* text = std::get_if<std::string>(&entry.value);
  std::error_code ignored;
  if (!text || entry.path == "run.dir" || entry.path == "name" || shell_part(*text).empty()) return;
  if (std::filesystem::exists(*text, ignored)) return;
  config.fail(entry.path, fmt::format("'{}' is not there, and {} is not replaced here; write {}", *text,
                                      shell_part(*text), in_config_words(*text)));
}

// Features are rows of numbers, which no image key changes and no body takes.
void features_rule(const config::Config& config) {
  const bool has_features = config.get<std::string>("data.name") == "features";
  const bool has_body = config.get<std::string>("model.name") != kHeadOnly;
  if (has_features == has_body) {
    config.fail("model.name", has_features
                                  ? fmt::format("data.name is features, which go to a head alone: set {}", kHeadOnly)
                                  : fmt::format("{} takes features; set data.name: features", kHeadOnly));
  }
  for (const char* path :
       {"data.pipeline", "data.input_size", "data.resize_size", "data.augmentation.pad", "data.augmentation.flip",
        "data.augment", "data.augmentation.rotate", "data.augmentation.brightness", "data.augmentation.contrast",
        "data.augmentation.saturation", "data.augmentation.hue", "data.augmentation.erase", "data.augmentation.cutout",
        "data.interpolation", "data.normalisation", "data.on_device", "train.mix", "eval.crops"})
    config.refuse_unread(path, !has_features, "images; data.name is features, which are taken as they are");
  const auto& from = config.get<std::string>("eval.threshold_from");
  if (has_features && from != "val" && from != "same")
    config.fail("eval.threshold_from", "data.name is features, and there is no body for a folder of images");
}

bool has_validation(const config::Config& config) {
  if (config.has("data.val") && !config.get<std::string>("data.val").empty()) return true;
  return !config.has("data.val_size") || config.get<int64_t>("data.val_size") > 0;
}

// The splits of `path` must not name validation where there is none.
config::Rule no_validation_rule(const char* path, const char* advice) {
  return [path, advice](const config::Config& config) {
    if (has_validation(config) || !contains(config.get<config::Texts>(path), "val")) return;
    config.fail(path, fmt::format("data.val_size is 0, so there is no validation split; set {}: {}", path, advice));
  };
}

void threshold_rule(const config::Config& config) {
  const auto& from = config.get<std::string>("eval.threshold_from");
  if (from == "val" && !config.get<config::Reals>("eval.average_k").empty() && !has_validation(config)) {
    config.fail("eval.threshold_from",
                "data.val_size is 0, so no validation images can set thresholds; set eval.threshold_from: same, or a "
                "folder of images");
  }
}

void threshold_folder_rule(const config::Config& config) {
  const auto& from = config.get<std::string>("eval.threshold_from");
  if (from != "val" && from != "same" && !std::filesystem::is_directory(from)) {
    config.fail("eval.threshold_from", "'" + from + "' is neither val nor same nor a folder of images");
  }
}

void calibration_rule(const config::Config& config) {
  const double share = config.get<double>("data.calibration_share");
  if (share > 0 && !has_validation(config)) {
    config.fail("data.calibration_share", "data.val_size is 0, so there are no validation images to take a share of");
  }
  const bool is_listed = config.has("data.calibration") && !config.get<std::string>("data.calibration").empty();
  if (share > 0 && is_listed) {
    config.fail("data.calibration_share", "data.calibration lists the calibration images already; set one of both");
  }
  if (share == 0 && !is_listed && contains(config.get<config::Texts>("eval.splits"), "calibration")) {
    config.fail("eval.splits",
                "there is no calibration split; data.calibration_share keeps one, and data.calibration lists one");
  }
}

void set_rules_rule(const config::Config& config) {
  if (config.get<config::Texts>("eval.rules").empty() || has_validation(config)) return;
  for (const char* path : {"eval.during_training", "eval.splits"}) {
    if (!contains(config.get<config::Texts>(path), "test")) continue;
    config.fail("eval.rules",
                fmt::format("data.val_size is 0, so nothing calibrates rules for the test split of {}", path));
  }
}

}  // namespace

config::Schema experiment_schema(const Registries& registries) {
  const std::string first_dataset = "fashion_mnist";
  config::Schema schema;
  schema.sections = {
      {"", "General settings of the run.", GeneralOptions::keys(), "", "", {}},
      {"run", "Run folder and compute threads.", RunOptions::keys(), "", "", {}},
      {"data", "The data set, and how images become batches.", data_keys(registries), "name", first_dataset,
       config::variants_of(registries.datasets)},
      label_noise_section(),
      model_section(registries.models),
      loss_section(registries.losses),
      optimizer_section(registries.optimizers),
      schedule_section(),
      {"train", "The training loop.", config::joined(TrainOptions::keys(), MixOptions::keys()), "", "", {}},
      eval_section(registries),
      {"parallel", "Several processes that train one model.", ParallelOptions::keys(), "", "", {}},
  };
  schema.rules = {head_rule(registries),
                  features_rule,
                  augmentation_rule,
                  long_tail_rule,
                  superclass_rule,
                  loss_rule(registries.losses),
                  class_weight_rule(registries),
                  mix_rule(registries.losses),
                  model_rule,
                  trainable_rule(registries.models),
                  select_rule(registries),
                  measured_rule,
                  name_rule,
                  optimizer_rule(registries.optimizers),
                  part_rates_rule,
                  average_rule,
                  schedule_rule(),
                  warmup_rule,
                  threshold_rule,
                  calibration_rule,
                  set_rules_rule,
                  no_validation_rule("eval.during_training", "[], or [test] to watch the test split"),
                  no_validation_rule("eval.splits", "[test]")};
  schema.needs = {threshold_folder_rule};
  schema.entry_needs = {shell_rule};
  return schema;
}

}  // namespace settrain

#include "src/train/experiment.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "datasets/calibration_split.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/load_data.h"
#include "losses/make_loss.h"
#include "metrics/entries.h"
#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/rule_metrics.h"
#include "metrics/sets/rules/rule_terms.h"
#include "models/batch_statistics.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/problems.h"
#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/train/feature_cache.h"
#include "src/train/training_checks.h"

namespace settrain {
namespace {

// Reports missing data and missing weights in one error.
LoadedData load_data_beside(const std::string& missing_weights, const Registries& registries,
                            const config::Config& config) {
  try {
    LoadedData data = load_data(registries.datasets, config);
    if (missing_weights.empty()) return data;
  } catch (const DataError& error) {
    if (missing_weights.empty()) throw;
    throw DataError(fmt::format("{}\n{}", error.what(), missing_weights));
  }
  throw DataError(missing_weights);
}

// The config with defaults that suit so many classes: without larger K of metrics, and with a smaller K of the loss;
// and with the parts of the model that are trained beside an adapter.
config::Config fitted_to(int64_t classes, const config::Config& config) {
  config::Config fitted = config;
  const auto fit = [&](const char* path, const config::Value& value) {
    if (value != config.at(path).value)
      fitted = fitted.with_default(path, value, fmt::format("for {} classes", classes));
  };
  const auto leave_out = [&](const char* path, auto ks) {
    std::erase_if(ks, [&](auto k) { return k > static_cast<decltype(k)>(classes); });
    if (config.at(path).origin.is_default()) fit(path, ks);
  };
  if (const config::Texts parts = trained_parts(config); parts != config.get<config::Texts>("model.trainable"))
    fitted = fitted.with_default("model.trainable", parts, "for an adapter");
  leave_out("eval.top_k", config.read<TopkAccuracyOptions>("eval").top_k);
  leave_out("eval.average_k", config.read<AverageKOptions>("eval").average_k);
  if (!config.has("loss.k") || !config.at("loss.k").origin.is_default()) return fitted;
  const config::Value& k = config.at("loss.k").value;
  // Sets of average-K may hold all classes.
  if (const auto* whole = std::get_if<int64_t>(&k); whole && *whole >= classes) fit("loss.k", classes - 1);
  if (const auto* mean = std::get_if<double>(&k); mean && *mean > static_cast<double>(classes))
    fit("loss.k", static_cast<double>(classes - 1));
  return fitted;
}

constexpr const char* kSubsetSuperclasses = "eval.subset.superclasses";

// Adds a problem where the config asks for more classes or superclasses than the data have.
void check_against_data(const config::Config& config, const EvalOptions& eval, const Dataset& data,
                        config::Problems& problems) {
  const int64_t classes = data.num_classes();
  const auto add = [&](const char* path, const std::string& message) {
    problems.add(config.at(path).origin, path, message);
  };
  const auto check = [&](const char* path, const auto& ks) {
    for (const auto k : ks) {
      if (k <= static_cast<std::decay_t<decltype(k)>>(classes)) continue;
      add(path, fmt::format("{} is more than the {} classes of {}", k, classes, data.name));
    }
  };
  check("train.top_k", config.read<TrainOptions>("train").top_k);
  check("eval.top_k", config.read<TopkAccuracyOptions>("eval").top_k);
  check("eval.average_k", config.read<AverageKOptions>("eval").average_k);
  if (config.read<SuperclassAccuracyOptions>("eval").superclass_accuracy && data.superclass_of.empty()) {
    add("eval.superclass_accuracy",
        fmt::format("{} has no superclasses; data.superclasses takes a file of them", data.name));
  }
  if (config.read<LabelSetOptions>("eval").label_sets &&
      std::ranges::all_of(split_names(data),
                          [&](const std::string& split) { return split_named(data, split).label_sets.empty(); })) {
    add("eval.label_sets",
        fmt::format("{} has one label an image, which the other metrics judge; leave it out, or take data whose images "
                    "have several labels",
                    data.name));
  }
  try {
    const auto& names = config.read<SubsetOptions>("eval").superclasses;
    if (!names.empty() && data.superclass_of.empty())
      add(kSubsetSuperclasses,
          fmt::format("{} has no superclasses; data.superclasses takes a file of them", data.name));
    else if (!names.empty())
      check_superclass_names(kSubsetSuperclasses, names, data.superclass_names);
  } catch (const KeyError& error) {
    add(kSubsetSuperclasses, error.message());
  }
  const int64_t k = eval.crops == EvalOptions::kTen && eval.crop_average == CropAverage::kTopk
                        ? eval.resolved_crop_average_k(config)
                        : 0;
  if (k > 0 && k >= classes) {
    add("eval.crop_average_k",
        fmt::format("K is {}, which must be less than the {} classes of {}", k, classes, data.name));
  }
}

void check_loss_takes_sets(const LossRegistry& losses, const config::Config& config, const Dataset& data) {
  const auto& loss = config.get<std::string>("loss.name");
  if (data.train.label_sets.empty() || losses.at(loss).takes_label_sets) return;
  config.fail("loss.name",
              fmt::format("the loss {} trains on one label an image, and {} has images with several; "
                          "choose {}, or data with one label an image",
                          loss, data.name, fmt::join(losses_with(losses, &LossEntry::takes_label_sets), " or ")));
}

// Without this check a mistake would be found when the first epoch is over.
void check_rules(const config::Config& config, const ClassFacts& facts, const Dataset& data,
                 config::Problems& problems) {
  const auto add = [&](const std::string& message) {
    problems.add(config.at("eval.rules").origin, "eval.rules", message);
  };
  const std::vector<SetRule> rules = read_rules(config);
  for (const SetRule& rule : rules) {
    try {
      check_suits(rule, facts);
      class_factors(rule, facts);
    } catch (const ConfigError& error) {
      add(error.what());
    }
  }
  if (!rules.empty() && data.val.size() < 2) add("there are too few validation images to calibrate rules on");
}

// Rules of several keys, which the config kept with the usual defaults, for those that suit the data.
void check_fitted(const Registries& registries, const config::Config& fitted, config::Problems& problems) {
  std::string defaults;
  for (const std::string& path : fitted_keys(fitted)) {
    const config::Entry& entry = fitted.at(path);
    defaults +=
        fmt::format("{}{} is {}", defaults.empty() ? "" : ", ", path, config::yaml_value(entry.key, entry.value));
  }
  if (defaults.empty()) return;
  for (const config::Rule& rule : experiment_schema(registries).rules) {
    try {
      rule(fitted);
    } catch (const config::PlacedError& error) {
      problems.add(error.origin(), fmt::format("{}; with so few classes, by default {}", error.what(), defaults));
    }
  }
}

// Everything that is wrong with the config for these data, in one error.
void check_config(const Registries& registries, const Experiment& run) {
  config::Problems problems;
  check_against_data(run.config, run.eval, run.dataset, problems);
  check_rules(run.config, run.class_facts, run.dataset, problems);
  check_fitted(registries, run.config, problems);
  if (problems.empty()) return;  // the loss is built later, and says then what is wrong with its keys
  try {
    build_loss(registries.losses, run.config, run.dataset, run.train_counts);
  } catch (const config::PlacedError& error) {
    problems.add(error.origin(), error.what());
  } catch (const Error&) {  // it is not of the config
  }
  problems.throw_if_any();
}

// Whether the network can be trained on a batch of one image; true too where no batch gets so small.
bool takes_one_image(const ModelRegistry& models, const Experiment& run, const Loader& training) {
  if (!has_batch_of_one(training) && run.loader.options.on_bad_image != "skip") return true;
  try {
    check_batch_of_one(models.at(run.config.get<std::string>("model.name")), run.config, run.input);
  } catch (const DataError&) {
    return false;
  }
  return true;
}

// Keeps images on the device where data.on_device asks for it. They come as bytes on any device, and as_input()
// normalises them.
void keep_images_on_device(Experiment& run) {
  const LoaderContext& loader = run.loader;
  const std::vector<ViewUse> uses{ViewUse::kTraining, ViewUse::kEvaluation, run.eval.view_use()};
  if (!images_stay_on(run.device, run.dataset, loader.options, loader.pipeline, uses)) return;
  run.loader.resident = std::make_shared<ResidentSources>(run.dataset, run.device);
  run.loader.format.type = PixelType::kByte;
}

// The one place that decides what makes a probability of a score.
ProbabilityKind probability_kind(const LossEntry& loss, const config::Config& config) {
  const bool is_sigmoid =
      loss.has_sigmoids || config.read<AverageKOptions>("eval").average_k_score == AverageKScore::kSigmoid;
  return is_sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax;
}

uint64_t seed_of(const config::Config& config) {
  return static_cast<uint64_t>(config.get<int64_t>("seed"));
}

// The unlabelled images that set average-K's thresholds, where eval.threshold_from is a folder.
void load_threshold_images(Experiment& run) {
  const auto& from = run.config.read<AverageKOptions>("eval").threshold_from;
  if (from == "val" || from == "same") return;
  const log::OnlyErrors quiet(!run.group->is_first());
  run.threshold_split = unlabelled_split(run.dataset, from);
}

// Checks of the model and the loss that no rule of the schema can make.
void check_trainable(const Experiment& run) {
  if (run.config.get<bool>("model.sync_batch_norm") && BatchStatistics(*run.model).size() == 0) {
    throw KeyError("model.sync_batch_norm", "no batch norm is trained");
  }
  if (run.group->world_size() > 1 && !run.loss->state().empty()) {
    throw KeyError("loss.name",
                   fmt::format("{} keeps numbers of every training sample, of which several processes would "
                               "each have some; train it in one process",
                               run.config.get<std::string>("loss.name")));
  }
}

// Says what helps where the data of a run have moved since it was trained; else an empty text.
std::string moved_data_advice(const config::Config& config) {
  if (!config.has("data.root") || std::filesystem::is_directory(config.get<std::string>("data.root"))) return "";
  return fmt::format(
      "\nThe run was trained on data in '{}'. Where these are in another folder by now: --set data.root=FOLDER",
      config.get<std::string>("data.root"));
}

// Fills what follows from the config and the data alone. `missing`: what else the user must get.
void load_described_data(const Registries& registries, const std::string& missing, Experiment& run) {
  const config::Config& c = run.config;
  run.general = c.read<GeneralOptions>("");
  run.train = c.read<TrainOptions>("train");
  run.eval = c.read<EvalOptions>("eval");
  LoadedData loaded = [&] {
    const log::OnlyErrors quiet(!run.group->is_first());
    check_known_superclasses(registries.datasets, c, kSubsetSuperclasses);
    return load_data_beside(missing, registries, c);
  }();
  run.dataset = std::move(loaded.dataset);
  run.label_noise = std::move(loaded.label_noise);
  const Dataset& data = run.dataset;
  run.config = fitted_to(data.num_classes(), c);
  run.fitted = fitted_keys(run.config);
  run.train_counts = count_classes(data.train, data.num_classes());
  run.class_facts = {.classes = data.num_classes(),
                     .names = data.class_names,
                     .train_counts = run.train_counts,
                     .superclass_of = data.superclass_of,
                     .taxonomy = data.taxonomy,
                     .probability = probability_kind(registries.losses.at(c.get<std::string>("loss.name")), c)};
}

// Fills all but the config, the device and the group.
void build(const Registries& registries, FirstWeights weights, const std::optional<RecordedInput>& recorded,
           Experiment& run) {
  const config::Config& c = run.config;
  const bool load_weights = weights == FirstWeights::kPretrained;
  keep_training_from_broken_amx(c.read<TrainOptions>("train"), run.device);
  prepare_process(c, run.device);
  load_described_data(registries, load_weights ? missing_pretrained(registries.models, c) : "", run);
  check_config(registries, run);
  const Dataset& data = run.dataset;

  ModelInput input = choose_input(registries.datasets, registries.models, c, data, recorded ? &*recorded : nullptr,
                                  run.group->is_first() ? standard_progress_output() : no_progress_output());
  run.input_remarks = std::move(input.remarks);
  run.input_warnings = std::move(input.warnings);
  run.policy = make_compute_policy(run.train, run.device, input.normalisation);
  run.loader = loader_context(c, run.policy, input.normalisation);
  input.resolve(run.loader.pipeline);
  run.loader.rank = run.group->rank();
  run.loader.world = run.group->world_size();
  if (!run.group->is_first()) run.loader.skipped = std::make_shared<SkippedImages>(/*logs=*/false);
  keep_images_on_device(run);
  // The loaders are built once here, so that mistakes in their settings are reported before a run folder is touched.
  const Loader training = training_loader(data, run.loader, 0);
  for (const std::string& split : run.eval.splits)
    evaluation_loader(data, split_named(data, split), run.loader, run.eval.view_use());

  const Transform& transform = training.transform();
  run.input = {data.num_classes(), transform.channels(), transform.pipeline().height(), transform.pipeline().width()};
  seed_aten(seed_of(c), kSeedOfInitialWeights);
  if (run.train.epochs > 0) run.takes_one_image = takes_one_image(registries.models, run, training);
  if (load_weights) check_batches_of_one(run, training);
  BuiltModel built = build_model(registries.models, c, run.input, run.policy, weights);
  run.model = std::move(built.model);
  run.pretrained = std::move(built.pretrained);
  if (run.pretrained) run.pretrained_digest = run.pretrained->sha256;
  run.model->train_only(trained_parts(c));
  if (run.train.gradient_checkpointing) run.model->recompute_activations();
  if (run.loader.options.cache_features == config::Switch::kOn) feature_plan(run);  // throws where it cannot be

  run.loss = build_loss(registries.losses, c, data, run.train_counts);
  check_trainable(run);
  run.optimizer = registries.optimizers.at(c.get<std::string>("optimizer.name"));
  run.stall_advice = registries.losses.at(c.get<std::string>("loss.name")).stall_advice;

  run.evaluator = build_evaluator(registries.metrics, c, data, run.class_facts, run.loss->score_scale());
  load_threshold_images(run);
}

}  // namespace

Split unlabelled_split(const Dataset& dataset, const std::string& folder) {
  auto images =
      std::make_shared<ImageFiles>(unlabelled_images(folder), ImageFileOptions{.grey = dataset.channels == 1});
  std::string digest = images->digest();
  std::vector<int64_t> ids(static_cast<size_t>(images->size())), labels(ids.size(), 0);  // labels are never read
  std::iota(ids.begin(), ids.end(), 0);
  return {folder, std::move(images), std::move(ids), std::move(labels), {}, std::move(digest)};
}

Experiment make_experiment(const Registries& registries, config::Config config, at::Device device, FirstWeights weights,
                           std::shared_ptr<ProcessGroup> group, const std::optional<RecordedInput>& recorded) {
  const int64_t threads = config.read<RunOptions>("run").resolved_threads();
  if (!group) group = std::make_shared<ProcessGroup>();
  // The number that `auto` stands for is recorded: the run's last bits follow from it.
  Experiment run{.config = config.with("run.threads", threads), .device = device, .group = std::move(group)};
  try {
    build(registries, weights, recorded, run);
  } catch (const DataError& error) {
    const std::string advice = recorded ? moved_data_advice(run.config) : "";
    if (advice.empty()) throw;
    throw DataError(error.what() + advice);
  } catch (const KeyError& error) {
    if (!run.config.has(error.path())) throw;
    run.config.fail(error.path(), error.message());
  }
  return run;
}

std::string why_no_value(const Registries& registries, const config::Config& config, const std::string& metric) {
  Experiment run{.config = config, .device = at::kCPU, .group = std::make_shared<ProcessGroup>()};
  load_described_data(registries, "", run);
  config::Problems problems;
  check_against_data(run.config, run.eval, run.dataset, problems);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    return error.what();
  }
  if (metric.find('@') != std::string::npos) return "";
  // One image of each class of the split stands for all.
  std::vector<int64_t> labels = split_named(run.dataset, metric.substr(0, metric.find('/'))).labels;
  std::ranges::sort(labels);
  labels.erase(std::ranges::unique(labels).begin(), labels.end());
  const int64_t classes = run.dataset.num_classes();
  const SplitScores split{at::zeros({std::ssize(labels), classes}), at::tensor(labels, at::kLong)};
  const auto evaluator = build_evaluator(registries.metrics, run.config.with("eval.rules", config::Texts{}),
                                         run.dataset, run.class_facts, 1);
  const std::vector<MetricValue> values = evaluator->evaluate(split).values;
  const auto value =
      std::ranges::find_if(values, [&](const MetricValue& found) { return metric.ends_with("/" + found.name); });
  if (value != values.end() && !std::isnan(value->value)) return "";
  return fmt::format(
      "{} has no value on these data: they have {} classes, with {} to {} training images each, and the "
      "split has images of {} of them",
      metric, classes, std::ranges::min(run.train_counts), std::ranges::max(run.train_counts), split.labels.size(0));
}

LoaderContext loader_context(const config::Config& config, const ComputePolicy& policy,
                             const Normalisation& normalisation) {
  return {.options = config.read<LoaderOptions>("data"),
          .pipeline = read_pipeline(config),
          .normalisation = normalisation,
          .format = policy.pixel_format(),
          .pin_memory = policy.device.is_cuda(),
          .epochs = config.read<TrainOptions>("train").epochs};
}

BuiltModel build_model(const ModelRegistry& registry, const config::Config& config, const ModelContext& context,
                       const ComputePolicy& policy, FirstWeights weights) {
  BuiltModel built{registry.at(config.get<std::string>("model.name")).make(config, context), std::nullopt};
  if (weights == FirstWeights::kPretrained) built.pretrained = load_pretrained(config, *built.model, &registry);
  built.model->to(policy.device);
  built.model->set_channels_last(policy.channels_last);
  return built;
}

std::unique_ptr<Loss> build_loss(const LossRegistry& registry, const config::Config& config, const Dataset& data,
                                 const std::vector<int64_t>& train_counts) {
  check_loss_takes_sets(registry, config, data);
  return make_loss(registry, config,
                   {.num_classes = data.num_classes(),
                    .class_counts = train_counts,
                    .train_ids = data.train.ids,
                    .train_labels = data.train.labels,
                    .seed = seed_of(config),
                    .epochs = config.get<int64_t>("train.epochs")});
}

std::unique_ptr<Evaluator> build_evaluator(const MetricRegistry& registry, const config::Config& config,
                                           const Dataset& data, const ClassFacts& facts, double score_scale) {
  const auto seed = static_cast<uint64_t>(config.read<CalibrationOptions>("data").seed);
  return std::make_unique<Evaluator>(registry, config,
                                     MetricContext{.train_counts = facts.train_counts,
                                                   .score_scale = score_scale,
                                                   .superclass_of = facts.superclass_of,
                                                   .class_names = facts.names,
                                                   .sigmoid = facts.probability == ProbabilityKind::kSigmoid,
                                                   .seed = seed,
                                                   .superclass_names = data.superclass_names,
                                                   .taxonomy = facts.taxonomy});
}

std::vector<std::string> fitted_keys(const config::Config& config) {
  std::vector<std::string> paths;
  for (const config::Entry& entry : config.entries()) {
    if (entry.origin.is_default() && entry.origin.text != config::Origin::kDefaultText) paths.push_back(entry.path);
  }
  return paths;
}

ModelCard card_of(const Experiment& run) {
  const Dataset& data = run.dataset;
  return {.dataset = data.name,
          .class_names = data.class_names,
          .class_keys = data.class_keys,
          .superclass_names = data.superclass_names,
          .superclass_of = data.superclass_of,
          .taxonomy = data.taxonomy,
          .train_counts = run.train_counts,
          .channels = run.input.channels,
          .input_height = run.input.height,
          .input_width = run.input.width,
          .image_height = data.height,
          .image_width = data.width,
          .mean = run.loader.normalisation.mean,
          .std = run.loader.normalisation.std,
          .interpolation = run.loader.pipeline.interpolation,
          .crop_share = run.loader.pipeline.crop_share,
          .score_scale = run.loss->score_scale(),
          .is_sigmoid = run.class_facts.probability == ProbabilityKind::kSigmoid,
          .features_model = data.features_model,
          .head = run.config.get<std::string>("model.head")};
}

}  // namespace settrain

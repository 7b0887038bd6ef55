#include "src/train/experiment.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
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
#include "src/core/error.h"
#include "src/core/process.h"
#include "src/loader/data_options.h"
#include "src/loader/loader.h"
#include "src/train/aten_seed.h"
#include "src/train/compute_threads.h"

namespace settrain {
namespace {

void set_determinism(const std::string& wanted, at::Device device) {
  const bool deterministic = wanted == "auto" ? device.is_cpu() : wanted == "true";
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(deterministic);
  at::globalContext().setBenchmarkCuDNN(!deterministic);
  // Deterministic mode would also fill every new tensor, with threads of its own, even within the loader's. Nothing
  // here reads what it has not written.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  // cuBLAS repeats its results only with a workspace of fixed size, which it reads when it is first used.
  if (deterministic && device.is_cuda()) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
}

Split unlabelled_split(const std::string& folder, std::shared_ptr<const ImageSource> images) {
  std::vector<int64_t> ids(static_cast<size_t>(images->size()));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<int64_t> labels(ids.size(), 0);  // never read: only the scores are used
  return {folder, std::move(images), std::move(ids), std::move(labels)};
}

// What to do where a GPU was asked for and none is there.
std::string no_gpu_advice() {
#ifdef SETTRAIN_HAS_CUDA
  return "no GPU was found; run on --device cpu, or check the driver with nvidia-smi";
#else
  return "this build has no CUDA; run on --device cpu, or build with scripts/setup --cuda";
#endif
}

void check_set_sizes(const config::Config& config, const Dataset& data) {
  const int64_t classes = data.num_classes();
  const auto check = [&](const char* path, const auto& ks) {
    for (const auto k : ks) {
      if (k > static_cast<decltype(k)>(classes)) {
        config.fail(path, fmt::format("{} is more than the {} classes of {}", k, classes, data.name));
      }
    }
  };
  check("train.top_k", config.read<TrainOptions>("train").top_k);
  check("eval.top_k", config.read<TopkAccuracyOptions>("eval").top_k);
  check("eval.average_k", config.read<AverageKOptions>("eval").average_k);
}

void check_superclasses(const config::Config& config, const Dataset& data) {
  if (config.read<SuperclassAccuracyOptions>("eval").superclass_accuracy && data.superclass_of.empty()) {
    config.fail("eval.superclass_accuracy",
                fmt::format("{} has no superclasses; data.superclasses takes a file of them", data.name));
  }
}

void check_crops(const config::Config& config, const EvalOptions& options, const Dataset& data) {
  if (options.crops != "ten" || options.crop_average != "topk") return;
  const int64_t k = options.resolved_crop_average_k(config);
  if (k >= data.num_classes()) {
    config.fail("eval.crop_average_k",
                fmt::format("K is {}, which must be less than the {} classes of {}", k, data.num_classes(), data.name));
  }
}

void check_loss_takes_sets(const Registries& registries, const config::Config& config, const Dataset& data) {
  const auto& loss = config.get<std::string>("loss.name");
  if (data.train.label_sets.empty() || registries.losses.at(loss).takes_label_sets) return;
  config.fail(
      "loss.name",
      fmt::format("the loss {} trains on one label an image, and {} has images with several; "
                  "choose {}, or data with one label an image",
                  loss, data.name, fmt::join(losses_with(registries.losses, &LossEntry::takes_label_sets), " or ")));
}

// Otherwise found out when the first epoch is over.
void check_rules(const config::Config& config, const ClassFacts& facts, const Dataset& data) {
  for (const SetRule& rule : read_rules(config)) {
    try {
      check_suits(rule, facts);
      class_factors(rule, facts);
    } catch (const ConfigError& error) {
      config.fail("eval.rules", error.what());
    }
    if (data.val.size() < 2) config.fail("eval.rules", "there are too few validation images to calibrate rules on");
  }
}

// Who has neither data nor weights yet learns of both at once.
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

// Otherwise found out at the end of the first epoch, whose last batch may be of one image.
void check_batches_of_one(const ModelEntry& entry, const config::Config& config, const ModelContext& context,
                          const Loader& training) {
  const int64_t batch_size = training.settings().batch_size;
  const bool has_rest_of_one = training.size() % batch_size == 1 && !training.settings().drop_last;
  if (batch_size == 1 || has_rest_of_one) check_batch_of_one(entry, config, context);
}

void place_model(Model& model, const Computation& computation) {
  model.to(computation.device);
  model.set_channels_last(computation.channels_last);
}

// Such images come as bytes on any device, and as_input() normalises them.
void place_images(Experiment& run) {
  const LoaderContext& loader = run.loader;
  const std::vector<ViewUse> uses{ViewUse::kTraining, ViewUse::kEvaluation, run.eval.view_use()};
  if (!images_stay_on(run.device, run.dataset, loader.options, loader.pipeline, uses)) return;
  run.loader.resident = std::make_shared<ResidentSources>(run.dataset, run.device);
  run.loader.format.type = PixelType::kByte;
}

// The one place that decides what makes a probability of a score.
ProbabilityKind probability_kind(const LossEntry& loss, const config::Config& config) {
  const bool is_sigmoid = loss.has_sigmoids || config.read<AverageKOptions>("eval").average_k_score == "sigmoid";
  return is_sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax;
}

// Fills all but the config and the device.
void wire(const Registries& registries, FirstWeights weights, Experiment& run) {
  const config::Config& c = run.config;
  const at::Device device = run.device;
  prepare_process(c, device);
  run.general = c.read<GeneralOptions>("");
  run.train = c.read<TrainOptions>("train");
  run.eval = c.read<EvalOptions>("eval");
  run.loader = loader_context(c, device);
  run.loader.rank = run.group->rank();
  if (!run.group->is_first()) run.loader.skipped = std::make_shared<SkippedImages>(/*logs=*/false);
  run.loader.world = run.group->world_size();

  const bool load_weights = weights == FirstWeights::kPretrained;
  LoadedData loaded = load_data_beside(load_weights ? missing_pretrained(registries.models, c) : "", registries, c);
  run.dataset = std::move(loaded.dataset);
  run.label_noise = std::move(loaded.label_noise);
  check_set_sizes(c, run.dataset);
  check_superclasses(c, run.dataset);
  check_crops(c, run.eval, run.dataset);
  run.train_counts = count_classes(run.dataset.train, run.dataset.num_classes());

  const Dataset& data = run.dataset;
  run.loader.normalisation = normalisation_for(registries.datasets, run.loader.options.normalisation, data);
  run.computation = make_computation(run.train, device, run.loader.normalisation);
  run.loader.format = run.computation.pixel_format();
  place_images(run);
  // The loaders are built once here, so that what is wrong with them is said before a run folder is touched.
  const Loader training = training_loader(data, run.loader, 0);
  for (const std::string& split : run.eval.splits)
    evaluation_loader(data, split_named(data, split), run.loader, run.eval.view_use());
  const Transform& transform = training.transform();
  run.input = {transform.channels(), transform.pipeline().height(), transform.pipeline().width()};

  seed_aten(static_cast<uint64_t>(run.general.seed), kSeedOfInitialWeights);
  const ModelEntry& model = registries.models.at(c.get<std::string>("model.name"));
  const ModelContext context{data.num_classes(), run.input.channels, run.input.height, run.input.width};
  const auto options = c.read<ModelOptions>("model");
  const bool trains_body = options.trains(ModelOptions::kBody);
  if (load_weights && run.train.epochs > 0 && trains_body) check_batches_of_one(model, c, context, training);
  run.model = model.make(c, context);
  if (load_weights) run.pretrained = load_pretrained(c, *run.model);
  if (run.pretrained) run.pretrained_digest = run.pretrained->sha256;
  place_model(*run.model, run.computation);
  run.model->freeze(!trains_body, !options.trains(ModelOptions::kHead));
  if (run.train.gradient_checkpointing) run.model->recompute_activations();
  check_loss_takes_sets(registries, c, data);
  run.loss = make_loss(registries.losses, c,
                       {.num_classes = data.num_classes(),
                        .class_counts = run.train_counts,
                        .train_ids = data.train.ids,
                        .train_labels = data.train.labels,
                        .seed = static_cast<uint64_t>(run.general.seed)});
  if (c.get<bool>("model.sync_batch_norm") && BatchStatistics(*run.model).size() == 0) {
    throw KeyError("model.sync_batch_norm", "the model has no batch norm");
  }
  if (run.group->world_size() > 1 && !run.loss->state().empty()) {
    throw KeyError("loss.name",
                   fmt::format("{} keeps numbers of every training sample, of which several processes would "
                               "each have some; train it in one process",
                               c.get<std::string>("loss.name")));
  }
  run.optimizer = registries.optimizers.at(c.get<std::string>("optimizer.name"));
  const LossEntry& loss = registries.losses.at(c.get<std::string>("loss.name"));
  run.stall_advice = loss.stall_advice;
  run.class_facts = {.classes = data.num_classes(),
                     .names = data.class_names,
                     .train_counts = run.train_counts,
                     .superclass_of = data.superclass_of,
                     .probability = probability_kind(loss, c)};
  check_rules(c, run.class_facts, data);
  run.evaluator = std::make_unique<Evaluator>(
      registries.metrics, c,
      MetricContext{.train_counts = run.train_counts,
                    .score_scale = run.loss->score_scale(),
                    .superclass_of = data.superclass_of,
                    .class_names = data.class_names,
                    .sigmoid = run.class_facts.probability == ProbabilityKind::kSigmoid,
                    .seed = static_cast<uint64_t>(c.read<CalibrationOptions>("data").seed)});

  const auto& from = c.read<AverageKOptions>("eval").threshold_from;
  if (from != "val" && from != "same") {
    auto images = std::make_shared<ImageFiles>(unlabelled_images(from), ImageFileOptions{.grey = data.channels == 1});
    run.threshold_digest = images->digest();
    run.threshold_split = unlabelled_split(from, std::move(images));
  }
}

}  // namespace

Experiment make_experiment(const Registries& registries, config::Config config, at::Device device, FirstWeights weights,
                           std::shared_ptr<ProcessGroup> group) {
  const int64_t threads = config.read<RunOptions>("run").resolved_threads();
  if (!group) group = std::make_shared<ProcessGroup>();
  // What `auto` came to is recorded: the run's last bits follow from it.
  Experiment run{.config = config.with("run.threads", threads), .device = device, .group = std::move(group)};
  try {
    wire(registries, weights, run);
  } catch (const KeyError& error) {
    if (!run.config.has(error.path())) throw;
    run.config.fail(error.path(), error.message());
  }
  return run;
}

void prepare_process(const config::Config& config, at::Device device) {
  set_compute_threads(config.get<int64_t>("run.threads"));
  set_determinism(config.read<TrainOptions>("train").deterministic, device);
  if (device.is_cpu()) keep_freed_memory();
}

LoaderContext loader_context(const config::Config& config, at::Device device) {
  return {.options = config.read<LoaderOptions>("data"),
          .pipeline = config.read<PipelineOptions>("data"),
          .pin_memory = device.is_cuda(),
          .epochs = config.read<TrainOptions>("train").epochs};
}

std::shared_ptr<Model> make_model(const Registries& registries, const config::Config& config,
                                  const ModelContext& context, const Computation& computation) {
  std::shared_ptr<Model> model = registries.models.at(config.get<std::string>("model.name")).make(config, context);
  place_model(*model, computation);
  return model;
}

at::Device find_device(const std::string& name) {
  if (name == "auto") return at::Device(at::hasCUDA() ? at::kCUDA : at::kCPU);
  at::Device device(at::kCPU);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {
    throw ConfigError("--device " + name + ": expected auto, cpu, cuda or cuda:N");
  }
  if (!device.is_cpu() && !device.is_cuda())
    throw ConfigError("--device " + name + ": expected auto, cpu, cuda or cuda:N");
  const int64_t gpus = at::hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (device.is_cuda() && gpus == 0) throw ConfigError("--device " + name + ": " + no_gpu_advice());
  if (device.is_cuda() && device.index() >= gpus) {
    throw ConfigError("--device " + name + ": there are " + std::to_string(gpus) + " GPUs, numbered from 0");
  }
  return device;
}

}  // namespace settrain

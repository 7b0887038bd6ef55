#include "src/inference/trained_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datasets/image_files.h"
#include "datasets/text_lines.h"
#include "metrics/sets/temperature.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/formats/weight_file.h"
#include "src/inference/export_weights.h"
#include "src/inference/rule_file.h"
#include "src/inference/trained_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEarly = "was written by an earlier version of settrain";

std::string quoted(const fs::path& file) {
  return "'" + file.string() + "'";
}

enum class ModelFile { kCheckpoint, kExported, kWeightsAlone };

ModelFile kind_of(const fs::path& file) {
  const WeightFile weights(file);
  const auto& metadata = weights.contents().metadata;
  const auto kind = metadata.find("kind");
  if (kind != metadata.end() && kind->second == kCheckpointKind) return ModelFile::kCheckpoint;
  return metadata.contains("config") && metadata.contains("card") ? ModelFile::kExported : ModelFile::kWeightsAlone;
}

// `settrain scores` writes tensors `scores` and `labels`.
void refuse_scores(const fs::path& file) {
  const WeightFile weights(file);
  const auto has = [&](const char* name) {
    return std::ranges::any_of(weights.contents().tensors,
                               [&](const TensorEntry& entry) { return joined(entry.path) == name; });
  };
  if (!has("scores") || !has("labels")) return;
  throw RunError(
      fmt::format("{} is a file of scores, and no model; `settrain calibrate --scores` takes it", quoted(file)));
}

[[noreturn]] void refuse_weights_alone(const fs::path& file, bool needs_head) {
  const WeightFile weights(file);
  const Contents& contents = weights.contents();
  if (contents.metadata.contains("checkpoint.sha256")) {
    throw RunError(fmt::format("{} {}: it holds neither the classes' names nor the normalisation; export the run again",
                               quoted(file), kEarly));
  }
  throw RunError(fmt::format(
      "{} holds weights alone ({}), and is no model that `settrain export` wrote: it says neither which model "
      "they are of, nor the classes' names, nor how images were normalised. Say it here: --model NAME{}, and "
      "--normalisation and --input-size where need be; or train on from them by model.pretrained",
      quoted(file), contents.format, needs_head ? " --classes FILE (the name of a class on each line)" : ""));
}

// Reads an exported file into the form of a checkpoint.
Checkpoint read_exported(const fs::path& file) {
  Safetensors contents = read_safetensors(file);
  return {std::move(contents.tensors), std::move(contents.metadata), file};
}

// The rules of the schema are for training. They may ask for data and folders that this machine does not have.
config::Schema schema_without_rules(const Registries& registries) {
  return {experiment_schema(registries).sections, {}};
}

config::Config config_of(const Registries& registries, const Checkpoint& file,
                         const std::vector<std::string>& settings) {
  const config::Schema schema = schema_without_rules(registries);
  const std::string& yaml = file.text("config");
  const config::Config own = [&] {
    try {
      return config::load_resolved(schema, yaml, file.file.string(), {});
    } catch (const ConfigError& problem) {
      throw RunError(
          fmt::format("{}: its configuration is not one of this program: {}", quoted(file.file), problem.what()));
    }
  }();
  check_settings(own, settings);
  const config::Config config = config::load_resolved(schema, yaml, file.file.string(), settings);
  const bool sets_threads = std::any_of(settings.begin(), settings.end(),
                                        [](const std::string& setting) { return setting.starts_with("run.threads="); });
  const RunOptions options = sets_threads ? config.read<RunOptions>("run") : RunOptions{};
  return config.with("run.threads", options.resolved_threads());
}

// A scaled head is exported as the linear head that gives the same scores.
void add_unit_factors(const Model& model, Checkpoint& file) {
  for (const auto& [name, tensor] : state_dict(model)) {
    if (name.ends_with(".factor") && !file.tensors.contains(name)) {
      file.tensors.emplace(name, at::ones(tensor.sizes(), tensor.scalar_type()));
    }
  }
}

void check_size(const NetworkCost& cost, const TrainedModel& model, const Checkpoint& file) {
  int64_t numbers = std::ssize(model.card.class_names);  // the factors, which an exported file does not have
  for (const auto& [name, tensor] : file.tensors) numbers += tensor.numel();
  if (cost.parameters > numbers) {
    throw RunError(fmt::format("{}: a {} for {} classes has {} parameters, and the file holds fewer", quoted(file.file),
                               model.config.get<std::string>("model.name"), model.card.class_names.size(),
                               cost.parameters));
  }
}

void check_finite(const Model& model, const fs::path& file) {
  for (const auto& [name, tensor] : state_dict(model)) {
    if (tensor.is_floating_point() && !at::isfinite(tensor).all().item<bool>()) {
      throw RunError(fmt::format("{}: the weights {} are not finite", quoted(file), name));
    }
  }
}

// How images become scores, by the model's config and card. Returns what the model must fit.
ModelContext wire_inputs(at::Device device, TrainedModel& model) {
  const config::Config& config = model.config;
  const ModelCard& card = model.card;
  const auto eval = config.read<EvalOptions>("eval");
  model.view_use = eval.view_use();
  model.crop_average = {eval.crop_average, eval.resolved_crop_average_k(config), card.score_scale};
  const Normalisation normalisation{card.mean, card.std};
  model.policy = make_compute_policy(config.read<TrainOptions>("train"), device, normalisation);
  model.loader = loader_context(config, model.policy, normalisation);
  // The card says what auto came to; the size, for images in files.
  PipelineOptions& options = model.loader.pipeline;
  if (options.input_size == PipelineOptions::kAuto && card.image_height == 0) options.input_size = card.input_height;
  if (options.interpolation == PipelineOptions::kAutoInterpolation) options.interpolation = card.interpolation;
  options.crop_share = card.crop_share;
  const Pipeline pipeline(model.loader.pipeline, card.image_height, card.image_width, model.view_use);
  if (pipeline.height() != card.input_height || pipeline.width() != card.input_width) {
    throw RunError(fmt::format("{}: its card has an input of {} x {} pixels, and its configuration {} x {}",
                               quoted(model.file), card.input_height, card.input_width, pipeline.height(),
                               pipeline.width()));
  }
  return {std::ssize(card.class_names), card.channels, card.input_height, card.input_width};
}

// Builds the model for its config and card, and copies the weights into it.
void wire_model(const Registries& registries, at::Device device, bool is_exported, Checkpoint& file,
                TrainedModel& model) {
  if (AdapterOptions::read(model.config).kind == AdapterOptions::kLora) {
    merge_lora(file.tensors, is_exported ? "" : file.weights_prefix(), file.file);
    model.config = model.config.with(AdapterOptions::kKey, "none");
  }
  const config::Config& config = model.config;
  const ModelContext context = wire_inputs(device, model);
  const ModelEntry& entry = registries.models.at(config.get<std::string>("model.name"));
  check_size(network_cost(entry, config, context), model, file);
  model.model = build_model(registries.models, config, context, model.policy).model;
  if (is_exported) add_unit_factors(*model.model, file);
  file.copy_into(is_exported ? "" : file.weights_prefix(), state_dict(*model.model));
  check_finite(*model.model, file.file);
  model.model->eval();
}

void warn_of_outdated(const StoredRules& rules) {
  for (const SetRule& rule : rules.outdated) {
    log::warning(std::string("[rules] left out: ") + OutdatedRule(rule).what());
  }
}

// The name of a class on each line; blank lines are left out.
std::vector<std::string> read_class_names(const fs::path& file) {
  std::vector<std::string> names;
  for (TextLines lines(file); lines.next();) {
    const std::string& line = lines.line();
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    names.push_back(printable(line.substr(first, line.find_last_not_of(" \t\r") + 1 - first)));
  }
  if (names.empty()) throw DataError(fmt::format("{} (--classes) names no class", quoted(file)));
  std::unordered_map<std::string, size_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [first, is_new] = numbers.emplace(names[i], i);
    if (is_new) continue;
    log::warning(fmt::format("[model] {}: the classes {} and {}, from 0, are both named {}", quoted(file),
                             first->second, i, names[i]));
    break;
  }
  return names;
}

// The config of a run that would have such a model. Its data are of images in files.
config::Config config_for(const Registries& registries, const ModelEntry& entry, const fs::path& file,
                          const std::vector<std::string>& settings, const WeightsAlone& alone) {
  std::vector<std::string> all{"model.name=" + entry.name}, places{"--model"};
  const auto add = [&](const std::string& setting, const char* place) {
    all.push_back(setting);
    places.emplace_back(place);
  };
  if (!alone.normalisation.empty()) add("data.normalisation=" + alone.normalisation, "--normalisation");
  if (alone.input_size) add(fmt::format("data.input_size={}", *alone.input_size), "--input-size");
  all.insert(all.end(), {"data.name=image_folder", "data.root=."});
  // Published weights expect ImageNet's resize and crop.
  if (!entry.pretrained.url.empty()) all.emplace_back("data.pipeline=imagenet");
  all.insert(all.end(), settings.begin(), settings.end());
  const config::Config config = config::load(schema_without_rules(registries), {}, all, places);
  const int64_t threads = config.read<RunOptions>("run").resolved_threads();
  return config.with("model.pretrained", file.string()).with("run.threads", threads);
}

// The model of `model.config` with the weights that it names. Whether the head has a bias, the file says unless
// `settings` do.
BuiltModel build_from_weights(const Registries& registries, at::Device device, const std::vector<std::string>& settings,
                              TrainedModel& model) {
  const auto build = [&] {
    const ModelContext context = wire_inputs(device, model);
    return build_model(registries.models, model.config, context, model.policy, FirstWeights::kPretrained);
  };
  try {
    return build();
  } catch (const KeyError&) {
    const bool is_set = std::ranges::any_of(
        settings, [](const std::string& setting) { return setting.starts_with("model.head_bias="); });
    if (is_set || !model.config.has("model.head_bias")) throw;
    const config::Config config = model.config;
    model.config = config.with("model.head_bias", !config.get<bool>("model.head_bias"));
    try {
      return build();
    } catch (const KeyError&) {
      model.config = config;
    }
    throw;  // the first problem
  }
}

TrainedModel open_weights_alone(const Registries& registries, const fs::path& file, at::Device device,
                                const std::vector<std::string>& settings, const WeightsAlone& alone) {
  if (alone.model.empty() || (alone.needs_head && alone.classes.empty())) {
    throw ConfigError(fmt::format(
        "{} holds weights alone: they need --model, a name that `settrain list models` prints{}", quoted(file),
        alone.needs_head ? ", and --classes, a file with the name of a class on each line" : ""));
  }
  const ModelEntry& entry = registries.models.at(alone.model);
  TrainedModel model{.file = file, .is_exported = true, .config = config_for(registries, entry, file, settings, alone)};
  const config::Config& config = model.config;
  const WeightsInput known = input_of_weights(registries.datasets, entry, file.string());
  Dataset images;
  images.name = file.string();
  images.channels = config.read<ImageFileOptions>("data").channels();
  const auto& normalisation = config.get<std::string>("data.normalisation");
  if (normalisation == "auto" && !known.is_known()) {
    throw ConfigError(
        fmt::format("nothing says how images were normalised when {} was trained: --normalisation takes {}",
                    quoted(file), fmt::join(normalisation_names(registries.datasets), ", ")));
  }
  const Normalisation chosen =
      normalisation == "auto" ? known.normalisation : normalisation_for(registries.datasets, normalisation, images);
  const auto wanted = config.read<PipelineOptions>("data").input_size;
  const int64_t size = wanted != PipelineOptions::kAuto ? wanted : known.size > 0 ? known.size : entry.usual.height;
  // A head that is not asked for may have any number of classes.
  std::vector<std::string> names =
      alone.needs_head ? read_class_names(alone.classes) : std::vector<std::string>{"unknown"};
  const auto classes = names.size();
  model.card.dataset = "unknown";
  model.card.class_names = std::move(names);
  model.card.train_counts.resize(classes);
  model.card.channels = images.channels;
  model.card.input_height = model.card.input_width = size;
  model.card.mean = chosen.mean;
  model.card.std = chosen.std;
  model.card.interpolation = known.interpolation;
  model.card.crop_share = known.crop_share;
  model.card.head = config.get<std::string>("model.head");
  prepare_process(config, device);
  BuiltModel built;
  try {
    built = build_from_weights(registries, device, settings, model);
  } catch (const KeyError& problem) {
    if (problem.path() == "model.pretrained") throw RunError(problem.message());
    if (!config.has(problem.path())) throw;
    config.fail(problem.path(), problem.message());
  }
  if (const Pretrained& loaded = built.pretrained.value(); alone.needs_head && !loaded.drawn.empty()) {
    if (config.get<std::string>("model.pretrained_head") == "draw") {
      config.fail("model.pretrained_head", "draw leaves weights alone without a head to answer with");
    }
    throw RunError(fmt::format("{} has no head for the {} classes of {}{}{}", quoted(file), classes,
                               quoted(alone.classes), loaded.other_head.empty() ? "" : "; it has " + loaded.other_head,
                               loaded.from.empty() ? "" : " (" + loaded.from + ")"));
  }
  log::info(fmt::format("[model] {}: {}, {}x{} pixels, normalisation {}", entry.name, built.pretrained->describe(),
                        size, size, normalisation_name(registries.datasets, chosen)));
  model.sha256 = built.pretrained->sha256;
  model.model = std::move(built.model);
  check_finite(*model.model, file);
  model.model->eval();
  return model;
}

}  // namespace

ModelCard card_of_checkpoint(const Registries& registries, const Checkpoint& checkpoint, at::Device device,
                             const std::vector<std::string>& settings) {
  if (const auto found = checkpoint.metadata.find("card"); found != checkpoint.metadata.end()) {
    return model_card_from_text(found->second, quoted(checkpoint.file));
  }
  const std::string lacks =
      fmt::format("{} {}, without the classes' names and the normalisation", quoted(checkpoint.file), kEarly);
  const fs::path run = RunFolder::of_checkpoint(checkpoint.file);
  if (run.empty()) throw RunError(lacks + ", and does not lie in its run's folder, whose data would tell");
  log::info(fmt::format("[model] {}: they are taken from the run's data", lacks));
  try {
    TrainedRun trained = open_trained_run(registries, run, {checkpoint.file.stem().string()}, device, settings);
    load_weights(trained.experiment, checkpoint.file);
    return card_of(trained.experiment);
  } catch (const DataError& problem) {
    throw DataError(fmt::format("{}\n{}: so the run's data are needed", problem.what(), lacks));
  }
}

std::optional<StoredRules> rules_of_checkpoint(const Checkpoint& checkpoint, int64_t classes) {
  const fs::path run = RunFolder::of_checkpoint(checkpoint.file);
  if (run.empty()) return std::nullopt;
  try {
    auto rules = load_stored_rules(RunFolder::open_existing(run), checkpoint.file.stem().string(),
                                   checkpoint.text("sha256"), classes);
    if (rules) warn_of_outdated(*rules);
    return rules;
  } catch (const RunError& problem) {
    throw RunError(
        fmt::format("{}\n`settrain calibrate` writes the rules anew; without the file there are none", problem.what()));
  }
}

ClassFacts class_facts(const ModelCard& card) {
  return {.classes = std::ssize(card.class_names),
          .names = card.class_names,
          .train_counts = card.train_counts,
          .superclass_of = card.superclass_of,
          .taxonomy = card.taxonomy,
          .probability = card.is_sigmoid ? ProbabilityKind::kSigmoid : ProbabilityKind::kSoftmax};
}

void check_takes_images(const TrainedModel& model) {
  if (model.config.get<std::string>("model.name") != kHeadOnly) return;
  throw ConfigError(fmt::format("'{}' holds a head alone (model.name: {}), which takes features and no images",
                                model.file.string(), kHeadOnly));
}

DecodeOptions decode_options(const TrainedModel& model) {
  check_takes_images(model);
  DecodeOptions options{.channels = model.card.channels, .apply_orientation = true};
  if (model.config.has("data.apply_orientation")) {
    options.apply_orientation = model.config.get<bool>("data.apply_orientation");
  }
  return options;
}

Dataset images_of_files(const TrainedModel& model, const FileTable& files) {
  const DecodeOptions decode = decode_options(model);
  const ImageFileOptions options{.grey = decode.channels == 1, .apply_orientation = decode.apply_orientation};
  Dataset dataset;
  dataset.name = "the files";
  dataset.channels = model.card.channels;
  dataset.height = model.card.image_height;
  dataset.width = model.card.image_width;
  dataset.test.images = std::make_shared<ImageFiles>(files, options);
  dataset.test.ids.resize(static_cast<size_t>(files.size()));
  std::iota(dataset.test.ids.begin(), dataset.test.ids.end(), 0);
  dataset.test.labels.resize(dataset.test.ids.size());
  return dataset;
}

at::Tensor rule_scores(const TrainedModel& model, const at::Tensor& scores) {
  return at_temperature(scores.cpu().mul(model.card.score_scale), model.rules ? model.rules->temperature : 1);
}

void tell_probabilities(const char* who, ProbabilityKind probability, const std::string& head) {
  const bool is_sigmoid = probability == ProbabilityKind::kSigmoid, is_second = head == "two_head";
  if (!is_sigmoid && !is_second) return;
  log::info(fmt::format("{} probabilities are the {} of {}'s scores", who, is_sigmoid ? "sigmoids" : "softmax",
                        is_second ? "the second head" : "the head"));
}

TrainedModel open_trained_model(const Registries& registries, const fs::path& path, at::Device device,
                                const std::vector<std::string>& settings, const WeightsAlone& alone) {
  const ModelFile kind = kind_of(path);
  if (kind == ModelFile::kWeightsAlone) {
    refuse_scores(path);
    if (!alone.is_given()) refuse_weights_alone(path, alone.needs_head);
    return open_weights_alone(registries, path, device, settings, alone);
  }
  if (alone.is_given()) {
    throw ConfigError(
        fmt::format("{} says itself which model it is: --model, --classes, --normalisation and "
                    "--input-size are for weights alone",
                    quoted(path)));
  }
  const bool is_exported = kind == ModelFile::kExported;
  Checkpoint file = is_exported ? read_exported(path) : load_checkpoint(path);
  TrainedModel model{.file = path, .is_exported = is_exported, .config = config_of(registries, file, settings)};
  model.card = card_of_checkpoint(registries, file, device, settings);
  if (const auto found = file.metadata.find(is_exported ? "checkpoint.sha256" : "sha256");
      found != file.metadata.end()) {
    model.sha256 = found->second;
  }
  const int64_t classes = std::ssize(model.card.class_names);
  if (!is_exported) {
    try {
      model.rules = rules_of_checkpoint(file, classes);
    } catch (const RunError& problem) {  // top:K needs none of them
      model.rules_problem = problem.what();
    }
  } else if (const auto found = file.metadata.find("rules"); found != file.metadata.end()) {
    model.rules = stored_rules_from_text(found->second, classes, quoted(path) + ": its rules");
    warn_of_outdated(*model.rules);
    if (model.rules->checkpoint_sha256 != file.text("checkpoint.sha256")) {
      throw RunError(quoted(path) + ": its rules were calibrated for other weights");
    }
  }
  if (model.card.head != model.config.get<std::string>("model.head")) {
    throw RunError(fmt::format("{}: its card has the head {}, and its configuration {}", quoted(path), model.card.head,
                               model.config.get<std::string>("model.head")));
  }
  prepare_process(model.config, device);
  try {
    wire_model(registries, device, is_exported, file, model);
  } catch (const KeyError& problem) {
    if (!model.config.has(problem.path())) throw;
    model.config.fail(problem.path(), problem.message());
  }
  return model;
}

}  // namespace settrain

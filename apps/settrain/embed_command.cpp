#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <set>

#include "apps/settrain/served_model.h"
#include "datasets/image_files.h"
#include "datasets/load_data.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/embed.h"
#include "src/inference/image_inputs.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct EmbedArguments {
  ServedModel served;
  std::string output, data, split;
  std::vector<std::string> inputs;
  bool overwrite = false;
};

void check_arguments(const EmbedArguments& arguments) {
  const bool has_split = !arguments.data.empty() || !arguments.split.empty();
  if (has_split == !arguments.inputs.empty()) {
    throw ConfigError(
        "settrain embed takes images, or a data set's: --split S, with --data CONFIG where it is not that "
        "of the model's run");
  }
  if (has_split && arguments.split.empty()) {
    throw ConfigError("--data needs --split: train, val, calibration or test");
  }
}

// With --data, the keys of `data` that say how the model sees an image; the others are of the data set.
bool is_of_model(const std::string& setting) {
  const std::set<std::string> of_model{"data.pipeline",      "data.input_size",      "data.resize_size",
                                       "data.interpolation", "data.normalisation",   "data.workers",
                                       "data.prefetch",      "data.eval_batch_size", "data.on_bad_image"};
  return !setting.starts_with("data.") || of_model.contains(setting.substr(0, setting.find('=')));
}

// The data set of --data, or that of the model's own config. Training labels are without label noise.
Dataset data_of(const CommandLine& line, const EmbedArguments& arguments, const TrainedModel& model) {
  config::Config config = model.config;
  if (!arguments.data.empty()) {
    std::vector<std::string> settings;
    std::ranges::remove_copy_if(line.settings, std::back_inserter(settings), is_of_model);
    // Rules of other sections may ask for what the data set does not need, such as weights.
    config = config::load({experiment_schema(line.registries).sections, {}}, find_config(arguments.data), settings);
  }
  LoadedData loaded = load_data(line.registries.datasets, config);
  loaded.dataset.train.labels = std::move(loaded.clean_labels);
  return std::move(loaded.dataset);
}

// The images' files; empty where the data set has none.
std::vector<std::string> paths_of(const Split& split, const std::vector<int64_t>& ids) {
  std::vector<std::string> paths;
  for (const int64_t id : ids) {
    const fs::path file = file_of(*split.images, id);
    if (file.empty()) return {};
    paths.push_back(file.string());
  }
  return paths;
}

int write_features(const CommandLine& line, const EmbedArguments& arguments) {
  catch_interrupts();
  check_arguments(arguments);
  const fs::path file = arguments.served.file(line);
  check_feature_file(arguments.output, {});
  refuse_existing(arguments.output, arguments.overwrite);
  FileTable images;
  if (!arguments.inputs.empty()) images = image_inputs(arguments.inputs, std::cin);

  CommandLine of_model = line;
  if (!arguments.data.empty()) std::erase_if(of_model.settings, [](const auto& s) { return !is_of_model(s); });
  const TrainedModel model = arguments.served.open(of_model, file);
  const bool has_labels = arguments.inputs.empty();
  const Dataset dataset = has_labels ? data_of(line, arguments, model) : images_of_files(model, images);
  const Split& split = split_named(dataset, has_labels ? arguments.split : "test");
  check_feature_file(arguments.output, paths_of(split, split.ids));
  Loader loader = embedding_loader(model, dataset, split);
  ProgressBar bar;
  Embeddings found;
  try {
    found = embed(
        *model.model, model.policy, loader, [&](int64_t id) { return split.images->describe(id); }, bar);
  } catch (const Interrupted&) {
    log::info(fmt::format("[embed] stopped: '{}' is not written", arguments.output));
    throw;
  }
  found.paths = paths_of(split, found.ids);
  found.model = model.sha256;
  if (has_labels) {
    found.class_names = dataset.class_names;
  } else {
    found.labels.clear();
  }
  write_feature_file(arguments.output, found);
  std::cout << fmt::format("'{}': {} features of each of {} images\n", arguments.output, format_count(found.width),
                           format_count(std::ssize(found.ids)));
  if (found.left_out == 0) return kSuccess;
  log::error(
      fmt::format("[embed] {} of {} images are left out", format_count(found.left_out), format_count(split.size())));
  return kFailed;
}

}  // namespace

void add_embed_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<EmbedArguments>(
      app, line, "embed", write_features,
      "Writes the features of images, which a model's head sees, for `data.name: features` and for Python");
  arguments->served.alone.needs_head = false;
  arguments->served.add_model(*command);
  command->add_option("inputs", arguments->inputs,
                      "Images, folders or lists of them, as `settrain predict` takes them");
  command->add_option("--out", arguments->output, "The file to write, NAME.safetensors or NAME.npz")->required();
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  command->add_option("--split", arguments->split, "In place of inputs: the images of a data set, with their labels")
      ->check(CLI::IsMember({"train", "val", "calibration", "test"}));
  command->add_option(
      "--data", arguments->data,
      "A config whose data set it is; --set then changes its keys of `data`, and those that say how the model sees an image "
      "(pipeline, input_size, interpolation, normalisation). Without it the data set is that of the model's run");
  arguments->served.add_model_options(*command, line);
}

}  // namespace settrain

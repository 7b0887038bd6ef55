#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/settrain/served_model.h"
#include "metrics/sets/rules/set_rule.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/image_inputs.h"
#include "src/inference/predict.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  ServedModel served;
  std::string output, group, features;
  std::vector<std::string> inputs;
  bool overwrite = false;
};

// Refuses rules among the images: `--rule A B` would take B for an image.
void check_inputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (input.find(':') == std::string::npos || fs::exists(input, ignored)) continue;
    try {
      parse_set_rule(input);
    } catch (const ConfigError&) {
      continue;
    }
    throw ConfigError(fmt::format("'{}' is a rule, and stands where images do: write --rule before each rule", input));
  }
}

size_t widest(const FileTable& images, const std::optional<ImageGroups>& groups) {
  size_t width = 0;
  const int64_t rows = groups ? std::ssize(groups->names) : images.size();
  for (int64_t i = 0; i < rows; ++i) {
    width = std::max(width, groups ? groups->names[static_cast<size_t>(i)].size() : images.name(i).size());
  }
  return width;
}

// Answers to the features of images.
int predict_rows(const CommandLine& line, const PredictArguments& arguments, const fs::path& file) {
  if (!arguments.group.empty()) throw ConfigError("--group: joins images, and --features are rows of numbers");
  const FeatureFile features = read_feature_file(arguments.features);
  const TrainedModel model = arguments.served.open_to_answer(line, file);
  const SetMaker maker = arguments.served.set_maker(model);
  arguments.served.tell_rules("[predict]", model, maker);
  size_t width = 0;
  for (int64_t row = 0; row < features.features->size(); ++row) width = std::max(width, row_name(features, row).size());
  const auto writer = arguments.output.empty() ? prediction_table(std::cout, maker, /*has_groups=*/false, width)
                                               : prediction_file(arguments.output, maker, /*has_groups=*/false);
  ProgressBar bar;
  const int64_t unanswered = predict_features(model, features, arguments.features, maker, *writer, bar);
  if (!arguments.output.empty()) {
    std::cout << fmt::format("'{}': the answers to {} rows of features\n", arguments.output,
                             format_count(features.features->size()));
  }
  if (unanswered == 0) return kSuccess;
  log::error(fmt::format("[predict] {} rows of features have no answer", format_count(unanswered)));
  return kFailed;
}

int predict_images(const CommandLine& line, const PredictArguments& arguments) {
  catch_interrupts();
  const fs::path file = arguments.served.file(line);
  if (!arguments.output.empty()) {
    check_prediction_file(arguments.output);
    refuse_existing(arguments.output, arguments.overwrite);
  }
  if (arguments.inputs.empty() && arguments.features.empty())
    throw ConfigError("what to answer: images, or a file of features by --features");
  if (!arguments.inputs.empty() && !arguments.features.empty())
    throw ConfigError("--features stands in place of images, and both are given");
  if (!arguments.features.empty()) return predict_rows(line, arguments, file);
  check_inputs(arguments.inputs);
  FileTable images = image_inputs(arguments.inputs, std::cin);
  if (!arguments.group.empty()) images = without_repeats(images);
  std::optional<ImageGroups> groups;
  if (!arguments.group.empty()) groups = image_groups(arguments.group, images);

  const TrainedModel model = arguments.served.open_to_answer(line, file);
  const SetMaker maker = arguments.served.set_maker(model);
  if (arguments.served.tell_rules("[predict]", model, maker) && groups) {
    log::warning("[predict] the guarantee is for single images, not for groups of them");
  }
  const auto writer = arguments.output.empty()
                          ? prediction_table(std::cout, maker, groups.has_value(), widest(images, groups))
                          : prediction_file(arguments.output, maker, groups.has_value());
  ProgressBar bar;
  int64_t unanswered = 0;
  try {
    unanswered = predict(model, images, groups, maker, *writer, bar);
  } catch (const Interrupted&) {
    if (!arguments.output.empty()) log::info(fmt::format("[predict] stopped: '{}' is not written", arguments.output));
    throw;
  }
  if (!arguments.output.empty()) {
    std::cout << fmt::format("'{}': the answers to {} {}\n", arguments.output,
                             format_count(groups ? std::ssize(groups->names) : images.size()),
                             groups ? "groups" : "images");
  }
  if (unanswered == 0) return kSuccess;
  log::error(fmt::format("[predict] {} of {} images have no answer{}", format_count(unanswered),
                         format_count(images.size()), groups ? "" : "; their rows say why"));
  return kFailed;
}

}  // namespace

void add_predict_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<PredictArguments>(
      app, line, "predict", predict_images, "Answers with sets of classes to images of your own");
  arguments->served.add_model(*command);
  command->add_option(
      "inputs", arguments->inputs,
      "Images, folders of them, text files that list them (a path a line, from the list's folder), or - for "
      "such a list on standard input, from the current folder");
  command->add_option("--features", arguments->features,
                      "In place of images: a file of features, as `settrain embed` writes it, for the model's head");
  command->add_option("--out", arguments->output, "A file NAME.jsonl or NAME.csv for the whole answers");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  command->add_option("--group", arguments->group,
                      "One answer to several photographs of one specimen: folder, where each has a folder, a CSV file "
                      "with lines image,group, or plantnet300K_metadata.json, by its observations");
  arguments->served.add_options(*command, line);
}

}  // namespace settrain

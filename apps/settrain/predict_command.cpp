#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "apps/settrain/checkpoint_choice.h"
#include "apps/settrain/command_line.h"
#include "apps/settrain/output_file.h"
#include "metrics/sets/rules/rule_suits.h"
#include "src/core/characters.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/inference/image_inputs.h"
#include "src/inference/predict.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct PredictArguments {
  std::string model, output, group, by = "class";
  std::vector<std::string> inputs, rules;
  int64_t threads = 0;  // 0: not given
  CheckpointChoice choice;
  bool overwrite = false;
};

// The checkpoint of a run, or the exported file.
fs::path model_file(const CommandLine& line, const PredictArguments& arguments) {
  if (!fs::is_regular_file(arguments.model)) {
    return chosen_checkpoint(line, arguments.choice, RunFolder::open_existing(arguments.model));
  }
  if (arguments.choice.checkpoint.empty() && arguments.choice.metric.empty()) return arguments.model;
  throw ConfigError(fmt::format("'{}' is one model: --checkpoint and --metric choose among a run's", arguments.model));
}

// Which rules answer, and what their answers are worth.
void tell_rules(const TrainedModel& model, const SetMaker& maker, const PredictArguments& arguments) {
  const char* how = !arguments.rules.empty() ? "" : model.rules ? " (those calibrated)" : " (none is calibrated)";
  log::info(
      fmt::format("[predict] '{}' answers by {}{}", model.file.string(), fmt::join(maker.rule_names(), ", "), how));
  if (model.rules && model.rules->temperature != 1) {
    log::info(fmt::format("[predict] the scores are divided by the temperature {}", model.rules->temperature));
  }
  tell_probabilities("[predict]", class_facts(model.card).probability, model.card.head);
  bool has_guarantee = false;
  std::map<std::string, std::vector<std::string>> promises;  // and the rules that make them
  for (const CalibratedRule& rule : maker.rules()) {
    if (!needs_images(rule.rule)) continue;
    promises[rule.guarantee].push_back(rule.rule.name());
    has_guarantee |= !rule.guarantee.starts_with("no guarantee");
  }
  for (const auto& [promise, rules] : promises) {
    log::info(printable(fmt::format("[predict] {}, calibrated on {}: {}", fmt::join(rules, ", "),
                                    model.rules->calibrated_on, promise)));
  }
  if (has_guarantee && !arguments.group.empty()) {
    log::warning("[predict] the guarantee is for single images, not for groups of them");
  }
}

// `--rule A B` makes an image of B.
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
  for (int64_t i = 0; !groups && i < images.size(); ++i) width = std::max(width, images.name(i).size());
  if (groups) {
    for (const std::string& name : groups->names) width = std::max(width, name.size());
  }
  return width;
}

int predict_images(const CommandLine& line, const PredictArguments& arguments) {
  catch_interrupts();
  const at::Device device = find_device(line.device);
  const fs::path file = model_file(line, arguments);
  if (!arguments.output.empty()) {
    check_prediction_file(arguments.output);
    refuse_existing(arguments.output, arguments.overwrite);
  }
  check_inputs(arguments.inputs);
  FileTable images = image_inputs(arguments.inputs, std::cin);
  if (!arguments.group.empty()) images = without_repeats(images);
  std::optional<ImageGroups> groups;
  if (!arguments.group.empty()) groups = image_groups(arguments.group, images);

  std::vector<std::string> settings = line.settings;
  if (arguments.threads > 0) settings.push_back(fmt::format("run.threads={}", arguments.threads));
  const TrainedModel model = open_trained_model(line.registries, file, device, settings);
  const SetMaker maker(model, arguments.rules, arguments.by == "superclass");
  tell_rules(model, maker, arguments);
  const auto writer = arguments.output.empty()
                          ? prediction_table(std::cout, maker, groups.has_value(), widest(images, groups))
                          : prediction_file(arguments.output, maker, groups.has_value());
  ProgressBar bar;
  int64_t unreadable = 0;
  try {
    unreadable = predict(model, images, groups, maker, *writer, bar);
  } catch (const Interrupted&) {
    if (!arguments.output.empty()) log::info(fmt::format("[predict] stopped: '{}' is not written", arguments.output));
    throw;
  }
  if (!arguments.output.empty()) {
    std::cout << fmt::format("'{}': the answers to {} {}\n", arguments.output,
                             format_count(groups ? std::ssize(groups->names) : images.size()),
                             groups ? "groups" : "images");
  }
  if (unreadable == 0) return kSuccess;
  log::error(fmt::format("[predict] {} of {} images could not be read{}", format_count(unreadable),
                         format_count(images.size()), groups ? "" : "; their rows say why"));
  return kFailed;
}

}  // namespace

void add_predict_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("predict", "Answers with sets of classes to images of your own");
  const auto arguments = std::make_shared<PredictArguments>();
  command->add_option("model", arguments->model, "A run's folder, or a file that `settrain export` wrote")->required();
  command
      ->add_option(
          "inputs", arguments->inputs,
          "Images, folders of them, text files that list them (a path a line, from the list's folder), or - for "
          "such a list on standard input, from the current folder")
      ->required();
  command
      ->add_option(
          "--rule", arguments->rules,
          "top:K, error:E, or one that `settrain calibrate` calibrated; may be given several times. Without it "
          "those that are calibrated, else top:5")
      ->allow_extra_args(false);
  command->add_option("--out", arguments->output, "A file NAME.jsonl or NAME.csv for the whole answers");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
  command->add_option(
      "--group", arguments->group,
      "One answer to several photographs of one specimen: folder, where each has a folder, or a CSV file "
      "with lines image,group");
  command->add_option("--by", arguments->by, "What the sets hold: class, or superclass (genera, say)")
      ->check(CLI::IsMember({"class", "superclass"}))
      ->capture_default_str();
  arguments->choice.add_options(*command);
  command->add_option("--threads", arguments->threads, "Compute threads; without it one a core")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
  command->add_option("--set", line.settings, "key.path=value over the model's config, such as data.workers=4")
      ->allow_extra_args(false);
  add_device_option(*command, line);
  command->callback(
      [&line, arguments] { line.action = [&line, arguments] { return predict_images(line, *arguments); }; });
}

}  // namespace settrain

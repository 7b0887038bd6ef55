#include "apps/settrain/served_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/prepare_model.h"

namespace settrain {

namespace fs = std::filesystem;

namespace {

// Why these rules answer, where none was asked for.
const char* why(const SetMaker& maker) {
  const bool is_calibrated =
      std::ranges::any_of(maker.rules(), [](const auto& rule) { return needs_images(rule.rule); });
  return is_calibrated
             ? " (the default rule)"
             : " (no rule is calibrated that leaves classes out; `settrain calibrate` makes sets with a guarantee)";
}

}  // namespace

void ServedModel::add_model(CLI::App& command) {
  command
      .add_option(
          "file", model,
          alone.needs_head
              ? "A run's folder, or a file that `settrain export` wrote; or weights alone, with --model and --classes"
              : "A run's folder, or a file that `settrain export` wrote; or weights alone, with --model")
      ->required();
}

void ServedModel::add_options(CLI::App& command, CommandLine& line) {
  command
      .add_option("--rule", rules,
                  "top:K, error:E, or one that `settrain calibrate` calibrated; may be given several times. Without it "
                  "the model's default rule (`settrain calibrate --default`), else top:5")
      ->allow_extra_args(false);
  add_choice(command, "--by", form.by_superclass, {{"class", false}, {"superclass", true}},
             "What the sets hold: class, or superclass (genera, say)");
  add_integer(
      command, "--roll-up", form.roll_up, 1, kMostAnswerNodes,
      "Also answers with at most so many nodes of the taxonomy (data.taxonomy), such as two species and a genus, "
      "which cover the set with the fewest classes");
  command.add_option(
      "--only", form.only,
      "A text file with the classes that occur where the pictures were taken, one a line: no other is in a set");
  command.add_option(
      "--prior", form.prior,
      "A CSV file with lines class,weight: how often each class occurs there, in any unit; classes without a "
      "line do not occur. Calibrated rules then hold for that place. Or a name that `settrain calibrate --prior` "
      "gave to a place: scores are then corrected to it as well");
  command.add_flag("--p-values", form.p_values, "Also gives the p-value of each class of a conformal rule's set");
  command
      .add_option(
          "--unknown", form.unknown,
          "Says of a picture whose p-values are all at most this that it looks like no known class; at most this "
          "share of pictures of known classes is")
      ->check(CLI::Range(0.0, 1.0));
  add_model_options(command, line);
}

void ServedModel::add_model_options(CLI::App& command, CommandLine& line) {
  checkpoint.add_options(command);
  command.add_option(
      "--model", alone.model,
      "The model of weights alone (torch.save's or safetensors), such as resnet50: `settrain list models`");
  if (alone.needs_head) {
    command.add_option(
        "--classes", alone.classes,
        "A text file with the names of the classes of weights alone, one a line, in the order of the scores");
  }
  command.add_option("--normalisation", alone.normalisation,
                     "Of the images that weights alone were trained on, as data.normalisation; without it ImageNet's "
                     "where torchvision has such weights of the model");
  command
      .add_option("--input-size", alone.input_size,
                  "Height and width in pixels of the input of weights alone; without it what the model was made for")
      ->check(CLI::Range(4, 4096));
  add_integer(command, "--threads", threads, 1, 1024, "Compute threads; without it one a core");
  add_set_option(command, line, "key.path=value over the model's config, such as data.workers=4");
  add_device_option(command, line);
}

fs::path ServedModel::file(const CommandLine& line) const {
  if (!fs::is_regular_file(model)) return chosen_checkpoint(line, checkpoint, RunFolder::open_existing(model));
  if (fs::path(model).extension() == ".onnx") {
    throw ConfigError(fmt::format(
        "'{}' is a graph for ONNX Runtime: name the run, or the safetensors file that `settrain export` writes",
        model));
  }
  if (checkpoint.checkpoint.empty() && checkpoint.metric.empty()) return model;
  throw ConfigError(fmt::format("'{}' is one model: --checkpoint and --metric choose among a run's", model));
}

TrainedModel ServedModel::open(const CommandLine& line, const fs::path& file) const {
  std::vector<std::string> settings = line.settings;
  if (threads > 0) settings.push_back(fmt::format("run.threads={}", threads));
  return open_trained_model(line.registries, file, find_device(line.device), settings, alone);
}

TrainedModel ServedModel::open_to_answer(const CommandLine& line, const fs::path& file) const {
  TrainedModel opened = open(line, file);
  prepare_to_answer(opened, line.settings);
  return opened;
}

SetMaker ServedModel::set_maker(const TrainedModel& opened) const {
  return SetMaker(opened, rules, form);
}

bool ServedModel::tell_rules(const char* who, const TrainedModel& opened, const SetMaker& maker) const {
  log::info(fmt::format("{} '{}' answers by {}{}", who, opened.file.string(), fmt::join(maker.rule_names(), ", "),
                        rules.empty() ? why(maker) : ""));
  if (!opened.rules_problem.empty()) {
    log::warning(fmt::format("{} without the run's rules and their temperature: {}", who, opened.rules_problem));
  }
  if (opened.rules && opened.rules->temperature != 1) {
    log::info(fmt::format("{} the scores are divided by the temperature {}", who, opened.rules->temperature));
  }
  for (const std::string& note : maker.place_notes()) log::info(printable(fmt::format("{} {}", who, note)));
  tell_probabilities(who, class_facts(opened.card).probability, opened.card.head);
  bool has_guarantee = false;
  std::map<std::string, std::vector<std::string>> promises;  // names of rules, by their guarantee
  for (const CalibratedRule& rule : maker.rules()) {
    if (needs_images(rule.rule) && opened.answers_as_calibrated) {
      promises[rule.guarantee].push_back(rule.rule.name());
      has_guarantee |= is_guarantee(rule.guarantee);
    }
    for (const std::string& note : rule.notes) {
      log::warning(printable(fmt::format("{} {}: {}", who, rule.rule.name(), note)));
    }
  }
  for (const auto& [promise, names] : promises) {
    log::info(printable(
        fmt::format("{} {}, calibrated on {}: {}", who, fmt::join(names, ", "), opened.rules->calibrated_on, promise)));
  }
  return has_guarantee;
}

}  // namespace settrain

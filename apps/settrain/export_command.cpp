#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/settrain/command_line.h"
#include "metrics/sets/rules/rule_terms.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/formats/safetensors.h"
#include "src/inference/export_weights.h"
#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"
#include "src/onnx/write_onnx.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

enum class ExportFormat { kSafetensors, kOnnx };

struct ExportArguments {
  std::string run, output;
  CheckpointChoice choice;
  bool overwrite = false;
  ExportFormat format = ExportFormat::kSafetensors;
  std::string rule;                     // for ONNX files
  OnnxInput input = OnnxInput::kBytes;  // for ONNX files
};

// Refuses rules that would make the file's header longer than readers accept: a rule keeps the scores of its
// calibration images.
void check_fits_header(const std::string& rules) {
  constexpr uint64_t kMost = kMaxSafetensorsHeader / 10 * 9;  // a tenth is left for the card and the tensors' names
  const uint64_t in_header = nlohmann::json(rules).dump().size();
  if (in_header <= kMost) return;
  throw RunError(fmt::format(
      "the run's rules take {} of the file's header, which readers accept up to {}: most of it are the scores that each "
      "conformal rule keeps of its calibration images. Calibrate fewer rules (delete the rules file of the checkpoint "
      "first), or on fewer images",
      format_bytes(in_header), format_bytes(kMaxSafetensorsHeader)));
}

// The card and rules that belong to the weights. Nothing for a checkpoint of an early version whose data are gone.
TextMap card_and_rules(const CommandLine& line, const Checkpoint& checkpoint) {
  try {
    const ModelCard card = card_of_checkpoint(line.registries, checkpoint, at::kCPU);
    TextMap metadata{{"card", to_text(card)}};
    if (const auto rules = rules_of_checkpoint(checkpoint, std::ssize(card.class_names))) {
      metadata["rules"] = to_text(*rules);
      check_fits_header(metadata["rules"]);
    }
    return metadata;
  } catch (const DataError& problem) {
    log::warning(fmt::format("[export] {}\nThe file holds the weights without them: `settrain predict` cannot use it",
                             problem.what()));
    return {};
  }
}

// The named rule as it was calibrated; nothing where none is named.
std::optional<CalibratedRule> rule_of(const TrainedModel& model, const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (model.view_use == ViewUse::kTenCrops) {
    throw ConfigError(
        "--rule: the run's rules are for the mean scores of ten crops (eval.crops: ten), and an ONNX graph sees one");
  }
  const CalibratedRule rule = SetMaker(model, {name}).rules().front();
  if (needs_images(rule.rule) && model.rules->inference == "bf16") {
    log::warning(fmt::format(
        "[export] {} was calibrated with run.inference: bf16, and the graph computes in float32: its guarantee is for "
        "the former",
        rule.rule.name()));
  }
  return rule;
}

// A sentence for programs that make the input: how evaluation resizes and crops.
std::string preprocessing_of(const TrainedModel& model) {
  constexpr int64_t kShort = 40000, kLong = 79999;  // an image whose longer side is scaled to just below a whole number
  const ModelCard& card = model.card;
  const Pipeline pipeline(model.loader.pipeline, card.image_height, card.image_width, ViewUse::kEvaluation);
  const View view = pipeline.views_of(kShort, kLong, 0, 0).at(0);
  const bool rounds_down = view.width == view.height * kLong / kShort;
  return fmt::format(
      "the shorter side is scaled to {} pixels, and the longer one in proportion, rounded {} ({}, as by Pillow's "
      "Image.resize), then the centre of {} x {} pixels is cut out",
      view.height, rounds_down ? "down" : "to the nearest number of pixels", card.interpolation, card.input_height,
      card.input_width);
}

int export_onnx(const CommandLine& line, const ExportArguments& arguments, const fs::path& checkpoint,
                const fs::path& output) {
  const TrainedModel model = open_trained_model(line.registries, checkpoint, at::kCPU);
  check_takes_images(model);
  if (!model.rules_problem.empty()) throw RunError(model.rules_problem);
  const OnnxOptions options{.input = arguments.input,
                            .temperature = model.rules ? model.rules->temperature : 1,
                            .rule = rule_of(model, arguments.rule),
                            .facts = {{"config", model.config.to_yaml()}, {"preprocessing", preprocessing_of(model)}}};
  const OnnxFile done = write_onnx(output, *model.model, model.card, options);
  std::cout << fmt::format("'{}': an ONNX graph of {} nodes, opset {}, {}, for {} x {} pixels{}{}\n", output.string(),
                           done.num_nodes, done.opset, format_bytes(fs::file_size(output)), model.card.input_height,
                           model.card.input_width, options.rule ? ", with the sets of " : "",
                           options.rule ? options.rule->rule.name() : "");
  return kSuccess;
}

int export_run(const CommandLine& line, const ExportArguments& arguments) {
  const bool is_onnx = arguments.format == ExportFormat::kOnnx;
  if (!is_onnx && (!arguments.rule.empty() || arguments.input != OnnxInput::kBytes)) {
    throw ConfigError("--rule and --input are for --format onnx; a safetensors file has all rules");
  }
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const fs::path checkpoint = chosen_checkpoint(line, arguments.choice, folder);
  fs::path output = arguments.output;
  if (output.empty()) {
    const std::string run = fs::canonical(folder.path()).filename().string();
    output = fmt::format("{}-{}.{}", run, checkpoint.stem().string(), is_onnx ? "onnx" : "safetensors");
  }
  refuse_existing(output, arguments.overwrite);
  if (is_onnx) return export_onnx(line, arguments, checkpoint, output);
  const Checkpoint weights = load_checkpoint(checkpoint);
  const TextMap more = card_and_rules(line, weights);
  const ExportedWeights done = export_weights(weights, output, more);
  std::cout << fmt::format("'{}': {} tensors of {} numbers, {}, of {} after epoch {}{}{}\n", output.string(),
                           done.num_tensors, format_count(done.num_elements), format_bytes(fs::file_size(output)),
                           checkpoint.stem().string(), done.epoch,
                           done.averaged ? ", the moving average of the weights" : "",
                           more.contains("rules") ? "; with the rules that were calibrated" : "");
  return kSuccess;
}

}  // namespace

void add_export_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<ExportArguments>(
      app, line, "export", export_run,
      "Writes a run's model as one file: safetensors, for `settrain predict`, whose weights Python loads into torchvision's "
      "models; or ONNX, for ONNX Runtime and others");
  command->add_option("run", arguments->run, "The run's folder")->required();
  arguments->choice.add_options(*command);
  command->add_option("--output,--out", arguments->output,
                      "The file; RUN-CHECKPOINT.safetensors (or .onnx) in the current folder without it");
  add_choice(*command, "--format", arguments->format,
             {{"safetensors", ExportFormat::kSafetensors}, {"onnx", ExportFormat::kOnnx}}, "safetensors, or onnx");
  command->add_option("--rule", arguments->rule,
                      "ONNX: the rule whose sets the model answers with besides, such as average:5; one that `settrain "
                      "calibrate` calibrated, or top and error, which need no images");
  add_choice(*command, "--input", arguments->input, {{"uint8", OnnxInput::kBytes}, {"float", OnnxInput::kFloats}},
             "ONNX: pixels as uint8, or as float in [0, 1]");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the file where it is there");
}

}  // namespace settrain

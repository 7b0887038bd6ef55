// The model that `settrain predict` and `settrain serve` ask about images, and its rules.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/settrain/command_line.h"
#include "src/inference/set_maker.h"
#include "src/inference/trained_model.h"

namespace settrain {

struct ServedModel {
  std::string model;               // the positional argument
  std::vector<std::string> rules;  // --rule
  AnswerForm form;                 // --by, --roll-up, --only, --prior, --p-values, --unknown
  int64_t threads = 0;             // --threads; 0: not given
  CheckpointChoice checkpoint;
  WeightsAlone alone;  // --model, --classes, --normalisation, --input-size

  /// The positional argument. The options are added apart, since the help lists options in the order of their addition.
  void add_model(CLI::App& command);
  void add_options(CLI::App& command, CommandLine& line);
  /// The options that choose the model, without those of rules.
  void add_model_options(CLI::App& command, CommandLine& line);

  /// The checkpoint of a run, or the exported file.
  std::filesystem::path file(const CommandLine& line) const;
  TrainedModel open(const CommandLine& line, const std::filesystem::path& file) const;
  /// The same, prepared to answer, see prepare_to_answer().
  TrainedModel open_to_answer(const CommandLine& line, const std::filesystem::path& file) const;
  SetMaker set_maker(const TrainedModel& opened) const;

  /// Logs as `who` ("[predict]") which rules answer, and their guarantees. Returns whether one has a guarantee.
  bool tell_rules(const char* who, const TrainedModel& opened, const SetMaker& maker) const;
};

}  // namespace settrain

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/settrain/command_line.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/answer_place.h"
#include "src/inference/calibration.h"
#include "src/inference/guarantee.h"
#include "src/inference/prepare_model.h"
#include "src/inference/results.h"
#include "src/inference/rule_file.h"
#include "src/inference/score_file.h"
#include "src/inference/shares_of_model.h"
#include "src/inference/trained_model.h"
#include "src/inference/trained_run.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

constexpr double kUsualShare = 0.5;  // for a file of scores without another that judges

struct CalibrateArguments {
  std::string run, scores, test, temperature, figure, chosen;
  std::vector<std::string> rules, priors, shifts;
  std::optional<double> share;
  uint64_t seed = 1;
  CheckpointChoice choice;
  bool json = false, dry_run = false;
};

// The request without its rules, which may depend on the classes.
CalibrationRequest request_of(const CalibrateArguments& arguments) {
  CalibrationRequest request{.share = arguments.share, .seed = arguments.seed};
  if (request.share && !(*request.share > 0 && *request.share < 1)) {
    throw ConfigError(
        fmt::format("--share {}: expected a number between 0 and 1, for both parts need images", *request.share));
  }
  const std::string& text = arguments.temperature;
  if (text == "fit") {
    request.fit_temperature = true;
  } else if (constexpr std::string_view kEfficient = "confts:"; text.starts_with(kEfficient)) {
    request.efficient_alpha = parse_number<double>(std::string_view(text).substr(kEfficient.size())).value_or(0);
    if (!(request.efficient_alpha > 0 && request.efficient_alpha < 1))
      throw ConfigError("--temperature " + text + ": expected confts:ALPHA with an alpha between 0 and 1");
  } else if (!text.empty()) {
    request.temperature = parse_number<double>(text).value_or(0);
    if (!(request.temperature >= 1e-6 && request.temperature <= 1e6)) {
      throw ConfigError("--temperature " + text + ": expected fit, confts:ALPHA, or a number from 1e-6 to 1e6");
    }
  }
  return request;
}

std::vector<SetRule> rules_of(const CalibrateArguments& arguments, const ClassFacts& facts) {
  std::vector<SetRule> rules;
  if (arguments.rules.empty()) rules = usual_rules(facts);
  for (const std::string& text : arguments.rules) {
    const SetRule rule = parse_set_rule(text);
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  if (!arguments.chosen.empty()) {
    const SetRule chosen = parse_set_rule(arguments.chosen);
    if (std::find(rules.begin(), rules.end(), chosen) == rules.end()) rules.push_back(chosen);
  }
  return rules;
}

// The places' names and sources, so that a mistake is told before the data are read.
std::vector<PlaceRequest> named_places(const CalibrateArguments& arguments) {
  std::vector<PlaceRequest> places;
  const auto add = [&](const std::string& name, std::string source) {
    if (std::ranges::count(places, name, &PlaceRequest::name) > 0)
      throw ConfigError(fmt::format("two places are called {}", name));
    places.push_back({.name = name, .source = std::move(source)});
  };
  for (const std::string& text : arguments.priors) {
    const auto [name, file] = named_file("--prior", text, "FILE");
    if (!std::filesystem::exists(file)) throw ConfigError(fmt::format("--prior {}: there is no file '{}'", text, file));
    add(name, fmt::format("'{}'", file));
  }
  for (const std::string& text : arguments.shifts) add(named_file("--shift", text, "FOLDER").first, "");
  return places;
}

// Reads the shares of the places, and scores the pictures of those whose shares are estimated.
void fill_places(const CalibrateArguments& arguments, const Experiment& run, const LossRegistry& losses,
                 ProgressBar& bar, CalibrationRequest& request) {
  if (request.places.empty()) return;
  request.of_model = shares_of_model(run, losses);
  size_t next = 0;
  for (const std::string& text : arguments.priors) {
    const PlaceShares shares = read_place(named_file("--prior", text, "FILE").second, run.dataset.class_names,
                                          run.dataset.class_keys, PlaceKind::kNamed);
    for (const std::string& note : shares.notes) log::info("[calibrate] " + printable(note));
    request.places[next++].prior = shares.prior;
  }
  for (const std::string& text : arguments.shifts) {
    const std::string folder = named_file("--shift", text, "FOLDER").second;
    const SplitScores scores = score_split(run, unlabelled_split(run.dataset, folder), run.eval.view_use(), bar);
    PlaceRequest& place = request.places[next++];
    place.unlabelled = scores.scores.cpu().mul(run.loss->score_scale());
    place.source = fmt::format("EM on {} pictures of '{}'", format_count(place.unlabelled.size(0)), folder);
  }
}

void print(const CalibrateArguments& arguments, const Calibration& calibration) {
  for (const std::string& warning : calibration.warnings) log::warning("[calibrate] " + warning);
  std::cout << (arguments.json ? calibration_json(calibration).dump(1) + "\n" : format_calibration(calibration))
            << std::flush;
}

void draw(const CalibrateArguments& arguments, const Calibration& calibration) {
  if (arguments.figure.empty()) return;
  for (const auto& file : draw_charts({calibration_chart(calibration)}, arguments.figure)) {
    log::info("[calibrate] " + file.string());
  }
}

int calibrate_files(const CommandLine& line, const CalibrateArguments& arguments) {
  if (!arguments.choice.checkpoint.empty() || !arguments.choice.metric.empty() || !line.settings.empty()) {
    throw ConfigError("--checkpoint, --metric and --set are for a run, and --scores takes its place");
  }
  if (!arguments.chosen.empty()) throw ConfigError("--default is for a run, and --scores takes its place");
  CalibrationRequest request = request_of(arguments);
  const ScoreFile calibration = read_score_file(arguments.scores);
  std::vector<std::string> warnings = warnings_of_scale(calibration, arguments.scores);
  std::optional<ScoreFile> test;
  if (!arguments.test.empty()) {
    std::error_code missing;  // a missing file is told when it is read
    if (std::filesystem::equivalent(arguments.scores, arguments.test, missing)) {
      throw ConfigError(
          fmt::format("--test {}: the images that calibrate cannot judge; without --test a share of them "
                      "is kept for that",
                      arguments.test));
    }
    test = read_score_file(arguments.test);
    check_same_model(arguments.scores, calibration, arguments.test, *test);
    for (std::string& warning : warnings_of_scale(*test, arguments.test)) warnings.push_back(std::move(warning));
  } else if (!request.share) {
    request.share = kUsualShare;
  }
  request.rules = rules_of(arguments, calibration.facts);
  request.no_guarantee = calibration.no_guarantee;
  request.by_alpha = !arguments.figure.empty();
  Calibration done = calibrate_and_judge(request, calibration.facts, calibration.scores, arguments.scores,
                                         test ? &test->scores : nullptr, arguments.test);
  done.warnings.insert(done.warnings.begin(), warnings.begin(), warnings.end());
  print(arguments, done);
  draw(arguments, done);
  return kSuccess;
}

// Keeps the rules in the run, and the numbers for its report. False, with an error in the log, where the run cannot be
// written.
bool keep(const RunFolder& folder, const std::string& checkpoint, const StoredRules& rules,
          const Calibration& numbers) {
  const char* lost = "nothing is kept, neither these rules nor the numbers for the report";
  try {
    const std::vector<std::string> dropped = store_rules(folder, checkpoint, rules);
    lost = "the rules are kept, but not the numbers for the report";
    nlohmann::ordered_json kept = calibration_json(numbers);
    kept["checkpoint_sha256"] = rules.checkpoint_sha256;
    write_file_atomically(folder.calibration(checkpoint), kept.dump() + "\n");
    if (!dropped.empty()) {
      log::warning(fmt::format(
          "[calibrate] no longer kept, for they were calibrated on other images, for another temperature, with another "
          "run.inference, or by an earlier version: {}",
          fmt::join(dropped, ", ")));
    }
  } catch (const RunError& problem) {
    log::error(fmt::format("[calibrate] {}: {}", lost, problem.what()));
    return false;
  }
  log::info(fmt::format("[calibrate] the rules are kept in '{}'", folder.rules(checkpoint).string()));
  const auto kept = load_stored_rules(folder, checkpoint, rules.checkpoint_sha256, numbers.facts.classes);
  const CalibratedRule* answers = kept ? default_rule(kept->rules, kept->chosen) : nullptr;
  log::info(fmt::format("[calibrate] `settrain predict` and `settrain serve` answer by {}; --default RULE chooses",
                        answers ? answers->rule.name() : "top:5, for no rule that needs images leaves a class out"));
  return true;
}

bool is_prior_adjusted(const SetRule& rule) {
  return rule.kind == SetRule::Kind::kConformal &&
         (rule.score == ConformalScore::kPas || rule.score == ConformalScore::kWpas);
}

// The key by which training has allowed for the classes' shares of the training images; empty where none has.
std::string prior_corrected_by(const CommandLine& line, const Experiment& run) {
  const auto& loss = run.config.get<std::string>("loss.name");
  const Sampling sampling = run.loader.sampling();
  if (line.registries.losses.at(loss).corrects_prior) return "loss.name " + loss;
  if (sampling.sampler != Sampling::kUniform) return "data.sampler " + sampling.sampler;
  return run.config.read<ClassWeightOptions>("loss").kind != ClassWeightOptions::kNone ? "loss.class_weights" : "";
}

int calibrate_run(const CommandLine& line, const CalibrateArguments& arguments) {
  CalibrationRequest request = request_of(arguments);
  for (const std::string& text : arguments.rules) parse_set_rule(text);  // before the data are read
  request.places = named_places(arguments);
  const std::string chosen = arguments.chosen.empty() ? "" : parse_set_rule(arguments.chosen).name();
  const at::Device device = find_device(line.device);
  const RunFolder folder = RunFolder::open_existing(arguments.run);
  const std::string checkpoint = chosen_checkpoint(line, arguments.choice, folder).stem().string();
  TrainedRun run = open_trained_run(line.registries, arguments.run, {checkpoint}, device, line.settings);
  const Checkpoint weights = load_weights(run.experiment, run.checkpoints.front());
  const InferenceForm form = prepare_run(run.experiment);
  const std::string split = calibration_split(run.experiment.dataset);
  const ClassFacts facts = run.experiment.class_facts;
  request.rules = rules_of(arguments, facts);
  const std::string corrected_by = prior_corrected_by(line, run.experiment);
  std::string names;  // of rules that correct a second time
  if (!corrected_by.empty()) {
    if (arguments.rules.empty()) {
      const auto left_out = std::erase_if(
          request.rules, [&](const SetRule& rule) { return is_prior_adjusted(rule) && rule.name() != chosen; });
      if (left_out > 0) {
        log::info(fmt::format(
            "[calibrate] pas is left out: it allows for the classes' shares of the training images, and training by {} "
            "has done so before",
            corrected_by));
      }
    }
    for (const SetRule& rule : request.rules) {
      if (is_prior_adjusted(rule)) names += (names.empty() ? "" : ", ") + rule.name();
    }
  }
  request.no_guarantee = why_no_guarantee(run.experiment, weights, split, /*with_test=*/!request.share);
  request.by_alpha = true;  // for the report
  tell_probabilities("[calibrate]", facts.probability, run.experiment.config.get<std::string>("model.head"));
  ProgressBar bar;
  fill_places(arguments, run.experiment, line.registries.losses, bar, request);
  const SplitScores calibration = labelled_scores(run.experiment, split, bar);
  std::optional<SplitScores> test;
  if (!request.share) test = labelled_scores(run.experiment, "test", bar);
  log_skipped_images(*run.experiment.loader.skipped);
  Calibration done = calibrate_and_judge(request, facts, calibration, split, test ? &*test : nullptr, "test");
  if (!names.empty()) {
    done.warnings.push_back(fmt::format(
        "{}: pas allows for the classes' shares of the training images, and training by {} has done so "
        "before. Rare classes then count twice over, and common ones may be covered far less; conformal:lac "
        "suits such a model",
        names, corrected_by));
  }
  if (split == "val") {
    done.warnings.emplace_back(
        "the validation images calibrate, which may have chosen the epoch: a run with data.calibration_share, or with a "
        "list data.calibration, keeps images for this alone");
  }
  StoredRules stored{.temperature = done.temperature,
                     .calibrated_on = done.calibrated_on,
                     .checkpoint_sha256 = weights.text("sha256"),
                     .inference = name_of(form),
                     .inference_differences = differences_to_other_forms(run.experiment, form, split, bar)};
  for (const JudgedRule& judged : done.rules) stored.rules.push_back(judged.rule);
  for (const JudgedPlace& judged : done.places) stored.places.push_back(judged.place);
  stored.chosen = chosen;
  print(arguments, done);
  const bool is_kept = arguments.dry_run || keep(folder, checkpoint, stored, done);
  draw(arguments, done);
  return is_kept ? kSuccess : kFailed;
}

int calibrate_rules(const CommandLine& line, const CalibrateArguments& arguments) {
  catch_interrupts();
  if (arguments.run.empty() == arguments.scores.empty()) {
    throw ConfigError("settrain calibrate takes a run's folder, or a file of scores by --scores");
  }
  return arguments.run.empty() ? calibrate_files(line, arguments) : calibrate_run(line, arguments);
}

}  // namespace

void add_calibrate_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<CalibrateArguments>(
      app, line, "calibrate", calibrate_rules,
      "Calibrates rules that answer with sets on validation images, judges them on test images, and keeps them in the "
      "run. docs/sets.md says which rule to take");
  command->add_option("run", arguments->run, "The run's folder");
  CLI::Option* scores = command->add_option(
      "--scores", arguments->scores,
      "In place of a run: a file of scores that calibrates, as `settrain scores` writes it, or .npz: scores [images, "
      "classes] before the softmax, and labels [images]");
  CLI::Option* test = command->add_option("--test", arguments->test, "Another such file, which judges")->needs(scores);
  command->add_option(
      "--rules", arguments->rules,
      "top:K, average:K, error:E, average-error:E, conformal:SCORE:ALPHA with SCORE lac, aps, raps, saps, pas, wpas, tree(nodes=M) or "
      "risk, and behind it :classwise, :superclass, :interpolated(TAU), :rc3p, :clustered or :fuzzy(SIGMA). Without it a usual "
      "choice");
  command->add_option(
      "--default", arguments->chosen,
      "The rule by which `settrain predict` and `settrain serve` answer when they are given none; it stays "
      "until another is chosen. Without it the first conformal:lac that is kept");
  command
      ->add_option("--share", arguments->share,
                   "This share of the calibration images calibrates, and the others judge in place of the test images; "
                   "with --scores and without --test 0.5")
      ->excludes(test);
  command->add_option("--temperature", arguments->temperature,
                      "Scores are divided by it: a number, or fit: the most likely one for a fifth of the calibration "
                      "images, which then do not calibrate rules. A fit without a maximum is refused, and it stays 1. "
                      "confts:ALPHA: the one with which sets of conformal:aps:ALPHA are small, by the same fifth");
  command
      ->add_option(
          "--prior", arguments->priors,
          "NAME=FILE: the rules are also calibrated for a place, by a CSV file with lines class,weight: how often "
          "each class occurs there. Scores are corrected to these shares; `settrain predict --prior NAME` asks "
          "for the place. May be given several times")
      ->allow_extra_args(false)
      ->excludes(scores);
  command
      ->add_option("--shift", arguments->shifts,
                   "NAME=FOLDER: the same for a place whose shares are estimated from pictures of it without labels. A "
                   "fifth of the calibration images is set apart for that")
      ->allow_extra_args(false)
      ->excludes(scores);
  command->add_option("--seed", arguments->seed, "Of what is drawn")->capture_default_str();
  command->add_flag("--json", arguments->json, "Prints JSON, with the coverage of every class");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Shows the same, and leaves the rules in the run as they are: rules of the same name would be "
                    "replaced, and all others where other images calibrate or the temperature is another");
  command->add_option("--figure", arguments->figure,
                      "A folder for a picture: coverage by class, and coverage against size over alpha");
  arguments->choice.add_options(*command);
  add_set_option(*command, line, "key.path=value over the run's config, such as data.root=FOLDER");
  add_device_option(*command, line);
}

}  // namespace settrain

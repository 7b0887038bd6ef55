#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/settrain/command_line.h"
#include "datasets/calibration_split.h"
#include "models/model.h"
#include "src/config/load.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/inference/results.h"
#include "src/inference/trained_run.h"
#include "src/measure/cost/dry_run.h"
#include "src/train/experiment_schema.h"
#include "src/train/record.h"
#include "src/train/resume.h"
#include "src/train/training.h"

namespace settrain {
namespace {

void log_start(const Experiment& run, const CommandLine& line) {
  const Dataset& data = run.dataset;
  log::info(fmt::format("[data] {}: {} classes; {} training, {} validation{} and {} test images of {}x{}x{}", data.name,
                        data.num_classes(), format_count(data.train.size()), format_count(data.val.size()),
                        calibration_images(data), format_count(data.test.size()), run.input.channels, run.input.height,
                        run.input.width));
  if (!data.train.label_sets.empty() || !data.val.label_sets.empty() || !data.test.label_sets.empty()) {
    log::info("[data] images have several labels: losses of sets take all of them, accuracies go by the first");
  }
  if (run.loader.resident) {
    log::info(fmt::format("[data] the images stay on {}, in {}", run.device.str(),
                          format_bytes(run.loader.resident->bytes())));
  }
  const LabelNoiseReport& noise = run.label_noise;
  if (noise.kind != "none") {
    log::info(fmt::format(
        "[data] label noise {}: nominal rate {}, effective {:.4f}; {} training labels changed ({:.4f})", noise.kind,
        noise.nominal_rate, noise.effective_rate, format_count(noise.changed), noise.changed_rate));
  }
  const auto absent = std::count(run.train_counts.begin(), run.train_counts.end(), 0);
  if (absent > 0) {
    const auto first = std::find(run.train_counts.begin(), run.train_counts.end(), 0) - run.train_counts.begin();
    log::warning(fmt::format("[data] {} of {} classes have no training image; the first is {}", absent,
                             data.num_classes(), data.class_names[static_cast<size_t>(first)]));
  }
  const Sampling sampling = run.loader.sampling();
  const bool balances = sampling.sampler != Sampling::kUniform;
  if (balances) log::info("[data] " + describe_imbalance(data, sampling));
  log::info(fmt::format("[model] {}: {} parameters, on {}", run.config.get<std::string>("model.name"),
                        format_count(run.model->num_parameters()), run.computation.describe()));
  if (run.pretrained) log::info("[model] " + run.pretrained->describe());
  if (run.computation.bf16 && bf16_is_emulated(run.device)) {
    log::warning("[model] this CPU has no instructions for bf16, which is slower here than train.precision: float32");
  }
  const config::Texts& select = run.general.select;
  if (std::any_of(select.begin(), select.end(), [](const std::string& name) { return name.starts_with("test/"); })) {
    log::warning("[train] `select` chooses checkpoints by the test split: their test accuracy is too optimistic");
  }
  const bool selects_on_val =
      std::any_of(select.begin(), select.end(), [](const std::string& name) { return name.starts_with("val/"); });
  if (selects_on_val && data.calibration.size() == 0 && !run.config.get<config::Texts>("eval.rules").empty()) {
    log::warning(
        "[eval] `select` uses the validation images that calibrate eval.rules for the test split: no guarantee; "
        "data.calibration_share keeps images for them");
  }
  const auto& loss = run.config.get<std::string>("loss.name");
  const LossEntry& entry = line.registries.losses.at(loss);
  for (const auto& [name, tensor] : run.loss->state()) {
    log::info(fmt::format("[loss] {} keeps {} of its own: {}", loss, format_bytes(tensor.nbytes()), name));
  }
  const auto weights = run.config.read<ClassWeightOptions>("loss");
  if (weights.kind != ClassWeightOptions::kNone) {
    log::info(fmt::format("[loss] class weights: {}, from epoch {} on", weights.kind, weights.from_epoch + 1));
    if (balances) {
      log::warning(fmt::format("[loss] rare classes count twice over: by loss.class_weights {} and by data.sampler {}",
                               weights.kind, sampling.sampler));
    }
  }
  if (entry.corrects_prior && (balances || weights.kind != ClassWeightOptions::kNone)) {
    log::warning(fmt::format("[loss] rare classes count twice over: by {} and by {}", loss,
                             balances ? "data.sampler " + sampling.sampler : "loss.class_weights " + weights.kind));
  }
  if (!entry.has_gradient) log::warning(fmt::format("[loss] {} has no gradient: nothing will be learnt", loss));
  if (run.config.get<std::string>("model.head") == "normalised" && !entry.requirements.normalised_head) {
    log::warning(
        fmt::format("[model] a normalised head's scores lie in [-1, 1], and {} does not scale them: its softmax stays "
                    "near uniform; model.head: linear suits it",
                    loss));
  }
}

struct TrainArguments {
  std::string resume;  // a run's folder
  ResumeTerms terms;
  bool overwrite = false, dry_run = false;
};

int finish(Experiment& run, RunFolder& folder, Training& training) {
  const std::string path = folder.path().string();
  try {
    training.train();
    const auto results =
        evaluate_checkpoints(run, chosen_checkpoints(folder, run.general.select), training.progress_bar());
    write_results(run, folder, results);
    std::cout << format_results(run, results);
  } catch (const Interrupted&) {
    log::warning("[run] stopped by a signal; go on by --resume " + path);
    throw;
  }
  log::info(fmt::format(
      "[run] everything is in {}: results.json, metrics.csv, checkpoints/, log.txt, TensorBoard's events", path));
  log_skipped_images(run);
  log::info("[run] peak memory " + format_memory(peak_memory()));
  return kSuccess;
}

int train(const CommandLine& line, const TrainArguments& arguments) {
  const at::Device device = find_device(line.device);
  // The folder comes after the data: a run that could never start leaves none behind.
  Experiment run = make_experiment(line.registries, load_config(line), device, FirstWeights::kPretrained);
  RunFolder folder = RunFolder::create(run.config.get<std::string>("run.dir"), arguments.overwrite);
  catch_interrupts();

  // From here on the run can be resumed.
  record_start(run, folder, line.arguments);
  log::open_file(folder.log());
  log_start(run, line);
  Training training(run, folder);
  return finish(run, folder, training);
}

// More epochs are the same run for longer only where nothing looks at their number.
void warn_of_another_curve(const config::Config& config, const ResumePoint& point) {
  std::vector<const char*> curves;
  if (config.get<std::string>("schedule.name") == "cosine") curves.push_back("schedule cosine");
  if (config.get<std::string>("data.sampler") == Sampling::kProgressive) curves.push_back("sampler progressive");
  for (const auto& [path, before, after] : point.changes) {
    if (path != "train.epochs") continue;
    for (const char* curve : curves) {
      log::warning(fmt::format("[run] {} spans all epochs: from here on it follows the curve of {}, not of {}", curve,
                               after, before));
    }
  }
}

int resume(const CommandLine& line, const TrainArguments& arguments) {
  RunFolder folder = RunFolder::open_to_resume(arguments.resume);
  for (const std::string& setting : line.settings) {
    if (setting.starts_with("run.dir=")) {
      throw ConfigError(fmt::format("--set {}: a run goes on where it is; its folder can be moved", setting));
    }
  }
  config::Schema schema = experiment_schema(line.registries);
  config::Config wanted =
      line.config.empty() ? config::load(schema, folder.config(), line.settings) : load_config(line);
  schema.rules.clear();  // what was right at the start, such as a folder, may be what the settings mend
  const config::Config recorded = config::load(schema, folder.config(), {});
  const ResumePoint point = find_resume_point(folder, recorded, wanted, arguments.terms);
  const std::string path = folder.path().string();
  if (point.is_finished) {
    log::info(
        fmt::format("[run] {} is finished: {} epochs, its results are in results.txt; --set train.epochs=N trains on",
                    path, point.state.epoch));
    return kSuccess;
  }
  warn_of_another_curve(wanted, point);
  // Where the user names no device, the run's own.
  const bool as_before = line.device == "auto" && point.checkpoint;
  const at::Device device = find_device(as_before ? point.checkpoint->text("machine.device") : line.device);
  // A checkpoint has the weights; before the first one was written, the run begins as it did.
  const FirstWeights weights = point.checkpoint ? FirstWeights::kDrawn : FirstWeights::kPretrained;
  Experiment run = make_experiment(line.registries, std::move(wanted), device, weights);
  if (point.checkpoint) check_same_identity(run, *point.checkpoint, arguments.terms);

  log::open_file(folder.log());
  catch_interrupts();
  Training training(run, folder);
  if (point.checkpoint) training.restore(*point.checkpoint);
  folder.remove_results();
  record_resume(run, folder, line.arguments, point);
  log_start(run, line);
  const int64_t epoch = std::min(point.state.epoch + 1, run.train.epochs);
  log::info(fmt::format("[run] going on with {} at step {}, in epoch {}", path, point.state.step, epoch));
  if (device.is_cuda() && run.train.deterministic != "true") {
    log::warning("[run] on a GPU results are reproducible to the last bit only with train.deterministic: true");
  }
  return finish(run, folder, training);
}

int try_out(const CommandLine& line) {
  const at::Device device = find_device(line.device);
  Experiment run = make_experiment(line.registries, load_config(line), device, FirstWeights::kPretrained);
  catch_interrupts();
  std::cout << run.config.to_yaml_with_origins() << '\n';
  log_start(run, line);
  ProgressBar bar;
  const DryRun cost = dry_run(run, bar);
  std::cout << format_dry_run(run, cost);
  const auto& folder = run.config.get<std::string>("run.dir");
  std::cout << fmt::format("{:<12} {}{}\n", "run folder", folder,
                           RunFolder::is_there(folder) ? " (holds a run: --resume or --overwrite it)" : "");
  if (cost.disk_bytes <= cost.free_disk_bytes) return kSuccess;
  throw RunError(fmt::format("the checkpoints need {}, and {} are free where run.dir is", format_bytes(cost.disk_bytes),
                             format_bytes(cost.free_disk_bytes)));
}

int run_train(const CommandLine& line, const TrainArguments& arguments) {
  if (!arguments.resume.empty()) return resume(line, arguments);
  return arguments.dry_run ? try_out(line) : train(line, arguments);
}

}  // namespace

void add_train_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("train", "Trains a model as a config says, and evaluates it");
  add_config_options(*command, line, /*required=*/false);
  add_device_option(*command, line);
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::Option* overwrite =
      command->add_flag("--overwrite", arguments->overwrite, "Replaces a run that is already in run.dir");
  CLI::Option* dry_run = command->add_flag(
      "--dry-run", arguments->dry_run,
      "Trains a few steps, says what the run would take in time, disk and memory, and writes nothing");
  CLI::Option* resume =
      command
          ->add_option("--resume", arguments->resume,
                       "A run's folder: goes on with it where its last checkpoint was made. With --set "
                       "train.epochs=N a finished run goes on too")
          ->check(
              [](const std::string& folder) { return std::string(folder.empty() ? "is empty: name a folder" : ""); });
  resume->excludes(overwrite, dry_run);
  command
      ->add_option("--allow", arguments->terms.allowed_keys,
                   "With --resume: a key that may differ from the run's own; may be given several times")
      ->allow_extra_args(false)
      ->needs(resume);
  command
      ->add_flag("--allow-inexact", arguments->terms.allow_inexact,
                 "With --resume: also under another program, instruction set, number of threads or device, where the "
                 "last bits of the results differ")
      ->needs(resume);
  command->callback([&line, arguments, resume] {
    if (line.config.empty() && resume->count() == 0) throw CLI::RequiredError("--config or --resume");
    line.action = [&line, arguments] { return run_train(line, *arguments); };
  });
}

}  // namespace settrain

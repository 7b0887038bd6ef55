#include <ATen/ops/zeros.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/settrain/command_line.h"
#include "apps/settrain/processes.h"
#include "datasets/calibration_split.h"
#include "models/model.h"
#include "models/model_options.h"
#include "src/config/load.h"
#include "src/config/value.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/inference/results.h"
#include "src/inference/trained_run.h"
#include "src/measure/cost/dry_run.h"
#include "src/train/experiment_schema.h"
#include "src/train/identity.h"
#include "src/train/provenance.h"
#include "src/train/resume_point.h"
#include "src/train/training.h"
#include "src/train/training_checks.h"

namespace settrain {
namespace {

void log_start(const Experiment& run, const CommandLine& line) {
  const Dataset& data = run.dataset;
  log::info(fmt::format("[data] {}: {} classes; {} training, {} validation{} and {} test images of {}x{}x{}", data.name,
                        data.num_classes(), format_count(data.train.size()), format_count(data.val.size()),
                        calibration_images(data), format_count(data.test.size()), run.input.channels, run.input.height,
                        run.input.width));
  for (const std::string& remark : run.input_remarks) log::info(remark);
  for (const std::string& warning : run.input_warnings) log::warning(warning);
  if (!data.train.label_sets.empty() || !data.val.label_sets.empty() || !data.test.label_sets.empty()) {
    log::info("[data] images have several labels: losses of sets take all of them, accuracies go by the first");
  }
  if (run.loader.resident) {
    log::info(fmt::format("[data] the images stay on {}, in {}", run.device.str(),
                          format_bytes(run.loader.resident->bytes())));
  }
  for (const std::string& path : fitted_keys(run.config)) {
    const config::Entry& entry = run.config.at(path);
    log::info(fmt::format("[run] {} is {}: {}", path, config::yaml_value(entry.key, entry.value), entry.origin.text));
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
  const int64_t parameters = run.model->num_parameters(), trained = run.model->num_trained_parameters();
  log::info(fmt::format(
      "[model] {}: {} parameters{}, on {}", run.config.get<std::string>("model.name"), format_count(parameters),
      trained < parameters ? fmt::format(", {} of them trained", format_count(trained)) : "", run.policy.describe()));
  if (const auto decay = run.config.get<double>("optimizer.layer_decay"); decay < 1) {
    const auto layers = static_cast<double>(run.model->layers().size());
    log::info(fmt::format("[train] learning rates fall by {} a layer below the head: the first layer's is {:.3g}",
                          decay, run.config.get<double>("optimizer.lr") * std::pow(decay, layers)));
  }
  warn_without_loss_kernels(run.device);
  if (run.pretrained) {
    log::info("[model] " + run.pretrained->describe());
    const std::string problem = other_classes(*run.pretrained, data);
    if (!problem.empty()) log::warning("[model] " + problem);
  }
  if (run.policy.bf16 && bf16_is_emulated(run.device)) {
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
        "data.calibration_share, or a list data.calibration, keeps images for them");
  }
  const auto& loss = run.config.get<std::string>("loss.name");
  const LossEntry& entry = line.registries.losses.at(loss);
  for (const auto& [name, tensor] : run.loss->state()) {
    log::info(fmt::format("[loss] {} keeps {} of its own: {}", loss, format_bytes(tensor.nbytes()), name));
  }
  const int64_t epochs = run.train.epochs;
  for (const config::Curve& curve : run.config.curves("loss")) {
    if (epochs < 2) {
      log::warning(fmt::format("[loss] {} has no epochs to change in, and is {:.6g}: {}.from has no effect", curve.path,
                               curve.to, curve.path));
      continue;
    }
    const std::string middle =
        epochs == 2 ? "" : fmt::format(" over {:.6g} in epoch {}", curve.at(epochs / 2, epochs), epochs / 2 + 1);
    log::info(fmt::format("[loss] {} goes from {:.6g} in epoch 1{} to {:.6g} in epoch {}, {}", curve.path,
                          curve.at(0, epochs), middle, curve.to, epochs, curve.shape));
  }
  const auto weights = run.config.read<ClassWeightOptions>("loss");
  const auto& weights_kind = run.config.get<std::string>("loss.class_weights");
  if (weights.kind != ClassWeightOptions::kNone) {
    log::info(fmt::format("[loss] class weights: {}, from epoch {} on", weights_kind, weights.from_epoch + 1));
    if (balances) {
      log::warning(fmt::format("[loss] rare classes count twice over: by loss.class_weights {} and by data.sampler {}",
                               weights_kind, sampling.sampler));
    }
  }
  if (entry.corrects_prior && (balances || weights.kind != ClassWeightOptions::kNone)) {
    log::warning(fmt::format("[loss] rare classes count twice over: by {} and by {}", loss,
                             balances ? "data.sampler " + sampling.sampler : "loss.class_weights " + weights_kind));
  }
  if (!entry.has_gradient) log::warning(fmt::format("[loss] {} has no gradient: nothing will be learnt", loss));
  if (run.config.read<ModelOptions>("model").head == ModelOptions::Head::kNormalised &&
      !entry.requirements.normalised_head && run.loss->score_scale() == 1) {
    log::warning(
        fmt::format("[model] a normalised head's scores lie in [-1, 1], and {} does not scale them: its softmax stays "
                    "near uniform; model.head: linear suits it",
                    loss));
  }
}

struct TrainArguments {
  std::string resume;  // a run's folder
  ResumeTerms terms;
  bool overwrite = false, dry_run = false, resume_if_there = false;
  int64_t processes = 1;
};

void log_processes(const Experiment& run) {
  const std::vector<std::string>& hosts = run.group->hosts();
  if (hosts.empty()) return;
  const int64_t world = run.group->world_size(), micro_batches = world * run.train.accumulate;
  log::info(fmt::format("[run] {} processes on {}; a step takes {} images, {} batches of {}", world,
                        fmt::join(std::set<std::string>(hosts.begin(), hosts.end()), ", "),
                        format_count(micro_batches * run.loader.options.batch_size), micro_batches,
                        run.loader.options.batch_size));
}

// `folder`: null in all processes but the first.
int finish(Experiment& run, RunFolder* folder, Training& training) {
  try {
    training.train();
    const auto results = evaluate_checkpoints(
        run, folder ? chosen_checkpoints(*folder, run.general.select) : std::vector<std::filesystem::path>(),
        training.progress_bar());
    run.group->first_does([&] {
      write_results(*folder, results);
      std::cout << format_results(results);
    });
  } catch (const Interrupted&) {
    if (folder) {
      const int64_t processes = run.group->world_size();
      log::warning(fmt::format("[run] stopped by a signal; go on by --resume {}{}", folder->path().string(),
                               processes == 1 ? "" : fmt::format(", in {} processes as before", processes)));
    }
    throw;
  }
  if (folder) {
    log::info(
        fmt::format("[run] everything is in {}: results.json, metrics.csv, checkpoints/, log.txt, TensorBoard's events",
                    folder->path().string()));
  }
  if (folder) log_skipped_images(*run.loader.skipped);
  log::info("[run] peak memory " + format_memory(peak_memory()));
  return kSuccess;
}

int train(const CommandLine& line, const TrainArguments& arguments, config::Config config, at::Device device,
          const std::shared_ptr<ProcessGroup>& group) {
  // The folder is made after the data are loaded, so that a run that cannot start leaves none behind.
  Experiment run = make_experiment(line.registries, std::move(config), device, FirstWeights::kPretrained, group);
  check_same_everywhere(run);
  check_training_data(run);
  std::optional<RunFolder> folder;
  group->first_does([&] {
    folder.emplace(RunFolder::create(run.config.get<std::string>("run.dir"), arguments.overwrite));
    // From here on the run can be resumed.
    record_run(run, *folder, line.arguments);
    log::open_file(folder->log());
    log_processes(run);
    log_start(run, line);
  });
  catch_interrupts();
  RunFolder* const writes_to = folder ? &*folder : nullptr;
  Training training(run, writes_to);
  return finish(run, writes_to, training);
}

// Warns where the number of epochs changes more than the length of the run.
void warn_of_other_epochs(const config::Config& config, const ResumePoint& point) {
  std::vector<const char*> curves;
  if (config.get<std::string>("schedule.name") == "cosine") curves.push_back("schedule cosine");
  if (config.get<std::string>("data.sampler") == Sampling::kProgressive) curves.push_back("sampler progressive");
  const std::vector<config::Curve> of_loss = config.curves("loss");
  for (const config::Curve& curve : of_loss) curves.push_back(curve.path.c_str());
  for (const auto& [path, before, after] : point.changes) {
    if (path != "train.epochs") continue;
    for (const char* curve : curves) {
      log::warning(fmt::format("[run] {} spans all epochs: from here on it follows the curve of {}, not of {}", curve,
                               after, before));
    }
    const auto every = config.get<int64_t>("eval.every");
    const bool has_ended = point.state.epoch >= std::stoll(before);
    if (has_ended && std::stoll(before) % every != 0 && !config.get<config::Texts>("eval.during_training").empty()) {
      log::warning(fmt::format(
          "[run] epoch {} was evaluated since it was the last, and may be selected; a run of {} epochs from the start "
          "evaluates after every {}",
          before, after, every));
    }
  }
}

// The recorded config of the run with the settings on top, or the config that --config names.
config::Config config_to_resume(const CommandLine& line, const std::filesystem::path& recorded) {
  for (const std::string& setting : line.settings) {
    if (setting.starts_with("run.dir=")) {
      throw ConfigError(fmt::format("--set {}: a run goes on where it is; its folder can be moved", setting));
    }
  }
  return line.config.empty() ? config::load_amended(experiment_schema(line.registries), recorded, line.settings)
                             : load_config(line);
}

// The input that the run was trained with, in every process. `point`: in the first one.
RecordedInput shared_input(const std::optional<ResumePoint>& point, ProcessGroup& group) {
  std::string card;
  if (point) {
    const TextMap& metadata = point->checkpoint->metadata;
    if (const auto found = metadata.find("card"); found != metadata.end()) card = found->second;
  }
  card = group.all_gather(card).front();
  return card.empty() ? RecordedInput{} : recorded_input({{"card", card}}, "the run's last checkpoint");
}

// `folder`: null in all processes but the first.
int resume(const CommandLine& line, const TrainArguments& arguments, RunFolder* folder, config::Config wanted,
           at::Device device, const std::shared_ptr<ProcessGroup>& group) {
  std::optional<ResumePoint> point;
  const at::Tensor known = at::zeros({2}, at::kLong);  // whether it is finished, whether there is a checkpoint
  group->first_does([&] {
    ResumeTerms terms = arguments.terms;
    terms.processes = group->world_size();
    point = find_resume_point(*folder, config::load_recorded(experiment_schema(line.registries), folder->config()),
                              wanted, terms);
    known[0] = point->is_finished;
    known[1] = point->checkpoint.has_value();
    if (point->is_finished) {
      log::info(
          fmt::format("[run] {} is finished: {} epochs, its results are in results.txt; --set train.epochs=N trains on",
                      folder->path().string(), point->state.epoch));
    } else {
      warn_of_other_epochs(wanted, *point);
    }
  });
  group->broadcast({known});
  if (known[0].item<int64_t>() != 0) return kSuccess;
  const bool has_checkpoint = known[1].item<int64_t>() != 0;
  // Without --device, a run goes on on its own device.
  if (group->world_size() == 1 && line.device == "auto" && has_checkpoint) {
    device = find_device(point->checkpoint->text("machine.device"));
  }
  // A checkpoint has the weights. Without one, the run begins anew.
  const FirstWeights weights = has_checkpoint ? FirstWeights::kDrawn : FirstWeights::kPretrained;
  const std::optional<RecordedInput> input = has_checkpoint ? std::optional(shared_input(point, *group)) : std::nullopt;
  Experiment run = make_experiment(line.registries, std::move(wanted), device, weights, group, input);
  check_same_everywhere(run);
  check_training_data(run);
  group->first_does([&] {
    if (has_checkpoint) check_same_identity(run, *point->checkpoint, arguments.terms);
    log::open_file(folder->log());
  });

  catch_interrupts();
  Training training(run, folder);
  if (has_checkpoint) training.restore(point ? &*point->checkpoint : nullptr);
  group->first_does([&] {
    folder->remove_results();
    record_run(run, *folder, line.arguments, &*point);
    log_processes(run);
    log_start(run, line);
    const int64_t epoch = std::min(point->state.epoch + 1, run.train.epochs);
    log::info(fmt::format("[run] going on with {} at step {}, in epoch {}", folder->path().string(), point->state.step,
                          epoch));
    if (device.is_cuda() && run.train.deterministic != config::Switch::kOn) {
      log::warning("[run] on a GPU results are reproducible to the last bit only with train.deterministic: true");
    }
  });
  return finish(run, folder, training);
}

int try_out(const CommandLine& line) {
  const at::Device device = find_device(line.device);
  Experiment run = make_experiment(line.registries, load_config(line), device, FirstWeights::kPretrained);
  const auto folder = run.config.get<std::string>("run.dir");  // dry_run() replaces the config
  RunFolder::check_not_foreign(folder);
  catch_interrupts();
  log_start(run, line);
  ProgressBar bar;
  const DryRun cost = dry_run(run, bar);
  std::cout << format_dry_run(run.dataset, run.train.epochs, run.device, cost);
  std::cout << fmt::format("{:<12} {}{}\n", "run folder", folder,
                           RunFolder::is_there(folder) ? " (holds a run: --resume or --overwrite it)" : "");
  if (!cost.divergence.empty()) throw NumericalError(cost.divergence);
  if (cost.disk_bytes <= cost.free_disk_bytes) return kSuccess;
  throw RunError(fmt::format("the checkpoints need {}, and {} are free where run.dir is", format_bytes(cost.disk_bytes),
                             format_bytes(cost.free_disk_bytes)));
}

// Whether --resume-if-there finds a run. The first process looks.
bool run_is_there(const config::Config& config, ProcessGroup& group) {
  const at::Tensor there = at::zeros({1}, at::kLong);
  if (group.is_first()) there.fill_(RunFolder::is_begun(config.get<std::string>("run.dir")));
  group.broadcast({there});
  return there.item<int64_t>() != 0;
}

int run_in_process(const CommandLine& line, const TrainArguments& arguments, Processes& processes) {
  // Errors of the folder come before errors of its contents.
  std::optional<RunFolder> folder;
  bool resumes = !arguments.resume.empty();
  if (resumes && processes.is_first()) folder.emplace(RunFolder::open_to_resume(arguments.resume));
  config::Config config =
      resumes ? config_to_resume(line, std::filesystem::path(arguments.resume) / "config.yaml") : load_config(line);
  const at::Device device = processes.device(line.device);
  const std::shared_ptr<ProcessGroup> group = processes.connect(config, device);
  if (arguments.resume_if_there && run_is_there(config, *group)) {
    resumes = true;
    group->first_does([&] { folder.emplace(RunFolder::open_to_resume(config.get<std::string>("run.dir"))); });
  }
  if (resumes) return resume(line, arguments, folder ? &*folder : nullptr, std::move(config), device, group);
  return train(line, arguments, std::move(config), device, group);
}

int run_train(const CommandLine& line, const TrainArguments& arguments) {
  Processes processes;
  if (processes.are_launched() && arguments.dry_run && processes.count() > 1) {
    throw ConfigError("--dry-run is of one process: what it says of time and memory holds for each of several");
  }
  if (arguments.dry_run) return try_out(line);
  if (arguments.processes > 1 && !processes.are_launched()) {
    return repeat_in_processes(line, arguments.processes);
  }
  if (arguments.processes > 1 && arguments.processes != processes.count()) {
    throw ConfigError(
        fmt::format("--processes {}: {} processes were started by a launcher, which says how many there are",
                    arguments.processes, processes.count()));
  }
  return processes.run([&] { return run_in_process(line, arguments, processes); });
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
      "Trains a few steps, says what the run would take in time, disk and memory, and writes nothing; `settrain config "
      "show` prints the whole config");
  CLI::Option* resume =
      command
          ->add_option("--resume", arguments->resume,
                       "A run's folder: goes on with it where its last checkpoint was made. With --set "
                       "train.epochs=N a finished run goes on too")
          ->check(not_empty("folder"));
  CLI::Option* resume_if_there = command->add_flag(
      "--resume-if-there", arguments->resume_if_there,
      "Goes on with the run in run.dir where there is one, else starts it: for jobs that are started again by themselves");
  CLI::Option* processes =
      command
          ->add_option("--processes", arguments->processes,
                       "Trains in so many processes on this machine, each with an equal share of its cores or a GPU of "
                       "its own; on several machines torchrun or srun start them (docs/parallel.md)")
          ->check(CLI::Range(1, 1024));
  resume->excludes(overwrite, dry_run, resume_if_there);
  resume_if_there->excludes(overwrite, dry_run);
  processes->excludes(dry_run);
  command
      ->add_option(
          "--allow", arguments->terms.allowed_keys,
          "With --resume or --resume-if-there: a key that may differ from the run's own; may be given several times")
      ->allow_extra_args(false);
  command->add_flag(
      "--allow-inexact", arguments->terms.allow_inexact,
      "With --resume or --resume-if-there: also under another program, instruction set, number of threads or device, where the "
      "last bits of the results differ");
  command->callback([&line, arguments, resume] {
    if (line.config.empty() && resume->count() == 0) throw CLI::RequiredError("--config or --resume");
    const bool may_differ = !arguments->terms.allowed_keys.empty() || arguments->terms.allow_inexact;
    if (may_differ && resume->count() == 0 && !arguments->resume_if_there)
      throw CLI::RequiresError("--allow and --allow-inexact", "--resume or --resume-if-there");
    line.action = [&line, arguments] { return run_train(line, *arguments); };
  });
}

}  // namespace settrain

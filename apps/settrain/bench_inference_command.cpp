#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/settrain/bench_command.h"
#include "models/model.h"
#include "src/config/load.h"
#include "src/core/interrupt.h"
#include "src/inference/prepare_model.h"
#include "src/measure/bench/timing.h"
#include "src/measure/cost/throughput.h"
#include "src/train/experiment.h"

namespace settrain {
namespace {

struct InferenceBench {
  std::string model = "resnet18";
  int64_t images = 1, size = 0, rounds = 15;
  double seconds = 0.1;
  bool json = false;
};

// Seconds and calls of one kind of operation.
struct OperationTime {
  double seconds = 0;
  int64_t calls = 0;
};

using OperationTimes = std::map<std::string, OperationTime>;

// Where RecordFunction's callbacks, which are plain functions, write. Operations that others call are part of these.
thread_local OperationTimes* measured_operations = nullptr;
thread_local int64_t operation_depth = 0;

struct OperationStart : at::ObserverContext {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

std::unique_ptr<at::ObserverContext> begin_operation(const at::RecordFunction& /*operation*/) {
  ++operation_depth;
  return std::make_unique<OperationStart>();
}

void end_operation(const at::RecordFunction& operation, at::ObserverContext* context) {
  if (--operation_depth > 0) return;
  const auto since = std::chrono::steady_clock::now() - static_cast<OperationStart*>(context)->time;
  OperationTime& time = (*measured_operations)[operation.name()];
  time.seconds += std::chrono::duration<double>(since).count();
  ++time.calls;
}

// The kinds of operations that LibTorch executes for `work`.
OperationTimes operations_of(const std::function<void()>& work) {
  OperationTimes times;
  measured_operations = &times;
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin_operation, end_operation).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return times;
}

struct MeasuredForm {
  std::string name;
  std::shared_ptr<Model> model;
  std::vector<double> seconds;  // of a batch, by round
  OperationTimes operations;    // of one batch
};

Experiment experiment_of(const CommandLine& line, const InferenceBench& bench, at::Device device) {
  const ModelEntry& entry = line.registries.models.at(bench.model);
  std::vector<std::string> settings = random_images(entry, 1, bench.size, 0);
  settings.push_back("model.name=" + bench.model);
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  return make_experiment(line.registries, config::load(experiment_schema(line.registries), "", settings), device);
}

std::string as_table(const Experiment& run, const InferenceBench& bench, const std::vector<MeasuredForm>& forms) {
  std::string text = fmt::format("{}, {} x {}x{}x{}, on {}; {} threads\n{:<44} {:>10} {:>10} {:>9}\n", bench.model,
                                 bench.images, run.input.channels, run.input.height, run.input.width,
                                 run.policy.device.str(), at::get_num_threads(), "", "ms", "images/s", "of exact");
  for (const MeasuredForm& form : forms) {
    const double seconds = median(form.seconds);
    text +=
        fmt::format("{:<44} {:>10.2f} {:>10.1f} {:>9.2f}\n", form.name, 1000 * seconds,
                    static_cast<double>(bench.images) / seconds, median(ratios(forms.front().seconds, form.seconds)));
    std::vector<std::pair<std::string, OperationTime>> rows(form.operations.begin(), form.operations.end());
    std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    for (const auto& [name, time] : rows) {
      if (time.seconds < 0.01 * seconds) break;
      text +=
          fmt::format("  {:<42} {:>10.2f} {:>10}\n", name, 1000 * time.seconds, fmt::format("{} calls", time.calls));
    }
  }
  return text +
         fmt::format("medians of {} rounds; operations of one batch of its own, those above 1 %\n", bench.rounds);
}

std::string as_json(const Experiment& run, const InferenceBench& bench, const std::vector<MeasuredForm>& forms) {
  nlohmann::ordered_json json{{"model", bench.model},
                              {"images", bench.images},
                              {"image", {run.input.channels, run.input.height, run.input.width}},
                              {"device", run.policy.device.str()},
                              {"threads", at::get_num_threads()}};
  for (const MeasuredForm& form : forms) {
    nlohmann::ordered_json& of_form = json["forms"][form.name];
    for (const double seconds : form.seconds) of_form["ms"].push_back(1000 * seconds);
    for (const auto& [name, time] : form.operations) {
      of_form["operations"][name] = {{"ms", 1000 * time.seconds}, {"calls", time.calls}};
    }
  }
  return json.dump(1) + "\n";
}

int bench_inference(const CommandLine& line, const InferenceBench& bench) {
  const at::Device device = find_device(line.device);
  const Experiment run = experiment_of(line, bench, device);
  catch_interrupts();
  const c10::InferenceMode inference;
  const at::Tensor images =
      as_input(at::randn({bench.images, run.input.channels, run.input.height, run.input.width}), run.policy);
  std::vector<MeasuredForm> forms;
  std::vector<std::function<void()>> works;
  for (const auto& [name, form] : inference_forms()) {
    if (!has_form(form, run.policy)) continue;
    auto model = build_model(line.registries.models, run.config, run.input, run.policy).model;
    model->eval();
    model->prepare(form);
    forms.push_back({name, model, {}, {}});
    works.emplace_back([model, &images, &run] { forward(*model, images, run.policy); });
  }
  constexpr double kLongest = 60;  // seconds of a form
  const auto seconds =
      measure_in_turns(works, device, {.rounds = bench.rounds, .min_seconds = bench.seconds, .max_seconds = kLongest});
  for (size_t f = 0; f < forms.size(); ++f) {
    forms[f].seconds = seconds[f];
    forms[f].operations = operations_of(works[f]);
  }
  std::cout << (bench.json ? as_json(run, bench, forms) : as_table(run, bench, forms));
  return kSuccess;
}

}  // namespace

void add_bench_inference_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<InferenceBench>(
      bench_app, line, "inference", bench_inference,
      "A model's answers to random images in each form of run.inference, and what takes the time");
  command->add_option("--model", bench->model, "A model's name (settrain list models)")->capture_default_str();
  add_integer(*command, "--images", bench->images, 1, 4096, "Images in a batch");
  add_integer(*command, "--size", bench->size, 4, 4096, "Height and width of an image; what the model was made for");
  add_integer(*command, "--rounds", bench->rounds, 1, 1000, "Rounds of measuring each");
  command->add_option("--seconds", bench->seconds, "Least seconds of a measurement, over which the batch is repeated")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  command->add_flag("--json", bench->json, "Prints JSON instead of a table");
  add_set_option(*command, line, "key.path=value, such as run.threads=1");
  add_device_option(*command, line);
}

}  // namespace settrain

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <tuple>

#include "metrics/average_k_threshold.h"
#include "metrics/label_rank.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/measure/bench/speed.h"
#include "src/train/compute_policy.h"
#include "src/train/step_result.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

// A value as float32, its place in int64, and both once more while they are sorted.
constexpr uint64_t kSortBytesAValue = 2 * (4 + 8);
// Scores and probabilities, and what the evaluator makes of them.
constexpr uint64_t kBytesAValue = 3 * 4;

void check_memory(const MetricSpeedOptions& options, at::Device device) {
  const auto values = static_cast<uint64_t>(options.samples) * static_cast<uint64_t>(options.classes);
  const uint64_t needed = values * (kBytesAValue + (options.sorts ? kSortBytesAValue : 0));
  const uint64_t available = available_memory(device);
  if (available == 0 || needed <= available) return;
  throw Error(
      fmt::format("{} samples of {} classes take about {} of memory here, of which {} are available: fewer "
                  "--samples{}",
                  format_count(options.samples), format_count(options.classes), format_bytes(needed),
                  format_bytes(available), options.sorts ? ", or no sorts with --sort-rounds 0" : ""));
}

void measure_work(at::Device device, WorkTimes& times, const std::function<void()>& work) {
  throw_if_interrupted();
  // Memory that other work has freed but kept would hide what this work takes.
  give_back_freed_memory();
  const ExtraMemory memory;
  wait_for(device);
  const auto start = Clock::now();
  work();
  wait_for(device);
  times.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  const std::optional<PeakMemory> extra = memory.peak();
  if (!extra) return;
  if (!times.extra) times.extra.emplace();
  times.extra->host = std::max(times.extra->host, extra->host);
  times.extra->device = std::max(times.extra->device, extra->device);
}

}  // namespace

MetricSpeed::MetricSpeed(const Evaluator& evaluator, const MetricSpeedOptions& options, at::Device device)
    : evaluator_(evaluator), options_(options), device_(device) {
  check_memory(options, device);
  at::manual_seed(0);
  split_.scores = at::empty({options.samples, options.classes}, at::TensorOptions(device).dtype(at::kFloat));
  split_.scores.normal_(0, 3);
  split_.labels = at::randint(options.classes, {options.samples}, at::TensorOptions(device).dtype(at::kLong));
  probabilities_ = at::softmax(split_.scores, 1);
  // Threads start and libraries load before the clock does; on a GPU memory is taken from the driver too.
  MetricTimes warm_up;
  measure_rows(device.is_cpu() ? std::min<int64_t>(options.samples, 256) : options.samples, options.sorts, warm_up);
}

void MetricSpeed::measure(bool with_sorts, MetricTimes& times) const {
  measure_rows(options_.samples, with_sorts, times);
}

void MetricSpeed::measure_rows(int64_t rows, bool with_sorts, MetricTimes& times) const {
  const SplitScores split{split_.scores.narrow(0, 0, rows), split_.labels.narrow(0, 0, rows)};
  const at::Tensor values = probabilities_.narrow(0, 0, rows);
  const int64_t k = std::min(options_.largest_k, options_.classes);
  const auto measure = [this](WorkTimes& into, const std::function<void()>& work) {
    measure_work(device_, into, work);
  };
  measure(times.thresholds, [&] { average_k_thresholds(values, options_.average_k, Ties::kKeepAll); });
  if (with_sorts) measure(times.full_sort, [&] { std::ignore = at::sort(values.flatten(), 0, /*descending=*/true); });
  measure(times.ranks, [&] { label_ranks(split.scores, split.labels); });
  measure(times.row_topk, [&] { std::ignore = at::topk(split.scores, k, 1); });
  if (with_sorts) measure(times.row_sort, [&] { std::ignore = at::sort(split.scores, 1, /*descending=*/true); });
  measure(times.evaluation, [&] { evaluator_.evaluate(split); });
}

}  // namespace settrain

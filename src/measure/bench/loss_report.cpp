#include "src/measure/bench/loss_report.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "src/measure/cost/throughput.h"

namespace settrain {
namespace {

constexpr double kMs = 1000;
constexpr const char* kLegend =
    "x CE: over cross-entropy's time of the same round. plain, unpruned: their time over this one's. memory: the most "
    "that a\nstep holds beyond what it began with, over the size of the scores; plain's: that of the plain way. drawn: "
    "classes of a row\nthat noise is drawn for. Medians; slow cases run fewer rounds.\n";

std::string cell(std::optional<double> value, int width, int digits) {
  return value ? fmt::format(" {:>{}.{}f}", *value, width, digits) : fmt::format(" {:>{}}", "-", width);
}

// A row of the fast way, beside the others where there are any.
std::string times_row(const std::string& name, const LossTimes& fast, const std::vector<LossTimes>& all) {
  const LossTimes* plain = find(all, fast.subject, LossMethod::kPlain);
  const LossTimes* unpruned = find(all, fast.subject, LossMethod::kUnpruned);
  const auto over_fast = [&](const LossTimes* other) {
    return other ? std::optional(median(ratios(other->seconds, fast.seconds))) : std::nullopt;
  };
  return fmt::format("{:<41}", name) + cell(kMs * median(fast.seconds), 9, 3) + cell(median(fast.to_reference), 8, 2) +
         cell(over_fast(plain), 8, 2) + cell(over_fast(unpruned), 8, 2) + cell(fast.memory, 8, 2) +
         cell(plain ? std::optional(plain->memory) : std::nullopt, 8, 2) + cell(fast.drawn, 8, 1) + "\n";
}

// `name_of_row(case)`: what is particular about a case.
template <class NameOfRow>
std::string times_table(const std::string& title, const std::vector<LossTimes>& all, const NameOfRow& name_of_row) {
  if (all.empty()) return "";
  std::string text = fmt::format("{:<41} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", title, "ms", "x CE", "plain",
                                 "unpruned", "memory", "plain's", "drawn");
  for (const LossTimes& times : all) {
    if (times.subject.method == LossMethod::kFast) text += times_row(name_of_row(times.subject), times, all);
  }
  return text + "\n";
}

std::string device_table(const LossReport& report) {
  if (report.device_times.empty()) return "";
  std::string text = fmt::format("{:<41} {:>9}\n", "time of the device, forward and backward", "us");
  for (const DeviceTime& row : report.device_times)
    text += fmt::format("{:<41}", row.work) + cell(1e6 * row.seconds, 9, 2) + "\n";
  return text + "\n";
}

std::string smoothed_table(const LossReport& report) {
  if (report.smoothed.empty()) return "";
  std::string text = fmt::format("{:<41} {:>9} {:>12} {:>12}\n", "ICLR 2018, tables 3, 4 (tau 1)", "classes",
                                 "forward ms", "backward ms");
  for (const SmoothedTimes& row : report.smoothed) {
    text += fmt::format("{:<41} {:>9}", row.algorithm, row.classes) + cell(kMs * row.seconds.forward, 12, 3) +
            cell(row.seconds.backward ? std::optional(kMs * *row.seconds.backward) : std::nullopt, 12, 3) + "\n";
  }
  text += fmt::format("\n{:<41}", "ICLR 2018, table 5: tau");
  for (const double tau : kStabilityTaus) text += fmt::format(" {:>8g}", tau);
  text += "  smallest\n";
  for (const SmoothedStability& row : report.stability) {
    text += fmt::format("{:<41}", row.algorithm + (row.dtype == at::kFloat ? ", float32" : ", float64"));
    for (const bool stable : row.is_stable) text += fmt::format(" {:>8}", stable ? "yes" : "overflow");
    text += row.smallest_tau > 0 ? fmt::format("  {:>8g}\n", row.smallest_tau) : "      none\n";
  }
  return text + "\n";
}

std::string steps_table(const LossReport& report) {
  if (report.model.empty()) return "";
  const StepShares& steps = report.steps;
  std::string text = fmt::format("a training step of {}, batch {} x {} classes: {:.2f} ms\n", report.model, steps.batch,
                                 steps.classes, kMs * median(steps.step_seconds)) +
                     fmt::format("{:<41} {:>9} {:>28}\n", "loss", "ms", "more than CE, % of a step");
  for (const StepShare& row : steps.losses) {
    text += fmt::format("{:<41}", row.loss) + cell(kMs * median(row.seconds), 9, 3) +
            cell(100 * median(row.shares), 28, 2) + "\n";
  }
  return text + "\n";
}

using Json = nlohmann::ordered_json;

std::vector<double> in_ms(std::vector<double> seconds) {
  for (double& value : seconds) value *= kMs;
  return seconds;
}

Json as_json(const std::vector<LossTimes>& all) {
  Json rows = Json::array();
  for (const LossTimes& times : all) {
    const LossCase& subject = times.subject;
    Json row{{"loss", subject.loss},
             {"method", name_of(subject.method)},
             {"batch", subject.batch},
             {"classes", subject.classes},
             {"k", subject.k},
             {"draws", subject.draws},
             {"epsilon", subject.epsilon},
             {"scores_sd", subject.scores_sd},
             {"ms", kMs * median(times.seconds)},
             {"over_cross_entropy", median(times.to_reference)},
             {"ms_of_rounds", in_ms(times.seconds)},
             {"memory_over_scores", times.memory}};
    if (times.drawn) row["drawn_classes"] = *times.drawn;
    for (const LossMethod method : {LossMethod::kPlain, LossMethod::kUnpruned}) {
      const LossTimes* other = find(all, subject, method);
      if (subject.method != LossMethod::kFast || !other) continue;
      row[std::string(name_of(method)) + "_over_this"] = median(ratios(other->seconds, times.seconds));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json as_json(const std::vector<DeviceTime>& all) {
  Json rows = Json::array();
  for (const DeviceTime& time : all) rows.push_back({{"work", time.work}, {"us", 1e6 * time.seconds}});
  return rows;
}

Json as_json(const std::vector<SmoothedTimes>& all) {
  Json rows = Json::array();
  for (const SmoothedTimes& times : all) {
    const SmoothedSeconds& seconds = times.seconds;
    rows.push_back({{"algorithm", times.algorithm}, {"classes", times.classes}, {"forward_ms", kMs * seconds.forward}});
    if (seconds.backward) rows.back()["backward_ms"] = kMs * *seconds.backward;
  }
  return rows;
}

Json as_json(const std::vector<SmoothedStability>& all) {
  Json rows = Json::array();
  for (const SmoothedStability& stability : all) {
    Json row{{"algorithm", stability.algorithm},
             {"dtype", stability.dtype == at::kFloat ? "float32" : "float64"},
             {"taus", Json::array()},
             {"stable", stability.is_stable},
             {"smallest_tau", stability.smallest_tau}};
    for (const double tau : kStabilityTaus) row["taus"].push_back(tau);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json as_json(const std::string& model, const StepShares& steps) {
  Json rows = Json::array();
  for (const StepShare& share : steps.losses) {
    rows.push_back({{"loss", share.loss},
                    {"ms", kMs * median(share.seconds)},
                    {"share_of_step", median(share.shares)},
                    {"shares_of_rounds", share.shares}});
  }
  return {{"model", model},
          {"batch", steps.batch},
          {"classes", steps.classes},
          {"step_ms", kMs * median(steps.step_seconds)},
          {"losses", std::move(rows)}};
}

}  // namespace

std::string loss_report_text(const LossReport& report) {
  const LossBenchOptions& options = report.options;
  const LossCase& base = options.base;
  const auto by_loss = [](const LossCase& loss_case) { return loss_case.loss; };
  const auto by_scores = [](const LossCase& loss_case) {
    return loss_case.is_reference()
               ? loss_case.loss
               : fmt::format("{}, {:g}, N(0, {:g}^2)", loss_case.loss, loss_case.epsilon, loss_case.scores_sd);
  };
  const auto by_k = [](const LossCase& loss_case) {
    return loss_case.is_reference() ? loss_case.loss : fmt::format("{}, K {}", loss_case.loss, loss_case.k);
  };
  const auto by_classes = [](const LossCase& loss_case) {
    return fmt::format("{}, L {}", loss_case.loss, loss_case.classes);
  };
  const std::string more = device_table(report) + smoothed_table(report) + steps_table(report);
  return fmt::format(
             "forward and backward on scores N(0, {:g}^2), float32, batch {} x {} classes, K {}, {} draws, epsilon "
             "{:g}, on {}; compute threads: {}, rounds: {}\n\n",
             options.scores_sds.front(), base.batch, base.classes, base.k, base.draws, options.epsilons.front(),
             report.device.str(), at::get_num_threads(), options.turns.rounds) +
         times_table("loss", report.losses, by_loss) + times_table("loss, epsilon, scores", report.scores, by_scores) +
         times_table("loss, K", report.growth_in_k, by_k) +
         times_table("loss, classes L", report.growth_in_classes, by_classes) + kLegend + (more.empty() ? "" : "\n") +
         more;
}

std::string loss_report_json(const LossReport& report) {
  Json json{{"device", report.device.str()},
            {"threads", at::get_num_threads()},
            {"rounds", report.options.turns.rounds},
            {"losses", as_json(report.losses)}};
  const auto add = [&](const char* name, const auto& table) {
    if (!table.empty()) json[name] = as_json(table);
  };
  add("scores", report.scores);
  add("growth_in_k", report.growth_in_k);
  add("growth_in_classes", report.growth_in_classes);
  add("device_times", report.device_times);
  add("smoothed_algorithms", report.smoothed);
  add("smoothed_stability", report.stability);
  if (!report.model.empty()) json["training_step"] = as_json(report.model, report.steps);
  return json.dump(1) + "\n";
}

}  // namespace settrain

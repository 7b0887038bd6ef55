#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include "src/measure/bench/loss_report.h"
#include "src/measure/cost/throughput.h"

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> in_ms(std::vector<double> seconds) {
  for (double& value : seconds) value *= 1000;
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
             {"ms", 1000 * median(times.seconds)},
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
    rows.push_back({{"algorithm", times.algorithm}, {"classes", times.classes}, {"forward_ms", 1000 * times.forward}});
    if (times.backward) rows.back()["backward_ms"] = 1000 * *times.backward;
  }
  return rows;
}

Json as_json(const std::vector<SmoothedStability>& all) {
  Json rows = Json::array();
  for (const SmoothedStability& stability : all) {
    Json row{{"algorithm", stability.algorithm},
             {"dtype", stability.dtype == at::kFloat ? "float32" : "float64"},
             {"taus", Json::array()},
             {"stable", stability.is_stable}};
    for (const double tau : kStabilityTaus) row["taus"].push_back(tau);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json as_json(const std::string& model, const StepShares& steps) {
  Json rows = Json::array();
  for (const StepShare& share : steps.losses) {
    rows.push_back({{"loss", share.loss},
                    {"ms", 1000 * median(share.seconds)},
                    {"share_of_step", median(share.shares)},
                    {"shares_of_rounds", share.shares}});
  }
  return {{"model", model},
          {"batch", steps.batch},
          {"classes", steps.classes},
          {"step_ms", 1000 * median(steps.step_seconds)},
          {"losses", std::move(rows)}};
}

}  // namespace

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

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/studies/compare/comparison.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (const double value : values) list.push_back(finite_or_null(value));
  return list;
}

ordered_json to_json(const MeanInterval& interval) {
  return {{"mean", finite_or_null(interval.mean)},
          {"deviation", finite_or_null(interval.deviation)},
          {"half_width", finite_or_null(interval.half_width)},
          {"count", interval.count},
          {"warning", interval.deserves_warning()}};
}

ordered_json to_json(const BootstrapInterval& interval) {
  return {{"difference", finite_or_null(interval.difference)},
          {"low", finite_or_null(interval.low)},
          {"high", finite_or_null(interval.high)}};
}

ordered_json to_json(const Setting& setting, const SettingValues& values) {
  ordered_json object = to_json(values.interval);
  object["setting"] = setting.name;
  object["checkpoints"] = values.checkpoints;
  object["values"] = to_json(values.values);
  if (!values.size_interval) return object;
  object["size"] = to_json(*values.size_interval);
  object["size"]["values"] = to_json(values.sizes);
  return object;
}

ordered_json to_json(const SeedBootstrap& bootstrap) {
  ordered_json object = to_json(bootstrap.interval);
  object["seed"] = bootstrap.seed;
  object["images"] = bootstrap.images;
  object["resamples"] = bootstrap.resamples;
  if (bootstrap.size_interval) object["size"] = to_json(*bootstrap.size_interval);
  return object;
}

ordered_json to_json(const Setting& setting, const Setting& against, const SettingDifference& difference) {
  ordered_json object = difference.seeds.empty() ? ordered_json::object() : to_json(difference.interval);
  object["setting"] = setting.name;
  object["against"] = against.name;
  object["seeds"] = difference.seeds;
  object["other_images"] = difference.other_images;
  if (difference.size_interval) object["size"] = to_json(*difference.size_interval);
  object["bootstrap"] = ordered_json::array();
  for (const SeedBootstrap& bootstrap : difference.bootstraps) object["bootstrap"].push_back(to_json(bootstrap));
  return object;
}

}  // namespace

ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json comparison_json(const std::vector<Setting>& settings, const std::vector<MetricComparison>& comparisons) {
  ordered_json all{
      {"settings", ordered_json::array()}, {"keys", ordered_json::object()}, {"metrics", ordered_json::array()}};
  for (const Setting& setting : settings) {
    ordered_json runs = ordered_json::array();
    for (const ComparedRun& run : setting.runs) runs.push_back({{"folder", run.folder.string()}, {"seed", run.seed}});
    all["settings"].push_back({{"name", setting.name}, {"runs", runs}});
  }
  for (const DifferingKey& key : differing_keys(settings)) {
    for (size_t i = 0; i < settings.size(); ++i) {
      all["keys"][key.path][settings[i].name] =
          key.values[i].empty() ? ordered_json(nullptr) : ordered_json(key.values[i]);
    }
  }
  for (const MetricComparison& comparison : comparisons) {
    ordered_json object{
        {"metric", comparison.metric}, {"settings", ordered_json::array()}, {"differences", ordered_json::array()}};
    for (size_t i = 0; i < settings.size(); ++i) {
      object["settings"].push_back(to_json(settings[i], comparison.settings[i]));
    }
    for (size_t i = 0; i < comparison.differences.size(); ++i) {
      object["differences"].push_back(to_json(settings[i + 1], settings[0], comparison.differences[i]));
    }
    all["metrics"].push_back(object);
  }
  return all;
}

}  // namespace settrain

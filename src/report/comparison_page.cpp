#include "src/report/comparison_page.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace settrain {
namespace {

using nlohmann::ordered_json;

ordered_json range(const MeanInterval& interval) {
  return {{"mean", finite_or_null(interval.mean)},
          {"low", finite_or_null(interval.mean - interval.half_width)},
          {"high", finite_or_null(interval.mean + interval.half_width)},
          {"warning", interval.deserves_warning()}};
}

ordered_json to_json(const std::string& metric, const Setting& setting, const SettingValues& values) {
  ordered_json object = range(values.interval);
  object["setting"] = setting.name;
  object["checkpoints"] = values.checkpoints;
  object["text"] = format_interval(values.interval, unit_of(metric));
  object["values"] = ordered_json::array();
  for (const double value : values.values) object["values"].push_back(finite_or_null(value));
  if (values.size_interval) object["size"] = format_interval(*values.size_interval, Unit::kPlain);
  return object;
}

ordered_json to_json(const std::string& metric, const Setting& setting, const SettingDifference& difference) {
  ordered_json object = difference.seeds.empty() ? ordered_json::object() : range(difference.interval);
  object["setting"] = setting.name;
  object["text"] =
      difference.seeds.empty() ? "no seed in common" : format_difference(difference.interval, unit_of(metric));
  if (difference.size_interval) object["size"] = format_difference(*difference.size_interval, Unit::kPlain);
  return object;
}

}  // namespace

ordered_json comparison_page_json(const std::vector<Setting>& settings,
                                  const std::vector<MetricComparison>& comparisons) {
  ordered_json page{{"keys", ordered_json::array()}, {"metrics", ordered_json::array()}};
  for (const DifferingKey& key : differing_keys(settings)) {
    ordered_json values = ordered_json::array();
    for (const std::string& value : key.values)
      values.push_back(value.empty() ? ordered_json(nullptr) : ordered_json(value));
    page["keys"].push_back({key.path, values});
  }
  for (const MetricComparison& comparison : comparisons) {
    ordered_json metric{{"metric", comparison.metric},
                        {"fraction", unit_of(comparison.metric) == Unit::kFraction},
                        {"against", settings.front().name},
                        {"settings", ordered_json::array()},
                        {"differences", ordered_json::array()}};
    for (size_t i = 0; i < settings.size(); ++i) {
      metric["settings"].push_back(to_json(comparison.metric, settings[i], comparison.settings[i]));
      if (i > 0)
        metric["differences"].push_back(to_json(comparison.metric, settings[i], comparison.differences[i - 1]));
    }
    page["metrics"].push_back(std::move(metric));
  }
  return page;
}

}  // namespace settrain

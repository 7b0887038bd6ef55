#include "src/inference/prediction_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace settrain {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

SetsAsJson::SetsAsJson(const SetMaker& maker) {
  for (const std::string& name : maker.rule_names()) rules_.push_back(json_text(name));
  for (const std::string& name : maker.names()) names_.push_back(json_text(name));
}

std::string SetsAsJson::operator()(const std::vector<PredictedSet>& sets) const {
  std::string json = "{";
  for (size_t i = 0; i < sets.size(); ++i) {
    const PredictedSet& set = sets[i];
    std::vector<std::string_view> names;
    for (const int64_t member : set.members) names.push_back(names_[static_cast<size_t>(member)]);
    json += fmt::format("{}{}:{{\"size\":{},\"names\":[{}],\"classes\":[{}],\"probabilities\":[{}]}}",
                        i == 0 ? "" : ",", rules_[i], set.members.size(), fmt::join(names, ","),
                        fmt::join(set.members, ","), fmt::join(set.probabilities, ","));
  }
  return json + "}";
}

}  // namespace settrain

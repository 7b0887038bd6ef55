#include "src/measure/check/golden_model.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "models/model_options.h"
#include "src/config/load.h"

namespace settrain {

std::vector<std::string> settings_named(std::string name) {
  const std::string normalised = "_normed", papers = "densenet_bc_";
  std::vector<std::string> settings;
  if (name.ends_with(normalised)) {
    name.resize(name.size() - normalised.size());
    settings.emplace_back("model.head=normalised");
  }
  const size_t between = name.rfind('_');
  if (name.starts_with(papers) && between >= papers.size()) {
    settings.emplace_back("model.name=densenet");
    settings.push_back("model.depth=" + name.substr(papers.size(), between - papers.size()));
    settings.push_back("model.growth=" + name.substr(between + 1));
  } else {
    settings.push_back("model.name=" + name);
  }
  return settings;
}

GoldenModel golden_model(const nlohmann::json& golden) {
  const auto name = golden.at("model").get<std::string>();
  const auto shape = golden.at("input_shape").get<std::vector<int64_t>>();
  if (shape.size() != 4) throw std::invalid_argument("/input_shape: expected [batch, channels, height, width]");
  return {name,
          golden.contains("settings") ? golden.at("settings").get<std::vector<std::string>>() : settings_named(name),
          golden.at("num_classes").get<int64_t>(),
          {shape.begin() + 1, shape.end()}};
}

std::shared_ptr<Model> build(const ModelRegistry& registry, const GoldenModel& golden) {
  const config::Config config = config::load({{model_section(registry)}, {}}, {}, golden.settings);
  const ModelEntry& entry = registry.at(config.get<std::string>("model.name"));
  ModelContext context = entry.usual;
  context.num_classes = golden.num_classes;
  if (!golden.image.empty()) {
    context.channels = golden.image.at(0);
    context.height = golden.image.at(1);
    context.width = golden.image.at(2);
  }
  return entry.make(config, context);
}

}  // namespace settrain

#include "src/check/golden_model.h"

#include <regex>

#include "models/model_options.h"
#include "src/config/load.h"

namespace settrain {

std::vector<std::string> settings_named(const std::string& name) {
  static const std::regex form("(?:densenet_bc_([0-9]+)_([0-9]+)|(.*?))(_normed)?");
  std::smatch parts;
  std::regex_match(name, parts, form);
  std::vector<std::string> settings{"model.name=" + parts.str(3)};
  if (parts[1].matched)
    settings = {"model.name=densenet", "model.depth=" + parts.str(1), "model.growth=" + parts.str(2)};
  if (parts[4].matched) settings.emplace_back("model.head=normalised");
  return settings;
}

std::shared_ptr<Model> build(const ModelRegistry& registry, const GoldenModel& golden,
                             const std::vector<int64_t>& image) {
  const config::Config config = config::load({{model_section(registry)}, {}}, {}, golden.settings);
  const ModelEntry& entry = registry.at(config.get<std::string>("model.name"));
  ModelContext context = entry.usual;
  context.num_classes = golden.num_classes;
  if (!image.empty()) {
    context.channels = image.at(0);
    context.height = image.at(1);
    context.width = image.at(2);
  }
  return entry.make(config, context);
}

}  // namespace settrain

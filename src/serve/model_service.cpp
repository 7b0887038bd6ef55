#include "src/serve/model_service.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "metrics/sets/rules/guarantee.h"
#include "src/core/digest.h"
#include "src/inference/group_sums.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

// For randomised rules: as good as drawn, and the same whenever the images are.
int64_t number_of(std::span<const Upload> images) {
  Sha256 sha;
  for (const Upload& image : images) sha.add(image.bytes);
  return std::stoll(sha.hex().substr(0, 15), nullptr, 16);
}

// The scores of the mean log-probability of a specimen's images, [1, classes].
at::Tensor group_scores(const at::Tensor& scores, ProbabilityKind kind) {
  const int64_t images = scores.size(0), classes = scores.size(1);
  const ImageGroups groups{{"specimen"}, std::vector<int64_t>(static_cast<size_t>(images), 0)};
  GroupSums sums(groups, kind);
  const at::Tensor logs = sums.log_probabilities(scores);
  for (int64_t i = 0; i < images; ++i) sums.add(i, logs[i].const_data_ptr<double>(), classes);
  return sums.scores_of(sums.take(0));
}

}  // namespace

ModelService::ModelService(const TrainedModel& model, const SetMaker& maker, const ServeOptions& options,
                           ServiceMetrics& metrics)
    : model_(model),
      maker_(maker),
      kind_(class_facts(model.card).probability),
      json_(maker),
      options_(options),
      metrics_(metrics),
      reader_(model, at::get_num_threads(), options.most_pixels),
      scorer_(model, reader_.no_image(), options.batch, metrics) {}

at::Tensor ModelService::scores_of(std::span<const Upload> images) {
  BatchScorer::Places places(scorer_, std::ssize(images));
  std::vector<at::Tensor> views;
  for (const Upload& image : images) views.push_back(reader_.read(image, places.deadline()));
  return places.score(std::move(views));
}

std::string ModelService::answer(std::span<const Upload> images) {
  const c10::InferenceMode inference;
  at::Tensor scores = scores_of(images);
  if (images.size() > 1) scores = group_scores(scores, kind_);
  const std::vector<PredictedSet> sets = maker_(scores, number_of(images)).front();
  for (size_t i = 0; i < sets.size(); ++i) metrics_.add_set(maker_.rule_names()[i], std::ssize(sets[i].members));
  return fmt::format("{{\"images\":{},\"sets\":{}}}\n", images.size(), json_(sets));
}

std::string ModelService::describe() const {
  const ModelCard& card = model_.card;
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const CalibratedRule& rule : maker_.rules()) {
    nlohmann::ordered_json entry{{"name", rule.rule.name()}, {"guarantee", nullptr}};
    if (is_guarantee(rule.guarantee)) {
      entry["guarantee"] = rule.guarantee;
    } else {
      entry["no_guarantee"] = rule.guarantee.substr(kNoGuarantee.size());
    }
    entry["notes"] = rule.notes;
    rules.push_back(std::move(entry));
  }
  const BuildInfo build = build_info();
  nlohmann::ordered_json json{
      {"file", model_.file.filename().string()},
      {"data_set", card.dataset},
      {"model", model_.config.get<std::string>("model.name")},
      {"by", options_.by},
      {"names", maker_.names()},
      {"input", {{"height", card.input_height}, {"width", card.input_width}, {"channels", card.channels}}},
      {"probabilities", card.is_sigmoid ? "sigmoid" : "softmax"},
      {"temperature", model_.rules ? model_.rules->temperature : 1},
      {"calibrated_on", nullptr},
      {"rules", std::move(rules)},
      {"limits", {{"bytes", options_.http.bytes}, {"pixels", options_.most_pixels}, {"images", options_.http.images}}},
      {"version", fmt::format("{} ({})", build.version, build.git_commit)}};
  if (model_.rules) json["calibrated_on"] = model_.rules->calibrated_on;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace settrain

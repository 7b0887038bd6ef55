#include "src/inference/prepare_model.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/model.h"
#include "src/core/log.h"
#include "src/train/evaluation.h"

namespace settrain {
namespace {

constexpr const char* kKey = "run.inference";

// The form that the model is then prepared in. It has its weights.
InferenceForm prepared(Model& model, InferenceForm wanted, const ModelContext& input, const ComputePolicy& policy) {
  model.eval();
  if (wanted == InferenceForm::kBf16 && !has_form(wanted, policy)) {
    log::warning(fmt::format("[model] {}: bf16: {} has no such form; answers are exact", kKey,
                             policy.device.is_cpu() ? "a processor without instructions for bfloat16" : "a GPU"));
  }
  if (wanted == InferenceForm::kExact || !has_form(wanted, policy)) return InferenceForm::kExact;
  const std::string problem = prepare_checked(model, wanted, input, policy.device);
  if (problem.empty()) return wanted;
  log::warning(fmt::format("[model] {}: {}: {}; answers are exact", kKey, name_of(wanted), problem));
  return InferenceForm::kExact;
}

bool is_set(const std::vector<std::string>& settings) {
  return std::ranges::any_of(settings,
                             [](const std::string& setting) { return setting.substr(0, setting.find('=')) == kKey; });
}

}  // namespace

bool has_form(InferenceForm form, const ComputePolicy& policy) {
  if (form == InferenceForm::kFast) return !policy.bf16;
  return form == InferenceForm::kExact || (policy.device.is_cpu() && !bf16_is_emulated(policy.device));
}

std::string name_of(InferenceForm form) {
  const auto& forms = inference_forms();
  return std::ranges::find(forms, form, &std::pair<std::string, InferenceForm>::second)->first;
}

InferenceForm prepare_to_answer(TrainedModel& model, const std::vector<std::string>& settings) {
  InferenceForm wanted = model.config.read<RunOptions>("run").inference;
  const bool has_rules = model.rules && !model.rules->rules.empty();
  if (has_rules && !is_set(settings)) wanted = config::value_named(inference_forms(), model.rules->inference);
  const ModelContext input{std::ssize(model.card.class_names), model.card.channels, model.card.input_height,
                           model.card.input_width};
  const InferenceForm form = prepared(*model.model, wanted, input, model.policy);
  model.answers_as_calibrated = !has_rules || name_of(form) == model.rules->inference;
  if (!model.answers_as_calibrated) {
    const auto& differences = model.rules->inference_differences;
    const auto difference = differences.find(name_of(form));
    log::warning(fmt::format(
        "[model] the rules were calibrated with {}: {}, and answer with {}: their guarantees are for the former{}",
        kKey, model.rules->inference, name_of(form),
        difference == differences.end()
            ? ""
            : fmt::format("; scores of some images that calibrated differed by up to {:.1e}", difference->second)));
  }
  return form;
}

InferenceForm prepare_run(Experiment& run) {
  return prepared(*run.model, run.config.read<RunOptions>("run").inference, run.input, run.policy);
}

std::map<std::string, double> differences_to_other_forms(Experiment& run, InferenceForm own, const std::string& split,
                                                         ProgressBar& bar) {
  constexpr int64_t kMostImages = 16;
  const Split& all = split_named(run.dataset, split);
  std::vector<int64_t> first(std::min(kMostImages, all.size()));
  std::iota(first.begin(), first.end(), 0);
  const Split some = some_of(all, first);
  const auto scores = [&](InferenceForm form) {
    run.model->prepare(form);
    return score_split(run, some, run.eval.view_use(), bar).scores.mul(run.loss->score_scale());
  };
  const at::Tensor own_scores = scores(own);
  std::map<std::string, double> differences;
  for (const auto& [name, form] : inference_forms()) {
    if (form == own || !has_form(form, run.policy) || own_scores.numel() == 0) continue;
    differences[name] = (scores(form) - own_scores).abs().max().item<double>();
  }
  run.model->prepare(own);
  return differences;
}

}  // namespace settrain

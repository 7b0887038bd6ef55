#include "src/inference/answer_form.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/model.h"
#include "src/core/log.h"

namespace settrain {
namespace {

constexpr double kMostDifference = 1e-4;  // of scores, relative to the largest above 1
constexpr const char* kKey = "run.inference";

at::Tensor random_scores(Model& model, const ModelContext& input, const ComputePolicy& policy) {
  const at::Tensor images = at::randn({1, input.channels, input.height, input.width},
                                      at::detail::createCPUGenerator(/*seed_val=*/1), at::TensorOptions(at::kFloat));
  return forward(model, images, policy).scores;
}

// The form that the model is then prepared in. It has its weights.
InferenceForm prepared(Model& model, InferenceForm wanted, const ModelContext& input, const ComputePolicy& policy) {
  const c10::InferenceMode inference;
  model.eval();
  const bool is_bf16 = wanted == InferenceForm::kBf16;
  if (wanted == InferenceForm::kExact || (policy.bf16 && !is_bf16)) return InferenceForm::kExact;
  if (is_bf16 && (!policy.device.is_cpu() || bf16_is_emulated(policy.device))) {
    log::warning(fmt::format("[model] {}: bf16: {} has no such form; answers are exact", kKey,
                             policy.device.is_cpu() ? "a processor without instructions for bfloat16" : "a GPU"));
    return InferenceForm::kExact;
  }
  if (is_bf16) {
    model.prepare(wanted);
    return wanted;
  }
  const at::Tensor exact = random_scores(model, input, policy);
  model.prepare(wanted);
  const at::Tensor difference = (random_scores(model, input, policy) - exact).abs();
  const double most = difference.max().item<double>(), scale = exact.abs().max().item<double>();
  if (most <= kMostDifference * std::max(1.0, scale)) {
    model.prepare(wanted);  // anew, since the first images that a layer sees lay its weights out
    return wanted;
  }
  model.prepare(InferenceForm::kExact);
  if (at::isfinite(exact).all().item<bool>()) {
    log::warning(
        fmt::format("[model] {}: fast: scores of a random image differ by {:.1e} from the exact ones, of which "
                    "the largest is {:.1e}; answers are exact",
                    kKey, most, scale));
  }
  return InferenceForm::kExact;
}

bool is_set(const std::vector<std::string>& settings) {
  return std::ranges::any_of(settings,
                             [](const std::string& setting) { return setting.substr(0, setting.find('=')) == kKey; });
}

}  // namespace

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
  if (has_rules && name_of(form) != model.rules->inference) {
    log::warning(
        fmt::format("[model] the rules were calibrated with {}: {}, and answer with {}: their guarantees are "
                    "for the former",
                    kKey, model.rules->inference, name_of(form)));
  }
  return form;
}

InferenceForm prepare_run(Experiment& run) {
  return prepared(*run.model, run.config.read<RunOptions>("run").inference, run.input, run.policy);
}

}  // namespace settrain

#include "python/ops/made_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "losses/make_loss.h"
#include "losses/ops/with_gradient.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

const LossRegistry& loss_registry() {
  static const LossRegistry registry = [] {
    LossRegistry losses("loss");
    register_builtin_losses(losses);
    return losses;
  }();
  return registry;
}

config::Config loss_config(const std::string& settings) {
  std::vector<std::string> overrides;
  for (size_t begin = 0; begin < settings.size();) {
    const size_t end = std::min(settings.find('\n', begin), settings.size());
    overrides.push_back(settings.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::vector<std::string> places(overrides.size(), "settrain.losses");
  return config::load({{loss_section(loss_registry())}, {}}, {}, overrides, places);
}

LabelSets label_sets_of(const at::Tensor& indicator) {
  const at::Tensor is_label = indicator.ne(0);
  const at::Tensor ends = is_label.sum(1).cumsum(0);
  return {at::cat({at::zeros({1}, ends.options()), ends}), is_label.nonzero().select(1, 1)};
}

void check_label_matrix(const MadeLoss& made, const at::Tensor& labels) {
  if (!made.takes_label_sets) throw ShapeError("labels: expected [batch] int64, got 2 dimensions");
  if (labels.is_floating_point() && labels.ne(0).logical_and(labels.ne(1)).any().item<bool>()) {
    throw ShapeError("labels: expected 0 and 1, got other numbers: these losses take no probabilities");
  }
}

}  // namespace

MadeLoss& loss_of(const std::string& settings, const std::vector<int64_t>& class_counts, int64_t num_classes) {
  constexpr size_t kMostKept = 64;
  thread_local std::map<std::tuple<std::string, std::vector<int64_t>, int64_t>, MadeLoss> made;
  auto key = std::tuple(settings, class_counts, num_classes);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  if (made.size() >= kMostKept) made.clear();
  const config::Config config = loss_config(settings);
  const LossContext context{
      .num_classes = num_classes, .class_counts = class_counts, .train_ids = {}, .train_labels = {}};
  const LossEntry& entry = loss_registry().at(config.get<std::string>("loss.name"));
  MadeLoss loss{make_loss(loss_registry(), config, context), entry.couples_samples, entry.takes_label_sets};
  return made.emplace(std::move(key), std::move(loss)).first->second;
}

void check_settings(const std::string& settings) {
  loss_config(settings);
}

bool couples_samples(const std::string& settings) {
  return loss_registry().at(loss_config(settings).get<std::string>("loss.name")).couples_samples;
}

bool Scores::want_gradient() const {
  const auto wants = [](const OptionalTensor& tensor) { return tensor && wants_gradient(*tensor); };
  return wants_gradient(scores) || wants(scores_multi) || wants(estimates);
}

at::ScalarType dtype_of_losses(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

void check_matrix(const at::Tensor& scores) {
  if (scores.dim() == 2) return;
  throw ShapeError("scores: expected [batch, classes], got " + std::to_string(scores.dim()) + " dimensions");
}

LossInput input_of(const MadeLoss& made, const Scores& from, const Arguments& arguments) {
  LossInput input;
  input.output.scores = from.scores;
  if (from.scores_multi) input.output.scores_multi = *from.scores_multi;
  if (from.estimates) input.estimate_logits = from.estimates->to(dtype_of_losses(*from.estimates));
  input.labels = arguments.labels;
  if (arguments.labels.dim() == 2) {
    check_label_matrix(made, arguments.labels);
    check_shape("labels", arguments.labels.sizes(), {from.scores.size(0), from.scores.size(1)});
    input.label_sets = label_sets_of(arguments.labels);
    input.labels = arguments.labels.ne(0).to(at::kByte).argmax(1);
  }
  input.noise = arguments.noise;
  input.noise_key.seed = static_cast<uint64_t>(arguments.seed);
  if (!arguments.step) return input;
  // Reading it back from a GPU would stall every step. Kernels read it there.
  if (from.scores.is_cuda() && arguments.step->device() == from.scores.device()) {
    input.noise_key.step_on_device = arguments.step->const_data_ptr<int64_t>();
  } else {
    input.noise_key.step = arguments.step->item<int64_t>();
  }
  return input;
}

}  // namespace settrain

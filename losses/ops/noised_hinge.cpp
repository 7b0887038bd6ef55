#include "losses/ops/noised_hinge.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "losses/kernels/noised_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/smoothed_topk.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kScoresPerTask = 8192;

void forward_on_cpu(const NoisedHinge& hinge, float* losses, int32_t* chosen, float* drawn) {
  const auto compute = SETTRAIN_PICK(instruction_set(), noised_hinge_rows);
  const int64_t bytes = SETTRAIN_PICK(instruction_set(), noised_hinge_scratch)(hinge);
  for_rows(hinge.batch, hinge.classes, kScoresPerTask, bytes, [&](int64_t begin, int64_t end, void* scratch) {
    compute(hinge, begin, end, scratch, losses, chosen, drawn);
  });
}

// Writes gradient [batch, classes] of the rows [begin, end): row i is outer[i] * factor * (the share of the draws in
// which a class is chosen, minus 1 at the label) where losses[i] > 0, NaN where that is NaN, else 0.
void backward_on_cpu(const NoisedHinge& hinge, int64_t begin, int64_t end, const float* losses, const int32_t* chosen,
                     const float* outer, float* gradient) {
  const int64_t classes = hinge.classes, draws = hinge.draws;
  std::vector<int32_t> distinct;  // classes that are chosen
  for (int64_t i = begin; i < end; ++i) {
    float* const row = gradient + i * classes;
    std::fill_n(row, classes, losses[i] != losses[i] ? losses[i] : 0);
    if (!(losses[i] > 0)) continue;
    distinct.clear();
    for (int64_t draw = 0; draw < draws; ++draw) {
      const int32_t j = chosen[i * draws + draw];
      if (row[j] == 0) distinct.push_back(j);
      row[j] += 1;
    }
    const float slope = outer[i] * hinge.factor;
    if (row[hinge.labels[i]] == 0) row[hinge.labels[i]] = -slope;
    for (const int32_t j : distinct) {
      const float share = row[j] / static_cast<float>(draws);
      row[j] = slope * (j == hinge.labels[i] ? share - 1 : share);
    }
  }
}

// `hinge` points to the scores, labels and margins (empty where all are hinge.margin), contiguous, and to what else it
// needs.
struct NoisedHingeFunction : torch::autograd::Function<NoisedHingeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores, const at::Tensor& labels,
                            const at::Tensor& /*margins*/, const NoisedHinge& hinge) {
    const at::Tensor losses = at::empty({hinge.batch}, scores.options());
    const at::Tensor chosen = at::empty({hinge.batch, hinge.draws}, scores.options().dtype(at::kInt));
    auto* const losses_data = losses.data_ptr<float>();
    auto* const chosen_data = chosen.data_ptr<int32_t>();
    if (scores.is_cpu()) forward_on_cpu(hinge, losses_data, chosen_data, /*drawn=*/nullptr);
#if defined(SETTRAIN_HAS_CUDA)
    if (scores.is_cuda()) {
      on_stream_of(scores.device(),
                   [&](CUstream_st* stream) { launch_noised_hinge(hinge, losses_data, chosen_data, stream); });
    }
#endif
    context->save_for_backward({labels, losses, chosen});
    context->saved_data["classes"] = hinge.classes;
    context->saved_data["factor"] = static_cast<double>(hinge.factor);
    return losses;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer_of_outputs) {
    check_first_derivative();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &labels = saved[0], &losses = saved[1], &chosen = saved[2];
    const at::Tensor outer = outer_of_outputs[0].contiguous();
    NoisedHinge hinge{};
    hinge.labels = labels.const_data_ptr<int64_t>();
    hinge.batch = labels.size(0);
    hinge.classes = context->saved_data["classes"].toInt();
    hinge.draws = chosen.size(1);
    hinge.factor = static_cast<float>(context->saved_data["factor"].toDouble());
    const at::Tensor gradient = at::empty({hinge.batch, hinge.classes}, losses.options());
    const auto* const losses_data = losses.const_data_ptr<float>();
    const auto* const chosen_data = chosen.const_data_ptr<int32_t>();
    const auto* const outer_data = outer.const_data_ptr<float>();
    auto* const gradient_data = gradient.data_ptr<float>();
    if (losses.is_cpu()) {
      for_rows(hinge.batch, hinge.classes, 4 * kScoresPerTask, 0, [&](int64_t begin, int64_t end, void* /*workspace*/) {
        backward_on_cpu(hinge, begin, end, losses_data, chosen_data, outer_data, gradient_data);
      });
    }
#if defined(SETTRAIN_HAS_CUDA)
    if (losses.is_cuda()) {
      on_stream_of(losses.device(), [&](CUstream_st* stream) {
        launch_noised_hinge_gradient(hinge, losses_data, chosen_data, outer_data, gradient_data, stream);
      });
    }
#endif
    at::Tensor of_margins;
    if (context->needs_input_grad(2)) of_margins = outer.mul(losses.gt(0)).mul(hinge.factor);
    return {gradient, at::Tensor(), of_margins, at::Tensor()};
  }
};

// Without margins and noise; `scores` and `labels` are contiguous.
NoisedHinge describe(const at::Tensor& scores, const at::Tensor& labels, const SampledTopkOptions& options,
                     const NoiseKey& key) {
  NoisedHinge hinge{};
  hinge.scores = scores.const_data_ptr<float>();
  hinge.labels = labels.const_data_ptr<int64_t>();
  hinge.epsilon = static_cast<float>(options.epsilon);
  hinge.factor = 1;
  hinge.batch = scores.size(0);
  hinge.classes = scores.size(1);
  hinge.k = options.k;
  hinge.draws = options.num_draws;
  hinge.first = noise_counter(key, hinge.batch);
  hinge.step = key.step_on_device;
  hinge.prune = true;
  return hinge;
}

at::Tensor plain_noised_hinge(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options,
                              const NoisedHingeTerms& terms) {
  const at::Tensor noise =
      input.noise ? *input.noise
                  : gaussian_noise(input.noise_key, scores.size(0), options.num_draws, scores.size(1), scores.device());
  const at::Tensor smoothed = smoothed_topk(scores, noise, options.k + 1, options.epsilon).values;
  const at::Tensor excess = smoothed.sub(of_label(scores, input.labels));
  const at::Tensor violation = terms.margins.defined() ? excess.add(terms.margins) : excess.add(terms.margin);
  return at::relu(terms.factor == 1 ? violation : violation.mul(terms.factor));
}

}  // namespace

at::Tensor noised_hinge(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options,
                        const NoisedHingeTerms& terms) {
  if (options.epsilon == kSpreadOfScores) {
    const UnitSpread unit = unit_spread(scores);
    SampledTopkOptions unit_options = options;
    unit_options.epsilon = 1;
    const at::Tensor margins =
        terms.margins.defined() ? terms.margins.div(unit.spread) : unit.spread.reciprocal().mul(terms.margin);
    return noised_hinge(unit.scores, input, unit_options, {.margins = margins, .factor = terms.factor})
        .mul(unit.spread);
  }
  if (input.noise) check_shape("noise", input.noise->sizes(), {scores.size(0), options.num_draws, scores.size(1)});
  const bool has_kernel = has_loss_kernels(scores.device()) && scores.scalar_type() == at::kFloat;
  if (!has_kernel || input.method == LossMethod::kPlain) return plain_noised_hinge(scores, input, options, terms);
  const at::Tensor rows = scores.contiguous(), labels = input.labels.contiguous();
  // Both outlive the call of the kernel. Autograd takes no undefined tensor.
  at::Tensor margins = at::empty({0}, scores.options()), noise;
  NoisedHinge hinge = describe(rows, labels, options, input.noise_key);
  hinge.margin = static_cast<float>(terms.margin);
  hinge.factor = static_cast<float>(terms.factor);
  if (terms.margins.defined()) {
    check_shape("margins", terms.margins.sizes(), {scores.size(0)});
    margins = terms.margins.to(scores.options()).contiguous();
    hinge.margins = margins.const_data_ptr<float>();
  }
  if (input.noise) {
    noise = input.noise->detach().to(scores.options()).contiguous();
    hinge.noise = noise.const_data_ptr<float>();
  }
  hinge.prune = input.method != LossMethod::kUnpruned && !input.noise;
  return NoisedHingeFunction::apply(rows, labels, margins, hinge);
}

at::Tensor drawn_classes(const at::Tensor& scores, const SampledTopkOptions& options, const NoiseKey& key) {
  const at::Tensor contiguous = scores.detach().cpu().contiguous(), labels = at::zeros({scores.size(0)}, at::kLong);
  const NoisedHinge hinge = describe(contiguous, labels, options, key);
  const at::Tensor losses = at::empty({hinge.batch}, at::kFloat), drawn = at::empty_like(losses);
  const at::Tensor chosen = at::empty({hinge.batch, hinge.draws}, at::kInt);
  forward_on_cpu(hinge, losses.data_ptr<float>(), chosen.data_ptr<int32_t>(), drawn.data_ptr<float>());
  return drawn;
}

}  // namespace settrain

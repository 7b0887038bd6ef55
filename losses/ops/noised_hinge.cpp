#include "losses/ops/noised_hinge.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>

#include "losses/kernels/noised_hinge_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/with_gradient.h"
#include "src/core/shape.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// So many rows a thread takes at once that starting it is worth it.
int64_t rows_at_once(const NoisedHinge& hinge) {
  return std::max<int64_t>(1, 8192 / hinge.classes);
}

void forward_on_cpu(const NoisedHinge& hinge, float* losses, int32_t* chosen, float* drawn) {
  const auto rows = SETTRAIN_PICK(instruction_set(), noised_hinge_rows);
  const auto bytes = static_cast<size_t>(SETTRAIN_PICK(instruction_set(), noised_hinge_scratch)(hinge));
  at::parallel_for(0, hinge.batch, rows_at_once(hinge), [&](int64_t begin, int64_t end) {
    const auto scratch = std::make_unique_for_overwrite<char[]>(bytes);
    rows(hinge, begin, end, scratch.get(), losses, chosen, drawn);
  });
}

const float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

// What has no gradient. All are contiguous; margins and noise may be undefined. `hinge` lacks its pointers.
struct Constants {
  NoisedHinge hinge;
  at::Tensor labels, margins, noise;
};

struct NoisedHingeFunction : torch::autograd::Function<NoisedHingeFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores, const Constants& constants) {
    NoisedHinge hinge = constants.hinge;
    hinge.scores = scores.const_data_ptr<float>();
    hinge.labels = constants.labels.const_data_ptr<int64_t>();
    hinge.margins = data_or_null(constants.margins);
    hinge.noise = data_or_null(constants.noise);
    const at::Tensor losses = at::empty({hinge.batch}, scores.options());
    const at::Tensor chosen = at::empty({hinge.batch, hinge.draws}, scores.options().dtype(at::kInt));
    auto* const losses_data = losses.data_ptr<float>();
    auto* const chosen_data = chosen.data_ptr<int32_t>();
    if (scores.is_cpu()) forward_on_cpu(hinge, losses_data, chosen_data, /*drawn=*/nullptr);
#if defined(SETTRAIN_HAS_CUDA)
    if (scores.is_cuda()) {
      const c10::cuda::CUDAGuard guard(scores.device());
      launch_noised_hinge(hinge, losses_data, chosen_data, c10::cuda::getCurrentCUDAStream());
    }
#endif
    context->save_for_backward({constants.labels, losses, chosen});
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
      at::parallel_for(0, hinge.batch, 4 * rows_at_once(hinge), [&](int64_t begin, int64_t end) {
        noised_hinge_gradient_rows(hinge, begin, end, losses_data, chosen_data, outer_data, gradient_data);
      });
    }
#if defined(SETTRAIN_HAS_CUDA)
    if (losses.is_cuda()) {
      const c10::cuda::CUDAGuard guard(losses.device());
      launch_noised_hinge_gradient(hinge, losses_data, chosen_data, outer_data, gradient_data,
                                   c10::cuda::getCurrentCUDAStream());
    }
#endif
    return {gradient, at::Tensor()};
  }
};

bool has_noised_kernel(const at::Tensor& scores) {
  return has_loss_kernels(scores.device()) && scores.scalar_type() == at::kFloat;
}

// Without the pointers.
NoisedHinge describe(const at::Tensor& scores, const SampledTopkOptions& options, const NoiseKey& key) {
  NoisedHinge hinge{};
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
  const at::Tensor excess = sampled_topk(scores, input, options).sub(of_label(scores, input.labels));
  const at::Tensor violation = terms.margins.defined() ? excess.add(terms.margins) : excess.add(terms.margin);
  return at::relu(terms.factor == 1 ? violation : violation.mul(terms.factor));
}

}  // namespace

at::Tensor noised_hinge(const at::Tensor& scores, const LossInput& input, const SampledTopkOptions& options,
                        const NoisedHingeTerms& terms) {
  if (!has_noised_kernel(scores) || input.method == LossMethod::kPlain)
    return plain_noised_hinge(scores, input, options, terms);
  Constants constants{describe(scores, options, input.noise_key), input.labels.contiguous(), {}, {}};
  if (terms.margins.defined()) {
    check_shape("margins", terms.margins.sizes(), {scores.size(0)});
    constants.margins = terms.margins.to(scores.options()).contiguous();
  }
  NoisedHinge& hinge = constants.hinge;
  hinge.margin = static_cast<float>(terms.margin);
  hinge.factor = static_cast<float>(terms.factor);
  if (input.noise) {
    check_shape("noise", input.noise->sizes(), {hinge.batch, hinge.draws, hinge.classes});
    constants.noise = input.noise->detach().to(scores.options()).contiguous();
  }
  hinge.prune = input.method != LossMethod::kUnpruned && !input.noise;
  return NoisedHingeFunction::apply(scores.contiguous(), constants);
}

at::Tensor drawn_classes(const at::Tensor& scores, const SampledTopkOptions& options, const NoiseKey& key) {
  const at::Tensor contiguous = scores.detach().cpu().contiguous(), labels = at::zeros({scores.size(0)}, at::kLong);
  NoisedHinge hinge = describe(contiguous, options, key);
  hinge.scores = contiguous.const_data_ptr<float>();
  hinge.labels = labels.const_data_ptr<int64_t>();
  const at::Tensor losses = at::empty({hinge.batch}, at::kFloat), drawn = at::empty_like(losses);
  const at::Tensor chosen = at::empty({hinge.batch, hinge.draws}, at::kInt);
  forward_on_cpu(hinge, losses.data_ptr<float>(), chosen.data_ptr<int32_t>(), drawn.data_ptr<float>());
  return drawn;
}

}  // namespace settrain

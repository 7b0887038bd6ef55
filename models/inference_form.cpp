#include "models/inference_form.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/model.h"
#include "models/registry.h"

namespace settrain {

bool bf16_is_emulated(c10::Device device) {
#ifdef __x86_64__
  return device.is_cpu() && !__builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

std::string prepare_checked(Model& model, InferenceForm form, const ModelContext& context, c10::Device device) {
  constexpr double kMostDifference = 1e-4;
  const c10::InferenceMode inference;
  const at::Tensor image = at::randn({1, context.channels, context.height, context.width},
                                     at::detail::createCPUGenerator(/*seed_val=*/1), at::TensorOptions(at::kFloat))
                               .to(device)
                               .contiguous(at::MemoryFormat::ChannelsLast);
  model.prepare(InferenceForm::kExact);
  model.eval();
  const at::Tensor exact = model.forward(image).scores;
  model.prepare(form);
  const at::Tensor difference = (model.forward(image).scores - exact).abs();
  const double most = difference.max().item<double>(), largest = exact.abs().max().item<double>();
  const bool agree =
      form == InferenceForm::kBf16 ? std::isfinite(most) : most <= kMostDifference * std::max(1.0, largest);
  // Anew, since the first images that a layer sees lay its weights out.
  model.prepare(agree ? form : InferenceForm::kExact);
  if (agree) return "";
  if (!at::isfinite(exact).all().item<bool>()) return "scores of a random image are not finite";
  if (form == InferenceForm::kBf16) return "scores of a random image are finite in float32 alone";
  return fmt::format("scores of a random image differ by {:.1e} from the exact ones, of which the largest is {:.1e}",
                     most, largest);
}

}  // namespace settrain

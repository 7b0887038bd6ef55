// torch.ops.settrain.loss: every registered loss as one differentiable operator.
//
//   loss            what the Python classes call; differentiable
//   loss_forward    the losses, and the gradient of each by its own row where the samples of a batch are not coupled
//   loss_gradient   the gradient of a weighted sum of losses that are coupled, computed anew
//
// The latter two are for torch.compile, to which they are opaque; the formula between them is made of LibTorch's own
// operations. Elsewhere autograd records a loss' operations, as in the program.
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "losses/ops/loss_kernels.h"
#include "python/ops/batch_losses.h"
#include "python/ops/recording.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Throws RuntimeError, since the losses read their labels, which torch.func's tensors do not show.
[[noreturn]] void refuse_transforms() {
  TORCH_CHECK(false,
              "settrain's losses do not take torch.func's transforms (grad, vmap and so on); torch.autograd.grad() "
              "differentiates them, and reduction='none' gives the losses of the samples");
}

void refuse_vmap(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, torch::jit::Stack* /*stack*/) {
  refuse_transforms();
}

/// Throws ShapeError unless the scores have two dimensions.
void check_matrix(const at::Tensor& scores) {
  if (scores.dim() == 2) return;
  throw ShapeError("scores: expected [batch, classes], got " + std::to_string(scores.dim()) + " dimensions");
}

/// Leaves with the values of `from`, of float32 at least.
Scores leaves_of(const Scores& from) {
  const auto leaf = [](const at::Tensor& tensor) {
    return tensor.detach().to(dtype_of_losses(tensor)).requires_grad_();
  };
  Scores leaves{leaf(from.scores), {}, {}};
  if (from.scores_multi) leaves.scores_multi = leaf(*from.scores_multi);
  if (from.estimates) leaves.estimates = leaf(*from.estimates);
  return leaves;
}

/// The gradients of leaves.tensors(), zeros where the losses do not depend on one.
variable_list gradients(const at::Tensor& per_sample, const at::Tensor& outer, const Scores& leaves) {
  const variable_list inputs = leaves.tensors();
  if (!per_sample.requires_grad()) {
    variable_list zeros;
    for (const at::Tensor& input : inputs) zeros.push_back(at::zeros(input.sizes(), input.options()));
    return zeros;
  }
  variable_list found = torch::autograd::grad({per_sample}, inputs, {outer}, /*retain_graph=*/false,
                                              /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].defined()) found[i] = at::zeros(inputs[i].sizes(), inputs[i].options());
  }
  return found;
}

at::Tensor ones_like_losses(const at::Tensor& per_sample) {
  return at::empty(per_sample.sizes(), per_sample.options().requires_grad(false)).fill_(1);
}

using Gradients = std::vector<at::Tensor>;

/// The losses [batch], and the gradients of each sample's loss by its rows where `with_gradient` and the samples are
/// not coupled: of scores, scores_multi and estimates, those that there are.
std::tuple<at::Tensor, Gradients> loss_forward(const at::Tensor& scores, const OptionalTensor& scores_multi,
                                               const OptionalTensor& estimates, const at::Tensor& labels,
                                               const OptionalTensor& noise, const OptionalTensor& step, int64_t seed,
                                               const std::string& settings, int64_t ignore_index, bool with_gradient) {
  return with_loss_errors([&]() -> std::tuple<at::Tensor, Gradients> {
    check_matrix(scores);
    const MadeLoss& made = loss_of(settings, scores.size(1));
    const Scores given{scores, scores_multi, estimates};
    const Arguments arguments{labels, noise, step, seed, settings, ignore_index};
    if (!with_gradient || made.couples_samples) {
      const at::NoGradGuard no_grad;
      return {losses_of(made, given, arguments), Gradients{}};
    }
    const Recording recording;
    const Scores leaves = leaves_of(given);
    const at::Tensor per_sample = losses_of(made, leaves, arguments);
    Gradients rows = gradients(per_sample, ones_like_losses(per_sample), leaves);
    return {per_sample.detach(), std::move(rows)};
  });
}

/// The gradients of sum_i outer_i loss_i, [batch] float, by scores, scores_multi and estimates, those that there are.
Gradients loss_gradient(const at::Tensor& outer, const at::Tensor& scores, const OptionalTensor& scores_multi,
                        const OptionalTensor& estimates, const at::Tensor& labels, const OptionalTensor& noise,
                        const OptionalTensor& step, int64_t seed, const std::string& settings, int64_t ignore_index) {
  return with_loss_errors([&] {
    const MadeLoss& made = loss_of(settings, scores.size(1));
    const Recording recording;
    const Scores leaves = leaves_of({scores, scores_multi, estimates});
    const at::Tensor per_sample = losses_of(made, leaves, {labels, noise, step, seed, settings, ignore_index});
    return gradients(per_sample, outer.detach(), leaves);
  });
}

Gradients gradients_like(const Scores& from) {
  Gradients like;
  for (const at::Tensor& tensor : from.tensors()) {
    like.push_back(at::empty_symint(tensor.sym_sizes(), tensor.options().dtype(dtype_of_losses(tensor))));
  }
  return like;
}

at::Tensor losses_like(const at::Tensor& scores) {
  TORCH_CHECK_VALUE(scores.dim() == 2, "scores: expected [batch, classes], got ", scores.dim(), " dimensions");
  return at::empty_symint({scores.sym_size(0)}, scores.options().dtype(dtype_of_losses(scores)));
}

// For tensors without data. Where samples are coupled, rows have no gradient of their own.
std::tuple<at::Tensor, Gradients> loss_forward_meta(const at::Tensor& scores, const OptionalTensor& scores_multi,
                                                    const OptionalTensor& estimates, const at::Tensor& /*labels*/,
                                                    const OptionalTensor& /*noise*/, const OptionalTensor& /*step*/,
                                                    int64_t /*seed*/, const std::string& settings,
                                                    int64_t /*ignore_index*/, bool with_gradient) {
  const bool has_rows = with_gradient && !with_loss_errors([&] { return couples_samples(settings); });
  return {losses_like(scores), has_rows ? gradients_like({scores, scores_multi, estimates}) : Gradients{}};
}

Gradients loss_gradient_meta(const at::Tensor& /*outer*/, const at::Tensor& scores, const OptionalTensor& scores_multi,
                             const OptionalTensor& estimates, const at::Tensor& /*labels*/,
                             const OptionalTensor& /*noise*/, const OptionalTensor& /*step*/, int64_t /*seed*/,
                             const std::string& /*settings*/, int64_t /*ignore_index*/) {
  return gradients_like({scores, scores_multi, estimates});
}

std::tuple<at::Tensor, Gradients> call_forward(const Scores& from, const Arguments& arguments, bool with_gradient) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("settrain::loss_forward", "").typed<decltype(loss_forward)>();
  return op.call(from.scores, from.scores_multi, from.estimates, arguments.labels, arguments.noise, arguments.step,
                 arguments.seed, arguments.settings, arguments.ignore_index, with_gradient);
}

Gradients call_gradient(const at::Tensor& outer, const Scores& from, const Arguments& arguments) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("settrain::loss_gradient", "").typed<decltype(loss_gradient)>();
  return op.call(outer, from.scores, from.scores_multi, from.estimates, arguments.labels, arguments.noise,
                 arguments.step, arguments.seed, arguments.settings, arguments.ignore_index);
}

OptionalTensor optional_of(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

struct LossFunction : torch::autograd::Function<LossFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& scores, const OptionalTensor& scores_multi,
                            const OptionalTensor& estimates, const Arguments& arguments) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [per_sample, rows] = call_forward({scores, scores_multi, estimates}, arguments, true);
    const auto defined = [](const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); };
    context->saved_data["given"] = c10::List<bool>({scores_multi.has_value(), estimates.has_value()});
    context->saved_data["dtypes"] =
        c10::List<int64_t>({static_cast<int64_t>(scores.scalar_type()),
                            static_cast<int64_t>(scores_multi ? scores_multi->scalar_type() : scores.scalar_type()),
                            static_cast<int64_t>(estimates ? estimates->scalar_type() : scores.scalar_type())});
    context->saved_data["coupled"] = rows.empty();
    if (!rows.empty()) {
      context->save_for_backward(rows);
      return per_sample;
    }
    // The step may be changed in place before the backward pass.
    const at::Tensor step = arguments.step ? arguments.step->clone() : at::Tensor();
    context->save_for_backward(
        {scores, defined(scores_multi), defined(estimates), arguments.labels, defined(arguments.noise), step});
    context->saved_data["seed"] = arguments.seed;
    context->saved_data["settings"] = arguments.settings;
    context->saved_data["ignore_index"] = arguments.ignore_index;
    return per_sample;
  }

  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    check_first_derivative();
    const variable_list saved = context->get_saved_variables();
    Gradients found;
    if (context->saved_data["coupled"].toBool()) {
      const Scores from{saved[0], optional_of(saved[1]), optional_of(saved[2])};
      const Arguments arguments{saved[3],
                                optional_of(saved[4]),
                                optional_of(saved[5]),
                                context->saved_data["seed"].toInt(),
                                context->saved_data["settings"].toStringRef(),
                                context->saved_data["ignore_index"].toInt()};
      found = call_gradient(outer[0], from, arguments);
    } else {
      for (const at::Tensor& rows : saved) found.push_back(rows * outer[0].unsqueeze(1));
    }
    const auto given = context->saved_data["given"].toBoolList();
    const auto dtypes = context->saved_data["dtypes"].toIntVector();
    variable_list result(4);
    auto next = found.begin();
    for (size_t i = 0; i < 3; ++i) {
      if (i == 0 || given[i - 1]) result[i] = (next++)->to(static_cast<at::ScalarType>(dtypes[i]));
    }
    return result;
  }
};

/// [batch] losses of arguments that are traced.
at::Tensor traced_losses(const Scores& from, const Arguments& arguments) {
  const variable_list tensors = from.tensors();
  if (std::any_of(tensors.begin(), tensors.end(), wants_gradient))
    return LossFunction::apply(from.scores, from.scores_multi, from.estimates, arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  return std::get<0>(call_forward(from, arguments, false));
}

/// [batch] losses, or their sum or mean.
at::Tensor loss_autograd(const at::Tensor& scores, const OptionalTensor& scores_multi, const OptionalTensor& estimates,
                         const at::Tensor& labels, const OptionalTensor& noise, const OptionalTensor& step,
                         int64_t seed, const std::string& settings, int64_t ignore_index,
                         const std::string& reduction) {
  const Scores from{scores, scores_multi, estimates};
  const Arguments arguments{labels, noise, step, seed, settings, ignore_index};
  for (const at::Tensor& tensor : from.tensors()) {
    if (tensor.key_set().has(c10::DispatchKey::FuncTorchGradWrapper)) refuse_transforms();
  }
  if (is_traced(scores)) return reduced(traced_losses(from, arguments), arguments, reduction);
  return with_loss_errors([&] {
    check_matrix(scores);
    return reduced(losses_of(loss_of(settings, scores.size(1)), from, arguments), arguments, reduction);
  });
}

at::Tensor loss_without_gradient(const at::Tensor& scores, const OptionalTensor& scores_multi,
                                 const OptionalTensor& estimates, const at::Tensor& labels, const OptionalTensor& noise,
                                 const OptionalTensor& step, int64_t seed, const std::string& settings,
                                 int64_t ignore_index, const std::string& reduction) {
  const Arguments arguments{labels, noise, step, seed, settings, ignore_index};
  const at::Tensor losses = std::get<0>(call_forward({scores, scores_multi, estimates}, arguments, false));
  return reduced(losses, arguments, reduction);
}

/// Throws ValueError where the settings are wrong whatever the scores are.
void check_loss(const std::string& settings) {
  with_loss_errors([&] { check_settings(settings); });
}

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.def("check_loss(str settings) -> ()", check_loss);
  library.def(
      "loss(Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, Tensor? step, int seed, "
      "str settings, int ignore_index, str reduction) -> Tensor");
  library.def(
      "loss_forward(Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, Tensor? step, "
      "int seed, str settings, int ignore_index, bool with_gradient) -> (Tensor, Tensor[])");
  library.def(
      "loss_gradient(Tensor outer, Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, "
      "Tensor? step, int seed, str settings, int ignore_index) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(settrain, CompositeExplicitAutograd, library) {
  library.impl("loss", loss_without_gradient);
}

TORCH_LIBRARY_IMPL(settrain, CPU, library) {
  library.impl("loss_forward", loss_forward);
  library.impl("loss_gradient", loss_gradient);
}

TORCH_LIBRARY_IMPL(settrain, CUDA, library) {
  library.impl("loss_forward", loss_forward);
  library.impl("loss_gradient", loss_gradient);
}

TORCH_LIBRARY_IMPL(settrain, Meta, library) {
  library.impl("loss_forward", loss_forward_meta);
  library.impl("loss_gradient", loss_gradient_meta);
}

TORCH_LIBRARY_IMPL(settrain, Autograd, library) {
  library.impl("loss", loss_autograd);
}

TORCH_LIBRARY_IMPL(settrain, FuncTorchBatched, library) {
  library.impl("loss", torch::CppFunction::makeFromBoxedFunction<&refuse_vmap>());
}

}  // namespace
}  // namespace settrain

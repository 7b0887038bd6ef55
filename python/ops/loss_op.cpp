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
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "losses/make_loss.h"
#include "losses/ops/loss_kernels.h"
#include "python/ops/recording.h"
#include "python/ops/value_errors.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

using OptionalTensor = std::optional<at::Tensor>;

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
  const config::Config config = config::load({{loss_section(loss_registry())}, {}}, {}, overrides, places);
  for (const config::Curve& curve : config.curves("loss")) {
    config.fail(curve.path + ".from", "only a run of the program has epochs to change it by; give one number");
  }
  return config;
}

/// The entry of the loss that the settings name.
const LossEntry& entry_of(const config::Config& config) {
  return loss_registry().at(config.get<std::string>("loss.name"));
}

struct MadeLoss {
  std::unique_ptr<Loss> loss;
  bool couples_samples, takes_label_sets;
};

/// The loss of those settings: lines "loss.key=value", values in YAML. One for each thread, since a loss keeps tensors
/// of its own; made once for the same arguments.
MadeLoss& loss_of(const std::string& settings, const std::vector<int64_t>& class_counts, int64_t num_classes) {
  constexpr size_t kMostKept = 64;
  thread_local std::map<std::tuple<std::string, std::vector<int64_t>, int64_t>, MadeLoss> made;
  auto key = std::tuple(settings, class_counts, num_classes);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  if (made.size() >= kMostKept) made.clear();
  const config::Config config = loss_config(settings);
  const LossContext context{
      .num_classes = num_classes, .class_counts = class_counts, .train_ids = {}, .train_labels = {}};
  const LossEntry& entry = entry_of(config);
  MadeLoss loss{make_loss(loss_registry(), config, context), entry.couples_samples, entry.takes_label_sets};
  return made.emplace(std::move(key), std::move(loss)).first->second;
}

/// The arguments of the operators that have no gradient.
struct Arguments {
  at::Tensor labels;     // [batch] int64, or [batch, classes]: label sets, in which what is not 0 is a label
  OptionalTensor noise;  // [batch, draws, classes], in place of drawn noise
  OptionalTensor step;   // [] int64, which the noise is a function of
  int64_t seed;
  std::string settings;
  std::vector<int64_t> class_counts;
};

/// The arguments that losses are differentiated by.
struct Scores {
  at::Tensor scores;
  OptionalTensor scores_multi, estimates;

  /// The given ones of the three, in this order.
  variable_list tensors() const {
    variable_list given{scores};
    if (scores_multi) given.push_back(*scores_multi);
    if (estimates) given.push_back(*estimates);
    return given;
  }
};

/// Half precision is computed in float32.
at::ScalarType dtype_of_losses(const at::Tensor& scores) {
  return scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// Throws ShapeError unless the scores have two dimensions.
void check_matrix(const at::Tensor& scores) {
  if (scores.dim() == 2) return;
  throw ShapeError("scores: expected [batch, classes], got " + std::to_string(scores.dim()) + " dimensions");
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

/// Throws ShapeError for label sets that the loss does not take.
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
                                               const std::string& settings, at::IntArrayRef class_counts,
                                               bool with_gradient) {
  return with_value_errors([&]() -> std::tuple<at::Tensor, Gradients> {
    check_matrix(scores);
    MadeLoss& made = loss_of(settings, class_counts.vec(), scores.size(1));
    const Scores given{scores, scores_multi, estimates};
    const Arguments arguments{labels, noise, step, seed, settings, {}};
    if (!with_gradient || made.couples_samples) {
      const at::NoGradGuard no_grad;
      return {(*made.loss)(input_of(made, given, arguments)).per_sample, Gradients{}};
    }
    const Recording recording;
    const Scores leaves = leaves_of(given);
    const at::Tensor per_sample = (*made.loss)(input_of(made, leaves, arguments)).per_sample;
    Gradients rows = gradients(per_sample, ones_like_losses(per_sample), leaves);
    return {per_sample.detach(), std::move(rows)};
  });
}

/// The gradients of sum_i outer_i loss_i, [batch] float, by scores, scores_multi and estimates, those that there are.
Gradients loss_gradient(const at::Tensor& outer, const at::Tensor& scores, const OptionalTensor& scores_multi,
                        const OptionalTensor& estimates, const at::Tensor& labels, const OptionalTensor& noise,
                        const OptionalTensor& step, int64_t seed, const std::string& settings,
                        at::IntArrayRef class_counts) {
  return with_value_errors([&] {
    MadeLoss& made = loss_of(settings, class_counts.vec(), scores.size(1));
    const Recording recording;
    const Scores leaves = leaves_of({scores, scores_multi, estimates});
    const Arguments arguments{labels, noise, step, seed, settings, {}};
    const at::Tensor per_sample = (*made.loss)(input_of(made, leaves, arguments)).per_sample;
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
                                                    at::IntArrayRef /*class_counts*/, bool with_gradient) {
  const bool has_rows =
      with_gradient && !with_value_errors([&] { return entry_of(loss_config(settings)).couples_samples; });
  return {losses_like(scores), has_rows ? gradients_like({scores, scores_multi, estimates}) : Gradients{}};
}

Gradients loss_gradient_meta(const at::Tensor& /*outer*/, const at::Tensor& scores, const OptionalTensor& scores_multi,
                             const OptionalTensor& estimates, const at::Tensor& /*labels*/,
                             const OptionalTensor& /*noise*/, const OptionalTensor& /*step*/, int64_t /*seed*/,
                             const std::string& /*settings*/, at::IntArrayRef /*class_counts*/) {
  return gradients_like({scores, scores_multi, estimates});
}

std::tuple<at::Tensor, Gradients> call_forward(const Scores& from, const Arguments& arguments, bool with_gradient) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("settrain::loss_forward", "").typed<decltype(loss_forward)>();
  return op.call(from.scores, from.scores_multi, from.estimates, arguments.labels, arguments.noise, arguments.step,
                 arguments.seed, arguments.settings, arguments.class_counts, with_gradient);
}

Gradients call_gradient(const at::Tensor& outer, const Scores& from, const Arguments& arguments) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("settrain::loss_gradient", "").typed<decltype(loss_gradient)>();
  return op.call(outer, from.scores, from.scores_multi, from.estimates, arguments.labels, arguments.noise,
                 arguments.step, arguments.seed, arguments.settings, arguments.class_counts);
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
    context->saved_data["class_counts"] = arguments.class_counts;
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
                                context->saved_data["class_counts"].toIntVector()};
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

/// Whether these are tensors without data, or operations are recorded by another than autograd: torch.compile.
bool is_traced(const at::Tensor& scores) {
  return scores.is_meta() || scores.key_set().has(c10::DispatchKey::Python) || c10::impl::dispatch_mode_enabled();
}

/// [batch] losses.
at::Tensor loss_autograd(const at::Tensor& scores, const OptionalTensor& scores_multi, const OptionalTensor& estimates,
                         const at::Tensor& labels, const OptionalTensor& noise, const OptionalTensor& step,
                         int64_t seed, const std::string& settings, at::IntArrayRef class_counts) {
  const Scores from{scores, scores_multi, estimates};
  const Arguments arguments{labels, noise, step, seed, settings, class_counts.vec()};
  if (!is_traced(scores)) {
    return with_value_errors([&] {
      check_matrix(scores);
      MadeLoss& made = loss_of(settings, arguments.class_counts, scores.size(1));
      return (*made.loss)(input_of(made, from, arguments)).per_sample;
    });
  }
  const variable_list tensors = from.tensors();
  if (std::any_of(tensors.begin(), tensors.end(), wants_gradient))
    return LossFunction::apply(scores, scores_multi, estimates, arguments);
  const at::AutoDispatchBelowADInplaceOrView below;
  return std::get<0>(call_forward(from, arguments, false));
}

at::Tensor loss_without_gradient(const at::Tensor& scores, const OptionalTensor& scores_multi,
                                 const OptionalTensor& estimates, const at::Tensor& labels, const OptionalTensor& noise,
                                 const OptionalTensor& step, int64_t seed, const std::string& settings,
                                 at::IntArrayRef class_counts) {
  return std::get<0>(call_forward({scores, scores_multi, estimates},
                                  {labels, noise, step, seed, settings, class_counts.vec()}, false));
}

/// Throws ValueError where the settings are wrong whatever the scores are.
void check_loss(const std::string& settings) {
  with_value_errors([&] { loss_config(settings); });
}

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.def("check_loss(str settings) -> ()", check_loss);
  library.def(
      "loss(Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, Tensor? step, int seed, "
      "str settings, int[] class_counts) -> Tensor");
  library.def(
      "loss_forward(Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, Tensor? step, "
      "int seed, str settings, int[] class_counts, bool with_gradient) -> (Tensor, Tensor[])");
  library.def(
      "loss_gradient(Tensor outer, Tensor scores, Tensor? scores_multi, Tensor? estimates, Tensor labels, Tensor? noise, "
      "Tensor? step, int seed, str settings, int[] class_counts) -> Tensor[]");
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

}  // namespace
}  // namespace settrain

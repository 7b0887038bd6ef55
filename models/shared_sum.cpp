#include "models/shared_sum.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct KeptSum : torch::CustomClassHolder {
  explicit KeptSum(SumOverProcesses kept) : sum(std::move(kept)) {}

  SumOverProcesses sum;
};

class SharedSum : public torch::autograd::Function<SharedSum> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& mine, const SumOverProcesses& sum) {
    context->saved_data["sum"] = at::IValue::make_capsule(c10::make_intrusive<KeptSum>(sum));
    return sum(mine);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto kept = c10::static_intrusive_pointer_cast<KeptSum>(context->saved_data["sum"].toCapsule());
    return {kept->sum(gradients[0].contiguous()), at::Tensor()};
  }
};

}  // namespace

at::Tensor shared_sum(const at::Tensor& mine, const SumOverProcesses& sum) {
  return SharedSum::apply(mine, sum);
}

}  // namespace settrain

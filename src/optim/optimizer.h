// What an optimizer is to the rest of the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/core/registry.h"

namespace settrain {

/// Base of every optimizer: moves parameters along their gradients.
class Optimizer {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Optimizer() = default;

  void zero_grad();

  /// Updates every parameter that has a gradient. `lr`: optimizer.lr times the schedule's factor at this step.
  virtual void step(double lr) = 0;

  /// The tensors that its next steps depend on, "momentum.fc.weight": saved in checkpoints, which copy into them.
  virtual Named state() const = 0;

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 protected:
  /// `parameters`: by name; all on one device, all requiring gradients.
  explicit Optimizer(const Named& parameters);

  /// One tensor a parameter, as "kind.parameter".
  Named named(const std::string& kind, const std::vector<at::Tensor>& tensors) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
};

/// `keys` are the keys of the section `optimizer` that only this one has; `lr` is among them. `make` may treat
/// parameters differently by their names and shapes.
struct OptimizerEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  int64_t state_size = 0;  // numbers that state() holds for each parameter
  std::function<std::unique_ptr<Optimizer>(const config::Config&, const Optimizer::Named& parameters)> make;
  config::Rule rule = {};  // on its keys, where it has one
};

using OptimizerRegistry = Registry<OptimizerEntry>;

/// Adds every optimizer of this folder.
void register_builtin_optimizers(OptimizerRegistry& registry);

/// The section `optimizer` of a config: the registry's optimizers with their keys.
config::Section optimizer_section(const OptimizerRegistry& registry);

/// The rule of the optimizer that a config names. `registry` outlives it.
config::Rule optimizer_rule(const OptimizerRegistry& registry);

}  // namespace settrain

// Optimizers: their interface, the section `optimizer` of a config, and clipping of gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/config/schema.h"
#include "src/core/registry.h"

namespace settrain {

/// A parameter with its name, and how it is trained.
struct TrainedParameter {
  std::string name;
  at::Tensor tensor;
  double lr_factor = 1;  // on the step's learning rate
  bool decays = true;    // whether weight decay applies to it
};

using TrainedParameters = std::vector<TrainedParameter>;

/// The places of a network's parameters in it, by name.
struct ParameterPlaces {
  std::set<std::string> head;                        // those of the head
  std::map<std::string, int64_t> layers_below_head;  // of a parameter that is not named, 0
};

/// Base of every optimizer: moves parameters along their gradients.
class Optimizer {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Optimizer() = default;

  void zero_grad();

  /// Updates every parameter that has a gradient. `lr`: [], optimizer.lr times the schedule's factor at this step, in
  /// float64 on the CPU and, for parameters on a GPU, in float32 there, as ATen's fused steps read it. `stop`: []
  /// float32 on the parameters' device; where it is given and 1 they are left as they are. Does not wait for the
  /// device.
  virtual void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop = {}) = 0;

  /// The tensors that its next steps depend on, "momentum.fc.weight": saved in checkpoints, which copy into them.
  virtual Named state() const = 0;

  std::vector<at::Tensor> parameters() const;

 protected:
  /// `parameters`: all on one device, all requiring gradients.
  explicit Optimizer(TrainedParameters parameters) : parameters_(std::move(parameters)) {}

  /// Parameters that have a gradient and are trained alike: those of one fused call.
  struct Group {
    double lr_factor;
    bool decays;
    std::vector<size_t> members;
    std::vector<at::Tensor> parameters, gradients;

    /// The members' tensors out of `all`, which has one a parameter.
    std::vector<at::Tensor> pick(const std::vector<at::Tensor>& all) const;
    /// The learning rate of its parameters.
    at::Tensor own_lr(const at::Tensor& lr) const { return lr_factor == 1 ? lr : lr.mul(lr_factor); }
  };

  std::vector<Group> groups() const;

  /// A tensor of zeros a parameter.
  std::vector<at::Tensor> zeros() const;

  /// One tensor a parameter, as "kind.parameter".
  Named named(const std::string& kind, const std::vector<at::Tensor>& tensors) const;

 private:
  TrainedParameters parameters_;
};

/// `keys` are the keys of the section `optimizer` that only this one has; learning_rate_key() is among them.
struct OptimizerEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  int64_t state_size = 0;  // numbers that state() holds for each parameter
  std::function<std::unique_ptr<Optimizer>(const config::Config&, const TrainedParameters&)> make;
  config::Rule rule = {};  // on its keys, where it has one
};

using OptimizerRegistry = Registry<OptimizerEntry>;

OptimizerEntry sgd_entry();
OptimizerEntry adamw_entry();

/// Adds every optimizer of this folder.
void register_builtin_optimizers(OptimizerRegistry& registry);

/// The key `lr`, with the optimizer's own default.
template <class Options>
config::Key learning_rate_key(double Options::*member, double default_value) {
  return config::key("lr", member, default_value,
                     "Initial learning rate, which the schedule multiplies; 0 leaves the weights unchanged.")
      .at_least(0);
}

/// The section `optimizer` of a config: the keys that every optimizer has, such as optimizer.no_decay and
/// optimizer.layer_decay, and the registry's optimizers with their own.
config::Section optimizer_section(const OptimizerRegistry& registry);

/// The rule of the optimizer that a config names. `registry` outlives it.
config::Rule optimizer_rule(const OptimizerRegistry& registry);

/// The optimizer of these parameters, as the config says. A normalisation layer is known by its one-dimensional
/// `weight`, and the `bias` beside it is its own; tokens and position embeddings by their shape, [1, tokens, features].
std::unique_ptr<Optimizer> make_optimizer(const OptimizerEntry& entry, const config::Config& config,
                                          const Optimizer::Named& parameters, const ParameterPlaces& places);

/// Scales all gradients by max_norm / norm where their joint Euclidean norm is above `max_norm`, and returns the norm
/// before, [] float, without waiting for the device.
at::Tensor clip_gradients(std::span<const at::Tensor> parameters, double max_norm);

}  // namespace settrain

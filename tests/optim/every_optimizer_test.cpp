#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "tests/support/catch2.h"
#include "tests/support/optimizers.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using test::builtin_optimizers;
using test::optimizer_schema;

config::Config config_of(const OptimizerEntry& entry, const std::vector<std::string>& settings = {}) {
  return test::optimizer_config(entry.name, settings);
}

// A matrix, a row and a parameter that never has a gradient, with their optimizer.
struct Subject {
  Optimizer::Named parameters;
  std::unique_ptr<Optimizer> optimizer;

  explicit Subject(const OptimizerEntry& entry, const std::vector<std::string>& settings = {}) {
    at::manual_seed(7);
    parameters = {{"fc.weight", at::randn({3, 2})}, {"fc.bias", at::randn({3})}, {"unused", at::randn({4})}};
    for (auto& [name, parameter] : parameters) parameter.requires_grad_(true);
    optimizer = make_optimizer(entry, config_of(entry, settings), parameters, {{"fc.weight", "fc.bias"}, {}});
  }

  at::Tensor distance() const { return parameters[0].second.square().sum() + parameters[1].second.square().sum(); }

  void step() {
    optimizer->zero_grad();
    distance().backward();
    optimizer->step(at::scalar_tensor(0.01, at::kDouble));
  }
};

TEST_CASE("Every optimizer: steps go down, and leave alone what has no gradient") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    Subject subject(entry);
    CHECK(subject.optimizer->parameters().size() == subject.parameters.size());
    const at::Tensor unused = subject.parameters[2].second.detach().clone();
    for (int i = 0; i < 5; ++i) {
      const auto before = subject.distance().item<double>();
      subject.step();
      CHECK(subject.distance().item<double>() < before);
    }
    CHECK(at::equal(subject.parameters[2].second, unused));
    subject.optimizer->zero_grad();
    for (const at::Tensor& parameter : subject.optimizer->parameters()) CHECK_FALSE(parameter.grad().defined());
  }
}

TEST_CASE("Every optimizer: with the state of another it goes on with the same bits") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    Subject first(entry), second(entry);
    for (int i = 0; i < 3; ++i) first.step();
    {
      const c10::NoGradGuard no_grad;
      for (size_t i = 0; i < first.parameters.size(); ++i) {
        second.parameters[i].second.copy_(first.parameters[i].second);
      }
      const Optimizer::Named from = first.optimizer->state(), to = second.optimizer->state();
      REQUIRE(from.size() == to.size());
      for (size_t i = 0; i < from.size(); ++i) {
        CHECK(from[i].first == to[i].first);
        to[i].second.copy_(from[i].second);
      }
    }
    first.step();
    second.step();
    for (size_t i = 0; i < first.parameters.size(); ++i) {
      CHECK(at::equal(first.parameters[i].second, second.parameters[i].second));
    }
  }
}

TEST_CASE("Every optimizer: a step that is stopped changes no parameter") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    Subject stopped(entry), plain(entry);
    const std::vector<at::Tensor> before{stopped.parameters[0].second.detach().clone(),
                                         stopped.parameters[1].second.detach().clone()};
    const auto step = [](Subject& subject, float stop) {
      subject.optimizer->zero_grad();
      subject.distance().backward();
      subject.optimizer->step(at::scalar_tensor(0.01, at::kDouble), at::scalar_tensor(stop));
    };
    step(stopped, 1);
    CHECK(stopped.parameters[0].second.equal(before[0]));
    CHECK(stopped.parameters[1].second.equal(before[1]));
    step(stopped, 0);
    plain.step();
    CHECK_FALSE(plain.parameters[0].second.equal(before[0]));
    if (entry.name == "sgd") CHECK(stopped.parameters[0].second.equal(plain.parameters[0].second));
  }
}

TEST_CASE("Every optimizer: a learning rate of the head's own, and parameters without weight decay") {
  const std::string decay = "optimizer.weight_decay=0.5";
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    const auto after_steps = [&](const std::vector<std::string>& settings, double lr) {
      Subject subject(entry, settings);
      for (int i = 0; i < 3; ++i) {
        subject.optimizer->zero_grad();
        subject.distance().backward();
        subject.optimizer->step(at::scalar_tensor(lr, at::kDouble));
      }
      return std::pair(subject.parameters[0].second.detach(), subject.parameters[1].second.detach());
    };
    const auto [weight, bias] = after_steps({decay}, 0.02);
    const auto [head_weight, head_bias] = after_steps({decay, "optimizer.head_lr_factor=4"}, 0.005);
    CHECK(at::equal(head_weight, weight));
    CHECK(at::equal(head_bias, bias));
    const auto [decayed, spared] = after_steps({decay, "optimizer.no_decay=[bias]"}, 0.02);
    CHECK(at::equal(decayed, weight));
    CHECK_FALSE(at::equal(spared, bias));
    CHECK(at::equal(spared, after_steps({"optimizer.weight_decay=0"}, 0.02).second));
  }
}

TEST_CASE("Weight decay spares the parameters of the kinds that are named") {
  const at::Tensor matrix = at::ones({2, 2}), row = at::ones({2});
  const Optimizer::Named parameters{{"conv.weight", at::ones({2, 2, 3, 3})},
                                    {"bn.weight", row},
                                    {"bn.bias", row},
                                    {"attention.in_proj_bias", row},
                                    {"fc.weight", matrix},
                                    {"fc.bias", row},
                                    {"layer_scale", at::ones({2, 1, 1})},
                                    {"gamma", row},
                                    {"temperature", at::ones({})},
                                    {"cls_token", at::ones({1, 1, 2})},
                                    {"pos_embed", at::ones({1, 5, 2})}};
  const auto spared = [&](const config::Texts& no_decay) {
    std::set<std::string> names;
    OptimizerEntry entry = sgd_entry();
    entry.make = [&](const config::Config&, const TrainedParameters& trained) {
      for (const TrainedParameter& parameter : trained) {
        if (!parameter.decays) names.insert(parameter.name);
        CHECK(parameter.lr_factor == (parameter.name.starts_with("fc.") ? 3 : 1));
      }
      return nullptr;
    };
    const std::string kinds = fmt::format("optimizer.no_decay=[{}]", fmt::join(no_decay, ", "));
    make_optimizer(entry, config_of(entry, {kinds, "optimizer.head_lr_factor=3"}), parameters,
                   {{"fc.weight", "fc.bias"}, {}});
    return names;
  };
  CHECK(spared({}).empty());
  CHECK(spared({"norm"}) == std::set<std::string>{"bn.bias", "bn.weight"});
  CHECK(spared({"bias"}) == std::set<std::string>{"attention.in_proj_bias", "fc.bias"});
  CHECK(spared({"bias", "norm"}).size() == 4);
  CHECK(spared({"token"}) == std::set<std::string>{"cls_token", "pos_embed"});
  CHECK(spared({"one_dimensional"}) == std::set<std::string>{"attention.in_proj_bias", "bn.bias", "bn.weight",
                                                             "fc.bias", "gamma", "layer_scale", "temperature"});
}

TEST_CASE("Rates fall by layer below the head") {
  Optimizer::Named parameters;
  std::map<std::string, double> factors;
  for (const char* name : {"stem", "block.1", "block.10", "fc.weight", "elsewhere"}) {
    parameters.emplace_back(name, at::ones({2, 2}));
  }
  OptimizerEntry entry = sgd_entry();
  entry.make = [&](const config::Config&, const TrainedParameters& trained) {
    for (const TrainedParameter& parameter : trained) factors[parameter.name] = parameter.lr_factor;
    return nullptr;
  };
  make_optimizer(entry, config_of(entry, {"optimizer.layer_decay=0.5", "optimizer.head_lr_factor=3"}), parameters,
                 {{"fc.weight"}, {{"stem", 12}, {"block.1", 10}, {"block.10", 1}, {"fc.weight", 0}}});
  CHECK(factors ==
        std::map<std::string, double>{
            {"stem", 1. / 4096}, {"block.1", 1. / 1024}, {"block.10", 0.5}, {"fc.weight", 3}, {"elsewhere", 1}});
}

TEST_CASE("Every optimizer refuses what no optimizer can do") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    for (const char* wrong : {"lr=-1", "weight_decay=-0.1", "head_lr_factor=-1", "no_decay=[norms]",
                              "no_decay=[bias, bias]", "layer_decay=0", "layer_decay=1.1"}) {
      CAPTURE(wrong);
      const std::string setting = std::string("optimizer.") + wrong;
      CHECK_THROWS_WITH(config_of(entry, {setting}), Catch::Contains(setting.substr(0, setting.find('='))));
    }
  }
}

TEST_CASE("Every optimizer: its state has a name each, and the size that the entry says") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    const Subject subject(entry);
    std::set<std::string> names;
    int64_t numbers = 0, parameters = 0;
    for (const auto& [name, tensor] : subject.optimizer->state()) {
      CHECK(names.insert(name).second);
      if (tensor.dim() > 0) numbers += tensor.numel();  // a count of steps hardly counts
    }
    for (const auto& [name, parameter] : subject.parameters) parameters += parameter.numel();
    CHECK(numbers == entry.state_size * parameters);
  }
}

TEST_CASE("Every optimizer: its config comes back as it was, and has a learning rate") {
  for (const OptimizerEntry& entry : builtin_optimizers().entries()) {
    CAPTURE(entry.name);
    const config::Config config = config_of(entry);
    CHECK(config.get<double>("optimizer.lr") > 0);
    const test::TemporaryFolder folder;
    const auto file = folder.write("run.yaml", config.to_yaml());
    CHECK(config::load(optimizer_schema(), file, {}).to_yaml() == config.to_yaml());
  }
}

TEST_CASE("Nesterov without momentum is refused where it was written") {
  CHECK_THROWS_WITH(config::load(optimizer_schema(), {}, {"optimizer.momentum=0"}),
                    Catch::Contains("optimizer.nesterov") && Catch::Contains("optimizer.nesterov: false"));
  CHECK_NOTHROW(config::load(optimizer_schema(), {}, {"optimizer.momentum=0", "optimizer.nesterov=false"}));
}

}  // namespace
}  // namespace settrain

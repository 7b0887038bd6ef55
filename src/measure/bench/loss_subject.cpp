#include "src/measure/bench/loss_subject.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "losses/make_loss.h"
#include "src/config/load.h"
#include "src/measure/bench/timing.h"

namespace settrain {
namespace {

constexpr uint64_t kSeed = 4;
constexpr int64_t kLabelsOfASet = 3;

bool has_key(const LossEntry& entry, const std::string& name) {
  return std::any_of(entry.keys.begin(), entry.keys.end(), [&](const config::Key& key) { return key.name == name; });
}

// 500 images of the first class, 5 of the last, as in CIFAR-100-LT.
std::vector<int64_t> long_tail(int64_t classes) {
  std::vector<int64_t> counts;
  for (int64_t j = 0; j < classes; ++j) {
    const double rank = static_cast<double>(j) / static_cast<double>(std::max<int64_t>(classes - 1, 1));
    counts.push_back(std::lround(500 * std::pow(0.01, rank)));
  }
  return counts;
}

// The batch is all of the training images: a loss with a row of its own for each would take the same time with more.
LossContext context_of(const at::Tensor& labels, int64_t classes) {
  LossContext context{.num_classes = classes,
                      .class_counts = long_tail(classes),
                      .train_ids = std::vector<int64_t>(static_cast<size_t>(labels.size(0))),
                      .train_labels = {},
                      .seed = kSeed};
  std::iota(context.train_ids.begin(), context.train_ids.end(), int64_t{0});
  const auto* first = labels.const_data_ptr<int64_t>();
  context.train_labels.assign(first, first + labels.size(0));
  return context;
}

}  // namespace

bool LossSubject::draws_noise(const LossEntry& entry) {
  return has_key(entry, "num_draws");
}

config::Config loss_config(const LossRegistry& registry, const LossCase& what,
                           const std::vector<std::string>& settings) {
  const LossEntry& entry = registry.at(what.loss);
  std::vector<std::string> all{"loss.name=" + what.loss};
  const auto give = [&](const char* key, const auto& value) {
    if (has_key(entry, key)) all.push_back(fmt::format("loss.{}={}", key, value));
  };
  give("k", what.k);
  give("epsilon", what.epsilon);
  give("num_draws", what.draws);
  all.insert(all.end(), settings.begin(), settings.end());
  return config::load({{loss_section(registry)}, {}}, {}, all);
}

LossSubject::LossSubject(const LossRegistry& registry, const LossCase& what, at::Device device) {
  at::Generator generator = at::detail::createCPUGenerator(kSeed);
  const auto normals = [&] { return at::randn({what.batch, what.classes}, generator); };
  const at::Tensor scores = normals(), multi = normals();
  const at::Tensor labels = at::randint(what.classes, {what.batch}, generator, at::kLong);
  const at::Tensor further = at::randint(what.classes, {what.batch, kLabelsOfASet - 1}, generator, at::kLong);

  const LossEntry& entry = registry.at(what.loss);
  const LossContext context = context_of(labels, what.classes);
  LossCase scaled = what;
  config::Config config = loss_config(registry, scaled);
  loss_ = make_loss(registry, config, context);
  const double scale = entry.requirements.normalised_head ? loss_->score_scale() : 1.0;
  if (scale != 1) {
    scaled.epsilon /= scale;
    config = loss_config(registry, scaled);
    loss_ = make_loss(registry, config, context);
  }
  loss_->state();  // a loss may make its tensors when they are first asked for
  if (entry.has_kernels && draws_noise(entry) && what.method == LossMethod::kFast) {
    pruned_ = config.read<SampledTopkOptions>("loss");
  }

  const auto leaf = [&](const at::Tensor& made) {
    return made.mul(what.scores_sd / scale).to(device).requires_grad_();
  };
  input_.method = what.method;
  input_.output.scores = leaf(scores);
  if (entry.requirements.two_heads) input_.output.scores_multi = leaf(multi);
  input_.labels = labels.to(device);
  if (entry.takes_label_sets) {
    const at::Tensor ends = at::arange(0, kLabelsOfASet * what.batch + 1, kLabelsOfASet, at::kLong);
    input_.label_sets = {ends.to(device), at::cat({labels.unsqueeze(1), further}, 1).flatten().to(device)};
  }
  input_.sample_ids = at::arange(what.batch, at::kLong);
  input_.noise_key = {.seed = kSeed, .step = 0, .first_position = 0};
}

void LossSubject::forget_gradients() {
  input_.output.scores.mutable_grad().reset();
  if (input_.output.scores_multi.defined()) input_.output.scores_multi.mutable_grad().reset();
}

LossValue LossSubject::forward() {
  forget_gradients();
  ++input_.noise_key.step;
  return (*loss_)(input_);
}

void LossSubject::backward(const LossValue& value) {
  value.sum.backward();
  loss_->update(/*lr=*/1e-3, /*schedule_factor=*/1);
}

void LossSubject::step() {
  backward(forward());
}

std::optional<double> LossSubject::drawn_classes() const {
  if (!pruned_) return std::nullopt;
  return settrain::drawn_classes(input_.output.scores.detach(), *pruned_, input_.noise_key)
      .to(at::kDouble)
      .mean()
      .item<double>();
}

double LossSubject::memory() {
  const auto& scores = input_.output.scores;
  forget_gradients();
  return static_cast<double>(peak_allocations(scores.device(), [this] { step(); })) /
         static_cast<double>(scores.nbytes());
}

}  // namespace settrain

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"
#include "src/core/error.h"
#include "src/core/random.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

double logit(double p) {
  return std::log(p / (1 - p));
}

/// How the estimates move, by the keys loss.theta_optimizer.
struct EstimateOptimizer {
  enum Name { kSgd, kAdam };
  Name name = kSgd;
  double lr = 0;  // 0: a multiple of the network's
  double momentum = 0, beta1 = 0, beta2 = 0, eps = 0;
  bool nesterov = false;

  static config::Keys keys();
  static void check(const config::Config& config);
};

/// Estimated labels of every training sample: a row of logits each, float32 and on the CPU, with an optimizer of their
/// own. It counts the steps of each row by itself: a row has a gradient about once an epoch, and is left alone in
/// between, as by PyTorch's SparseAdam.
class LabelEstimates {
 public:
  /// Row i belongs to the sample ids[i]. Its logits are drawn uniformly between the logits of the probabilities 0.4 and
  /// 0.6, as a function of (seed, id, class); labels[i] gets the logit of 0.995 (Cole et al.'s code). They are drawn
  /// when they are first asked for, since evaluating a run does not take them.
  LabelEstimates(const LossContext& context, const EstimateOptimizer& optimizer)
      : ids_(context.train_ids),
        labels_(context.train_labels),
        num_classes_(context.num_classes),
        seed_(context.seed),
        optimizer_(optimizer) {}

  /// [samples, classes]
  const at::Tensor& logits() {
    if (!logits_.defined()) draw();
    return logits_;
  }

  /// The logits, and what the optimizer remembers of them.
  std::vector<std::pair<std::string, at::Tensor>> state() {
    std::vector<std::pair<std::string, at::Tensor>> all{{"theta", logits()}};
    if (optimizer_.name == EstimateOptimizer::kAdam) {
      all.emplace_back("theta_exp_avg", average_);
      all.emplace_back("theta_exp_avg_sq", square_average_);
      all.emplace_back("theta_steps", steps_);
    } else if (optimizer_.momentum > 0) {
      all.emplace_back("theta_momentum", average_);
    }
    return all;
  }

  /// [batch, classes] the rows of these samples ([batch] int64 on the CPU) in the dtype and on the device of `like`, to
  /// be differentiated through; remembered until update(). Throws ShapeError for a sample without a row.
  at::Tensor take(const at::Tensor& sample_ids, const at::Tensor& like) {
    check_shape("sample_ids", sample_ids.sizes(), {like.size(0)});
    const at::Tensor& all = logits();
    Taken taken{at::empty({sample_ids.size(0)}, at::kLong), {}};
    const at::Tensor ids = sample_ids.contiguous();
    for (int64_t i = 0; i < ids.size(0); ++i) {
      const auto found = row_of_.find(ids.const_data_ptr<int64_t>()[i]);
      if (found == row_of_.end()) {
        throw ShapeError(fmt::format("sample_ids[{}]: expected the id of a training sample, got {}", i,
                                     ids.const_data_ptr<int64_t>()[i]));
      }
      taken.rows.mutable_data_ptr<int64_t>()[i] = found->second;
    }
    const c10::NoGradGuard no_grad;
    taken.logits = all.index_select(0, taken.rows).to(like.options()).requires_grad_();
    taken_.push_back(taken);
    return taken.logits;
  }

  /// Moves every row that was taken and has a gradient by a step of the optimizer, and forgets which rows were taken. A
  /// row that was taken several times moves once, by the sum of its gradients.
  void update(double lr) {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> taken_rows, gradients;
    for (const Taken& taken : taken_) {
      if (!taken.logits.grad().defined()) continue;
      taken_rows.push_back(taken.rows);
      gradients.push_back(taken.logits.grad().to(logits_.options()));
    }
    taken_.clear();
    if (gradients.empty()) return;
    const auto [rows, place, counts] = at::_unique2(at::cat(taken_rows), /*sorted=*/true, /*return_inverse=*/true);
    const at::Tensor gradient = at::zeros({rows.size(0), num_classes_}, logits_.options());
    gradient.index_add_(0, place, at::cat(gradients));
    logits_.index_add_(0, rows, direction(rows, gradient), -lr);
  }

 private:
  struct Taken {
    at::Tensor rows;    // [batch] int64
    at::Tensor logits;  // [batch, classes], a leaf
  };

  // [rows, classes] what the learning rate multiplies, as PyTorch's SGD and Adam have it; remembers the gradient.
  at::Tensor direction(const at::Tensor& rows, const at::Tensor& gradient) {
    if (optimizer_.name == EstimateOptimizer::kSgd) {
      if (optimizer_.momentum == 0) return gradient;
      const at::Tensor velocity = average_.index_select(0, rows).mul(optimizer_.momentum).add(gradient);
      average_.index_copy_(0, rows, velocity);
      return optimizer_.nesterov ? gradient.add(velocity, optimizer_.momentum) : velocity;
    }
    const auto mixed = [&rows](const at::Tensor& average, const at::Tensor& latest, double beta) {
      const at::Tensor now = average.index_select(0, rows).mul(beta).add(latest, 1 - beta);
      average.index_copy_(0, rows, now);
      return now;
    };
    const at::Tensor steps = steps_.index_select(0, rows).add(1);
    steps_.index_copy_(0, rows, steps);
    const auto corrected = [&steps](const at::Tensor& average, double beta) {
      const at::Tensor weight = at::pow(beta, steps.to(at::kDouble)).neg().add(1).unsqueeze(1);
      return average.div(weight.to(average.scalar_type()));
    };
    const at::Tensor m = mixed(average_, gradient, optimizer_.beta1);
    const at::Tensor v = mixed(square_average_, gradient.square(), optimizer_.beta2);
    return corrected(m, optimizer_.beta1).div(corrected(v, optimizer_.beta2).sqrt().add(optimizer_.eps));
  }

  void draw() {
    logits_ = at::empty({static_cast<int64_t>(ids_.size()), num_classes_}, at::kFloat);
    const bool is_adam = optimizer_.name == EstimateOptimizer::kAdam;
    if (is_adam || optimizer_.momentum > 0) average_ = at::zeros(logits_.sizes(), logits_.options());
    if (is_adam) {
      square_average_ = at::zeros(logits_.sizes(), logits_.options());
      steps_ = at::zeros({logits_.size(0)}, at::kLong);
    }
    const double largest = logit(0.6);
    float* row = logits_.mutable_data_ptr<float>();
    for (size_t i = 0; i < ids_.size(); ++i, row += num_classes_) {
      row_of_.emplace(ids_[i], static_cast<int64_t>(i));
      for (int64_t j = 0; j < num_classes_; j += 2) {
        const auto words =
            random_words(seed_, Stream::kLabelEstimates, static_cast<uint32_t>(ids_[i]), static_cast<uint32_t>(j / 2));
        row[j] = static_cast<float>(largest * (2 * unit_double(words[0], words[1]) - 1));
        if (j + 1 < num_classes_) row[j + 1] = static_cast<float>(largest * (2 * unit_double(words[2], words[3]) - 1));
      }
      row[labels_[i]] = static_cast<float>(logit(0.995));
    }
  }

  std::vector<int64_t> ids_, labels_;
  int64_t num_classes_;
  uint64_t seed_;
  EstimateOptimizer optimizer_;
  std::unordered_map<int64_t, int64_t> row_of_;  // by sample id
  at::Tensor logits_;                            // undefined until they are drawn, as are those below
  at::Tensor average_, square_average_;          // of the gradients, [samples, classes]
  at::Tensor steps_;                             // [samples] int64, of each row
  std::vector<Taken> taken_;
};

config::Keys EstimateOptimizer::keys() {
  using Options = EstimateOptimizer;
  return {
      config::key("theta_optimizer.name", &Options::name, kSgd,
                  "What moves the estimated labels. sgd without momentum leaves them near their random start unless "
                  "the rate is of the order classes * batch size; adam's steps do not depend on the size of the "
                  "gradients. Both count steps per sample: only those in which it has a gradient.",
                  {{"sgd", kSgd}, {"adam", kAdam}}),
      config::key("theta_optimizer.lr", &Options::lr, 0.0,
                  "Learning rate of the estimated labels, which the schedule multiplies as it does optimizer.lr. 0: "
                  "loss.theta_lr times the optimizer's.")
          .at_least(0),
      config::key("theta_optimizer.momentum", &Options::momentum, 0.0, "sgd: momentum of each row.")
          .at_least(0)
          .below(1),
      config::key("theta_optimizer.nesterov", &Options::nesterov, false, "sgd: Nesterov momentum."),
      config::key("theta_optimizer.beta1", &Options::beta1, 0.9, "adam: decay of the moving average of gradients.")
          .at_least(0)
          .below(1),
      config::key("theta_optimizer.beta2", &Options::beta2, 0.999,
                  "adam: decay of the moving average of squared gradients.")
          .at_least(0)
          .below(1),
      config::key("theta_optimizer.eps", &Options::eps, 1e-8,
                  "adam: added to the root of the squared gradients' average.")
          .above(0)};
}

void EstimateOptimizer::check(const config::Config& config) {
  const auto options = config.read<EstimateOptimizer>("loss");
  const std::string path = "loss.theta_optimizer.";
  for (const char* key : {"momentum", "nesterov"}) {
    config.refuse_unread(path + key, options.name == kSgd, path + "name: sgd");
  }
  for (const char* key : {"beta1", "beta2", "eps"}) {
    config.refuse_unread(path + key, options.name == kAdam, path + "name: adam");
  }
  config.refuse_unread("loss.theta_lr", options.lr == 0, path + "lr: 0");
  if (options.nesterov && options.momentum == 0) config.fail(path + "nesterov", "needs " + path + "momentum above 0");
}

struct RoleOptions {
  int64_t k;
  double lambda, theta_lr, scale;
};

// [batch] sums over the classes that are not masked of the cross-entropy of sigma(logits) with `targets`, which are
// constants, and with the label once more.
at::Tensor towards(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& is_masked,
                   const at::Tensor& labels) {
  const at::Tensor log_p = at::log_sigmoid(logits), log_not_p = at::log_sigmoid(-logits);
  const at::Tensor terms = targets * log_p + (1 - targets) * log_not_p;
  return -of_label(log_p, labels) - terms.masked_fill(is_masked, 0).sum(1);
}

/// ROLE, regularised online label estimation (Cole et al., CVPR 2021; named in thesis 5.4.6). Beside the network it
/// trains theta [training samples, classes], the logits of estimated labels. With f = sigma(scores), g = sigma(theta of
/// the sample) and [.] a stopped gradient, the mean over a batch of B samples is `scale` times
///
///     1/(2 L B) sum_ij { -1[j = y_i] (log f + log g)
///                        - [g] log f - (1 - [g]) log(1 - f) - [f] log g - (1 - [f]) log(1 - g) }
///         + lambda/2 (R(f) + R(g)),      R(p) = ((mean_i sum_j p_ij - K)/L)^2
///
/// A class whose score is -infinity is masked: it takes no part. Smooth. Since [.] are constants its gradient is not
/// the derivative of its value. R couples the samples of a batch: it is shared out evenly among them, and each batch
/// has its own where gradients of several are accumulated.
///
/// theta lies on the CPU, 4 bytes an entry: 98 MiB for 256,000 samples of 100 classes, 4.8 GiB for ImageNet. It starts
/// as LabelEstimates says, and moves without weight decay, by gradient descent or Adam (theta_optimizer), whose moments
/// take another 4 or 8 bytes. Where lambda is 0, an entry that is not the label's moves by less than
/// scale * theta_lr * rate / (2 L B) each time by plain gradient descent, once an epoch.
class Role : public Loss {
 public:
  Role(const config::Config& config, const LossContext& context)
      : Loss(config, context),
        options_(read_with_set_size<RoleOptions>(config, context.num_classes)),
        optimizer_(config.read<EstimateOptimizer>("loss")),
        theta_(context, optimizer_) {}

  std::vector<std::pair<std::string, at::Tensor>> state() override { return theta_.state(); }
  void update(double lr, double schedule_factor) override {
    theta_.update(optimizer_.lr > 0 ? optimizer_.lr * schedule_factor : options_.theta_lr * lr);
  }

 private:
  /// Throws ShapeError for an id that is not among the training samples'.
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    if (input.estimate_logits)
      check_shape("estimate_logits", input.estimate_logits->sizes(), {scores.size(0), scores.size(1)});
    const at::Tensor estimates = input.estimate_logits ? *input.estimate_logits : theta_.take(input.sample_ids, scores);
    const at::Tensor f = scores.sigmoid(), g = estimates.sigmoid();
    const auto classes = static_cast<double>(num_classes()), k = static_cast<double>(options_.k);
    const at::Tensor is_masked = scores.detach().eq(-std::numeric_limits<double>::infinity());
    const auto regulariser = [&](const at::Tensor& p) {
      return ((p.masked_fill(is_masked, 0).sum(1).mean() - k) / classes).square();
    };
    const at::Tensor both =
        towards(scores, g.detach(), is_masked, input.labels) + towards(estimates, f.detach(), is_masked, input.labels);
    return options_.scale * (both / (2 * classes) + options_.lambda / 2 * (regulariser(f) + regulariser(g)));
  }

  RoleOptions options_;
  EstimateOptimizer optimizer_;
  LabelEstimates theta_;
};

}  // namespace

LossEntry role_entry() {
  using Options = RoleOptions;
  return {
      .name = "role",
      .help = "ROLE, online estimation of a sample's unobserved labels (Cole et al., CVPR 2021).",
      .formula =
          "scale (1/(2L) (BCE(f, g) + BCE(g, f) - log f_y - log g_y) + lambda/2 (R(f) + R(g))),  f = sigma(s), g = "
          "sigma(theta), R(p) = ((mean sum p - K)/L)^2",
      .keys = config::joined(
          {config::key(
               "k", &Options::k, 5,
               "Expected number of labels per sample, the target of the regulariser; without effect if "
               "lambda is 0. Less than the number of classes; the default is lowered where it is not. Default: the papers' CIFAR-100 tables.")
               .at_least(1)
               .in("labels"),
           config::key("lambda", &Options::lambda, 0.0,
                       "Weight of the regulariser of the expected number of labels. Default: thesis, table 5.3; "
                       "Cole et al.: 1.")
               .at_least(0),
           config::key("theta_lr", &Options::theta_lr, 1.0,
                       "Learning rate of the estimated labels as a multiple of the optimizer's, unless "
                       "loss.theta_optimizer.lr gives it. Their gradients are of the order 1/(classes * batch size), "
                       "so a short run needs a large multiple, or loss.theta_optimizer.name: adam. "
                       "Default: thesis, table 5.3.")
               .at_least(0),
           config::key("scale", &Options::scale, 1.0,
                       "Multiplies the loss, for the network and the estimates alike. The number of classes "
                       "undoes the division by it, as the thesis does in assume_negative and "
                       "expected_positive_regularisation. Default: Cole et al.")
               .above(0)},
          EstimateOptimizer::keys()),
      .requirements = {.sample_ids = true},
      .make = construct<Role>,
      .rule = EstimateOptimizer::check,
      .couples_samples = true,
      .has_sigmoids = true};
}

}  // namespace settrain

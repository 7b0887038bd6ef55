#include "src/train/run_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace settrain {

using config::key;

config::Keys GeneralOptions::keys() {
  return {
      key("name", &GeneralOptions::name, "${file}",
          "Name of the run; the config file's name without its ending where not given.")
          .not_empty()
          .free(),
      key("seed", &GeneralOptions::seed, 4, "Everything random follows it, unless a section has a seed of its own.")
          .at_least(0),
      key("select", &GeneralOptions::select, {},
          "Metrics of the validation split (val/top5); for each, the checkpoint of its best epoch is kept and "
          "evaluated at the end.")
          .distinct(),
  };
}

config::Keys RunOptions::keys() {
  return {
      key("dir", &RunOptions::dir, "runs/${name}", "The run folder.").not_empty().free(),
      key("threads", &RunOptions::threads, kAuto,
          "Compute threads on the CPU; auto is OMP_NUM_THREADS where it is set, else one a core. Results depend on it "
          "in the last bits: a run keeps the number with which it started.")
          .at_least(1)
          .at_most(1024)
          .word("auto", kAuto)
          .in("threads")
          .free(),
  };
}

int64_t RunOptions::resolved_threads() const {
  if (threads != kAuto) return threads;
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const std::string_view wanted = variable ? variable : "";
  int64_t number = 0;
  std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  return number > 0 ? number : std::max(1U, std::thread::hardware_concurrency());
}

config::Keys TrainOptions::keys() {
  return {
      key("epochs", &TrainOptions::epochs, 10,
          "Passes over the training split. 0: the first weights are evaluated as they are.")
          .at_least(0)
          .at_most(1e6)
          .in("epochs"),
      key("accumulate", &TrainOptions::accumulate, 1,
          "Batches whose gradients are added up for one optimizer step; the step's batch is so many times "
          "data.batch_size.")
          .at_least(1)
          .at_most(1e6)
          .in("batches"),
      key("clip_norm", &TrainOptions::clip_norm, 0.0,
          "Gradients are scaled down to this joint Euclidean norm where theirs is larger; 0 turns it off.")
          .at_least(0),
      key("deterministic", &TrainOptions::deterministic, "auto",
          "Only algorithms whose results repeat bit for bit; auto: on the CPU, but not on a GPU, where they cost "
          "speed.")
          .one_of({"auto", "true", "false"}),
      key("precision", &TrainOptions::precision, "float32",
          "bf16: convolutions and matrix products round their inputs to 8 bits, which GPUs and CPUs with AVX-512 BF16 or "
          "AMX compute faster, and others more slowly; weights, the head's scores and the loss stay float32. Evaluation "
          "does the same.")
          .one_of({"float32", "bf16"}),
      key("channels_last", &TrainOptions::channels_last, "auto",
          "The layout of weights and activations; it changes speed, and the last bits. auto: channels last where it is "
          "faster, on the CPU and for bf16 on a GPU.")
          .one_of({"auto", "true", "false"}),
      key("gradient_checkpointing", &TrainOptions::gradient_checkpointing, false,
          "Activations within blocks are computed again for the backward pass instead of kept: large models and batches "
          "fit, for about half as much more time. The results stay what they are.")
          .free(),
      key("ema_decay", &TrainOptions::ema_decay, 0.0,
          "Decay d of an exponential moving average of the weights, which is then what is evaluated and selected on, such "
          "as 0.999; 0 turns it off. After t steps it is the smaller of d and (1 + t) / (10 + t), so that the initial "
          "weights are soon forgotten. Metrics of `train/` are of the weights themselves.")
          .at_least(0)
          .below(1),
      key("checkpoint_every.steps", &TrainOptions::checkpoint_steps, 0,
          "The last checkpoint, from which a run goes on, is written after so many optimizer steps, besides at each "
          "epoch's end; 0: not by steps.")
          .at_least(0)
          .in("steps")
          .free(),
      key("checkpoint_every.minutes", &TrainOptions::checkpoint_minutes, 10.0,
          "The same by the clock: the most work that a crash can cost; 0: not by the clock.")
          .at_least(0)
          .in("minutes")
          .free(),
      key("top_k", &TrainOptions::top_k, {},
          "The K of further top-K accuracies on training images as they are trained on, beside train/top1: train/top5.")
          .at_least(1)
          .distinct(),
      key("gradient_nonzeros", &TrainOptions::gradient_nonzeros, false,
          "Whether to count for how many classes the derivative of the loss with respect to the score is not exactly 0: "
          "train/gradient_nonzeros, a mean over training images."),
  };
}

config::Keys EvalOptions::keys() {
  return {
      key("splits", &EvalOptions::splits, {"val", "test"},
          "Splits evaluated at the end of a run and by `settrain eval`.")
          .one_of({"train", "val", "test"})
          .free()
          .distinct()
          .not_empty(),
      key("every", &EvalOptions::every, 1,
          "The validation split is evaluated after every so many epochs, and after the last.")
          .at_least(1)
          .in("epochs"),
      key("crops", &EvalOptions::crops, "center",
          "What of an image is looked at, at the end of a run and by `settrain eval`: its centre, or ten crops, the four "
          "corners and the centre and all five mirrored, whose answers are averaged. Validation during training takes "
          "the centre.")
          .one_of({"center", "ten"}),
      key("crop_average", &EvalOptions::crop_average, "softmax",
          "What is averaged over ten crops: softmax, the probabilities of single labels; scores; or topk, the "
          "probabilities that a class is among the K labels of a set, of which exp of the sum of scores is the weight "
          "(Berrada et al. 2018, appendix C).")
          .one_of({"softmax", "scores", "topk"}),
      key("crop_average_k", &EvalOptions::crop_average_k, EvalOptions::kAuto,
          "The K of crop_average: topk; auto is the loss's, or 1.")
          .at_least(1)
          .in("classes")
          .word("auto", EvalOptions::kAuto),
  };
}

int64_t EvalOptions::resolved_crop_average_k(const config::Config& config) const {
  if (crop_average_k != kAuto) return crop_average_k;
  if (!config.has("loss.k")) return 1;
  const config::Value& k = config.at("loss.k").value;  // average-K's is no whole number
  const auto* whole = std::get_if<int64_t>(&k);
  return whole ? *whole : std::max<int64_t>(1, std::lround(std::get<double>(k)));
}

}  // namespace settrain

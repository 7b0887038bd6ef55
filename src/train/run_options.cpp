#include "src/train/run_options.h"

#include <algorithm>
#include <cmath>

#include "src/core/process.h"
#include "src/train/compute_threads.h"

namespace settrain {

using config::key;

config::Keys GeneralOptions::keys() {
  return {
      key("name", &GeneralOptions::name, "${file}",
          "Name of the run; the config file's name without its ending where not given.")
          .not_empty()
          .free(),
      key("seed", &GeneralOptions::seed, 4, "Seed of all random numbers, unless a section has a seed of its own.")
          .at_least(0),
      key("select", &GeneralOptions::select, {},
          "Metrics of the validation split (val/top5); for each, the checkpoint of its best epoch is kept and "
          "evaluated at the end. `last` also evaluates the last epoch's. Without any, no epoch is chosen, and the last one's "
          "weights are the run's. A metric of the test split (test/top1), where "
          "eval.during_training has it, is for protocols that report the best test accuracy, which is too optimistic.")
          .distinct(),
  };
}

const config::Named<InferenceForm>& inference_forms() {
  static const config::Named<InferenceForm> forms{
      {"exact", InferenceForm::kExact}, {"fast", InferenceForm::kFast}, {"bf16", InferenceForm::kBf16}};
  return forms;
}

config::Keys RunOptions::keys() {
  return {
      key("dir", &RunOptions::dir, "runs/${name}", "The run folder.").not_empty().free(),
      key("threads", &RunOptions::threads, kAuto,
          "Compute threads on the CPU; auto is OMP_NUM_THREADS if set, else one per core, of which several processes on a machine have equal shares. The last bits of the "
          "results depend on it, so a run keeps the number it started with.")
          .at_least(1)
          .at_most(kMostThreads)
          .word("auto", kAuto)
          .in("threads")
          .free(),
      key("inference", &RunOptions::inference, InferenceForm::kFast,
          "How `settrain predict`, `serve`, `scores` and `calibrate` compute; all else is exact. exact: as in training. "
          "fast: float32 with batch norms folded into convolutions, whose scores are those of exact but for rounding. "
          "bf16: the same with bfloat16 inputs, 1.5 to 4 times as fast on CPUs with AMX, and slower on some others "
          "(docs/benchmarks.md). Where the processor has no instructions for bfloat16, and on GPUs, answers are exact, as "
          "are those by fast of a network that was trained in bf16. Calibrated rules answer in the form that they were "
          "calibrated with.",
          inference_forms())
          .free(),
  };
}

int64_t RunOptions::resolved_threads() const {
  if (threads != kAuto) return threads;
  const int64_t number = threads_of_environment();
  return number > 0 ? number : own_cores();
}

config::Keys TrainOptions::keys() {
  return {
      key("epochs", &TrainOptions::epochs, 10,
          "Passes over the training split. 0: the initial weights are evaluated without training.")
          .at_least(0)
          .at_most(1e6)
          .in("epochs"),
      key("accumulate", &TrainOptions::accumulate, 1,
          "Gradient accumulation: batches per optimizer step, of each process. A step takes as many images as this times "
          "data.batch_size times the processes.")
          .at_least(1)
          .at_most(1e6)
          .in("batches"),
      key("clip_norm", &TrainOptions::clip_norm, 0.0,
          "Gradient clipping: the largest joint Euclidean norm of all gradients; 0 turns it off.")
          .at_least(0),
      key("deterministic", &TrainOptions::deterministic, config::Switch::kAuto,
          "Use deterministic algorithms only, so that results are reproducible bit for bit; auto: on the CPU, but "
          "not on a GPU, where it is expected to cost speed (not run on one yet). Several processes then add gradients in "
          "the order of the batches, which gives the bits of one process; otherwise as parallel.backend does, in "
          "buckets.",
          config::auto_or("true", "false")),
      key("precision", &TrainOptions::precision, "float32",
          "bf16: mixed precision; convolutions and matrix products take bfloat16 inputs, which is faster on CPUs "
          "with AMX or AVX-512 BF16, slower on others, and meant to be faster on GPUs (not run on one yet). Weights, the head's "
          "scores and the loss stay float32. Evaluation uses the same precision.")
          .one_of({"float32", "bf16"}),
      key("channels_last", &TrainOptions::channels_last, config::Switch::kAuto,
          "Memory layout of weights and activations; it changes speed and the last bits of the results. auto: "
          "channels last on the CPU, where it is faster, and for bf16 on a GPU, where it is expected to be (not run on one "
          "yet).",
          config::auto_or("true", "false")),
      key("gradient_checkpointing", &TrainOptions::gradient_checkpointing, false,
          "Recompute the activations within blocks in the backward pass instead of storing them: less memory for "
          "about 50 % more time. The results are the same.")
          .free(),
      key("graph", &TrainOptions::graph, config::Switch::kAuto,
          "Capture the operations of a training step as a CUDA graph once an epoch and replay them, which saves the time "
          "that a GPU waits for small operations to be launched, and takes up to twice the memory of activations, since "
          "an epoch's smaller last step has memory of its own. auto: on a GPU, and where steps cannot be captured they "
          "run as they are and the log says why; on: an error where that is known beforehand. The numbers are meant to be "
          "the same; not run on a GPU yet.",
          config::auto_or("on", "off"))
          .free(),
      key("ema_decay", &TrainOptions::ema_decay, 0.0,
          "Decay d of an exponential moving average of the weights, such as 0.999; 0 turns it off. The average is "
          "then what is evaluated and selected on. Metrics of `train/` are those of the weights themselves.")
          .at_least(0)
          .below(1),
      key("ema_warmup", &TrainOptions::ema_warmup, true,
          "Whether the decay of that average rises: after t steps it is the smaller of train.ema_decay and (1 + t) / (10 "
          "+ t), so that the initial weights are soon forgotten. Without it the decay is the same from the first step on, "
          "so an average that starts from pretrained weights leaves them slowly."),
      key("checkpoint_every.steps", &TrainOptions::checkpoint_steps, 0,
          "The last checkpoint, from which a run resumes, is written at the end of each epoch and every so many "
          "optimizer steps; 0: not by steps.")
          .at_least(0)
          .in("steps")
          .free(),
      key("checkpoint_every.minutes", &TrainOptions::checkpoint_minutes, 10.0,
          "The same in minutes: the most work that a crash can lose; 0: not by time.")
          .at_least(0)
          .in("minutes")
          .free(),
      key("top_k", &TrainOptions::top_k, {},
          "K of more top-K accuracies on the training batches, beside train/top1: 5 adds train/top5.")
          .at_least(1)
          .distinct(),
      key("gradient_nonzeros", &TrainOptions::gradient_nonzeros, false,
          "Whether to log train/gradient_nonzeros: the number of classes for which the derivative of the loss with "
          "respect to the score is not exactly 0, a mean over training images."),
  };
}

config::Keys EvalOptions::keys() {
  return {
      key("splits", &EvalOptions::splits, {"val", "test"},
          "Splits evaluated at the end of a run and by `settrain eval`; calibration, where data.calibration_share keeps "
          "one.")
          .one_of({"train", "val", "calibration", "test"})
          .free()
          .distinct()
          .not_empty(),
      key("during_training", &EvalOptions::during_training, {"val"},
          "Splits evaluated during training; their metrics go to metrics.jsonl.")
          .one_of({"val", "test"})
          .distinct(),
      key("every", &EvalOptions::every, 1,
          "The splits of eval.during_training are evaluated after every so many epochs, and after the last.")
          .at_least(1)
          .in("epochs"),
      key("crops", &EvalOptions::crops, kCenter,
          "Crops of an image at the end of a run and in `settrain eval`: the centre crop, or ten crops (four "
          "corners, the centre, and their horizontal flips), whose outputs are averaged. Validation during training "
          "uses the centre crop.",
          {{"center", kCenter}, {"ten", kTen}}),
      key("crop_average", &EvalOptions::crop_average, CropAverage::kSoftmax,
          "What is averaged over ten crops: softmax, the class probabilities; scores; or topk, the probability that "
          "a class is in a set of K labels, each set weighted by the exponential of its summed scores (Berrada et "
          "al. 2018, appendix C).",
          {{"softmax", CropAverage::kSoftmax}, {"scores", CropAverage::kScores}, {"topk", CropAverage::kTopk}}),
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

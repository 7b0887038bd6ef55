#include "datasets/label_noise_options.h"

namespace settrain {
namespace {

constexpr int64_t kRunSeed = -1;  // what the word auto stands for

struct Rate {
  double rate = 0;
};

struct Seed {
  int64_t seed = 0;
};

struct IndexBlock {
  int64_t block_size = 0;
};

struct Confusion {
  std::string matrix;
};

config::Key seed_key() {
  return config::key("seed", &Seed::seed, kRunSeed, "Seed of the noise; auto is the run's seed.")
      .at_least(0)
      .word("auto", kRunSeed);
}

config::Keys rate_and_seed_keys() {
  return {
      config::key("rate", &Rate::rate, 0.2,
                  "Probability that a training label is resampled. The new label may equal the old one, so a smaller "
                  "fraction changes.")
          .at_least(0)
          .at_most(1),
      seed_key(),
  };
}

config::Keys index_block_keys() {
  config::Keys keys = rate_and_seed_keys();
  keys.push_back(config::key("block_size", &IndexBlock::block_size, 5, "Consecutive class indices in a block.")
                     .at_least(2)
                     .in("classes"));
  return keys;
}

config::Keys confusion_keys() {
  return {config::key("matrix", &Confusion::matrix, "",
                      "Text file with one line per class y, the probabilities P(new label | label y) of all classes.")
              .not_empty(),
          seed_key()};
}

}  // namespace

config::Section label_noise_section() {
  return {
      .name = "data.label_noise",
      .help = "Artificial label noise, in the training split only.",
      .keys = {},
      .selector = "kind",
      .default_variant = "none",
      .variants =
          {
              {"none", "No label noise.", {}},
              {"superclass", "A new label is drawn from the label's superclass (Garcin et al. 2022, section 4).",
               rate_and_seed_keys()},
              {"index_block",
               "A new label is drawn from the label's block of consecutive class indices, as in the code behind the "
               "published CIFAR-100 results.",
               index_block_keys()},
              {"uniform", "A new label is drawn from all classes.", rate_and_seed_keys()},
              {"confusion", "A new label is drawn from the label's row of a confusion matrix, which a file gives.",
               confusion_keys()},
          },
  };
}

LabelNoiseOptions read_label_noise(const config::Config& config) {
  LabelNoiseOptions options;
  options.kind = config.get<std::string>("data.label_noise.kind");
  if (options.kind == "none") return options;
  const auto seed = config.read<Seed>("data.label_noise").seed;
  options.seed = static_cast<uint64_t>(seed == kRunSeed ? config.get<int64_t>("seed") : seed);
  if (options.kind == "confusion") {
    options.matrix = config.read<Confusion>("data.label_noise").matrix;
    return options;
  }
  options.rate = config.read<Rate>("data.label_noise").rate;
  if (options.kind == "index_block") options.block_size = config.read<IndexBlock>("data.label_noise").block_size;
  return options;
}

}  // namespace settrain

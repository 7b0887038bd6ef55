#include "datasets/label_noise_options.h"

namespace settrain {
namespace {

constexpr int64_t kRunSeed = -1;  // what the word auto stands for

struct RateAndSeed {
  double rate = 0;
  int64_t seed = 0;
};

struct IndexBlock {
  int64_t block_size = 0;
};

config::Keys rate_and_seed_keys() {
  using config::key;
  return {
      key("rate", &RateAndSeed::rate, 0.2,
          "Probability that a training label is drawn anew. It may come out as it was, so a smaller fraction changes.")
          .at_least(0)
          .at_most(1),
      key("seed", &RateAndSeed::seed, kRunSeed, "Seed of the noise; auto is the run's seed.")
          .at_least(0)
          .word("auto", kRunSeed),
  };
}

config::Keys index_block_keys() {
  config::Keys keys = rate_and_seed_keys();
  keys.push_back(config::key("block_size", &IndexBlock::block_size, 5, "Consecutive class indices in a block.")
                     .at_least(2)
                     .in("classes"));
  return keys;
}

}  // namespace

config::Section label_noise_section() {
  return {
      .name = "data.label_noise",
      .help = "Wrong labels on purpose, in the training split only.",
      .keys = {},
      .selector = "kind",
      .default_variant = "none",
      .variants =
          {
              {"none", "The labels as they are.", {}},
              {"superclass", "A new label is drawn from the label's superclass (Garcin et al. 2022, section 4).",
               rate_and_seed_keys()},
              {"index_block",
               "A new label is drawn from the label's block of consecutive class indices, as in the code behind the "
               "published CIFAR-100 results.",
               index_block_keys()},
              {"uniform", "A new label is drawn from all classes.", rate_and_seed_keys()},
          },
  };
}

LabelNoiseOptions read_label_noise(const config::Config& config) {
  LabelNoiseOptions options;
  options.kind = config.get<std::string>("data.label_noise.kind");
  if (options.kind == "none") return options;
  const auto [rate, seed] = config.read<RateAndSeed>("data.label_noise");
  options.rate = rate;
  options.seed = static_cast<uint64_t>(seed == kRunSeed ? config.get<int64_t>("seed") : seed);
  if (options.kind == "index_block") options.block_size = config.read<IndexBlock>("data.label_noise").block_size;
  return options;
}

}  // namespace settrain

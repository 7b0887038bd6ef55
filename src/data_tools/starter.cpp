#include "src/data_tools/starter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "datasets/decoding/image_header.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFromNothing = "resnet20";
// Above this quotient of the largest and the smallest class, rare classes need help.
constexpr int64_t kUneven = 3;
constexpr int64_t kBatch = 32;

// Networks in the order in which their weights are taken, with and without a GPU.
constexpr const char* kForGpu[] = {"vit_small_patch14_reg4_dinov2", "convnext_tiny", "resnet50", "efficientnet_lite0",
                                   "resnet18"};
constexpr const char* kForCpu[] = {"efficientnet_lite0", "resnet18", "resnet50", "convnext_tiny",
                                   "vit_small_patch14_reg4_dinov2"};

bool is_uneven(const StarterFacts& facts) {
  return facts.most >= kUneven * facts.fewest;
}

// A size of batches that leaves no last batch of one image, which batch norm cannot take.
int64_t batch_size(int64_t images) {
  int64_t size = kBatch;
  while (size > 2 && images % size == 1) --size;
  return size;
}

// Lines of YAML with a reason behind each, in a column of its own.
class Lines {
 public:
  void add(const std::string& yaml, const std::string& reason) {
    text_ += reason.empty() ? yaml + '\n' : fmt::format("{:<44} # {}\n", yaml, reason);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_data(const SplitRequest& request, const FolderSplit& split, const StarterFacts& facts,
              const StarterNetwork& network, const StarterCost& cost, Lines& lines) {
  const auto list = [&](const char* key, const char* file, const char* reason) {
    lines.add(fmt::format("  {}: {}", key, list_path(request, file)), reason);
  };
  lines.add("data:", "");
  lines.add("  name: file_list", "images that lists name; `settrain init` has written the lists");
  lines.add("  root: " + quoted_path(request.folder),
            "the lists' paths begin here; --set data.root=FOLDER, where the photographs have moved");
  list("train", "train.txt", "the images that the network learns from");
  list("val", "val.txt", "the images that choose the epoch, see select");
  list("calibration", "calibration.txt",
       "the images that choose nothing: they set the thresholds of sets with a guarantee");
  list("test", "test.txt", "the images that judge in the end");
  list("class_names", "classes.csv", "the names of the folders");
  lines.add(fmt::format("  num_classes: {}", split.classes.size()), "the folders with enough images");
  lines.add("  apply_orientation: true", "photographs of phones say how they were held");
  if (network.trains_head_alone) {
    lines.add("  pipeline: plain", "every image comes the same in each epoch, so the frozen network sees it only once");
  } else {
    lines.add("  pipeline: imagenet", "in training a random part of the photograph, mirrored or not");
  }
  lines.add(fmt::format("  input_size: {}", cost.input_size), cost.size_reason);
  if (network.weights.empty()) {
    lines.add("  normalisation: imagenet", "the usual means and standard deviations of photographs");
  }
  const int64_t batch = batch_size(facts.train);
  lines.add(fmt::format("  batch_size: {}", batch),
            batch == kBatch ? "usual for photographs on one machine"
                            : fmt::format("{} would leave a last batch of a single image", kBatch));
  if (!facts.is_verified) lines.add("  on_bad_image: skip", "not all images were read; the log names unreadable ones");
}

void add_training(const StarterFacts& facts, const StarterNetwork& network, const StarterCost& cost, Lines& lines) {
  lines.add("", "");
  lines.add("model:", "");
  if (network.weights.empty()) {
    lines.add(fmt::format("  name: {}", network.model),
              "small, for no published weights were found in $SETTRAIN_WEIGHTS or weights/: with some, accuracy is far "
              "higher (`settrain data fetch-weights`)");
  } else {
    lines.add(fmt::format("  name: {}", network.model), "its weights are there");
    lines.add("  pretrained: " + quoted_path(network.weights), "others have trained it on very many photographs");
  }
  if (network.trains_head_alone) {
    lines.add("  trainable: [head]", "without a GPU the rest would take far longer; it stays as it is");
  }
  lines.add("", "");
  if (is_uneven(facts)) {
    lines.add("loss: {name: logit_adjusted}",
              fmt::format("the largest class has {} training images, the smallest {}: rare classes count as much as "
                          "common ones",
                          facts.most, facts.fewest));
  } else {
    lines.add("loss: {name: cross_entropy}",
              fmt::format("the classes are about equally large: {} to {} training images", facts.fewest, facts.most));
  }
  lines.add("optimizer:", "");
  if (network.weights.empty()) {
    lines.add("  name: sgd", "usual for networks that are trained from nothing");
    lines.add("  lr: 0.05", "0.1 is usual for batches of 128 images");
    lines.add("  nesterov: true", "with momentum, 0.9 by default");
    lines.add("  weight_decay: 5.0e-4", "keeps the network from learning the images by heart");
  } else {
    lines.add("  name: adamw", "usual for networks that are trained on");
    lines.add(network.trains_head_alone ? "  lr: 1.0e-2" : "  lr: 1.0e-4",
              network.trains_head_alone ? "high, since the head alone learns" : "low, since the network knows a lot");
    if (!network.trains_head_alone) {
      lines.add("  head_lr_factor: 10", "the head is new and learns faster");
      lines.add("  layer_decay: 0.75", "each block learns at 3/4 of the rate of the block above it");
    }
    lines.add("  weight_decay: 0.05", "usual for adamw");
    lines.add(
        network.model.starts_with("vit_") ? "  no_decay: [one_dimensional, token]" : "  no_decay: [one_dimensional]",
        "spares norms and biases");
  }
  lines.add("schedule: {name: cosine, warmup_epochs: 1}", "the rate rises for an epoch and falls to 0 at the end");
  lines.add(fmt::format("train: {{epochs: {}}}", cost.epochs), cost.epochs_reason);
  lines.add("", "");
  lines.add(is_uneven(facts) ? "select: [val/macro_top1]" : "select: [val/top1]",
            is_uneven(facts) ? "keeps the epoch with the best mean over classes on the validation images"
                             : "keeps the epoch with the most correct validation images");
}

}  // namespace

StarterFacts starter_facts(const fs::path& folder, const FolderSplit& split) {
  StarterFacts facts{.fewest = INT64_MAX, .is_verified = split.read > 0};
  std::vector<int64_t> sides;
  for (const ClassSplit& class_split : split.classes) {
    const auto train = std::ssize(class_split.train);
    facts.train += train;
    facts.fewest = std::min<int64_t>(facts.fewest, train);
    facts.most = std::max<int64_t>(facts.most, train);
    for (const fs::path& file : class_split.train) {
      const auto header = read_image_header(folder / file);
      if (header && header->height > 0) sides.push_back(std::min(header->height, header->width));
    }
  }
  if (!sides.empty()) {
    const auto middle = sides.begin() + std::ssize(sides) / 2;
    std::nth_element(sides.begin(), middle, sides.end());
    facts.short_side = *middle;
  }
  return facts;
}

StarterNetwork choose_network(const StarterFacts& facts, const std::vector<KnownWeights>& weights) {
  for (const char* model : facts.has_gpu ? kForGpu : kForCpu) {
    const auto found = std::ranges::find(weights, model, &KnownWeights::model);
    if (found == weights.end()) continue;
    // Multiples of 32 pixels, and of 14 for the vision transformers with such patches.
    std::vector<int64_t> sizes = found->model.starts_with("vit_") ? std::vector<int64_t>{224, 168, 112}
                                                                  : std::vector<int64_t>{224, 160, 128, 96};
    return {found->model, found->file, /*trains_head_alone=*/!facts.has_gpu, std::move(sizes), 10, 30};
  }
  std::vector<int64_t> sizes;
  for (const int64_t size : {128, 96, 64, 48, 32}) {
    const bool is_wanted = facts.has_gpu || size <= 64;  // a CPU is too slow for more
    if (is_wanted && (size == 32 || size <= facts.short_side)) sizes.push_back(size);
  }
  return {kFromNothing, {}, false, std::move(sizes), 20, 100};
}

std::string starter_config(const SplitRequest& request, const FolderSplit& split, const StarterFacts& facts,
                           const StarterNetwork& network, const StarterCost& cost) {
  Lines lines;
  lines.add(
      fmt::format("# {} training images of {} classes in {}; `settrain init` wrote this config, to be changed at will.",
                  format_count(facts.train), split.classes.size(),
                  on_one_line(fs::absolute(request.folder).lexically_normal().string())),
      "");
  lines.add("# Behind each line is its reason; `settrain config keys` explains all keys.", "");
  lines.add("seed: 1", "another one draws other first weights and crops");
  lines.add("", "");
  add_data(request, split, facts, network, cost, lines);
  add_training(facts, network, cost, lines);
  const auto classes = std::ssize(split.classes);
  lines.add(classes > 5   ? "eval: {top_k: [1, 5]}"
            : classes > 2 ? "eval: {top_k: [1, 2]}"
                          : "eval: {top_k: [1]}",
            "accuracies: whether the class is the first answer, or among the first of them");
  return lines.text();
}

std::string starter_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  std::string name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  for (char& c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '_';
  }
  name.erase(0, std::min(name.find_first_not_of(".-"), name.size()));
  return name.empty() ? "photographs" : name;
}

}  // namespace settrain

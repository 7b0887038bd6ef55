#include "src/train/model_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "datasets/decoding/image_header.h"
#include "datasets/image_files.h"
#include "models/cost.h"
#include "models/model_options.h"
#include "src/core/error.h"
#include "src/core/ordered_prefetch.h"
#include "src/formats/weight_file.h"
#include "src/loader/data_options.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualSide = 224, kLeastSide = 4;  // pixels
constexpr const char *kPretrainedKey = "model.pretrained", *kUsualInterpolation = "bilinear";

// Looks for a size that all images have, an image at a time.
class CommonSquare {
 public:
  // Returns whether other images can still matter. Unreadable images do not count; the loader reports them.
  bool take(const fs::path& file, const std::optional<ImageHeader>& header) {
    if (!header || header->height == 0) return true;
    const auto [height, width] = std::pair(header->height, header->width);
    if (height != width || height > kUsualSide || height < kLeastSide) {
      why_not_ = fmt::format("'{}' has {}x{} pixels", file.string(), height, width);
    } else if (side_ == 0) {
      side_ = height;
      first_ = file;
    } else if (height != side_) {
      why_not_ = fmt::format("images differ: '{}' has {}x{} pixels, '{}' {}x{}", first_.string(), side_, side_,
                             file.string(), height, width);
    }
    return why_not_.empty();
  }

  // Empty where all images were squares of one size within the limits.
  std::string why_not() const { return side_ == 0 && why_not_.empty() ? "no image's size can be read" : why_not_; }
  int64_t side() const { return side_; }

 private:
  int64_t side_ = 0;
  fs::path first_;
  std::string why_not_;
};

// The images of all splits, one after the other.
class AllImages {
 public:
  explicit AllImages(const Dataset& data) {
    for (const std::string& name : split_names(data)) splits_.push_back(&split_named(data, name));
    for (const Split* split : splits_) size_ += split->size();
  }

  int64_t size() const { return size_; }
  fs::path file(int64_t i) const {
    size_t split = 0;
    while (i >= splits_[split]->size()) i -= splits_[split++]->size();
    return file_of(*splits_[split]->images, splits_[split]->ids[static_cast<size_t>(i)]);
  }

 private:
  std::vector<const Split*> splits_;
  int64_t size_ = 0;
};

// Reads the headers of a few images from all over the data set, and then of all in their order: where sizes differ, few
// are read, and where they do not, a disk need not seek.
CommonSquare find_common_square(const Dataset& data, int64_t workers, ProgressOutput output) {
  constexpr int64_t kFew = 64, kAhead = 16;
  const AllImages images(data);
  CommonSquare square;
  for (int64_t i = 0; i < kFew && images.size() > kFew; ++i) {
    const fs::path file = images.file(i * (images.size() - 1) / (kFew - 1));
    if (!square.take(file, read_image_header(file))) return square;
  }
  ProgressBar bar(std::move(output));
  OrderedPrefetch<std::optional<ImageHeader>> headers(0, images.size(), workers, workers * kAhead,
                                                      [&](int64_t i) { return read_image_header(images.file(i)); });
  for (int64_t i = 0; i < images.size(); ++i) {
    bar.update({.stage = "[data] sizes of the images", .done = i, .total = images.size(), .after = 0, .figures = ""});
    if (!square.take(images.file(i), headers.next().value())) break;
  }
  return square;
}

bool takes(const ModelEntry& model, const config::Config& config, const ModelContext& context) {
  try {
    network_cost(model, config, context);
  } catch (const std::exception&) {  // a KeyError, or ATen's of a size that is too small
    return false;
  }
  return true;
}

struct ChosenSize {
  int64_t side;
  std::string why;
};

ChosenSize choose_size(const ModelEntry& model, const config::Config& config, const Dataset& data,
                       const WeightsInput& weights, ProgressOutput output) {
  const auto pipeline = config.read<PipelineOptions>("data").pipeline;
  const int64_t usual = std::max(kUsualSide, model.usual.height);  // more for a network of large images
  if (weights.size > 0) return {weights.size, fmt::format("that of the pretrained weights, by {}", weights.source)};
  if (pipeline != "plain" && pipeline != "cifar")
    return {usual, fmt::format("usual for the pipeline {} and {}", pipeline, model.name)};
  const int64_t workers = config.read<LoaderOptions>("data").resolved_workers(0);
  const CommonSquare square = find_common_square(data, workers, std::move(output));
  if (const std::string why_not = square.why_not(); !why_not.empty())
    return {usual, "the usual size, since " + why_not};
  if (!takes(model, config, {data.num_classes(), data.channels, square.side(), square.side()})) {
    return {usual, fmt::format("the usual size, since {} does not take {}x{} pixels, which all images have", model.name,
                               square.side(), square.side())};
  }
  return {square.side(), "the size of all images"};
}

// A file that no run of settrain wrote is taken for the published one of a model that has one.
WeightsInput input_of_file(const DatasetRegistry& datasets, const ModelEntry& model, const std::string& file) {
  const WeightFile weights(file);
  const auto& metadata = weights.contents().metadata;
  if (const auto card = metadata.find("card"); card != metadata.end() && metadata.contains("config")) {
    const RecordedInput input = RecordedInput::of(model_card_from_text(card->second, "'" + file + "'"));
    return {input.height == input.width ? input.height : 0, input.normalisation, input.interpolation, input.crop_share,
            "their card"};
  }
  if (model.pretrained.url.empty() || metadata.contains("config")) return {};
  Dataset images;
  images.channels = model.usual.channels;
  return {model.usual.height, normalisation_for(datasets, model.pretrained.normalisation, images),
          model.pretrained.interpolation, model.pretrained.crop_share, model.pretrained.name};
}

// A key of the user's own stands; weights of another interpolation still work, and are not warned of.
void choose_resizing(const config::Config& config, const WeightsInput& weights, ModelInput& input) {
  const auto pipeline = config.read<PipelineOptions>("data");
  const bool is_auto = pipeline.interpolation == PipelineOptions::kAutoInterpolation;
  input.interpolation = is_auto ? weights.interpolation : pipeline.interpolation;
  input.crop_share = weights.crop_share;
  if (is_auto && weights.is_known() && weights.interpolation != kUsualInterpolation) {
    input.remarks.push_back(fmt::format("[data] interpolation (auto): {}, that of the pretrained weights, by {}",
                                        weights.interpolation, weights.source));
  }
  const bool is_usual = weights.crop_share == 0 || weights.crop_share == PretrainedSource{}.crop_share;
  if (pipeline.resize_size == PipelineOptions::kAuto && pipeline.cuts_centre_out() && weights.is_known() && !is_usual) {
    input.remarks.push_back(fmt::format(
        "[data] resize_size (auto): evaluation keeps {:.3g} of the shorter side, as the pretrained weights, "
        "by {}",
        weights.crop_share, weights.source));
  }
}

void choose_normalisation(const DatasetRegistry& datasets, const config::Config& config, const Dataset& data,
                          const WeightsInput& weights, ModelInput& input) {
  constexpr const char* kKey = "data.normalisation";
  const auto& wanted = config.get<std::string>(kKey);
  input.normalisation = normalisation_for(datasets, wanted, data);
  const auto& file = config.get<std::string>(kPretrainedKey);
  if (file == ModelOptions::kNone) return;
  const std::string usual = normalisation_name(datasets, input.normalisation);
  if (!weights.is_known()) {
    if (wanted != "auto" || usual != "none") return;
    input.warnings.push_back(fmt::format(
        "[data] nothing says how images were normalised when '{}' (model.pretrained) was trained, and {} is {}, since "
        "it is auto: pixels lie in [0, 1]. Set it to what the weights were trained with: {}",
        file, kKey, usual, fmt::join(normalisation_names(datasets), ", ")));
    return;
  }
  const std::string theirs = normalisation_name(datasets, weights.normalisation);
  if (theirs == usual || std::ssize(weights.normalisation.mean) != data.channels) return;
  if (wanted == "auto") {
    input.normalisation = weights.normalisation;
    input.remarks.push_back(
        fmt::format("[data] normalisation (auto): {}, that of the pretrained weights, by {}", theirs, weights.source));
    return;
  }
  input.warnings.push_back(
      fmt::format("[data] {} is {}, and '{}' (model.pretrained) was trained with {}, by {}; auto takes theirs", kKey,
                  wanted, file, theirs, weights.source));
}

}  // namespace

RecordedInput RecordedInput::of(const ModelCard& card) {
  return {card.input_height, card.input_width, {card.mean, card.std}, card.interpolation, card.crop_share};
}

void ModelInput::resolve(PipelineOptions& pipeline) const {
  pipeline.input_size = size;
  pipeline.interpolation = interpolation;
  pipeline.crop_share = crop_share;
}

WeightsInput input_of_weights(const DatasetRegistry& datasets, const ModelEntry& model, const std::string& file) {
  try {
    return input_of_file(datasets, model, file);
  } catch (const RunError& error) {
    throw KeyError(kPretrainedKey, error.what());
  }
}

ModelInput choose_input(const DatasetRegistry& datasets, const ModelRegistry& models, const config::Config& config,
                        const Dataset& data, const RecordedInput* recorded, ProgressOutput output) {
  ModelInput input{.size = config.read<PipelineOptions>("data").input_size};
  const bool chooses_size = input.size == PipelineOptions::kAuto && data.height == 0;
  if (recorded) {
    const auto& wanted = config.get<std::string>("data.normalisation");
    const bool is_known = !recorded->normalisation.mean.empty();
    input.normalisation =
        wanted == "auto" && is_known ? recorded->normalisation : normalisation_for(datasets, wanted, data);
    if (chooses_size) input.size = recorded->height > 0 ? recorded->height : kUsualSide;
    choose_resizing(config, {.interpolation = recorded->interpolation, .crop_share = recorded->crop_share}, input);
    return input;
  }
  const ModelEntry& model = models.at(config.get<std::string>("model.name"));
  WeightsInput weights;
  // Benchmarks run without the file.
  if (const auto& file = config.get<std::string>(kPretrainedKey);
      file != ModelOptions::kNone && fs::is_regular_file(file)) {
    weights = input_of_weights(datasets, model, file);
  }
  choose_normalisation(datasets, config, data, weights, input);
  choose_resizing(config, weights, input);
  if (chooses_size) {
    const ChosenSize size = choose_size(model, config, data, weights, std::move(output));
    input.size = size.side;
    input.remarks.push_back(fmt::format("[data] input size (auto): {}, {}", size.side, size.why));
  }
  return input;
}

}  // namespace settrain

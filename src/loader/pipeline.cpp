#include "src/loader/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int64_t kUsualInput = 224;

// A value of data.pipeline, and what it does where no other key says otherwise.
struct NamedPipeline {
  const char* name;
  bool scales_short_side, draws_resized_crop, flips, evaluates_without_border;
  int64_t pad;
};

constexpr NamedPipeline kPipelines[] = {
    {"plain", false, false, false, false, 0},     {"cifar", false, false, true, false, 4},
    {"plantnet", true, false, false, false, 0},   {"imagenet", true, true, true, false, 0},
    {"imagenet2018", true, false, true, true, 0},
};

const NamedPipeline& pipeline_named(const std::string& name) {
  const auto* const found = std::ranges::find(kPipelines, name, &NamedPipeline::name);
  if (found == std::end(kPipelines)) throw std::invalid_argument("there is no pipeline " + name);
  return *found;
}

std::vector<std::string> pipeline_names() {
  std::vector<std::string> names;
  for (const NamedPipeline& pipeline : kPipelines) names.emplace_back(pipeline.name);
  return names;
}

// The shorter side of which a crop of that size is the share `crop_share`, rounded down as timm does, but not by an
// error of the quotient.
int64_t side_around(int64_t crop, double crop_share) {
  constexpr double kRounding = 1e-6;
  return static_cast<int64_t>(static_cast<double>(crop) / crop_share + kRounding);
}

int64_t input_size(int64_t wanted, int64_t images) {
  if (wanted != PipelineOptions::kAuto) return wanted;
  return images > 0 ? images : kUsualInput;
}

}  // namespace

config::Keys PipelineOptions::keys() {
  using config::key;
  using O = PipelineOptions;
  return {
      key("pipeline", &O::pipeline, "plain",
          "How an image becomes the model's input. plain: resized to cover the input and centre-cropped, unless it "
          "has that size already. cifar: the same, in training with a random crop with padding 4 and random "
          "horizontal flip. plantnet: resize and random crop, no flip (Garcin et al. 2022). imagenet: random resized "
          "crop and flip. imagenet2018: resize, random crop and flip (Berrada et al. 2018). In evaluation the last "
          "three resize the shorter side and take the centre crop.")
          .one_of(pipeline_names()),
      key("input_size", &O::input_size, O::kAuto,
          "Height and width of the model's input. auto: the images' own where the data set gives it (cifar100, "
          "fashion_mnist, synthetic). For images in files it is the first of these that applies: the size that "
          "model.pretrained was trained with, by the file where it is settrain's, and else by what is known of the "
          "model's published weights; with the pipelines plain and cifar the images' "
          "own, where all are squares of one size from 4 to 224 pixels and the model takes it; 224. The log says which "
          "it is and why, and the run's checkpoints keep it.")
          .at_least(4)
          .at_most(4096)
          .in("pixels")
          .word("auto", O::kAuto),
      key("resize_size", &O::resize_size, O::kAuto,
          "The shorter side after resizing, before the crop; auto is 8/7 of input_size, so 256 for 224; in evaluation, "
          "of weights of which it is known, their own share; and input_size itself for the single crop with which "
          "imagenet2018 evaluates.")
          .at_least(4)
          .at_most(8192)
          .in("pixels")
          .word("auto", O::kAuto),
      key("interpolation", &O::interpolation, O::kAutoInterpolation,
          "How resized pixels are computed, to the bytes of Pillow's Image.resize: bilinear or bicubic. auto: as for the "
          "images that model.pretrained was trained on, where it is known; else bilinear. The run's checkpoints keep "
          "it.")
          .one_of({O::kAutoInterpolation, "bilinear", "bicubic"}),
      key("augmentation.pad", &O::pad, O::kAuto,
          "Zero padding on each side of a training image before a random crop; auto is the pipeline's own. Only for "
          "plain and cifar.")
          .at_least(0)
          .at_most(1024)
          .in("pixels")
          .word("auto", O::kAuto),
      key("augmentation.flip", &O::flip, config::Switch::kAuto,
          "Random horizontal flip of training images, with probability 0.5; auto is the pipeline's own.",
          config::auto_or("true", "false")),
  };
}

bool PipelineOptions::cuts_centre_out() const {
  const NamedPipeline& named = pipeline_named(pipeline);
  return named.scales_short_side && !named.evaluates_without_border;
}

Pipeline::Recipe Pipeline::recipe_of(const PipelineOptions& options, int64_t input_size, ViewUse use) {
  const std::string& name = options.pipeline;
  const NamedPipeline& named = pipeline_named(name);
  Recipe recipe;
  recipe.scales_short_side = named.scales_short_side;
  recipe.draws_resized_crop = named.draws_resized_crop;
  recipe.filter = options.interpolation == "bicubic" ? Filter::kBicubic : Filter::kBilinear;
  recipe.resize_size = input_size * 8 / 7;
  if (options.crop_share > 0 && use == ViewUse::kEvaluation) {
    recipe.resize_size = side_around(input_size, options.crop_share);
  }
  if (named.evaluates_without_border && use == ViewUse::kEvaluation) recipe.resize_size = input_size;
  if (options.resize_size != PipelineOptions::kAuto) recipe.resize_size = options.resize_size;
  recipe.pad = options.pad != PipelineOptions::kAuto ? options.pad : named.pad;
  recipe.flip = options.flip == config::Switch::kAuto ? named.flips : options.flip == config::Switch::kOn;

  if (recipe.scales_short_side && recipe.pad > 0)
    throw KeyError("data.augmentation.pad", fmt::format("the pipeline {} has no border; expected 0 or auto", name));
  if (!recipe.scales_short_side && options.resize_size != PipelineOptions::kAuto)
    throw KeyError("data.resize_size", fmt::format("the pipeline {} scales to data.input_size; expected auto", name));
  if (recipe.scales_short_side && recipe.resize_size < input_size) {
    throw KeyError("data.resize_size", fmt::format("{} is less than the input of {} pixels that is cut out",
                                                   recipe.resize_size, input_size));
  }
  if (use == ViewUse::kTenCrops && !recipe.scales_short_side) {
    throw KeyError("eval.crops", fmt::format("the pipeline {} cuts no crops out of a larger image; expected center, or "
                                             "data.pipeline imagenet, imagenet2018 or plantnet",
                                             name));
  }
  return recipe;
}

Pipeline::Pipeline(const PipelineOptions& options, int64_t height, int64_t width, ViewUse use, uint64_t seed)
    : height_(input_size(options.input_size, height)),
      width_(input_size(options.input_size, width)),
      use_(use),
      seed_(seed),
      recipe_(recipe_of(options, std::max(height_, width_), use)) {}

std::vector<View> Pipeline::views_of(int64_t image_height, int64_t image_width, int64_t epoch, int64_t sample_id,
                                     int64_t repetition) const {
  std::vector<View> views;
  if (use_ == ViewUse::kTraining) {
    views = {training_view(image_height, image_width, {seed_, epoch, sample_id, repetition})};
  } else if (use_ == ViewUse::kTenCrops) {
    views = ten_crops(scaled(image_height, image_width));
  } else {
    views = {center_crop(scaled(image_height, image_width), height_, width_)};
  }
  for (View& view : views) view.filter = recipe_.filter;
  return views;
}

bool Pipeline::is_random() const {
  if (use_ != ViewUse::kTraining) return false;
  return recipe_.draws_resized_crop || recipe_.scales_short_side || recipe_.pad > 0 || recipe_.flip;
}

bool Pipeline::resizes(int64_t image_height, int64_t image_width) const {
  if (use_ == ViewUse::kTraining && recipe_.draws_resized_crop) return true;
  return scaled(image_height, image_width) != whole_view(image_height, image_width);
}

// The whole image, scaled; crops are cut out of it.
View Pipeline::scaled(int64_t image_height, int64_t image_width) const {
  return recipe_.scales_short_side ? with_short_side(image_height, image_width, recipe_.resize_size)
                                   : covering(image_height, image_width, height_, width_);
}

View Pipeline::training_view(int64_t image_height, int64_t image_width, const AugmentationKey& key) const {
  View view;
  if (recipe_.draws_resized_crop) {
    view = random_resized_crop(image_height, image_width, height_, width_, key);
  } else if (recipe_.scales_short_side) {
    view = random_crop(scaled(image_height, image_width), height_, width_, key);
  } else {
    view = center_crop(scaled(image_height, image_width), height_, width_);
    view = random_shift(view, recipe_.pad, key);
  }
  view.flip = recipe_.flip && random_flip(key);
  return view;
}

// In the order of torchvision's TenCrop.
std::vector<View> Pipeline::ten_crops(const View& scaled) const {
  const int64_t bottom = scaled.height - height_, right = scaled.width - width_;
  std::vector<View> views(4, scaled);
  views[0].crop = {0, 0, height_, width_};
  views[1].crop = {0, right, height_, width_};
  views[2].crop = {bottom, 0, height_, width_};
  views[3].crop = {bottom, right, height_, width_};
  views.push_back(center_crop(scaled, height_, width_));
  for (size_t i = 0; i < 5; ++i) {
    views.push_back(views[i]);
    views.back().flip = true;
  }
  return views;
}

}  // namespace settrain

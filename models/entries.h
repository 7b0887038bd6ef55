// The registered models, each family in the file of its name; and makers of networks of any shape.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "models/model_options.h"
#include "models/registry.h"

namespace settrain {

/// ResNet-8, 20, 32, 44 and 56 for images of about 32x32 pixels.
std::vector<ModelEntry> small_resnet_entries();
/// The DenseNets of the papers' experiments for images of 32x32 pixels, after one of any depth and growth.
std::vector<ModelEntry> small_densenet_entries();
/// torchvision's ResNets, with the wide and the grouped one.
std::vector<ModelEntry> resnet_entries();
/// torchvision's DenseNets.
std::vector<ModelEntry> densenet_entries();
/// torchvision's ConvNeXts.
std::vector<ModelEntry> convnext_entries();
/// torchvision's EfficientNets, and efficientnet_pytorch's EfficientNet-Lite0.
std::vector<ModelEntry> efficientnet_entries();
/// torchvision's Inception-v3; timm's Inception-v4 and Inception-ResNet-v2.
std::vector<ModelEntry> inception_entries();
/// torchvision's MobileNets.
std::vector<ModelEntry> mobilenet_entries();
/// A head alone, for data.name: features.
std::vector<ModelEntry> head_only_entries();
/// torchvision's AlexNet, SqueezeNet 1.0 and VGG-11.
std::vector<ModelEntry> sequential_entries();
/// torchvision's ShuffleNet v2.
std::vector<ModelEntry> shufflenet_entries();
/// torchvision's ViT-B/16, one of any shape, timm's, DINOv2's, and the images' networks of CLIP.
std::vector<ModelEntry> vision_transformer_entries();

/// `depth` is 6 n + 2; `width` are the channels of the first stage; `stochastic_depth` is the probability that an image
/// skips the last block in training.
std::shared_ptr<Model> make_small_resnet(int64_t depth, int64_t width, const ModelOptions& options,
                                         const ModelContext& context, double stochastic_depth = 0);

struct SmallDenseNetShape {
  int64_t depth = 40, growth = 40;

  static config::Keys keys();
};

/// `bc`: with bottlenecks, and transitions that halve the channels. Throws KeyError for a depth that gives no whole
/// number of layers, and for images of another size than 32x32: the published code pools 8x8 pixels at the end, and
/// answers larger images with several rows each.
std::shared_ptr<Model> make_small_densenet(const SmallDenseNetShape& shape, bool bc, const ModelOptions& options,
                                           const ModelContext& context);

struct ConvNextShape {
  std::array<int64_t, 4> blocks, channels;  // of each stage
};

/// `stochastic_depth`: the probability that an image skips the last block in training. Throws KeyError for images of
/// less than 32x32 pixels, of which the halvings leave none.
std::shared_ptr<Model> make_convnext(const ConvNextShape& shape, double stochastic_depth, const ModelOptions& options,
                                     const ModelContext& context);

/// The library whose names a network's tensors have; their first values are drawn as there, too.
enum class TensorNames { kTorchvision, kTimm };

struct VisionTransformerShape {
  int64_t patch = 16, blocks = 12, features = 192, heads = 3;
  TensorNames names = TensorNames::kTimm;
  bool class_token = true;
  int64_t registers = 0;
  double layer_scale = 0;  // first value of LayerScale's factors; 0: there are none
  bool ln_pre = false;     // a norm before the blocks, no bias of the patches, and CLIP's epsilon of norms
  int64_t projected = 0;   // features behind CLIP's projection, where options have one
};

struct VisionTransformerOptions {
  enum class Activation { kGelu, kQuickGelu };
  enum class Pooling { kToken, kMean, kBoth };
  using enum Activation;
  using enum Pooling;

  Activation activation = Activation::kGelu;
  Pooling pooling = Pooling::kToken;
  bool projection = false;
  double stochastic_depth = 0;  // the probability that an image skips a branch of the last block in training
  AdapterOptions adapter = {};
};

/// Throws KeyError for images whose height or width is no multiple of the patches', and for parts that do not fit
/// together.
std::shared_ptr<Model> make_vision_transformer(const VisionTransformerShape& shape,
                                               const VisionTransformerOptions& parts, const ModelOptions& options,
                                               const ModelContext& context);

// The usual images and classes of a network.
inline constexpr ModelContext kCifar100{100, 3, 32, 32}, kImageNet{1000, 3, 224, 224};

/// torchvision's weights, trained on ImageNet. `file` as torchvision has it, with the first digits of its SHA-256.
PretrainedSource torchvision_weights(const std::string& name, const std::string& file,
                                     const std::string& interpolation = "bilinear", double crop_share = 0.875);

}  // namespace settrain

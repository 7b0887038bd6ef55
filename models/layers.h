// The layers that networks are built from.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/activation.h"
#include "models/batch_statistics.h"
#include "models/inference_form.h"
#include "models/packed_weights.h"

namespace settrain {

/// A module from one tensor to another, both [batch, channels, height, width] unless a layer says otherwise.
class Layer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;

  /// From now on forward() computes in that form, by the weights as they are now. Model::prepare() calls it.
  virtual void prepare(InferenceForm form) { form_ = form; }

 protected:
  bool is_prepared() const { return form_ != InferenceForm::kExact; }

 private:
  InferenceForm form_ = InferenceForm::kExact;
};

/// x convolved with weight [out, in / groups, kernel, kernel] plus `bias` [out], which may be undefined. The cost is
/// counted where x has no storage.
at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const ConvolutionGeometry& geometry);

/// Which side of a convolution's weights its first values are scaled by.
enum class Fan { kIn, kOut };

class BatchNorm;

/// A convolution without bias. The first constructor makes a square one, padded by half its kernel, whose `weight`
/// [out, in / groups, kernel, kernel] starts normal with standard deviation sqrt(2 / (fan * kernel^2)): fan is `out` in
/// the ResNets and in the papers' DenseNet, `in` in torchvision's DenseNets. With groups, each of as many slices of the
/// channels is convolved by itself.
class Convolution : public Layer {
 public:
  Convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, Fan fan = Fan::kOut, int64_t groups = 1);
  /// `weight`: [out, in / groups, height, width], as it starts. `bias`: [out], or undefined for none.
  Convolution(const at::Tensor& weight, const ConvolutionGeometry& geometry, const at::Tensor& bias = {});
  at::Tensor forward(const at::Tensor& x) override { return forward_into(Activation::kNone, x); }
  void prepare(InferenceForm form) override;

  /// activation(forward(x)).
  at::Tensor forward_into(Activation activation, const at::Tensor& x);

  /// activation(norm(convolved x) + added), in one operation where prepared. `added` has the result's shape, or is
  /// undefined; a prepared layer may overwrite it. `skipped` is the probability that an image has `added` alone.
  at::Tensor normed(const at::Tensor& x, Activation activation, const at::Tensor& added, double skipped);

  /// From now on normed() has this norm.
  void set_norm(std::shared_ptr<BatchNorm> norm) { norm_ = std::move(norm); }

  /// The padding of images of that size.
  virtual Padding padding(int64_t /*height*/, int64_t /*width*/) const {
    return {geometry_.padding, geometry_.padding, geometry_.side_padding, geometry_.side_padding};
  }

  /// Weight and bias by which a convolution computes normed() in evaluation; float64 where there is a norm.
  FoldedConvolution folded() const;

  at::ScalarType scalar_type() const { return weight_.scalar_type(); }
  int64_t kernel() const { return weight_.size(2); }
  int64_t stride() const { return geometry_.stride; }

 private:
  /// x as the convolution takes it, and the padding that is left to do.
  at::Tensor padded(const at::Tensor& x, ConvolutionGeometry& geometry) const;
  at::Tensor plain(const at::Tensor& x) const;
  at::Tensor packed(const at::Tensor& x, Activation activation, const at::Tensor& added);

  ConvolutionGeometry geometry_;
  at::Tensor weight_, bias_;
  std::shared_ptr<BatchNorm> norm_;  // may be null
  std::optional<PackedConvolution> packed_;
};

struct BatchNormOptions {
  double epsilon = 1e-5;  // added to variances
  double momentum = 0.1;  // a batch's share of the running statistics
};

/// Batch normalisation. Running variances are updated with the unbiased one of a batch. `weight` starts at 1, `bias` at
/// 0. forward() throws DataError in training mode for one value a channel, which has no variance.
class BatchNorm : public Layer {
 public:
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {});
  at::Tensor forward(const at::Tensor& x) override;
  void prepare(InferenceForm form) override;

  /// max(0, forward(x)), in one pass over x where prepared.
  at::Tensor rectified_norm(const at::Tensor& x);

  /// Scale and shift of each channel in evaluation: [channels] float64 each.
  std::pair<at::Tensor, at::Tensor> factors() const;

  int64_t channels() const { return weight_.numel(); }
  at::TensorOptions statistics_options() const { return running_mean_.options(); }

  /// From now on a training forward pass writes the mean and the unbiased variance of its batch there, [channels] each
  /// of zeros, and does not update the running ones. Undefined tensors: it updates them.
  void record_in(const at::Tensor& mean, const at::Tensor& variance);

  /// Updates the running statistics, as a forward pass would.
  void update(const at::Tensor& mean, const at::Tensor& variance);

  /// From now on a training forward pass normalises by the statistics of the batches of all processes together, whose
  /// tensors `sum` adds up; all of them pass forward and backward. Empty: by those of its own batch.
  void share_statistics(SumOverProcesses sum) { sum_ = std::move(sum); }

 private:
  template <class T>
  at::Tensor rectified_rows(const at::Tensor& x) const;
  at::Tensor normalised_together(const at::Tensor& x);

  BatchNormOptions options_;
  at::Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
  at::Tensor scale_, shift_;  // [channels] float32, those of factors() where prepared; else undefined
  at::Tensor recorded_mean_, recorded_var_;
  SumOverProcesses sum_;
};

/// A convolution with a bias.
class BiasedConvolution : public Convolution {
 public:
  /// `weight`: [out, in / groups, kernel, kernel], as it starts. The bias starts at zero.
  BiasedConvolution(const at::Tensor& weight, const ConvolutionGeometry& geometry);
  /// `bias`: [out], as it starts.
  BiasedConvolution(const at::Tensor& weight, const at::Tensor& bias, const ConvolutionGeometry& geometry)
      : Convolution(weight, geometry, bias) {}
};

/// From [..., in] to [..., out].
class LinearLayer : public Layer {
 public:
  /// `weight` [out, in] and `bias` [out] as they start.
  LinearLayer(const at::Tensor& weight, const at::Tensor& bias);
  at::Tensor forward(const at::Tensor& x) override { return forward_into(Activation::kNone, x); }
  void prepare(InferenceForm form) override;

  /// activation(forward(x)).
  at::Tensor forward_into(Activation activation, const at::Tensor& x);

  /// A parameter, with a value for each output, by which the network always multiplies the product. Where prepared, it
  /// is in the weights.
  void set_scale(const at::Tensor& scale) { scale_ = scale; }

  /// added + scale * forward(x) in one operation; of a prepared layer. `added`: [..., out], which it may
  /// overwrite.
  at::Tensor scaled_onto(const at::Tensor& added, const at::Tensor& x);

 private:
  at::Tensor weight_, bias_, scale_;
  std::optional<PackedLinear> packed_;
};

/// The maxima of square windows without padding. `to_the_end`: a last window may reach beyond the image.
class MaxPool : public Layer {
 public:
  MaxPool(int64_t size, int64_t stride, bool to_the_end = false)
      : size_(size), stride_(stride), to_the_end_(to_the_end) {}
  at::Tensor forward(const at::Tensor& x) override;

 private:
  int64_t size_, stride_;
  bool to_the_end_;
};

/// Values [..., features] brought to mean 0 and variance 1 along the features. `weight` starts at 1, `bias` at 0.
class LayerNorm : public Layer {
 public:
  /// `epsilon` is added to variances: 1e-6 in torchvision's networks.
  explicit LayerNorm(int64_t features, double epsilon = 1e-6);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  double epsilon_;
  at::Tensor weight_, bias_;
};

/// The same along the channels of every pixel.
class ChannelNorm : public LayerNorm {
 public:
  using LayerNorm::LayerNorm;
  at::Tensor forward(const at::Tensor& x) override;
};

/// Where a part of several words, "encoder.layers.0.ln_1", is registered: the module inside `root`, which is made where
/// there is none yet, and the last word.
std::pair<torch::nn::Module*, std::string> place_of_part(torch::nn::Module& root, std::string_view name);

/// Registers the layer inside `root` by a name of one or several words, and returns it.
std::shared_ptr<Layer> register_part(torch::nn::Module& root, std::string_view name, std::shared_ptr<Layer> layer);

/// [batch, channels, height, width] with the channels last, and back: the memory stays as it is.
at::Tensor with_channels_last(const at::Tensor& x);
at::Tensor with_channels_second(const at::Tensor& x);

/// Layers one after the other.
class Stage : public Layer {
 public:
  void add(const std::string& name, std::shared_ptr<Layer> layer);
  /// Adds a layer that another module has registered, under a name of its own.
  void add(std::shared_ptr<Layer> registered) { layers_.push_back(std::move(registered)); }
  at::Tensor forward(const at::Tensor& x) override;

  /// From now on none of what a layer computes inside is kept for the backward pass, which computes it again: less
  /// memory for the time of a second forward pass. Gradients and batch statistics stay as they are.
  void recompute_activations() { recompute_ = true; }

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
  bool recompute_ = false;
};

/// Whether a backward pass of this thread is computing a stage's forward pass again.
bool is_recomputing();

/// A tensor to be drawn: normal, or uniform in +-`bound`. Without storage where a CostCounter lives.
at::Tensor normal_values(at::IntArrayRef sizes, double deviation);
at::Tensor uniform_values(at::IntArrayRef sizes, double bound);

/// x [..., in] weight^T + bias, weight [out, in]. The cost is counted where x has no storage.
at::Tensor linear_map(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Stochastic depth (Huang et al. 2016), or drop path, by images: all values of an image become zero with probability
/// `p`, drawn from ATen's generator, and are divided by 1 - p else. p is below 1; x is [batch, ...].
at::Tensor drop_path(const at::Tensor& x, double p);

/// Dropout: each value becomes zero with probability `p`, drawn from ATen's generator in the order of x's dimensions
/// whatever its layout, and is divided by 1 - p else. p is below 1.
at::Tensor randomly_dropped(const at::Tensor& x, double p);

/// max(0, x), written over x.
at::Tensor rectified(at::Tensor x);

/// The mean over height and width: [batch, channels], float32 at least.
at::Tensor global_average(const at::Tensor& x);

}  // namespace settrain

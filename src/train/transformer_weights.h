// Files of vision transformers that name their tensors otherwise than the model, or are for images of another size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"
#include "src/formats/contents.h"

namespace settrain {

/// A tensor of a file, or one that is made of the file's, which is read when read() is called.
struct FileTensor {
  Dtype dtype;
  std::vector<int64_t> shape;
  std::function<at::Tensor()> read;
};

/// By name.
using FileTensors = std::map<std::string, FileTensor>;

/// Renames a vision transformer's tensors to the model's names where they are torchvision's, timm's, those of Meta's
/// DINOv2, OpenCLIP, or Hugging Face's ViT, Dinov2 and CLIP; merges queries, keys and values; leaves out what the model
/// does not have (mask tokens, poolers, the network for texts, a projection); and resizes the position embeddings to
/// the model's grid, by the way of the source. Leaves all as it is where it is no such file.
///
/// `images`: height and width of the images that the file's model was trained with, where they are known; else its grid
/// is taken for square. Returns what was done, for the log, in a few words each. Throws RunError where two tensors
/// would have one name.
std::vector<std::string> adapt_transformer(FileTensors& tensors, const PatchGrid& grid,
                                           const std::pair<int64_t, int64_t>& images);

/// How position embeddings are resized to another grid; all are bicubic.
enum class PositionResize {
  kAntialiased,    // timm, OpenCLIP, and DINOv2 with registers
  kPlain,          // Hugging Face's ViT, Dinov2 and CLIP
  kPlainOffset,    // Meta's DINOv2 without registers: by the scale (n + 0.1) / N
  kAlignedCorners  // torchvision
};

/// [1, before + rows * columns, features] float32 for another grid; the first `before` tokens stay as they are.
at::Tensor resized_positions(const at::Tensor& positions, int64_t before, const std::pair<int64_t, int64_t>& from,
                             const std::pair<int64_t, int64_t>& to, PositionResize how);

}  // namespace settrain

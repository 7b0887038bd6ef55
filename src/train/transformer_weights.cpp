#include "src/train/transformer_weights.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "models/named_tensors.h"
#include "src/core/error.h"

namespace settrain {
namespace {

using Renames = std::vector<std::pair<std::string_view, std::string_view>>;

// A source's names for tensors, and timm's names for them: of tensors, or of modules and so of all tensors in them.
struct Source {
  std::string_view title;
  std::vector<std::string_view> landmarks;  // tensors that all its files have, behind a prefix
  std::vector<std::string_view> blocks;     // what stands before a block's number
  Renames in_block, outside;
  std::vector<std::string_view> left_out;  // modules or tensors that no classifier has
  // Whether the source's files may have a network for texts beside the one for images. Its tensors lie outside the
  // prefix and may have the same names. Of the tensors outside the prefix only those that `beside` names are read.
  bool has_text_network = false;
  std::vector<std::string_view> beside = {};
  PositionResize resize = PositionResize::kAntialiased;
};

constexpr std::string_view kTimm = "timm's";

// Names that stand for parts which no single tensor of timm has.
constexpr std::string_view kRegisters = "register_tokens", kTransposedProjection = "proj^T";
constexpr std::array<std::string_view, 3> kQueryKeyValue{"attn.q", "attn.k", "attn.v"};

const Source& torchvision() {
  static const Source source{.title = "torchvision's",
                             .landmarks = {"encoder.pos_embedding", "conv_proj.weight"},
                             .blocks = {"encoder.layers.encoder_layer_"},
                             .in_block = {{"ln_1", "norm1"},
                                          {"ln_2", "norm2"},
                                          {"self_attention.in_proj_weight", "attn.qkv.weight"},
                                          {"self_attention.in_proj_bias", "attn.qkv.bias"},
                                          {"self_attention.out_proj", "attn.proj"},
                                          {"mlp.0", "mlp.fc1"},
                                          {"mlp.3", "mlp.fc2"}},
                             .outside = {{"class_token", "cls_token"},
                                         {"conv_proj", "patch_embed.proj"},
                                         {"encoder.pos_embedding", "pos_embed"},
                                         {"encoder.ln", "norm"},
                                         {"heads.head", "head"}},
                             .left_out = {},
                             .resize = PositionResize::kAlignedCorners};
  return source;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all{
      torchvision(),
      {.title = "OpenCLIP's",
       .landmarks = {"class_embedding", "conv1.weight", "transformer.resblocks.0.attn.in_proj_weight"},
       .blocks = {"transformer.resblocks."},
       .in_block = {{"ln_1", "norm1"},
                    {"ln_2", "norm2"},
                    {"attn.in_proj_weight", "attn.qkv.weight"},
                    {"attn.in_proj_bias", "attn.qkv.bias"},
                    {"attn.out_proj", "attn.proj"},
                    {"mlp.c_fc", "mlp.fc1"},
                    {"mlp.c_proj", "mlp.fc2"}},
       .outside = {{"class_embedding", "cls_token"},
                   {"positional_embedding", "pos_embed"},
                   {"conv1", "patch_embed.proj"},
                   {"ln_pre", "norm_pre"},
                   {"ln_post", "norm"}},
       .left_out = {},
       .has_text_network = true},
      {.title = "Hugging Face's",
       .landmarks = {"embeddings.cls_token", "embeddings.patch_embeddings.projection.weight"},
       .blocks = {"encoder.layer.", "layers."},
       .in_block = {{"layernorm_before", "norm1"},
                    {"layernorm_after", "norm2"},
                    {"attention.attention.query", "attn.q"},
                    {"attention.attention.key", "attn.k"},
                    {"attention.attention.value", "attn.v"},
                    {"attention.output.dense", "attn.proj"},
                    {"attention.q_proj", "attn.q"},
                    {"attention.k_proj", "attn.k"},
                    {"attention.v_proj", "attn.v"},
                    {"attention.o_proj", "attn.proj"},
                    {"intermediate.dense", "mlp.fc1"},
                    {"output.dense", "mlp.fc2"},
                    {"layer_scale1.lambda1", "ls1.gamma"},
                    {"layer_scale2.lambda1", "ls2.gamma"}},
       .outside = {{"embeddings.cls_token", "cls_token"},
                   {"embeddings.register_tokens", kRegisters},
                   {"embeddings.position_embeddings", "pos_embed"},
                   {"embeddings.patch_embeddings.projection", "patch_embed.proj"},
                   {"layernorm", "norm"},
                   {"classifier", "head"}},
       .left_out = {"embeddings.mask_token", "pooler"},
       .resize = PositionResize::kPlain},
      {.title = "Hugging Face's CLIP's",
       .landmarks = {"embeddings.class_embedding", "embeddings.patch_embedding.weight"},
       .blocks = {"encoder.layers."},
       .in_block = {{"layer_norm1", "norm1"},
                    {"layer_norm2", "norm2"},
                    {"self_attn.q_proj", "attn.q"},
                    {"self_attn.k_proj", "attn.k"},
                    {"self_attn.v_proj", "attn.v"},
                    {"self_attn.out_proj", "attn.proj"}},
       .outside = {{"embeddings.class_embedding", "cls_token"},
                   {"embeddings.position_embedding.weight", "pos_embed"},
                   {"embeddings.patch_embedding", "patch_embed.proj"},
                   {"pre_layrnorm", "norm_pre"},  // its own spelling
                   {"post_layernorm", "norm"},
                   {"visual_projection.weight", kTransposedProjection}},
       .left_out = {"embeddings.position_ids"},
       .has_text_network = true,
       .beside = {"visual_projection.weight"},
       .resize = PositionResize::kPlain},
      // timm's names, with a token for masked patches; the blocks in chunks where it was trained so.
      {.title = "DINOv2's",
       .landmarks = {"mask_token", "patch_embed.proj.weight", "cls_token"},
       .blocks = {"blocks."},
       .in_block = {},
       .outside = {},
       .left_out = {"mask_token"},
       .resize = PositionResize::kPlainOffset},
      {.title = "DINOv2's",
       .landmarks = {kRegisters, "patch_embed.proj.weight", "cls_token"},
       .blocks = {"blocks."},
       .in_block = {},
       .outside = {},
       .left_out = {"mask_token"}},
      {.title = kTimm,
       .landmarks = {"pos_embed", "patch_embed.proj.weight"},
       .blocks = {"blocks."},
       .in_block = {},
       .outside = {},
       .left_out = {}}};
  return all;
}

// The name with its part renamed, or nothing where no part is the name's.
std::optional<std::string> renamed(std::string_view name, const Renames& renames) {
  for (const auto& [theirs, ours] : renames) {
    if (is_part_of(name, theirs)) return std::string(ours) + std::string(name.substr(theirs.size()));
  }
  return std::nullopt;
}

// Digits and a dot at the front; empty where there are none.
std::string_view number_before(std::string_view name) {
  const size_t end = name.find_first_not_of("0123456789");
  return end == 0 || end == std::string_view::npos || name[end] != '.' ? "" : name.substr(0, end);
}

// A name of the source, behind the prefix, as timm has it.
std::string timm_name(const Source& source, std::string_view name) {
  for (const std::string_view blocks : source.blocks) {
    if (!name.starts_with(blocks)) continue;
    std::string_view rest = name.substr(blocks.size());
    std::string_view number = number_before(rest);
    if (number.empty()) continue;
    rest.remove_prefix(number.size() + 1);
    if (const std::string_view in_chunk = number_before(rest); !in_chunk.empty()) {  // chunk, block
      number = in_chunk;
      rest.remove_prefix(number.size() + 1);
    }
    return fmt::format("blocks.{}.{}", number, renamed(rest, source.in_block).value_or(std::string(rest)));
  }
  return renamed(name, source.outside).value_or(std::string(name));
}

// The prefixes behind which all landmarks of the source lie.
std::vector<std::string> prefixes_of(const Source& source, const FileTensors& tensors) {
  constexpr size_t kLongestName = 512;  // a hostile one would take long
  std::vector<std::string> found;
  for (const auto& tensor : tensors) {
    const std::string& name = tensor.first;
    const std::string_view first = source.landmarks.front();
    if (name.size() > kLongestName || !name.ends_with(first)) continue;
    const std::string prefix = name.substr(0, name.size() - first.size());
    if (!prefix.empty() && prefix.back() != '.') continue;
    const auto is_there = [&](std::string_view landmark) { return tensors.contains(prefix + std::string(landmark)); };
    if (std::ranges::all_of(source.landmarks, is_there)) found.push_back(prefix);
  }
  return found;
}

void add(FileTensors& tensors, const std::string& name, FileTensor tensor) {
  if (!tensors.emplace(name, std::move(tensor)).second)
    throw RunError(fmt::format("two of its tensors would be named {}", shown(name)));
}

// The same elements in another shape; the tensor as it is where it has others.
FileTensor reshaped(FileTensor tensor, const std::vector<int64_t>& shape) {
  int64_t elements = 1, wanted = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  for (const int64_t size : shape) wanted *= size;
  if (elements != wanted) return tensor;
  return {tensor.dtype, shape, [read = std::move(tensor.read), shape] { return read().view(shape); }};
}

// Takes a tensor out, if it is there.
std::optional<FileTensor> taken(FileTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return std::nullopt;
  FileTensor tensor = std::move(found->second);
  tensors.erase(found);
  return tensor;
}

// Queries, keys and values of a block as one tensor.
void merge_attention(FileTensors& tensors) {
  std::vector<std::pair<std::string, std::string>> queries;  // "blocks.3.", ".weight"
  for (const auto& tensor : tensors) {
    const size_t place = tensor.first.find(std::string(kQueryKeyValue.front()) + ".");
    if (!tensor.first.starts_with("blocks.") || place == std::string::npos) continue;
    queries.emplace_back(tensor.first.substr(0, place), tensor.first.substr(place + kQueryKeyValue.front().size()));
  }
  for (const auto& [block, part] : queries) {
    std::vector<FileTensor> three;
    for (const std::string_view one : kQueryKeyValue) {
      const auto found = tensors.find(block + std::string(one) + part);
      if (found != tensors.end()) three.push_back(found->second);
    }
    const auto is_alike = [&](const FileTensor& tensor) {
      constexpr int64_t kMost = int64_t{1} << 40;  // rows of a hostile file, of no bytes
      return tensor.shape == three.front().shape && tensor.dtype == three.front().dtype && !tensor.shape.empty() &&
             tensor.shape.front() < kMost;
    };
    if (three.size() < kQueryKeyValue.size() || !std::ranges::all_of(three, is_alike)) continue;
    for (const std::string_view one : kQueryKeyValue) tensors.erase(block + std::string(one) + part);
    std::vector<int64_t> shape = three.front().shape;
    shape.front() *= static_cast<int64_t>(three.size());
    add(tensors, block + "attn.qkv" + part, {three.front().dtype, shape, [three] {
                                               return at::cat({three[0].read(), three[1].read(), three[2].read()});
                                             }});
  }
}

// DINOv2's registers: the class' token takes up its position embedding, and the registers have none.
void add_class_position(FileTensors& tensors) {
  auto registers = taken(tensors, std::string(kRegisters));
  if (!registers) return;
  add(tensors, "reg_token", std::move(*registers));
  const auto token = tensors.find("cls_token"), positions = tensors.find("pos_embed");
  if (token == tensors.end() || positions == tensors.end()) return;
  const FileTensor before = positions->second, alone = token->second;
  if (before.shape.size() != 3 || before.shape[1] < 2 || alone.shape != std::vector<int64_t>{1, 1, before.shape[2]})
    return;
  token->second.read = [before, alone] { return alone.read() + before.read().slice(1, 0, 1); };
  positions->second.shape[1] -= 1;
  positions->second.read = [before] { return before.read().slice(1, 1); };
}

// Gives the tensors timm's names and shapes. `prefix` stands before the names.
std::vector<std::string> to_timm(FileTensors& tensors, const Source& source, const std::string& prefix) {
  std::vector<std::string> done;
  FileTensors now;
  bool has_text_network = false;
  for (auto& [name, tensor] : tensors) {
    const bool is_behind = name.starts_with(prefix);
    const std::string_view theirs = is_behind ? std::string_view(name).substr(prefix.size()) : name;
    if (source.has_text_network && !is_behind && std::ranges::count(source.beside, theirs) == 0) {
      has_text_network = true;
      continue;
    }
    const auto is_it = [&](std::string_view part) { return is_part_of(theirs, part); };
    if (std::ranges::any_of(source.left_out, is_it)) continue;
    add(now, timm_name(source, theirs), std::move(tensor));
  }
  tensors = std::move(now);
  merge_attention(tensors);
  add_class_position(tensors);
  if (auto projection = taken(tensors, std::string(kTransposedProjection))) {
    if (projection->shape.size() == 2) {
      std::swap(projection->shape[0], projection->shape[1]);
      projection->read = [read = projection->read] { return read().t(); };
    }
    add(tensors, "proj", std::move(*projection));
  }
  for (const char* name : {"cls_token", "pos_embed"}) {  // CLIP's are [features] and [tokens, features]
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.shape.empty() || found->second.shape.size() > 2) continue;
    std::vector<int64_t> shape = found->second.shape;
    while (shape.size() < 3) shape.insert(shape.begin(), 1);
    found->second = reshaped(found->second, shape);
  }
  if (!prefix.empty()) done.push_back(fmt::format("without the prefix {}", displayed(prefix)));
  if (has_text_network) done.emplace_back("without the network for texts");
  return done;
}

// timm's names as torchvision's.
void to_torchvision(FileTensors& tensors) {
  Source timm{.title = "", .landmarks = {}, .blocks = {}, .in_block = {}, .outside = {}, .left_out = {}};
  for (const auto& [theirs, ours] : torchvision().in_block) timm.in_block.emplace_back(ours, theirs);
  for (const auto& [theirs, ours] : torchvision().outside) timm.outside.emplace_back(ours, theirs);
  FileTensors now;
  for (auto& [name, tensor] : tensors) {
    const std::string_view blocks = "blocks.";
    const std::string_view rest = std::string_view(name).substr(std::min(blocks.size(), name.size()));
    const std::string_view number = name.starts_with(blocks) ? number_before(rest) : "";
    if (number.empty()) {
      add(now, renamed(name, timm.outside).value_or(name), std::move(tensor));
    } else {
      const std::string_view in_block = rest.substr(number.size() + 1);
      add(now,
          fmt::format("{}{}.{}", torchvision().blocks.front(), number,
                      renamed(in_block, timm.in_block).value_or(std::string(in_block))),
          std::move(tensor));
    }
  }
  tensors = std::move(now);
}

std::string_view in_words(PositionResize how) {
  switch (how) {
    case PositionResize::kAntialiased:
      return "bicubic with antialiasing";
    case PositionResize::kPlain:
      return "bicubic";
    case PositionResize::kPlainOffset:
      return "bicubic by the scale (n + 0.1) / N";
    case PositionResize::kAlignedCorners:
      return "bicubic with corners on corners";
  }
  return "";
}

// Says what was done; an empty text where the position embeddings fit as they are, or no grid is known for them.
std::string resize(FileTensor& positions, const PatchGrid& grid, const std::pair<int64_t, int64_t>& images,
                   PositionResize how) {
  if (positions.shape.size() != 3 || positions.shape[0] != 1) return "";
  constexpr int64_t kMostPositions = 1 << 24;
  const int64_t number = positions.shape[1] - grid.before;
  if (number < 1 || number > kMostPositions) return "";
  const std::pair to(grid.rows, grid.columns);
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(number))));
  std::pair from(images.first / grid.patch, images.second / grid.patch);
  if (from.first * from.second != number) from = {side, side};
  if (from.first * from.second != number || from == to) return "";
  FileTensor resized = positions;
  resized.shape[1] = grid.before + grid.rows * grid.columns;
  resized.read = [read = positions.read, before = grid.before, from, to, how] {
    return resized_positions(read(), before, from, to, how);
  };
  positions = std::move(resized);
  return fmt::format("position embeddings resized from {}x{} to {}x{}, {}", from.first, from.second, to.first,
                     to.second, in_words(how));
}

}  // namespace

at::Tensor resized_positions(const at::Tensor& positions, int64_t before, const std::pair<int64_t, int64_t>& from,
                             const std::pair<int64_t, int64_t>& to, PositionResize how) {
  constexpr double kOffset = 0.1;
  const at::Tensor values = positions.to(at::kFloat);
  const int64_t features = values.size(2);
  const at::Tensor image =
      values.slice(1, before).reshape({1, from.first, from.second, features}).permute({0, 3, 1, 2});
  const std::vector<int64_t> size{to.first, to.second};
  at::Tensor resized;
  if (how == PositionResize::kAntialiased) {
    resized = at::_upsample_bicubic2d_aa(image, size, /*align_corners=*/false);
  } else if (how == PositionResize::kPlainOffset) {
    const auto scale = [&](int64_t n, int64_t of) {
      return (static_cast<double>(n) + kOffset) / static_cast<double>(of);
    };
    resized = at::upsample_bicubic2d(image, size, /*align_corners=*/false, scale(to.first, from.first),
                                     scale(to.second, from.second));
  } else {
    resized = at::upsample_bicubic2d(image, size, /*align_corners=*/how == PositionResize::kAlignedCorners);
  }
  return at::cat({values.slice(1, 0, before), resized.permute({0, 2, 3, 1}).reshape({1, -1, features})}, 1);
}

std::vector<std::string> adapt_transformer(FileTensors& tensors, const PatchGrid& grid,
                                           const std::pair<int64_t, int64_t>& images) {
  const bool is_torchvision = grid.positions != "pos_embed";
  for (const Source& source : sources()) {
    const std::vector<std::string> prefixes = prefixes_of(source, tensors);
    if (prefixes.size() != 1) continue;
    std::vector<std::string> done;
    if (source.title != (is_torchvision ? torchvision().title : kTimm)) {
      done.push_back(fmt::format("{} names", source.title));
    }
    const std::vector<std::string> more = to_timm(tensors, source, prefixes.front());
    done.insert(done.end(), more.begin(), more.end());
    if (!grid.has_projection && tensors.erase("proj") > 0) done.emplace_back("without its projection");
    const bool has_registers = tensors.contains("reg_token");
    if (is_torchvision) to_torchvision(tensors);
    const auto positions = tensors.find(grid.positions);
    if (positions == tensors.end()) return done;
    // Meta and Hugging Face add antialiasing to networks with registers.
    const PositionResize how = has_registers ? PositionResize::kAntialiased : source.resize;
    if (const std::string text = resize(positions->second, grid, images, how); !text.empty()) done.push_back(text);
    return done;
  }
  return {};
}

}  // namespace settrain

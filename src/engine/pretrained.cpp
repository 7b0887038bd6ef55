#include "src/engine/pretrained.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "models/heads.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/run/safetensors.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "model.pretrained";
constexpr const char* kEnding = ".safetensors";

std::string conversion(const std::string& from, const std::string& to) {
  return fmt::format(
      "python3 -c \"import torch, safetensors.torch as s; s.save_file(torch.load('{}', map_location='cpu', "
      "weights_only=True), '{}')\"",
      from, to);
}

// Module names cannot hold dots any more, but torchvision's files of DenseNets still have those of a time when they
// could: norm.1 for norm1.
TensorMap with_new_names(const TensorMap& tensors) {
  static const std::regex old_name(R"((.*denselayer\d+\.(?:norm|conv))\.([12]\..*))");
  TensorMap renamed;
  for (const auto& [name, tensor] : tensors) renamed[std::regex_replace(name, old_name, "$1$2")] = tensor;
  return renamed;
}

bool is_of(const std::string& name, const std::string& module) {
  return name.starts_with(module + ".");
}

std::vector<std::string> heads_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& child : model.named_children()) {
    if (child.value()->as<Head>()) names.push_back(child.key());
  }
  return names;
}

std::string describe(const at::Tensor& tensor) {
  return fmt::format("[{}] {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

bool fits(const at::Tensor& target, const at::Tensor& tensor) {
  return target.sizes() == tensor.sizes() && target.is_floating_point() == tensor.is_floating_point();
}

// Whether the file has exactly the head's tensors: a linear one's weight alone is another head.
bool head_fits(const std::string& head, const NamedTensors& targets, const TensorMap& tensors) {
  int64_t theirs = 0;
  for (const auto& entry : tensors) theirs += is_of(entry.first, head);
  for (const auto& [name, target] : targets) {
    if (!is_of(name, head)) continue;
    const auto found = tensors.find(name);
    if (found == tensors.end() || !fits(target, found->second)) return false;
    --theirs;
  }
  return theirs == 0;
}

// What does not fit, a line each.
std::string misfits(const NamedTensors& targets, TensorMap tensors) {
  std::string lines;
  for (const auto& [name, target] : targets) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      if (!name.ends_with(".num_batches_tracked")) lines += fmt::format("\n  {}: missing", name);
      continue;
    }
    if (!fits(target, found->second)) {
      lines += fmt::format("\n  {}: {}, expected {}", name, describe(found->second), describe(target));
    }
    tensors.erase(found);
  }
  for (const auto& entry : tensors) lines += fmt::format("\n  {}: the model has no such tensor", entry.first);
  return lines;
}

Pretrained load(const std::string& file, Model& model) {
  Pretrained loaded{.file = file, .sha256 = sha256_of_file(file)};
  TensorMap tensors = with_new_names(read_safetensors(file).tensors);
  NamedTensors targets = state_dict(model);

  std::vector<std::string> kept;
  for (const std::string& head : heads_of(model))
    (head_fits(head, targets, tensors) ? kept : loaded.drawn).push_back(head);
  const auto is_kept = [&kept](const std::string& name) {
    return std::any_of(kept.begin(), kept.end(), [&](const std::string& head) { return is_of(name, head); });
  };
  std::vector<std::string> heads = loaded.drawn;
  heads.insert(heads.end(), {"fc", "classifier"});  // torchvision's names
  const auto is_left = [&](const std::string& name) {
    return !is_kept(name) &&
           std::any_of(heads.begin(), heads.end(), [&](const std::string& head) { return is_of(name, head); });
  };
  std::erase_if(tensors, [&](const auto& entry) { return is_left(entry.first); });
  std::erase_if(targets, [&](const auto& entry) { return is_left(entry.first); });

  const std::string lines = misfits(targets, tensors);
  if (!lines.empty()) throw KeyError(kKey, fmt::format("'{}' has other tensors than the model:{}", file, lines));
  const at::NoGradGuard no_grad;
  for (auto& [name, target] : targets) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) continue;
    target.copy_(found->second);
    ++loaded.num_tensors;
  }
  return loaded;
}

}  // namespace

std::string Pretrained::describe() const {
  const std::string heads = drawn.empty() ? "" : fmt::format(", head {} left as drawn", fmt::join(drawn, " and "));
  return fmt::format("weights of '{}' (SHA-256 {}): {} tensors{}", file, sha256.substr(0, 16), num_tensors, heads);
}

config::Rule pretrained_rule() {
  return [](const config::Config& config) {
    const fs::path file = config.get<std::string>(kKey);
    if (file == ModelOptions::kNone || file.extension() == kEnding) return;
    fs::path converted = file;
    config.fail(kKey,
                fmt::format("expected none or a file {}, got '{}'; a file of PyTorch is converted by\n  {}", kEnding,
                            file.string(), conversion(file.string(), converted.replace_extension(kEnding).string())));
  };
}

std::string missing_pretrained(const ModelRegistry& registry, const config::Config& config) {
  const auto& file = config.get<std::string>(kKey);
  if (file == ModelOptions::kNone || fs::is_regular_file(file)) return "";
  const auto& model = config.get<std::string>("model.name");
  const PretrainedSource& source = registry.at(model).pretrained;
  std::string text =
      fmt::format("{}: {}: there is no file '{}', of weights to start from", config.at(kKey).origin.text, kKey, file);
  if (!source.url.empty()) {
    const std::string name = source.url.substr(source.url.rfind('/') + 1);
    text += fmt::format("; for {}, {} has them: {}, which is converted by\n  {}", model, source.name, source.url,
                        conversion(name, file));
  }
  return text +
         "\nPut it there, set model.pretrained or SETTRAIN_WEIGHTS, or take weights as they are drawn: "
         "model.pretrained=none";
}

std::optional<Pretrained> load_pretrained(const config::Config& config, Model& model) {
  const auto& file = config.get<std::string>(kKey);
  if (file == ModelOptions::kNone) return std::nullopt;
  try {
    return load(file, model);
  } catch (const RunError& error) {
    throw KeyError(kKey, error.what());
  }
}

}  // namespace settrain

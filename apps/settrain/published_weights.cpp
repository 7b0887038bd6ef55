#include "apps/settrain/published_weights.h"

#include <algorithm>
#include <array>

#include "src/data_tools/fetch.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// torchvision's names end in the first eight digits of the file's SHA-256: resnet18-f37072fd.pth.
Checksum checksum_in_name(const std::string& stem) {
  constexpr size_t kDigits = 8;
  const size_t dash = stem.rfind('-');
  if (dash == std::string::npos || stem.size() - dash - 1 != kDigits) return {};
  const std::string digits = stem.substr(dash + 1);
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  return {Checksum::Kind::kSha256, digits};
}

bool is_weight_file(const fs::path& name) {
  constexpr std::array<const char*, 4> kEndings{".pth", ".pt", ".bin", ".safetensors"};
  return std::ranges::any_of(kEndings, [&](const char* ending) { return name.extension() == ending; });
}

RemoteFile file_of(const ModelEntry& entry) {
  const PretrainedSource& source = entry.pretrained;
  const fs::path name = source.url.substr(source.url.rfind('/') + 1);
  if (!is_weight_file(name)) return {.name = source.file, .url = ""};
  // A repository of one model names its file like every other one.
  const bool is_unnamed = name.stem() == "model";
  return {.name = is_unnamed ? entry.name + name.extension().string() : name.string(),
          .url = source.url,
          .checksum = checksum_in_name(name.stem().string())};
}

}  // namespace

std::vector<PublishedWeights> published_weights(const ModelRegistry& models) {
  std::vector<PublishedWeights> all;
  for (const ModelEntry& entry : models.entries()) {
    if (entry.pretrained.url.empty()) continue;
    all.push_back({entry.name, entry.pretrained.name, entry.pretrained.url, file_of(entry)});
  }
  return all;
}

fs::path weights_folder() {
  return folder_of_variable("SETTRAIN_WEIGHTS", "weights");
}

}  // namespace settrain

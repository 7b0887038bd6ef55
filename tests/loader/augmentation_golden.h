// Images by formulas, and digests of what torchvision makes of them (tests/golden/augmentation.json).
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "datasets/decoding/image.h"
#include "src/core/digest.h"
#include "tests/support/skip.h"

namespace settrain::test {

inline nlohmann::json augmentation_golden() {
  std::ifstream stream(golden_path("augmentation.json"));
  return nlohmann::json::parse(stream);
}

/// The image of a formula of scripts/record_augmentation_golden.py: [kind, height, width, channels].
inline Image image_by_formula(const nlohmann::json& sizes) {
  const auto kind = sizes.at(0).get<std::string>();
  Image image{sizes.at(1), sizes.at(2), sizes.at(3), {}};
  for (uint32_t y = 0; y < image.height; ++y) {
    for (uint32_t x = 0; x < image.width; ++x) {
      for (uint32_t c = 0; c < image.channels; ++c) {
        uint32_t mixed = x * 374761393U + y * 668265263U + c * 974634777U + 12345U;
        mixed = (mixed ^ (mixed >> 13)) * 1274126177U;
        const uint32_t noise = (mixed ^ (mixed >> 16)) & 255U, smooth = 40 * c + 5 * x + 3 * y + ((x * y) >> 3);
        const uint32_t value = kind == "smooth"  ? smooth
                               : kind == "noise" ? noise
                               : kind == "dim"   ? 60 + (noise & 63U) + 9 * c
                                                 : 77 + c;
        image.pixels.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return image;
}

/// The first half of a SHA-256, in hex.
inline std::string half_hex(Sha256& sha) {
  return sha.hex().substr(0, 32);
}

}  // namespace settrain::test

// Keys of the section `data` that say how an image of any size becomes a model's input.
#pragma once

#include <cstdint>
#include <string>

#include "src/config/key.h"

namespace settrain {

struct PipelineOptions {
  std::string pipeline = "plain";
  int64_t input_size = kAuto, resize_size = kAuto, pad = kAuto;
  std::string flip = "auto";

  static constexpr int64_t kAuto = -1;  // what the word auto stands for

  static config::Keys keys();
};

}  // namespace settrain

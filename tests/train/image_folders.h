// A small image folder on the disk, and runs on it without their training.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/config/load.h"
#include "src/train/experiment.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// A BMP of `side` x `side` pixels of one grey.
inline std::string bmp_bytes(int side, int grey) {
  const int row = (3 * side + 3) / 4 * 4, size = 54 + row * side;
  std::string bytes(static_cast<size_t>(size), static_cast<char>(grey));
  const auto put = [&bytes](size_t at, uint32_t value, int count) {
    for (int i = 0; i < count; ++i) bytes[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  for (size_t i = 0; i < 54; ++i) bytes[i] = '\0';
  bytes[0] = 'B';
  bytes[1] = 'M';
  put(2, static_cast<uint32_t>(size), 4);
  put(10, 54, 4);
  put(14, 40, 4);
  put(18, static_cast<uint32_t>(side), 4);
  put(22, static_cast<uint32_t>(side), 4);
  put(26, 1, 2);
  put(28, 24, 2);
  return bytes;
}

/// root/{train,val,test}/{ash,elm,oak}/0.bmp, 1.bmp, ..., which all differ.
struct SmallFolder {
  TemporaryFolder folder;

  explicit SmallFolder(int train_images = 3, int side = 8) {
    int grey = 0;
    for (const char* split : {"train", "val", "test"}) {
      for (const char* name : {"ash", "elm", "oak"}) {
        for (int i = 0; i < (split == std::string("train") ? train_images : 3); ++i)
          write(std::string(split) + "/" + name + "/" + std::to_string(i) + ".bmp", bmp_bytes(side, ++grey));
      }
    }
  }

  void write(const std::string& name, const std::string& bytes) const { folder.write(name, bytes); }

  Experiment run(std::vector<std::string> settings = {}, FirstWeights weights = FirstWeights::kDrawn) const {
    std::vector<std::string> all{"data.name=image_folder", "data.root=" + folder.path().string(),
                                 "data.input_size=8",      "data.workers=1",
                                 "data.batch_size=4",      "run.threads=1"};
    const auto is_model = [](const std::string& setting) { return setting.starts_with("model.name="); };
    if (std::none_of(settings.begin(), settings.end(), is_model)) {
      all.insert(all.end(), {"model.name=resnet8", "model.width=1"});
    }
    all.insert(all.end(), settings.begin(), settings.end());
    return make_experiment(builtin_registries(), config::load(experiment_schema(builtin_registries()), {}, all),
                           at::kCPU, weights);
  }
};

}  // namespace settrain::test

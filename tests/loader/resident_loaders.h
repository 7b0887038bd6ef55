// Loaders with and without resident images, whose batches must be the same.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "src/loader/loader.h"
#include "tests/support/catch2.h"

namespace settrain::test {

// 23 of 33 images of random pixels; sample i has id 10 + i and label i % 4.
inline Split random_split(int64_t height, int64_t width, int64_t channels) {
  constexpr int64_t kImages = 23;
  const at::Tensor pixels =
      at::randint(1, 256, {(kImages + 10) * height * width * channels}, at::detail::createCPUGenerator(1), at::kByte);
  const auto* first = pixels.data_ptr<uint8_t>();
  const std::vector<uint8_t> bytes(first, first + pixels.numel());
  Split split{"train", std::make_shared<MemoryImages>(bytes, height, width, channels), {}, {}};
  for (int64_t i = 0; i < kImages; ++i) {
    split.ids.push_back(10 + i);
    split.labels.push_back(i % 4);
  }
  return split;
}

inline Normalisation statistics(int64_t channels) {
  return {std::vector<float>(static_cast<size_t>(channels), 0.4F),
          std::vector<float>(static_cast<size_t>(channels), 0.3F)};
}

inline std::shared_ptr<const ResidentImages> resident(const Split& split, at::Device device) {
  return std::make_shared<ResidentImages>(dynamic_cast<const MemoryImages&>(*split.images), device);
}

struct LoaderPair {
  std::unique_ptr<Loader> host, resident;

  LoaderPair(const Split& split, const PipelineOptions& options, ViewUse use, bool channels_last, at::Device device,
             LoaderSettings settings = {.batch_size = 5, .workers = 2, .prefetch = 2, .shuffle_seed = 3}) {
    const auto& images = dynamic_cast<const MemoryImages&>(*split.images);
    const Transform transform(Pipeline(options, images.height(), images.width(), use, 9), statistics(images.channels()),
                              {PixelType::kByte, channels_last});
    host = std::make_unique<Loader>(split, transform, settings);
    settings.resident = test::resident(split, device);
    settings.pin_memory = device.is_cuda();
    resident = std::make_unique<Loader>(split, transform, settings);
  }
};

inline void check_same(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.defined() == b.defined());
  if (a.defined()) CHECK(at::equal(a, b));
}

// Compares the batches of the first `epochs` epochs, each from `first_batch` on.
inline void check_equal(const LoaderPair& loaders, int64_t epochs, int64_t first_batch = 0) {
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    loaders.host->start_epoch(epoch, first_batch);
    loaders.resident->start_epoch(epoch, first_batch);
    int64_t batches = 0;
    for (Batch host, resident; loaders.host->next(host); ++batches) {
      CAPTURE(epoch, batches);
      REQUIRE(loaders.resident->next(resident));
      CHECK(resident.images.strides() == host.images.strides());  // the last bits of a network depend on them
      CHECK(resident.images.scalar_type() == at::kByte);
      CHECK(at::equal(resident.images.cpu(), host.images));
      check_same(resident.labels, host.labels);
      check_same(resident.sample_ids, host.sample_ids);
      check_same(resident.set_offsets, host.set_offsets);
      check_same(resident.set_classes, host.set_classes);
      CHECK(resident.first_position == host.first_position);
      CHECK(resident.views == host.views);
    }
    CHECK(batches == loaders.host->batches_per_epoch() - first_batch);
    Batch none;
    CHECK_FALSE(loaders.resident->next(none));
  }
}

}  // namespace settrain::test

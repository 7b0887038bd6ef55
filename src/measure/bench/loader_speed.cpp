#include <chrono>
#include <span>
#include <stdexcept>
#include <utility>

#include "datasets/decoding/decode_image.h"
#include "datasets/file_bytes.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/measure/bench/speed.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

double lap(Clock::time_point& start) {
  const auto now = Clock::now();
  return std::chrono::duration<double>(now - std::exchange(start, now)).count();
}

}  // namespace

LoadingTimes& LoadingTimes::operator+=(const LoadingTimes& other) {
  images += other.images;
  read += other.read;
  decode += other.decode;
  render += other.render;
  whole += other.whole;
  return *this;
}

LoadingTimes measure_stages(const ImageFiles& files, const ImageFileOptions& options, const std::vector<int64_t>& ids,
                            const Transform& transform, int64_t epoch) {
  LoadingTimes times;
  std::vector<uint8_t> memory;
  std::vector<std::byte> output(static_cast<size_t>(transform.bytes()));
  TransformMemory scratch;
  for (const int64_t id : ids) {
    throw_if_interrupted();
    auto start = Clock::now();
    const std::span<const uint8_t> bytes = read_file_bytes(files.files().path(id), memory);
    times.read += lap(start);
    const DecodeOptions decoding{options.channels(), options.apply_orientation};
    const auto decode_whole = [&] {
      auto begin = Clock::now();
      const auto choose = [](int64_t height, int64_t width) { return Box{0, 0, height, width}; };
      decode_image(bytes, decoding, choose, scratch.part);
      times.whole += lap(begin);
    };
    std::vector<View> views;
    const auto choose = [&](int64_t height, int64_t width) {
      views = transform.pipeline().views_of(height, width, epoch, id);
      return needed_pixels(views);
    };
    const bool whole_first = times.images++ % 2 == 0;
    try {
      if (whole_first) decode_whole();
      start = Clock::now();
      decode_image(bytes, decoding, choose, scratch.part);
      times.decode += lap(start);
      transform.render(scratch.part, views, transform.pipeline().changes_of(epoch, id), scratch, output.data());
      times.render += lap(start);
      if (!whole_first) decode_whole();
    } catch (const std::runtime_error& error) {
      throw DataError(files.describe(id) + ": " + error.what());
    }
  }
  return times;
}

double measure_loader(Loader& loader, int64_t epoch) {
  int64_t images = 0;
  auto start = Clock::now();
  loader.start_epoch(epoch);
  for (Batch batch; loader.next(batch);) {
    images += batch.size();
    throw_if_interrupted();
  }
  return static_cast<double>(images) / lap(start);
}

}  // namespace settrain

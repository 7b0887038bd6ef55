#include "src/loader/transform.h"

#include <algorithm>
#include <stdexcept>

#include "src/core/streams.h"

namespace settrain {

Transform::Transform(const Normalisation& normalisation, const Augmentation& augmentation)
    : augmentation_(augmentation) {
  for (size_t c = 0; c < normalisation.mean.size(); ++c) {
    for (int value = 0; value < 256; ++value) {
      values_.push_back((static_cast<float>(value) / 255.0F - normalisation.mean[c]) / normalisation.std[c]);
    }
  }
}

Transform::Move Transform::draw(int64_t epoch, int64_t sample_id) const {
  if (augmentation_.pad == 0 && !augmentation_.flip) return {};
  const auto words = random_words(augmentation_.seed, Stream::kAugmentation, static_cast<uint32_t>(sample_id), 0, 0,
                                  static_cast<uint32_t>(epoch));
  const auto places = static_cast<uint32_t>(2 * augmentation_.pad + 1);
  Move move;
  move.down = uniform_below(words[0], places) - augmentation_.pad;
  move.right = uniform_below(words[1], places) - augmentation_.pad;
  move.flip = augmentation_.flip && uniform_below(words[2], 2) == 1;
  return move;
}

void Transform::operator()(const Image& image, int64_t epoch, int64_t sample_id, std::span<float> output) const {
  const int64_t height = image.height, width = image.width, channels = image.channels;
  if (channels * 256 != std::ssize(values_)) throw std::invalid_argument("Transform: the image has other channels");
  if (height * width * channels != std::ssize(output))
    throw std::invalid_argument("Transform: the output has another size");
  const Move move = draw(epoch, sample_id);
  // The columns [begin, end) of the cropped image lie inside the original; a flip mirrors them afterwards.
  const int64_t begin = std::clamp<int64_t>(-move.right, 0, width);
  const int64_t end = std::clamp<int64_t>(width - move.right, begin, width);
  const int64_t direction = move.flip ? -1 : 1;
  for (int64_t c = 0; c < channels; ++c) {
    const float* value = values_.data() + c * 256;
    for (int64_t y = 0; y < height; ++y) {
      float* row = output.data() + (c * height + y) * width;
      const int64_t from_y = y + move.down;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(row, width, value[0]);
        continue;
      }
      const int64_t from = (from_y * width + move.right) * channels + c;
      float* first = move.flip ? row + width - 1 : row;
      for (int64_t x = 0; x < begin; ++x) first[x * direction] = value[0];
      for (int64_t x = begin; x < end; ++x) {
        first[x * direction] = value[image.pixels[static_cast<size_t>(from + x * channels)]];
      }
      for (int64_t x = end; x < width; ++x) first[x * direction] = value[0];
    }
  }
}

}  // namespace settrain

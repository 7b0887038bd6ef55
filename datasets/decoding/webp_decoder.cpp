#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "datasets/decoding/image_decoders.h"

namespace settrain {
namespace {

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

const char* reason_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is not enough memory to decode it";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the WebP is cut short";
    default:
      return "the WebP is damaged";
  }
}

}  // namespace

void decode_webp(std::span<const uint8_t> bytes, const ImageHeader& header, int64_t channels, Image& image) {
  const WebPData data{bytes.data(), bytes.size()};
  const std::unique_ptr<WebPDemuxer, DeleteDemuxer> demuxer(WebPDemux(&data));  // null where a part is missing
  if (!demuxer) throw std::runtime_error("the WebP is damaged or cut short");
  set_size(image, header, WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
           WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH), channels);

  WebPIterator frame;
  if (!WebPDemuxGetFrame(demuxer.get(), 1, &frame)) throw std::runtime_error("the WebP holds no image");
  const std::unique_ptr<WebPIterator, void (*)(WebPIterator*)> release(&frame, WebPDemuxReleaseIterator);
  const auto pixels = static_cast<size_t>(image.height * image.width);
  image.pixels.resize(pixels * 3);
  if (frame.width < image.width || frame.height < image.height) {
    std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{0});
  }
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) throw std::runtime_error("libwebp cannot be started");
  const auto start = static_cast<size_t>((frame.y_offset * image.width + frame.x_offset) * 3);
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.pixels.data() + start, static_cast<int>(image.width * 3), image.pixels.size() - start};
  const VP8StatusCode status = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  if (status != VP8_STATUS_OK) throw std::runtime_error(reason_of(status));

  if (channels == 1) {
    const uint8_t* in = image.pixels.data();
    for (size_t i = 0; i < pixels; ++i, in += 3) image.pixels[i] = grey_of(in[0], in[1], in[2]);
    image.pixels.resize(pixels);
  }
}

std::string webp_library_version() {
  const int version = WebPGetDecoderVersion();
  return fmt::format("{}.{}.{}", version >> 16, version >> 8 & 0xFF, version & 0xFF);
}

}  // namespace settrain

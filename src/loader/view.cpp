#include "src/loader/view.h"

#include <algorithm>
#include <cmath>

#include "src/loader/taps.h"

namespace settrain {
namespace {

// Where the central `size` of `all` begins.
int64_t center(int64_t all, int64_t size) {
  if (all < size) return -((size - all) / 2);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(all - size) / 2));  // halves to the even number
}

// Of one axis, from `source_begin` on: what the visible part of [crop, crop + size) comes from.
struct Range {
  int64_t begin, end;
};

Range needed_range(int64_t source_begin, int64_t source, int64_t scaled, int64_t crop, int64_t size) {
  const int64_t first = std::clamp<int64_t>(crop, 0, scaled - 1);
  const int64_t last = std::clamp<int64_t>(crop + size - 1, first, scaled - 1);
  return {source_begin + support_of(source, scaled, first).first, source_begin + support_of(source, scaled, last).end};
}

}  // namespace

View whole_view(int64_t height, int64_t width) {
  const Box all{0, 0, height, width};
  return {all, height, width, all};
}

View with_short_side(int64_t height, int64_t width, int64_t side) {
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  const auto scaled = static_cast<int64_t>(static_cast<double>(side * longer) / static_cast<double>(shorter));
  View view = whole_view(height, width);
  view.height = height < width ? side : scaled;
  view.width = height < width ? scaled : side;
  view.crop = {0, 0, view.height, view.width};
  return view;
}

View covering(int64_t image_height, int64_t image_width, int64_t height, int64_t width) {
  const double scale = std::max(static_cast<double>(height) / static_cast<double>(image_height),
                                static_cast<double>(width) / static_cast<double>(image_width));
  const auto scaled = [scale](int64_t side, int64_t least) {
    return std::max<int64_t>(least, std::lround(scale * static_cast<double>(side)));
  };
  View view = whole_view(image_height, image_width);
  view.height = scaled(image_height, height);
  view.width = scaled(image_width, width);
  view.crop = {0, 0, view.height, view.width};
  return view;
}

View center_crop(View view, int64_t height, int64_t width) {
  view.crop = {center(view.height, height), center(view.width, width), height, width};
  return view;
}

Box needed_pixels(const View& view) {
  const Box& source = view.source;
  const Range rows = needed_range(source.top, source.height, view.height, view.crop.top, view.crop.height);
  const Range columns = needed_range(source.left, source.width, view.width, view.crop.left, view.crop.width);
  return {rows.begin, columns.begin, rows.end - rows.begin, columns.end - columns.begin};
}

Box needed_pixels(const std::vector<View>& views) {
  Box all = needed_pixels(views.front());
  for (const View& view : views) {
    const Box box = needed_pixels(view);
    const int64_t bottom = std::max(all.top + all.height, box.top + box.height);
    const int64_t right = std::max(all.left + all.width, box.left + box.width);
    all.top = std::min(all.top, box.top);
    all.left = std::min(all.left, box.left);
    all.height = bottom - all.top;
    all.width = right - all.left;
  }
  return all;
}

}  // namespace settrain

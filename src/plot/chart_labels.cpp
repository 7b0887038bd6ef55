#include "src/plot/chart_labels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "src/plot/text_size.h"

namespace settrain {
namespace {

constexpr double kPoint = 5;     // half a point's width and the gap beside it, in pixels
constexpr double kOutside = 20;  // how much worse it is to be cut off than to cover something
constexpr double kApart = 2;     // what texts keep from anything else, in pixels
constexpr size_t kNextTo = 4;    // as many places are next to the point
constexpr double kFarther = 2;   // a place farther away is taken only where it covers less, in square pixels

// Pixels from the lower left corner of the axes.
struct Box {
  double left, right, bottom, top;

  double area() const { return (right - left) * (top - bottom); }
  Box wider(double pixels) const { return {left - pixels, right + pixels, bottom - pixels, top + pixels}; }
  double covers(const Box& other) const {
    const double across = std::min(right, other.right) - std::max(left, other.left);
    const double along = std::min(top, other.top) - std::max(bottom, other.bottom);
    return across > 0 && along > 0 ? across * along : 0;
  }
};

struct Place {
  double x, y;
};

Place place_of(const PanelLayout& layout, double x, double y) {
  return {layout.x.place(x) * (layout.right - layout.left), layout.y.place(y) * (layout.bottom - layout.top)};
}

// Places of a text around its point, as in PointLabel, the best first.
std::vector<Place> places_around() {
  const double beside = kPoint + 2, half = kSmallText / 2, above = kPoint + half;
  std::vector<Place> places{{beside, 0}, {-beside, 0}, {0, above + 2}, {0, -above - 2}};
  for (const double up : {above, 2 * above, 3 * above, 4.5 * above}) {
    for (const double side : {beside, -beside}) {
      places.push_back({side, up});
      places.push_back({side, -up});
    }
    places.push_back({0, up + half + 2});
    places.push_back({0, -up - half - 2});
  }
  return places;
}

}  // namespace

std::vector<PointLabel> point_labels(const ChartPanel& panel, const PanelLayout& layout,
                                     const std::vector<double>& shift) {
  const Box axes{0, layout.right - layout.left, 0, layout.bottom - layout.top};
  std::vector<PointLabel> labels;
  std::vector<Box> taken;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    for (const ChartPoint& point : panel.series[i].points) {
      if (!is_drawn(point)) continue;
      const auto [x, y] = place_of(layout, point.x + shift[i], point.y);
      if (x < 0 || x > axes.right || y < 0 || y > axes.top) continue;
      taken.push_back({x - kPoint, x + kPoint, y - kPoint, y + kPoint});
      if (!point.label.empty()) labels.push_back({point.x + shift[i], point.y, 0, 0, point.label});
      if (!point.below && !point.above) continue;
      const auto end = [&](const std::optional<double>& value) {
        const double at = value && std::isfinite(*value) ? *value : point.y;
        return std::clamp(layout.y.place(at), 0.0, 1.0) * axes.top;
      };
      taken.push_back({x - 2, x + 2, end(point.below), end(point.above)});
    }
  }
  const std::vector<Place> places = places_around();
  for (PointLabel& label : labels) {
    const auto [x, y] = place_of(layout, label.x, label.y);
    const double width = text_width(label.text, kSmallText), half = kSmallText / 2 + 1;
    double least = -1;
    Box best{};
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [right, up] = places[i];
      const double left = right > 0 ? x + right : right < 0 ? x + right - width : x - width / 2;
      const Box box{left, left + width, y + up - half, y + up + half};
      double cost = kOutside * (box.area() - box.covers(axes)) + kFarther * static_cast<double>(i);
      for (const Box& other : taken) cost += box.wider(kApart).covers(other);
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best = box;
      label.right = right;
      label.up = up;
      label.line_up = i < kNextTo ? 0 : up > 0 ? up - half : up + half;
    }
    taken.push_back(best);
  }
  return labels;
}

}  // namespace settrain

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "src/core/text.h"
#include "src/data_tools/stats_files.h"

namespace settrain {
namespace {

// A row of the table, with a column for each split.
std::string row(const DataStats& stats, std::string_view label,
                const std::function<std::string(const SplitStats&)>& cell) {
  std::string text = fmt::format("{:<26}", label);
  for (const SplitStats& split : stats.splits) text += fmt::format(" {:>14}", cell(split));
  return text + '\n';
}

std::string number(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? format_count(static_cast<int64_t>(value))
                                                                   : fmt::format("{:.1f}", value);
}

std::string summary_rows(const DataStats& stats, const char* what,
                         const std::function<Summary(const SplitStats&)>& summary,
                         const std::function<std::string(double)>& format) {
  const auto summary_row = [&](const char* label, double Summary::*value) {
    return row(stats, fmt::format("{}, {}", what, label),
               [&](const SplitStats& split) { return format(summary(split).*value); });
  };
  return summary_row("min", &Summary::min) + summary_row("median", &Summary::median) +
         summary_row("mean", &Summary::mean) + summary_row("max", &Summary::max);
}

std::string counted_rows(const DataStats& stats) {
  std::string text = row(stats, "", [](const SplitStats& split) { return split.name; });
  text += row(stats, "images", [](const SplitStats& split) { return format_count(split.images); });
  const bool sets = std::any_of(stats.splits.begin(), stats.splits.end(),
                                [](const SplitStats& split) { return split.labels != split.images; });
  if (sets) text += row(stats, "labels", [](const SplitStats& split) { return format_count(split.labels); });
  text += row(stats, "classes with images", [](const SplitStats& split) {
    return format_count(std::ssize(split.counts) - std::ssize(split.missing));
  });
  text += summary_rows(
      stats, "images a class", [](const SplitStats& split) { return split.per_class; }, number);
  constexpr std::array kGroups{"few-shot (< 20)", "medium-shot (20-100)", "many-shot (> 100)"};
  for (size_t i = 0; i < kGroups.size(); ++i) {
    text += row(stats, fmt::format("images, {}", kGroups[i]),
                [i](const SplitStats& split) { return format_count(split.shots[i].images); });
  }
  text += row(stats, "images, largest 20 %",
              [](const SplitStats& split) { return fmt::format("{:.1f} %", 100 * split.largest_fifth); });
  return text +
         row(stats, "Gini coefficient", [](const SplitStats& split) { return fmt::format("{:.4f}", split.gini); });
}

std::string size_rows(const DataStats& stats) {
  if (!stats.splits[0].sizes.files) {
    const ImageSizes& sizes = stats.splits[0].sizes;
    return fmt::format("images are {} pixels high and {} wide\n", number(sizes.height.max), number(sizes.width.max));
  }
  std::string text = summary_rows(
                         stats, "height", [](const SplitStats& split) { return split.sizes.height; }, number) +
                     summary_rows(
                         stats, "width", [](const SplitStats& split) { return split.sizes.width; }, number) +
                     summary_rows(
                         stats, "width / height", [](const SplitStats& split) { return split.sizes.aspect; },
                         [](double value) { return fmt::format("{:.3f}", value); });
  std::vector<std::string> formats;
  for (const SplitStats& split : stats.splits) {
    for (const FormatCount& count : split.sizes.formats) {
      if (std::find(formats.begin(), formats.end(), count.format) == formats.end()) formats.push_back(count.format);
    }
  }
  for (const std::string& format : formats) {
    text += row(stats, "format " + format, [&](const SplitStats& split) {
      for (const FormatCount& count : split.sizes.formats) {
        if (count.format == format) return format_count(count.images);
      }
      return format_count(0);
    });
  }
  text += row(stats, "EXIF says rotated", [](const SplitStats& split) { return format_count(split.sizes.rotated); });
  text +=
      row(stats, "too large to decode", [](const SplitStats& split) { return format_count(split.sizes.too_large); });
  return text + row(stats, "no size in the header",
                    [](const SplitStats& split) { return format_count(split.sizes.without_size); });
}

// "ash, elm, oak and 7 more"
std::string names_of(const DataStats& stats, const std::vector<int64_t>& classes) {
  constexpr size_t kNames = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kNames, classes.size()); ++i) {
    text += (i == 0 ? "" : ", ") + stats.class_names.at(static_cast<size_t>(classes[i]));
  }
  if (classes.size() > kNames)
    text += fmt::format(" and {} more", format_count(static_cast<int64_t>(classes.size() - kNames)));
  return text;
}

std::string named_classes(const DataStats& stats) {
  std::string text;
  const SplitStats& train = stats.splits[0];
  const auto& group = train.shots;
  text += fmt::format("classes by training images: {} few-shot, {} medium-shot, {} many-shot\n",
                      format_count(group[0].classes), format_count(group[1].classes), format_count(group[2].classes));
  for (const SplitStats& split : stats.splits) {
    if (split.per_class.min == split.per_class.max) continue;
    text += fmt::format("{:<5} most {} ({}), fewest {} ({})\n", split.name, number(split.per_class.max),
                        names_of(stats, split.most), number(split.per_class.min), names_of(stats, split.fewest));
  }
  for (const SplitStats& split : stats.splits) {
    if (split.missing.empty()) continue;
    text += fmt::format("{:<5} has no image of {} classes: {}\n", split.name, format_count(std::ssize(split.missing)),
                        names_of(stats, split.missing));
  }
  return text;
}

std::string heading(const DataStats& stats) {
  std::string text = fmt::format("{}: {} classes", stats.dataset, format_count(std::ssize(stats.class_names)));
  if (stats.superclasses.empty()) return text + '\n';
  const auto [least, most] =
      std::minmax_element(stats.superclasses.begin(), stats.superclasses.end(),
                          [](const SuperclassStats& a, const SuperclassStats& b) { return a.classes < b.classes; });
  text += fmt::format(" in {} superclasses of ", format_count(std::ssize(stats.superclasses)));
  if (least->classes == most->classes) return text + fmt::format("{} each\n", least->classes);
  return text + fmt::format("{} ({}) to {} ({})\n", least->classes, least->name, most->classes, most->name);
}

std::string noise_text(const DataStats& stats) {
  if (!stats.has_noise()) return "label noise: none\n";
  const LabelNoiseReport& noise = stats.noise;
  std::string text = fmt::format(
      "label noise: {}, nominal rate {:.4g}, effective rate {:.4g}; {} of {} training labels changed ({:.2f} %)\n",
      noise.kind, noise.nominal_rate, noise.effective_rate, format_count(noise.changed),
      format_count(stats.splits[0].images), 100 * noise.changed_rate);
  if (noise.within_superclass) {
    text += fmt::format("  {:.2f} % of the changed ones are still in the true superclass\n",
                        100 * *noise.within_superclass);
  }
  constexpr size_t kCells = 10;
  const auto largest = largest_confusions(stats.noise_cells, kCells);
  if (!largest.empty()) text += "  most often, true class -> class trained on:\n";
  for (const NoiseCell& cell : largest) {
    text += fmt::format("  {:>8}  {} -> {}\n", format_count(cell.count),
                        stats.class_names.at(static_cast<size_t>(cell.truth)),
                        stats.class_names.at(static_cast<size_t>(cell.given)));
  }
  return text;
}

}  // namespace

std::string stats_text(const DataStats& stats) {
  return heading(stats) + '\n' + counted_rows(stats) + '\n' + named_classes(stats) + '\n' + size_rows(stats) + '\n' +
         noise_text(stats);
}

}  // namespace settrain

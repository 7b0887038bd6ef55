#include "src/data_tools/stats_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "metrics/shot_group.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"

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
  const std::array groups{fmt::format("few-shot (< {})", kFewBelow),
                          fmt::format("medium-shot ({}-{})", kFewBelow, kManyAbove),
                          fmt::format("many-shot (> {})", kManyAbove)};
  for (size_t i = 0; i < groups.size(); ++i) {
    text += row(stats, "images, " + groups[i],
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

using NamedCounts = std::vector<std::pair<std::string, int64_t>>;

// A row for each name that some split has, in the order of the first split that has it.
std::string named_rows(const DataStats& stats, const std::string& what, NamedCounts RecordCounts::*member) {
  std::vector<std::string> names;
  for (const SplitStats& split : stats.splits) {
    for (const auto& [name, count] : (*split.records).*member) {
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    text += row(stats, printable(what + name), [&](const SplitStats& split) {
      const NamedCounts& counts = (*split.records).*member;
      const auto found = std::ranges::find(counts, name, &NamedCounts::value_type::first);
      return format_count(found == counts.end() ? 0 : found->second);
    });
  }
  return text;
}

std::string record_rows(const DataStats& stats) {
  if (!stats.splits[0].records) return "";
  const auto number_row = [&](const char* label, int64_t RecordCounts::*member) {
    return row(stats, label, [&](const SplitStats& split) { return format_count((*split.records).*member); });
  };
  return named_rows(stats, "organ ", &RecordCounts::organs) + named_rows(stats, "licence ", &RecordCounts::licences) +
         number_row("authors", &RecordCounts::authors) + number_row("observations", &RecordCounts::observations) +
         number_row("without metadata", &RecordCounts::without) + '\n';
}

// "ash, elm, oak and 7 more"
std::string names_of(const DataStats& stats, const std::vector<int64_t>& classes) {
  std::vector<std::string> names;
  for (const int64_t c : classes) names.push_back(stats.class_names.at(static_cast<size_t>(c)));
  return join_first(names, 5);
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

using Json = nlohmann::ordered_json;

Json json_of(const Summary& summary) {
  return {{"min", summary.min}, {"median", summary.median}, {"mean", summary.mean}, {"max", summary.max}};
}

Json json_of(const ImageSizes& sizes) {
  Json json{{"files", sizes.files},
            {"height", json_of(sizes.height)},
            {"width", json_of(sizes.width)},
            {"aspect_ratio", json_of(sizes.aspect)}};
  if (!sizes.files) return json;
  json["formats"] = Json::object();
  for (const FormatCount& count : sizes.formats) json["formats"][count.format] = count.images;
  json["without_size"] = sizes.without_size;
  json["too_large"] = sizes.too_large;
  json["exif_rotated"] = sizes.rotated;
  return json;
}

Json json_of(const RecordCounts& records) {
  Json json{{"organs", Json::object()}, {"licences", Json::object()}};
  for (const auto& [organ, images] : records.organs) json["organs"][organ] = images;
  for (const auto& [licence, images] : records.licences) json["licences"][licence] = images;
  json["authors"] = records.authors;
  json["observations"] = records.observations;
  json["without"] = records.without;
  return json;
}

Json json_of(const ShotCount& group) {
  return {{"classes", group.classes}, {"images", group.images}};
}

Json json_of(const SplitStats& split) {
  Json json{
      {"images", split.images},
      {"labels", split.labels},
      {"images_per_class", json_of(split.per_class)},
      {"classes_with_most", split.most},
      {"classes_with_fewest", split.fewest},
      {"classes_without_image", split.missing},
      {"shot_groups",
       {{"few", json_of(split.shots[0])}, {"medium", json_of(split.shots[1])}, {"many", json_of(split.shots[2])}}},
      {"gini", split.gini},
      {"share_of_largest_20_percent", split.largest_fifth},
      {"image_sizes", json_of(split.sizes)},
      {"class_counts", split.counts},
      {"lorenz", lorenz_curve(split.counts)}};
  if (split.records) json["records"] = json_of(*split.records);
  return json;
}

Json noise_json(const DataStats& stats) {
  Json json{{"kind", stats.noise.kind}};
  if (!stats.has_noise()) return json;
  json["nominal_rate"] = stats.noise.nominal_rate;
  json["effective_rate"] = stats.noise.effective_rate;
  json["changed_rate"] = stats.noise.changed_rate;
  json["changed"] = stats.noise.changed;
  if (stats.noise.within_superclass) json["within_superclass"] = *stats.noise.within_superclass;
  json["digest"] = stats.noise.digest;
  json["matrix"] = Json::array();
  for (const NoiseCell& cell : stats.noise_cells) json["matrix"].push_back({cell.truth, cell.given, cell.count});
  return json;
}

}  // namespace

std::string stats_text(const DataStats& stats) {
  return heading(stats) + '\n' + counted_rows(stats) + '\n' + named_classes(stats) + '\n' + size_rows(stats) + '\n' +
         record_rows(stats) + noise_text(stats);
}

std::string stats_json(const DataStats& stats) {
  Json json{{"dataset", stats.dataset}, {"digest", stats.digest}, {"classes", stats.class_names}};
  if (!stats.superclasses.empty()) {
    json["superclasses"] = Json::array();
    for (const SuperclassStats& superclass : stats.superclasses) {
      json["superclasses"].push_back(
          {{"name", superclass.name}, {"classes", superclass.classes}, {"train_images", superclass.train_images}});
    }
    json["superclass_of"] = stats.superclass_of;
  }
  for (const SplitStats& split : stats.splits) json["splits"][split.name] = json_of(split);
  json["label_noise"] = noise_json(stats);
  // A class may be named after a folder, whose bytes need not be UTF-8. Lists of numbers stay on one line.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::vector<std::filesystem::path> write_stats(const DataStats& stats, const std::filesystem::path& folder) {
  make_figure_folder(folder);
  write_file_atomically(folder / "stats.json", stats_json(stats));
  write_file_atomically(folder / "stats.txt", stats_text(stats));
  std::vector<std::filesystem::path> files{folder / "stats.json", folder / "stats.txt"};

  std::vector<Picture> pictures{chart_picture(lorenz_chart(stats)), chart_picture(class_counts_chart(stats))};
  if (has_noise_figure(stats)) {
    pictures.push_back(noise_figure(stats));
  } else if (stats.has_noise()) {
    log::info("[data] no picture of the noise matrix: there is one class, or too many to be told apart");
  }
  for (const auto& file : draw_pictures(
           pictures.size(), [&](size_t i) { return pictures[i]; }, folder))
    files.push_back(file);
  return files;
}

}  // namespace settrain

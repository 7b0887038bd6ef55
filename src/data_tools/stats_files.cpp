#include "src/data_tools/stats_files.h"

#include <nlohmann/json.hpp>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/data_tools/lorenz.h"
#include "src/data_tools/stats_figures.h"

namespace settrain {
namespace {

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

Json json_of(const ShotCount& group) {
  return {{"classes", group.classes}, {"images", group.images}};
}

Json json_of(const SplitStats& split) {
  return {{"images", split.images},
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

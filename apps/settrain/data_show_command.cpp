#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/settrain/command_line.h"
#include "datasets/image_files.h"
#include "datasets/load_data.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/data_tools/contact_sheet.h"
#include "src/loader/transform.h"
#include "src/train/model_input.h"

namespace settrain {
namespace {

struct ShowOptions {
  std::string out;
  int64_t pictures = 6;
  bool overwrite = false;
};

constexpr int64_t kDraws = 8;

// The changes that made a view, a line each.
std::vector<std::string> words_of(const View& view, const PixelChanges& changes) {
  std::vector<std::string> lines;
  if (view.flip) lines.emplace_back("flip");
  for (const ImageOperation& operation : changes.operations) lines.push_back(describe(operation));
  for (const Box& box : changes.erased) lines.push_back(fmt::format("erased {}x{}", box.height, box.width));
  return lines;
}

// The views of one image in the first epochs, as the network sees them but for the normalisation.
SheetRow row_of(const Split& split, int64_t position, const Transform& transform, const Dataset& dataset) {
  const auto sample = static_cast<size_t>(position);
  const int64_t id = split.ids[sample];
  const Pipeline& pipeline = transform.pipeline();
  SheetRow row{fmt::format("{}, {}", dataset.class_names[static_cast<size_t>(split.labels[sample])],
                           split.images->describe(id))};
  TransformMemory memory;
  for (int64_t epoch = 0; epoch < kDraws; ++epoch) {
    Image image{pipeline.height(), pipeline.width(), transform.channels(), {}};
    image.pixels.resize(static_cast<size_t>(transform.bytes()));
    std::vector<View> views;
    const auto choose = [&](int64_t height, int64_t width) {
      views = pipeline.views_of(height, width, epoch, id);
      return needed_pixels(views);
    };
    split.images->read_part(id, choose, memory.part);
    const PixelChanges changes = pipeline.changes_of(epoch, id);
    transform.render(memory.part, views, changes, memory, image.pixels.data());
    row.cells.push_back({std::move(image), words_of(views.front(), changes)});
  }
  return row;
}

int show_data(const CommandLine& line, const ShowOptions& options) {
  const config::Config config = load_config(line);
  if (config.get<std::string>("data.name") == "features") config.fail("data.name", "features have no images to show");
  refuse_existing(options.out, options.overwrite);
  const Dataset dataset = load_data(line.registries.datasets, config).dataset;
  const ModelInput input = choose_input(line.registries.datasets, line.registries.models, config, dataset,
                                        /*recorded=*/nullptr);
  PipelineOptions pipeline = read_pipeline(config);
  input.resolve(pipeline);
  const auto seed = static_cast<uint64_t>(config.get<int64_t>("seed"));
  const Transform transform(Pipeline(pipeline, dataset.height, dataset.width, ViewUse::kTraining, seed),
                            input.normalisation, {PixelType::kByte, /*channels_last=*/true});
  const Split& split = dataset.train;
  const int64_t pictures = std::min(options.pictures, split.size());
  std::vector<SheetRow> rows;
  for (int64_t i = 0; i < pictures; ++i) rows.push_back(row_of(split, i * split.size() / pictures, transform, dataset));
  const std::string heading = fmt::format("{}: training images of {} as in epochs 1 to {}; pipeline {}, augment {}",
                                          config.get<std::string>("name"), dataset.name, kDraws, pipeline.pipeline,
                                          pipeline.augmentation.augment);
  draw_contact_sheet(heading, rows, options.out);
  log::info(fmt::format("[data] {} draws of {} images are in '{}'", kDraws, pictures, options.out));
  return kSuccess;
}

}  // namespace

void add_data_show_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<ShowOptions>(
      data, line, "show", show_data,
      "Draws a sheet of a config's training images as the network sees them, eight draws of each, with the names of the "
      "operations of the augmentation; needs gnuplot");
  add_config_options(*command, line, /*required=*/true, "CONFIG,--config");
  command->add_option("--out", options->out, "The PNG to write")->required()->check(not_empty("file"));
  add_integer(*command, "--images", options->pictures, 1, 100, "Training images, evenly from all of them");
  command->add_flag("--overwrite", options->overwrite, "Replace the file where it is there");
}

}  // namespace settrain

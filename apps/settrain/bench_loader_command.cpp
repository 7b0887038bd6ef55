#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "apps/settrain/bench_command.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/load_data.h"
#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/process.h"
#include "src/loader/data_options.h"
#include "src/measure/bench/speed.h"
#include "src/measure/cost/throughput.h"
#include "src/train/experiment_schema.h"
#include "src/train/model_input.h"

namespace settrain {
namespace {

struct LoaderBench {
  std::string files;
  PixelType format = PixelType::kFloat;
  bool channels_last = false, json = false;
  int64_t images = 512, rounds = 5, threads = std::max(1U, std::thread::hardware_concurrency());
};

const std::vector<std::pair<std::string, PixelType>> kFormats{
    {"float32", PixelType::kFloat}, {"bf16", PixelType::kBFloat16}, {"uint8", PixelType::kByte}};

const std::string& format_name(const LoaderBench& bench) {
  return std::find_if(kFormats.begin(), kFormats.end(), [&](const auto& f) { return f.second == bench.format; })->first;
}

constexpr int64_t kBatchesAThread = 16;

// The images, and how they are loaded.
struct Subject {
  Dataset dataset;
  ImageFileOptions file_options;
  LoaderContext context;
};

Dataset folder_dataset(const std::string& folder) {
  Dataset dataset;
  dataset.name = folder;
  dataset.class_names = {"unlabelled"};
  dataset.channels = 3;
  dataset.normalisation = "imagenet";
  dataset.train.name = "train";
  dataset.train.images = std::make_shared<ImageFiles>(unlabelled_images(folder), ImageFileOptions{});
  dataset.train.ids.resize(static_cast<size_t>(dataset.train.images->size()));
  std::iota(dataset.train.ids.begin(), dataset.train.ids.end(), int64_t{0});
  return dataset;
}

Subject subject_of(const CommandLine& line, const LoaderBench& bench) {
  if (line.config.empty() == bench.files.empty())
    throw ConfigError("bench loader: name a config, or a folder of images with --files");
  std::vector<std::string> settings;
  if (!bench.files.empty()) settings = {"data.pipeline=imagenet", "data.batch_size=64"};
  settings.insert(settings.end(), line.settings.begin(), line.settings.end());
  const config::Config config = config::load(experiment_schema(line.registries), config_file(line), settings);
  Subject subject;
  if (bench.files.empty()) {
    subject.dataset = load_data(line.registries.datasets, config).dataset;
    if (config.has("data.grey")) subject.file_options = config.read<ImageFileOptions>("data");
  } else {
    subject.dataset = folder_dataset(bench.files);
  }
  subject.context.options = config.read<LoaderOptions>("data");
  subject.context.pipeline = read_pipeline(config);
  const ModelInput input =
      choose_input(line.registries.datasets, line.registries.models, config, subject.dataset, /*recorded=*/nullptr);
  input.resolve(subject.context.pipeline);
  subject.context.normalisation = input.normalisation;
  subject.context.format = {bench.format, bench.channels_last};
  // Repeats images where there are too few to keep all threads busy.
  Split& train = subject.dataset.train;
  const std::vector<int64_t> ids = train.ids;
  const int64_t images = std::max(bench.images, kBatchesAThread * bench.threads * subject.context.options.batch_size);
  train.ids.resize(static_cast<size_t>(images));
  for (size_t i = 0; i < train.ids.size(); ++i) train.ids[i] = ids[i % ids.size()];
  train.labels.assign(train.ids.size(), 0);
  train.label_sets = {};
  return subject;
}

// 1, 2, 4, ... and `most`.
std::vector<int64_t> thread_numbers(int64_t most) {
  std::vector<int64_t> numbers;
  for (int64_t n = 1; n < most; n *= 2) numbers.push_back(n);
  numbers.push_back(most);
  return numbers;
}

struct Speeds {
  int64_t threads = 0;
  std::vector<double> images_per_second;  // of each round
};

struct MeasuredLoader {
  LoadingTimes stages;  // of images from files
  std::vector<Speeds> loaders;
};

MeasuredLoader measure(const Subject& subject, const LoaderBench& bench) {
  const std::vector<int64_t>& ids = subject.dataset.train.ids;
  const std::vector<int64_t> some(ids.begin(), ids.begin() + bench.images);
  MeasuredLoader measured;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (const int64_t threads : thread_numbers(bench.threads)) {
    LoaderContext context = subject.context;
    context.options.workers = threads;
    context.options.prefetch = std::max(context.options.prefetch, 2 * threads);
    loaders.emplace_back(new Loader(training_loader(subject.dataset, context, /*seed=*/0)));  // it cannot be moved
    measured.loaders.push_back({threads, {}});
  }
  const auto* files = dynamic_cast<const ImageFiles*>(subject.dataset.train.images.get());
  ProgressBar bar;
  for (int64_t round = 0; round < bench.rounds; ++round) {
    bar.update(round_progress("[bench] rounds", round, bench.rounds, bench.images));
    if (files) {
      measured.stages += measure_stages(*files, subject.file_options, some, loaders.front()->transform(), round);
    }
    for (size_t i = 0; i < loaders.size(); ++i)
      measured.loaders[i].images_per_second.push_back(measure_loader(*loaders[i], round));
  }
  bar.hide();
  return measured;
}

// For each round, the speed with that many threads divided by the speed with one.
std::vector<double> ratios_to_one(const MeasuredLoader& measured, size_t i) {
  return ratios(measured.loaders[i].images_per_second, measured.loaders[0].images_per_second);
}

std::string as_table(const Subject& subject, const MeasuredLoader& measured, const LoaderBench& bench) {
  const LoadingTimes& stages = measured.stages;
  std::string text = fmt::format(
      "{}, pipeline {}, {} {}, batches of {}\n", subject.dataset.name, subject.context.pipeline.pipeline,
      format_name(bench), bench.channels_last ? "channels last" : "channels first", subject.context.options.batch_size);
  text += fmt::format("{:<34} {:>10} {:>12}\n", "one thread", "images/s", "ms an image");
  const auto row = [&](const char* what, double seconds) {
    const auto images = static_cast<double>(stages.images);
    text += fmt::format("{:<34} {:>10.0f} {:>12.3f}\n", what, images / seconds, 1000 * seconds / images);
  };
  if (stages.images > 0) {
    row("  read the file", stages.read);
    row("  decode what the view needs", stages.decode);
    row("  scale, crop, normalise", stages.render);
    row("all three", stages.loading());
    row("decode the whole image", stages.whole);
    text += fmt::format("decoding what the view needs over the whole image, in speed: {:.3f}\n",
                        stages.whole / stages.decode);
  }
  text += fmt::format("{:<34} {:>10} {:>12}\n", "loader", "images/s", "over one");
  for (size_t i = 0; i < measured.loaders.size(); ++i) {
    const Speeds& speeds = measured.loaders[i];
    text += fmt::format("{:<34} {:>10.0f} {:>12.3f}\n", fmt::format("  {} threads", speeds.threads),
                        median(speeds.images_per_second), median(ratios_to_one(measured, i)));
  }
  return text + fmt::format("medians of {} rounds of {} images\n", bench.rounds, subject.dataset.train.size());
}

std::string as_json(const Subject& subject, const MeasuredLoader& measured, const LoaderBench& bench) {
  nlohmann::ordered_json json{{"data", subject.dataset.name},
                              {"pipeline", subject.context.pipeline.pipeline},
                              {"format", format_name(bench)},
                              {"channels_last", bench.channels_last},
                              {"batch", subject.context.options.batch_size},
                              {"images", subject.dataset.train.size()},
                              {"rounds", bench.rounds}};
  if (const LoadingTimes& s = measured.stages; s.images > 0) {
    const auto ms = [&s](double seconds) { return 1000 * seconds / static_cast<double>(s.images); };
    json["ms_an_image"] = {
        {"read", ms(s.read)}, {"decode", ms(s.decode)}, {"render", ms(s.render)}, {"decode_whole", ms(s.whole)}};
  }
  for (size_t i = 0; i < measured.loaders.size(); ++i) {
    json["loaders"].push_back({{"threads", measured.loaders[i].threads},
                               {"images_per_second", measured.loaders[i].images_per_second},
                               {"ratios_to_one_thread", ratios_to_one(measured, i)}});
  }
  return json.dump(1) + "\n";
}

int bench_loader(const CommandLine& line, const LoaderBench& bench) {
  const Subject subject = subject_of(line, bench);
  catch_interrupts();
  keep_freed_memory();  // as in training
  const MeasuredLoader measured = measure(subject, bench);
  std::cout << (bench.json ? as_json(subject, measured, bench) : as_table(subject, measured, bench));
  return kSuccess;
}

}  // namespace

void add_bench_loader_command(CLI::App& bench_app, CommandLine& line) {
  const auto [command, bench] = add_subcommand<LoaderBench>(
      bench_app, line, "loader", bench_loader,
      "Loading training images: images/s by stage on one thread beside decoding whole images, and of the whole loader on 1, "
      "2, 4, ... threads");
  command->add_option("CONFIG,--config", line.config, "A config, whose training split is loaded");
  command->add_option("--files", bench->files, "A folder of images instead, by the pipeline imagenet");
  add_set_option(*command, line, "key.path=value, such as data.pipeline=plantnet");
  add_choice(*command, "--format", bench->format, kFormats, "What batches hold");
  command->add_flag("--channels-last", bench->channels_last, "Batches with their channels last");
  add_integer(*command, "--threads", bench->threads, 1, 1024, "The most threads; one a core where not given");
  add_integer(
      *command, "--images", bench->images, 1, 10000000,
      "Images in a round, over and over where there are fewer; loaders take more where that many do not keep all "
      "threads busy");
  add_integer(*command, "--rounds", bench->rounds, 1, 1000, "Rounds of measuring each");
  command->add_flag("--json", bench->json, "Prints JSON instead of a table");
}

}  // namespace settrain

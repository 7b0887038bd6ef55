#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <thread>

#include "apps/settrain/command_line.h"
#include "apps/settrain/published_weights.h"
#include "datasets/load_data.h"
#include "datasets/shared_images.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/data_tools/fetch.h"
#include "src/data_tools/split_folder.h"
#include "src/data_tools/stats_files.h"
#include "src/data_tools/verify.h"
#include "src/data_tools/vote.h"

namespace settrain {
namespace {

// CONFIG or --config CONFIG, --set, and --workers, which is as many as there are cores by default.
void add_data_options(CLI::App& command, CommandLine& line, int64_t& workers) {
  add_config_options(command, line, /*required=*/true, "CONFIG,--config");
  workers = std::max<int64_t>(1, std::thread::hardware_concurrency());
  add_integer(command, "--workers", workers, 1, 256, "Threads that read images");
}

struct VerifyOptions {
  std::vector<std::string> splits;  // empty: all
  std::string list;
  int64_t workers = 0;
};

// Compares the images of these splits where loading left the comparison out. Warns of those that two splits share, and
// of those with two labels.
void compare_splits(LoadedData& data, const std::vector<std::string>& splits) {
  if (data.not_compared == 0) return;
  log::info(fmt::format("[data] comparing {} files of equal sizes", format_count(data.not_compared)));
  for (Split* split : {&data.dataset.train, &data.dataset.val, &data.dataset.calibration, &data.dataset.test}) {
    if (std::ranges::count(splits, split->name) == 0) split->ids.clear();
  }
  find_shared_images(data.dataset, std::numeric_limits<int64_t>::max()).warn();
}

int verify_data(const CommandLine& line, const VerifyOptions& options) {
  if (std::set(options.splits.begin(), options.splits.end()).size() < options.splits.size()) {
    throw ConfigError("--splits: a split comes twice");
  }
  const config::Config config = load_config(line);
  if (config.get<std::string>("data.name") == "features") {
    config.fail("data.name", "features are no images: a run reads and checks all of them before its first epoch");
  }
  LoadedData data = load_data(line.registries.datasets, config);
  for (const std::string& name : options.splits) {
    const Split& split = split_named(data.dataset, name);
    if (split.size() == 0) throw ConfigError(fmt::format("--splits {}: it has no images{}", name, why_empty(split)));
  }
  data.dataset.train.labels = data.clean_labels;  // a bad image is listed under its own class, without label noise
  std::optional<AtomicFile> list;
  if (!options.list.empty()) list.emplace(options.list);  // fails now, and not after hours of reading
  catch_interrupts();
  const std::vector<std::string> splits = options.splits.empty() ? split_names(data.dataset) : options.splits;
  const VerifyReport report = verify_images(data.dataset, splits, options.workers);
  std::cout << verify_text(report) << std::flush;
  if (list && report.complete()) {
    list->write(verify_list(report));
    list->commit();
  }
  if (report.complete()) compare_splits(data, splits);
  if (!report.complete()) {
    std::cout.flush();
    throw_if_interrupted();
  }
  return report.bad.empty() ? kSuccess : kFailed;
}

void add_verify_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<VerifyOptions>(
      data, line, "verify", verify_data,
      "Reads every image of a config's data and lists those that cannot be read, with exit code 1");
  add_data_options(*command, line, options->workers);
  command->add_option("--splits", options->splits, "Of train, val, test, calibration; without it all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"train", "val", "test", "calibration"}));
  command
      ->add_option("--list", options->list, "A file to write the bad images' paths to, one a line, once all are read")
      ->check(not_empty("file"));
}

struct StatsOptions {
  std::string folder;
  int64_t workers = 0;
  bool json = false;
};

int print_stats(const CommandLine& line, const StatsOptions& options) {
  const config::Config config = load_config(line);
  const LoadedData data = load_data(line.registries.datasets, config);
  // A mistake in them is told before the sizes of all images are read.
  const ImageRecords records = records_of(line.registries.datasets, config);
  catch_interrupts();
  DataStats stats = data_stats(data, options.workers);
  count_records(records, data.dataset, stats);
  std::cout << (options.json ? stats_json(stats) : stats_text(stats)) << std::flush;
  if (!options.folder.empty()) {
    // Standard output holds the statistics alone, so the names of the files go to standard error.
    for (const auto& file : write_stats(stats, options.folder)) std::cerr << file.string() << '\n';
  }
  return kSuccess;
}

void add_stats_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<StatsOptions>(
      data, line, "stats", print_stats,
      "Statistics of a config's data: images per class, imbalance (Lorenz curve, Gini coefficient, shot groups), "
      "image sizes, label noise; of Pl@ntNet-300K also organs, licences, authors and observations, by its metadata");
  add_data_options(*command, line, options->workers);
  command->add_option("--out", options->folder, "A folder to write numbers and pictures (gnuplot's) to")
      ->check(not_empty("folder"));
  command->add_flag("--json", options->json, "Print JSON, with the counts of all classes and the noise matrix");
}

struct FetchOptions {
  std::string name, to, source, md5;
  bool dry_run = false;
};

void print_place(const Download& download, const std::filesystem::path& folder, const char* what) {
  std::cout << fmt::format("{} is {} '{}'; a config uses it by\n  {}\n", download.name, what, folder.string(),
                           config_line(download, folder));
}

int fetch_data(const CommandLine& line, const FetchOptions& options) {
  const DatasetRegistry& datasets = line.registries.datasets;
  const std::filesystem::path to =
      options.to.empty() ? folder_of_variable("SETTRAIN_DATA", "data") : std::filesystem::path(options.to);
  if (options.name.empty()) {
    if (!options.source.empty() || !options.md5.empty()) {
      throw ConfigError("--source and --md5 are of one data set: name it");
    }
    for (const Download& download : downloads(datasets)) std::cout << describe(download, to) << '\n';
    std::cout << "`settrain data fetch NAME` gets one of them.\n";
    return kSuccess;
  }
  const Download download = with_source(find_download(datasets, options.name), options.source, options.md5);
  std::cout << describe(download, to) << std::flush;
  // With --to, a copy in another folder does not count.
  Download wanted = download;
  if (!options.to.empty()) wanted.usual_place.clear();
  if (const auto complete = find_complete(wanted, to)) {
    print_place(download, *complete, "already in");
    return kSuccess;
  }
  if (options.dry_run && !download.files.empty()) {
    std::cout << "Nothing was downloaded, because of --dry-run.\n";
    return kSuccess;
  }
  catch_interrupts();
  print_place(download, fetch(download, to), "now in");
  return kSuccess;
}

void add_fetch_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<FetchOptions>(
      data, line, "fetch", fetch_data,
      "Downloads a data set with curl, checks it and unpacks it to where the configs look. Goes on with a "
      "download that was stopped. Without NAME: where each comes from, its size, checksum and licence");
  std::vector<std::string> names;
  for (const Download& download : downloads(line.registries.datasets)) names.push_back(download.name);
  command->add_option("name", options->name, fmt::format("{}", fmt::join(names, ", ")))->option_text("NAME");
  command->add_option("--to", options->to, "The folder of all data; without it $SETTRAIN_DATA, or data/");
  command->add_flag("--dry-run", options->dry_run, "Only tell what would be downloaded");
  command->add_option("--source", options->source,
                      "Another address of the file (https, http or file), such as a mirror's; of several files, of the "
                      "folder they are in");
  command->add_option("--md5", options->md5, "The MD5 to check against, in place of the one that is recorded");
}

struct FetchWeightsOptions {
  std::string model, to, source;
};

int fetch_model_weights(const CommandLine& line, const FetchWeightsOptions& options) {
  const std::vector<PublishedWeights> all = published_weights(line.registries.models);
  const std::filesystem::path to = options.to.empty() ? weights_folder() : std::filesystem::path(options.to);
  if (options.model.empty()) {
    if (!options.source.empty()) throw ConfigError("--source is of one network: name it");
    for (const PublishedWeights& weights : all) {
      std::cout << fmt::format("{:<30} {}{}\n{:<30} {}\n", weights.model, weights.title,
                               weights.file.url.empty() ? " (not fetched: the page says how to get it)" : "", "",
                               weights.page);
    }
    std::cout << "`settrain data fetch-weights NAME` gets one of them.\n";
    return kSuccess;
  }
  std::vector<std::string> names;
  for (const PublishedWeights& weights : all) names.push_back(weights.model);
  const auto found = std::ranges::find(all, options.model, &PublishedWeights::model);
  if (found == all.end()) {
    throw ConfigError(
        fmt::format("data fetch-weights: no published weights of a network '{}' are known{}; `settrain data "
                    "fetch-weights` lists them",
                    options.model, did_you_mean(options.model, names)));
  }
  RemoteFile file = found->file;
  if (!options.source.empty()) {
    file.url = options.source;
    if (file.name.empty()) file.name = std::filesystem::path(options.source).filename().string();
  }
  if (file.url.empty()) {
    throw DataError(fmt::format(
        "the weights of {} ({}) have no address of their own: {} leads to them; put {} into '{}'", found->model,
        found->title, found->page, file.name.empty() ? "the file" : "the file " + file.name, to.string()));
  }
  catch_interrupts();
  const Download download{.name = found->model, .page = found->page, .licence = "", .files = {file}};
  const std::filesystem::path whole = fetch(download, to) / file.name;
  std::cout << fmt::format("{} of {} are in '{}'; a config uses them by\n  model: {{name: {}, pretrained: \"{}\"}}\n",
                           found->title, found->model, whole.string(), found->model, whole.string());
  return kSuccess;
}

void add_fetch_weights_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<FetchWeightsOptions>(
      data, line, "fetch-weights", fetch_model_weights,
      "Downloads published weights of a network with curl to where configs and `settrain init` look, and checks them where "
      "a checksum is known. Goes on with a download that was stopped. Without NAME: where each comes from");
  command->add_option("name", options->model, "A choice of model.name, such as resnet18")->option_text("NAME");
  command->add_option("--to", options->to, "The folder; without it $SETTRAIN_WEIGHTS, or weights/");
  command->add_option("--source", options->source,
                      "Another address of the file (https, http or file), such as a mirror's");
}

struct SplitArguments {
  std::string val, calibration, test;  // as typed; empty: not given
  SplitRequest request;
  bool verify = false;
  int64_t workers = std::max<int64_t>(1, std::thread::hardware_concurrency());
};

int split_data(const CommandLine& /*line*/, SplitArguments options) {
  SplitRequest& request = options.request;
  const bool gives_fractions = !(options.val.empty() && options.calibration.empty() && options.test.empty());
  if (request.rule.kind != SplitRule::Kind::kFractions && gives_fractions) {
    throw ConfigError(
        "--val, --calibration and --test belong to --rule fractions; the other rules take a tenth for each");
  }
  if (!options.calibration.empty()) request.rule.calibration = Fraction(options.calibration, "--calibration");
  if (!options.val.empty()) request.rule.val = Fraction(options.val, "--val");
  if (!options.test.empty()) request.rule.test = Fraction(options.test, "--test");
  constexpr int64_t kManyImages = 1'000'000'000;
  if (request.rule.sizes(kManyImages).train == 0)
    throw ConfigError("--val, --calibration and --test take all images: none is left to train on");
  check_out(request);
  catch_interrupts();
  const FolderSplit split =
      split_folder(request.folder, request.rule, request.seed, options.verify ? options.workers : 0);
  write_split(request, split);
  std::cout << describe_split(request.rule, split) << "\nThese lines of a config use it:\n"
            << data_lines(request, split) << std::flush;
  SharedImageSearch shared = shared_images_of(request.folder, split, kFilesToCompare);
  if (shared.not_compared > 0 && options.verify) {
    log::info(fmt::format("[data] comparing {} files of equal sizes", format_count(shared.not_compared)));
    shared = shared_images_of(request.folder, split, std::numeric_limits<int64_t>::max());
  } else if (shared.not_compared > 0) {
    log::info(
        fmt::format("[data] {} files of equal sizes were not compared, which may be copies; --verify compares them",
                    format_count(shared.not_compared)));
  }
  shared.warn();
  return kSuccess;
}

void add_split_command(CLI::App& data, CommandLine& line) {
  const auto [command, options] = add_subcommand<SplitArguments>(
      data, line, "split", split_data,
      "Splits a folder with a folder of images per class into training, validation, calibration and test images: writes "
      "lists for data.name: file_list, copies nothing, and says what sets the calibration images suffice for. `settrain "
      "init` does this and writes a whole config");
  SplitRequest& request = options->request;
  command->add_option("folder", request.folder, "The folder of classes")
      ->option_text("FOLDER")
      ->required()
      ->check(not_empty("folder"));
  command->add_option("--to", request.out, "The folder for the lists")->required()->check(not_empty("folder"));
  add_choice(
      *command, "--rule", request.rule.kind,
      {{"tenths", SplitRule::Kind::kTenths},
       {"fractions", SplitRule::Kind::kFractions},
       {"plantnet", SplitRule::Kind::kPlantnet}},
      "tenths: of n images of a class ceil(n/10) for validation, as many for calibration and as many for the test; "
      "fractions: the nearest to --val, --calibration and --test, at least one of each; plantnet: as in "
      "Pl@ntNet-300K, ceil(n/10) for validation and as many for the test, none for calibration");
  command->add_option("--val", options->val, "Fraction for validation, with --rule fractions [0.1]");
  command->add_option("--calibration", options->calibration,
                      "Fraction that only calibrates sets, with --rule fractions [0.1]");
  command->add_option("--test", options->test, "Fraction for the test, with --rule fractions [0.1]");
  command->add_option("--seed", request.seed, "Seed of the draw")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--min-images", request.rule.min_images, "Classes with more images than this are kept")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--verify", options->verify,
                    "Read every image first; those that cannot be read are named and left out");
  add_integer(*command, "--workers", options->workers, 1, 256, "Threads that read images, with --verify");
  command->add_flag("--overwrite", request.overwrite, "Replace lists that are there; other files stay");
}

struct VoteArguments {
  std::string answers, authors;
  VoteOptions options;
};

int vote_on_labels(const CommandLine& /*line*/, const VoteArguments& arguments) {
  const VoteOptions& options = arguments.options;
  for (const auto& [name, value] : {std::pair("--base", options.base),
                                    {"--threshold", options.threshold},
                                    {"--alpha", options.alpha},
                                    {"--beta", options.beta}}) {
    if (!std::isfinite(value)) throw ConfigError(fmt::format("{} {}: expected a finite number", name, value));
  }
  const std::vector<Answer> answers = read_answers(arguments.answers);
  if (answers.empty()) throw DataError(fmt::format("'{}' has no answers", arguments.answers));
  const VoteResult result = vote(
      answers, arguments.authors.empty() ? std::vector<Author>{} : read_authors(arguments.authors), arguments.options);
  std::cout << votes_csv(result) << std::flush;
  const auto valid = std::ranges::count_if(result.votes, &Vote::is_valid);
  log::info(fmt::format("[data] {} of {} images have a valid label, by {} answers; {} round{}", format_count(valid),
                        format_count(std::ssize(result.votes)), format_count(std::ssize(answers)), result.rounds,
                        result.rounds == 1 ? "" : "s"));
  if (!result.has_settled) log::warning("[data] the last round still changed labels or their validity");
  return kSuccess;
}

void add_vote_command(CLI::App& data, CommandLine& line) {
  const auto [command, arguments] = add_subcommand<VoteArguments>(
      data, line, "vote", vote_on_labels,
      "Labels from the answers of many people, by Pl@ntNet's weighted majority vote (Garcin 2023, section 3.8.1): a "
      "user's weight is n^alpha - n^beta + base, with n the species that the user knows. Prints a CSV line for each image");
  command->add_option("answers", arguments->answers, "CSV file with the columns image,user,label")
      ->option_text("ANSWERS")
      ->required();
  command->add_option(
      "--authors", arguments->authors,
      "CSV file with the columns image,user: who took an image. The species of a user's valid images count "
      "for n, beside the different labels that the user gave");
  VoteOptions& options = arguments->options;
  command->add_option("--base", options.base, "b_0 of the weight, which the thesis does not print")->required();
  command
      ->add_option("--threshold", options.threshold,
                   "theta: a label is valid where its weights sum to more; not printed either")
      ->required();
  command->add_option("--alpha", options.alpha, "The first power")->capture_default_str();
  command->add_option("--beta", options.beta, "The second power")->capture_default_str();
}

}  // namespace

void add_data_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("data", "Downloads, splits, verifies, describes and labels data sets");
  command->require_subcommand(1);
  add_verify_command(*command, line);
  add_stats_command(*command, line);
  add_data_show_command(*command, line);
  add_fetch_command(*command, line);
  add_fetch_weights_command(*command, line);
  add_split_command(*command, line);
  add_vote_command(*command, line);
}

}  // namespace settrain

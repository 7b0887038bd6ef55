#include <iostream>
#include <memory>
#include <string>

#include "apps/settrain/data_command.h"
#include "src/core/error.h"
#include "src/data_tools/split_folder.h"

namespace settrain {
namespace {

struct SplitArguments {
  std::string val, test;  // as typed; empty: not given
  SplitRequest request;
};

int split_data(SplitArguments options) {
  SplitRequest& request = options.request;
  if (request.rule.name == "plantnet" && !(options.val.empty() && options.test.empty())) {
    throw ConfigError("--val and --test belong to --rule fractions; the rule plantnet takes a tenth for each");
  }
  if (!options.val.empty()) request.rule.val = Fraction(options.val, "--val");
  if (!options.test.empty()) request.rule.test = Fraction(options.test, "--test");
  check_out(request);
  const FolderSplit split = split_folder(request.folder, request.rule, request.seed);
  write_split(request, split);
  std::cout << describe_split(request, split);
  return kSuccess;
}

}  // namespace

void add_data_split_command(CLI::App& data, CommandLine& line) {
  CLI::App* command = data.add_subcommand(
      "split",
      "Splits a folder with a folder of images per class into training, validation and test images: writes lists for "
      "data.name: file_list, and copies nothing");
  const auto options = std::make_shared<SplitArguments>();
  SplitRequest& request = options->request;
  const auto not_empty = [](const std::string& folder) {
    return std::string(folder.empty() ? "is empty: name a folder" : "");
  };
  command->add_option("folder", request.folder, "The folder of classes")
      ->option_text("FOLDER")
      ->required()
      ->check(not_empty);
  command->add_option("--to", request.out, "The folder for the lists")->required()->check(not_empty);
  command
      ->add_option("--rule", request.rule.name,
                   "plantnet: of n images of a class ceil(n/10) for validation and as many for the test, as in "
                   "Pl@ntNet-300K; fractions: the nearest to --val and --test, at least one of each")
      ->capture_default_str()
      ->check(CLI::IsMember({"plantnet", "fractions"}));
  command->add_option("--val", options->val, "Fraction for validation, with --rule fractions [0.1]");
  command->add_option("--test", options->test, "Fraction for the test, with --rule fractions [0.1]");
  command->add_option("--seed", request.seed, "Seed of the draw")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--min-images", request.rule.min_images, "Classes with more images than this are kept")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--overwrite", request.overwrite, "Replace lists that are there; other files stay");
  command->callback([&line, options] { line.action = [options] { return split_data(*options); }; });
}

}  // namespace settrain

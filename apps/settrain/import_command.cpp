#include <fmt/format.h>

#include <iostream>

#include "apps/settrain/command_line.h"
#include "src/checkpoint/tensor_file.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/text.h"
#include "src/formats/contents.h"
#include "src/formats/weight_file.h"

namespace settrain {
namespace {

struct ImportArguments {
  std::string file, key, output;
  bool overwrite = false;
};

int import_weights(const CommandLine& /*line*/, const ImportArguments& arguments) {
  const std::string place = fmt::format("'{}'", arguments.file);
  if (!arguments.output.empty()) refuse_existing(arguments.output, arguments.overwrite);
  WeightFile file(arguments.file);
  const Contents& contents = file.contents();
  std::cout << fmt::format("{}: {}, {}, SHA-256 {}\n{}", place, contents.format,
                           format_bytes(std::filesystem::file_size(arguments.file)), sha256_of_file(arguments.file),
                           describe_contents(contents));
  StateDict weights;
  try {
    weights = find_state_dict(contents, place, arguments.key);
  } catch (const RunError& problem) {
    if (!arguments.output.empty() || !arguments.key.empty()) throw;
    std::cout << problem.what() << '\n';  // the contents have been printed
    return kSuccess;
  }
  std::cout << fmt::format("taken for a model's: {} tensors{}\n", weights.tensors.size(),
                           weights.from.empty() ? "" : " (" + weights.from + ")");
  if (arguments.output.empty()) return kSuccess;
  TensorMap tensors;
  for (const auto& [name, entry] : weights.tensors) tensors.emplace(name, read_tensor(file, entry));
  try {
    write_tensor_file(arguments.output, tensors, {{"format", "pt"}});
  } catch (const RunError& problem) {
    throw RunError(fmt::format("{} cannot be converted: {}", place, problem.what()));
  }
  std::cout << fmt::format("written to '{}'\n", arguments.output);
  return kSuccess;
}

}  // namespace

void add_import_command(CLI::App& app, CommandLine& line) {
  const auto [command, arguments] =
      add_subcommand<ImportArguments>(app, line, "import", import_weights,
                                      "Shows the contents of a weight file, safetensors or PyTorch, and converts it");
  command->add_option("file", arguments->file, "The file; no code in it is run")->required();
  command->add_option("--key", arguments->key, "The key below which the model's tensors lie, as model.pretrained_key");
  command->add_option("--output,--out", arguments->output,
                      "A safetensors file to write the model's tensors to, by the names that model.pretrained knows");
  command->add_flag("--overwrite", arguments->overwrite, "Replaces the output where it is there");
}

}  // namespace settrain

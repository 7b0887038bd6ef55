#include "src/engine/resume.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/config/differences.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/streams.h"
#include "src/core/suggest.h"

namespace settrain {
namespace {

// They change how a run is carried out, and none of its numbers; but for train.epochs, which asks for more of them.
constexpr const char* kFreeKeys[] = {
    "name",         "run.dir",
    "run.threads",  // as good as checked: the number of threads is
    "data.root",    // likewise the digest of what is there
    "data.workers", "data.prefetch", "train.epochs", "train.checkpoint_every.steps", "train.checkpoint_every.minutes",
    "eval.splits"};

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// What the last bits of a run depend on, besides its config and data.
TextMap machine(const Experiment& run) {
  static const std::string program = sha256_of_file("/proc/self/exe");
  return {{"machine.program", program},
          {"machine.instruction_set", at::get_cpu_capability()},
          {"machine.threads", std::to_string(at::get_num_threads())},
          {"machine.device", run.device.is_cuda() ? "cuda" : "cpu"}};
}

TextMap data(const Experiment& run) {
  return {{"data.digest", run.dataset.digest}, {"data.labels", run.label_noise.digest}};
}

// A line for each entry that the checkpoint has otherwise.
std::string differing(const TextMap& now, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [name, value] : now) {
    const std::string& before = checkpoint.text(name);
    if (before != value) lines += fmt::format("\n  {}: {} there, {} now", name, before, value);
  }
  return lines;
}

std::string or_missing(const std::string& value) {
  return value.empty() ? "no such key" : value;
}

}  // namespace

void add_identity(const Experiment& run, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.rng", kRngVersion);
  checkpoint.metadata["config"] = run.config.to_yaml();
  checkpoint.metadata.merge(machine(run));
  checkpoint.metadata.merge(data(run));
}

void check_same_config(const config::Config& config, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  for (const std::string& key : terms.allowed_keys) {
    if (config.has(key)) continue;
    std::vector<std::string> known;
    for (const config::Entry& entry : config.entries()) known.push_back(entry.path);
    const std::string near = nearest_name(key, known);
    throw ConfigError("--allow " + key + ": the configuration has no such key" +
                      (near.empty() ? "" : ", did you mean '" + near + "'?"));
  }
  std::string lines, allow;
  for (const auto& [path, before, after] : config::differences(checkpoint.text("config"), config.to_yaml())) {
    if (contains(kFreeKeys, path) || contains(terms.allowed_keys, path)) continue;
    lines += fmt::format("\n  {}: {} there, {} now", path, or_missing(before), or_missing(after));
    allow += " --allow " + path;
  }
  if (lines.empty()) return;
  throw ConfigError(
      fmt::format("'{}' was made with another configuration:{}\nStart a new run; or, where the change is "
                  "meant for the rest of this one, add{}",
                  checkpoint.file.string(), lines, allow));
}

void check_same_identity(const Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string file = fmt::format("'{}'", checkpoint.file.string());
  const int64_t rng = checkpoint.integer("state.rng");
  if (rng != kRngVersion) {
    throw RunError(
        fmt::format("{} was made with version {} of the random numbers, this program has version {}; go on "
                    "with the program that made it",
                    file, rng, kRngVersion));
  }
  const std::string data_lines = differing(data(run), checkpoint);
  if (!data_lines.empty()) {
    throw RunError(file + " was trained on other data:" + data_lines +
                   "\nGo on with the data as they were, or start a new run");
  }
  const std::string machine_lines = differing(machine(run), checkpoint);
  if (machine_lines.empty()) return;
  if (!terms.allow_inexact) {
    throw RunError(file + " was made under other circumstances, and the run would not end with the same bits:" +
                   machine_lines + "\nGo on all the same by --allow-inexact");
  }
  log::warning("[run] going on inexactly from " + file + ":" + machine_lines);
}

}  // namespace settrain

#include "src/train/identity.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

constexpr const char* kProcessCount = "processes";
constexpr const char* kPretrainedDigest = "model.pretrained.sha256";

// Everything that the last bits of a run depend on, besides its config and data.
TextMap machine(at::Device device) {
  static const std::string program = sha256_of_file("/proc/self/exe");
  TextMap texts{{"machine.program", program},
                {"machine.instruction_set", at::get_cpu_capability()},
                {"machine.threads", std::to_string(at::get_num_threads())},
                {"machine.device", device.is_cuda() ? "cuda" : "cpu"}};
  if (device.is_cuda()) texts["machine.gpu"] = describe_gpu(device).dump();
  return texts;
}

TextMap data(const Dataset& dataset, const LabelNoiseReport& label_noise) {
  return {{"data.digest", dataset.digest}, {"data.labels", label_noise.digest}};
}

TextMap thresholds(const std::string& digest) {
  return {{"data.thresholds", digest}};
}

// A line for each entry that the checkpoint has otherwise.
std::string differing_lines(const TextMap& now, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [name, value] : now) {
    const auto found = checkpoint.metadata.find(name);
    const std::string before = found == checkpoint.metadata.end() ? "" : found->second;
    if (before != value) {
      lines += fmt::format("\n  {}: {} there, {} now", name, before.empty() ? "none" : before,
                           value.empty() ? "none" : value);
    }
  }
  return lines;
}

void refuse_other_data(const std::string& lines, const Checkpoint& checkpoint) {
  if (lines.empty()) return;
  throw RunError(fmt::format("{} was trained on other data:{}\nTake the data as they were, or start a new run",
                             checkpoint.place(), lines));
}

// Keys that a process may have for itself. Others that change no number change which collective calls are made. The
// data are compared by their digest, threads by their number.
bool is_own(const std::string& path) {
  static const std::set<std::string> kOwn{"name",           "run.dir",         "run.threads",
                                          "data.root",      "data.workers",    "data.prefetch",
                                          "data.on_device", "data.val_labels", "data.synsets"};
  return kOwn.contains(path) || path.starts_with("train.checkpoint_every.");
}

std::string differing_process(const nlohmann::json& first, const nlohmann::json& other) {
  std::string lines;
  for (const auto& [path, before, after] : config::differences(first.at("config"), other.at("config"))) {
    if (is_own(path)) continue;
    lines += fmt::format("\n    {}: {} instead of {}", path, after, before);
  }
  for (const auto& [name, value] : first.items()) {
    // The config is compared key by key; the card repeats parts of it, and GPUs may differ in their drivers' memory.
    if (name == "config" || name == "card" || name == "machine.gpu") continue;
    const auto before = value.get<std::string>();
    if (other.value(name, "") != before)
      lines += fmt::format("\n    {}: {} instead of {}", name, other.value(name, "none"), before);
  }
  return lines;
}

}  // namespace

void add_identity(const Experiment& run, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.rng", kRngVersion);
  checkpoint.metadata["config"] = run.config.to_yaml();
  checkpoint.metadata[kProcessCount] = std::to_string(run.group->world_size());
  checkpoint.metadata["card"] = to_text(card_of(run));
  checkpoint.metadata.merge(machine(run.device));
  checkpoint.metadata.merge(data(run.dataset, run.label_noise));
  checkpoint.metadata.merge(thresholds(run.threshold_digest));
  // For the record: the weights themselves are in the checkpoint.
  if (!run.pretrained_digest.empty()) checkpoint.metadata[kPretrainedDigest] = run.pretrained_digest;
}

int64_t processes_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.metadata.find(kProcessCount);
  return found == checkpoint.metadata.end() ? 1 : std::stoll(found->second);
}

void restore_pretrained_digest(const Checkpoint& checkpoint, std::string& digest) {
  const auto found = checkpoint.metadata.find(kPretrainedDigest);
  if (found != checkpoint.metadata.end()) digest = found->second;
}

std::vector<config::Difference> config_changes(const std::string& record, const config::Config& now) {
  std::vector<config::Difference> all = config::differences(record, now.to_yaml());
  std::erase_if(all, [&now](const config::Difference& change) {
    return change.before.empty() && now.at(change.path).value == now.at(change.path).key.default_value;
  });
  return all;
}

bool is_of_network(const std::string& path) {
  return path.starts_with("model.") || path == "train.precision";
}

void check_same_model(const config::Config& config, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [path, before, after] : config_changes(checkpoint.text("config"), config)) {
    if (is_of_network(path) || path == "data.normalisation")
      lines += fmt::format("\n  {}: {} there, {} now", path, before, after);
  }
  if (lines.empty()) return;
  throw RunError(
      fmt::format("{} was trained with another model or input:{}\nThe run's config.yaml was changed; put it back",
                  checkpoint.place(), lines));
}

void check_same_data(const Dataset& dataset, const LabelNoiseReport& label_noise, const Checkpoint& checkpoint) {
  refuse_other_data(differing_lines(data(dataset, label_noise), checkpoint), checkpoint);
}

void check_same_identity(const Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string file = checkpoint.place();
  const int64_t rng = checkpoint.integer("state.rng");
  if (rng != kRngVersion) {
    throw RunError(fmt::format(
        "{} was made with version {} of the random numbers, this program has version {}; go on with the program that "
        "made it",
        file, rng, kRngVersion));
  }
  refuse_other_data(differing_lines(data(run.dataset, run.label_noise), checkpoint) +
                        differing_lines(thresholds(run.threshold_digest), checkpoint),
                    checkpoint);
  const std::string lines = differing_lines(machine(run.device), checkpoint);
  if (lines.empty()) return;
  if (!terms.allow_inexact) {
    throw RunError(fmt::format(
        "{} was made under other circumstances, and the run would not end with the same bits:{}\nGo on as before "
        "(--device, --set run.threads=N), or all the same by --allow-inexact",
        file, lines));
  }
  log::warning(fmt::format("[run] going on inexactly from {}:{}", file, lines));
}

void check_same_everywhere(const Experiment& run) {
  Checkpoint mine;
  add_identity(run, mine);
  const std::vector<std::string> all = run.group->all_gather(nlohmann::json(mine.metadata).dump());
  const nlohmann::json first = nlohmann::json::parse(all.front());
  std::string lines;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    const std::string other = differing_process(first, nlohmann::json::parse(all[rank]));
    if (!other.empty()) lines += fmt::format("\n  process {} of {}:{}", rank, all.size(), other);
  }
  if (!lines.empty()) throw AgreedError("the processes would not train the same; compared with process 0:" + lines);
}

}  // namespace settrain

#include "src/train/identity.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <typeinfo>
#include <utility>

#include "datasets/recorded_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"
#include "src/run_folder/run_folder.h"
#include "src/train/provenance.h"

namespace settrain {
namespace {

constexpr const char* kProcessCount = "processes";
constexpr const char* kFittedKeys = "fitted";
constexpr const char* kInput = "input";
constexpr const char* kPretrainedDigest = "model.pretrained.sha256";

constexpr const char* kThresholds = "data.thresholds";
constexpr const char* kTrain = "train";

std::string entry_of(const std::string& split) {
  return "data." + split;
}

TextMap data(const Experiment& run) {
  return {{"data.digest", run.dataset.digest}, {"data.labels", run.label_noise.digest}};
}

TextMap splits(const Experiment& run) {
  TextMap texts{{kThresholds, run.threshold_split ? run.threshold_split->digest : ""}};
  for (const std::string& name : split_names(run.dataset)) {
    const std::string& digest = split_named(run.dataset, name).digest;
    if (!digest.empty()) texts[entry_of(name)] = digest;
  }
  return texts;
}

// The size and normalisation of the input, which every process finds out for itself where they are auto.
std::string input_text(const Experiment& run) {
  const Normalisation& values = run.loader.normalisation;
  return fmt::format("{}x{} pixels, mean {}, standard deviation {}", run.input.height, run.input.width,
                     fmt::join(values.mean, " "), fmt::join(values.std, " "));
}

// Empty where the checkpoint has no such entry.
std::string recorded(const std::string& name, const Checkpoint& checkpoint) {
  const auto found = checkpoint.metadata.find(name);
  return found == checkpoint.metadata.end() ? "" : found->second;
}

// A line for each entry that the checkpoint has otherwise.
std::string differing_lines(const TextMap& now, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [name, value] : now) {
    const std::string before = recorded(name, checkpoint);
    if (before == value) continue;
    lines +=
        fmt::format("\n  {}: {} there, {} now", name, before.empty() ? "none" : before, value.empty() ? "none" : value);
  }
  return lines;
}

// Whether it has a digest for each split.
bool knows_splits(const Checkpoint& checkpoint) {
  return !recorded(entry_of(kTrain), checkpoint).empty();
}

// Whether the split is another one than the checkpoint's, which has it too.
bool differs(const std::string& split, const Experiment& run, const Checkpoint& checkpoint) {
  const std::string before = recorded(entry_of(split), checkpoint);
  return !before.empty() && before != split_named(run.dataset, split).digest;
}

// Whether the training images or labels differ, or may: the lines are of all data.
bool may_train_otherwise(const std::string& lines, const Experiment& run, const Checkpoint& checkpoint) {
  if (lines.empty()) return false;
  return !knows_splits(checkpoint) || differs(kTrain, run, checkpoint) ||
         recorded("data.labels", checkpoint) != run.label_noise.digest;
}

FileDifference file_difference(const std::string& entry, const Split& now, const Checkpoint& checkpoint) {
  const std::filesystem::path folder = RunFolder::of_checkpoint(checkpoint.file);
  if (folder.empty()) return {};
  return difference_of_files(RunFolder::open_existing(folder).data_files(), recorded(entry, checkpoint), now);
}

void warn_of_split(const std::string& name, const std::string& entry, const Split& now, Experiment& run,
                   const Checkpoint& checkpoint) {
  const FileDifference difference = file_difference(entry, now, checkpoint);
  if (!run.changed_splits.emplace(name, difference.same_names).second) return;
  log::warning(
      fmt::format("[data] the {} images are not those that {} was made with{}{}; results on them do not "
                  "compare with earlier ones",
                  name, checkpoint.place(), difference.text.empty() ? "" : ": ", difference.text));
}

// Warns of every split that differs, once. `lines`: of all data.
void warn_of_splits(const std::string& lines, Experiment& run, const Checkpoint& checkpoint) {
  if (lines.empty()) return;
  if (!knows_splits(checkpoint)) {
    if (!run.changed_splits.emplace("", false).second) return;
    log::warning(fmt::format(
        "[data] the images are not those that {} was made with:{}\nAn earlier version of settrain made it, and it does "
        "not say which images differ; results on these do not compare with earlier ones",
        checkpoint.place(), lines));
    return;
  }
  for (const std::string& name : split_names(run.dataset)) {
    if (differs(name, run, checkpoint))
      warn_of_split(name, entry_of(name), split_named(run.dataset, name), run, checkpoint);
  }
}

// The keys of the data set itself, but not of batches, that the two configs have otherwise, a line each.
std::string data_set_changes(const Experiment& run, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [path, before, after] : config_changes(checkpoint.text("config"), run.config)) {
    if (!path.starts_with("data.")) continue;
    if (run.config.has(path)) {
      const config::Key& key = run.config.at(path).key;
      if (key.is_free || key.owner == typeid(LoaderOptions) || key.owner == typeid(PipelineOptions)) continue;
    }
    lines +=
        fmt::format("\n  {}: {} there, {} now", path, before.empty() ? "none" : before, after.empty() ? "none" : after);
  }
  return lines;
}

// Early checkpoints have none.
std::optional<ModelCard> card_of(const Checkpoint& checkpoint) {
  const std::string card = recorded("card", checkpoint);
  return card.empty() ? std::nullopt : std::optional(model_card_from_text(card, checkpoint.place()));
}

// A line on the first class that the checkpoint's model has otherwise; empty where there is none.
std::string class_change(const ModelCard& card, const Dataset& data) {
  const std::vector<std::string>&before = card.class_names, &now = data.class_names;
  if (before.size() != now.size()) return fmt::format("\n  {} classes there, {} now", before.size(), now.size());
  const auto is_same = [](const std::string& there, const std::string& here) { return there == printable(here); };
  const auto [old, renamed] = std::ranges::mismatch(before, now, is_same);
  if (old == before.end()) return "";
  return fmt::format("\n  class {}: {} there, {} now", old - before.begin(), in_quotes(*old), in_quotes(*renamed));
}

// A line on the first class whose superclass, or what lies above it, is not the card's; empty where there is none.
std::string superclass_change(const ModelCard& card, const Dataset& data) {
  if (card.superclass_of.size() != data.superclass_of.size())
    return fmt::format("\n  {} superclasses there, {} now", card.superclass_names.size(), data.superclass_names.size());
  for (size_t c = 0; c < data.superclass_of.size(); ++c) {
    const std::string& before = card.superclass_names[static_cast<size_t>(card.superclass_of[c])];
    const std::string now = printable(data.superclass_names[static_cast<size_t>(data.superclass_of[c])]);
    if (before != now)
      return fmt::format("\n  superclass of {}: {} there, {} now", in_quotes(data.class_names[c]), in_quotes(before),
                         in_quotes(now));
  }
  const bool have_ranks = !card.taxonomy.empty() && !data.taxonomy.empty();
  return have_ranks && card.taxonomy.parent != data.taxonomy.parent
             ? "\n  data.taxonomy: other nodes above the superclasses"
             : "";
}

// Warns of names and superclasses that are not the card's, once.
void warn_of_classes(Experiment& run, const ModelCard& card, const std::string& place) {
  const std::string names = class_change(card, run.dataset), superclasses = superclass_change(card, run.dataset);
  if ((names.empty() && superclasses.empty()) || std::exchange(run.has_told_classes, true)) return;
  if (!names.empty())
    log::warning(fmt::format("[data] classes have other names than in {}, which its answers keep:{}", place, names));
  if (!superclasses.empty())
    log::warning(fmt::format("[data] the superclasses are not those of {}, and results by them do not compare:{}",
                             place, superclasses));
}

// Superclasses may change labels, and choose the best epoch.
void refuse_other_superclasses(const ModelCard& card, const Dataset& data, const std::string& place) {
  const std::string change = superclass_change(card, data);
  if (change.empty()) return;
  throw RunError(fmt::format(
      "{} was trained with other superclasses:{}\nTake data.superclasses and data.taxonomy as they were, or start a new "
      "run. (Earlier versions took a number in them for a class' index, where it is another one's name too.)",
      place, change));
}

// Warns of images that the model is not trained on, and throws where others differ.
void check_same_training_data(Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string lines = differing_lines(data(run), checkpoint);
  if (may_train_otherwise(lines, run, checkpoint)) {
    const bool is_known = knows_splits(checkpoint);
    const bool same_labels = recorded("data.labels", checkpoint) == run.label_noise.digest;
    const std::string first =
        is_known ? file_difference(entry_of(kTrain), run.dataset.train, checkpoint).text
                 : std::string(same_labels ? "an earlier version of settrain made it, and it does not say whether "
                                             "training images differ; where none does, go on by --allow-inexact"
                                           : "");
    if (is_known || !same_labels || !terms.allow_inexact) {
      throw RunError(fmt::format("{} was trained on other data:{}{}{}\nTake the data as they were, or start a new run",
                                 checkpoint.place(), lines, first.empty() ? "" : "\n  ", first));
    }
  }
  warn_of_splits(lines, run, checkpoint);
  // Sets of average-K are cut by them; the model is not trained on them.
  const std::string thresholds = recorded(kThresholds, checkpoint);
  if (run.threshold_split && !thresholds.empty() && thresholds != run.threshold_split->digest)
    warn_of_split("threshold", kThresholds, *run.threshold_split, run, checkpoint);
}

// Keys that a process may have for itself. Others that change no number change which collective calls are made. The
// data are compared by their digest, threads by their number.
bool is_own(const std::string& path) {
  static const std::set<std::string> kOwn{
      "name",         "run.dir",       "run.threads",    "run.inference",   "data.root",
      "data.workers", "data.prefetch", "data.on_device", "data.val_labels", "data.synsets"};
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

TextMap machine_identity(const Experiment& run) {
  static const std::string program = sha256_of_file("/proc/self/exe");
  TextMap texts{
      {"machine.program", program},
      {"machine.instruction_set", at::get_cpu_capability() + (run.policy.bf16 && may_take_amx() ? ", AMX" : "")},
      {"machine.threads", std::to_string(at::get_num_threads())},
      {"machine.device", run.device.is_cuda() ? "cuda" : "cpu"}};
  if (run.device.is_cuda()) texts["machine.gpu"] = describe_gpu(run.device).dump();
  return texts;
}

void add_identity(const Experiment& run, Checkpoint& checkpoint) {
  checkpoint.set_integer("state.rng", kRngVersion);
  checkpoint.metadata["config"] = run.config.to_yaml();
  checkpoint.metadata[kProcessCount] = std::to_string(run.group->world_size());
  checkpoint.metadata[kFittedKeys] = nlohmann::json(run.fitted).dump();
  checkpoint.metadata["card"] = to_text(card_of(run));
  checkpoint.metadata[kInput] = input_text(run);
  checkpoint.metadata.merge(machine_identity(run));
  checkpoint.metadata.merge(data(run));
  checkpoint.metadata.merge(splits(run));
  // For the record: the weights themselves are in the checkpoint.
  if (!run.pretrained_digest.empty()) checkpoint.metadata[kPretrainedDigest] = run.pretrained_digest;
}

RecordedInput recorded_input(const TextMap& metadata, const std::string& place) {
  const auto card = metadata.find("card");
  return card == metadata.end() ? RecordedInput{} : RecordedInput::of(model_card_from_text(card->second, place));
}

int64_t processes_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.metadata.find(kProcessCount);
  return found == checkpoint.metadata.end() ? 1 : std::stoll(found->second);
}

std::optional<std::vector<std::string>> fitted_keys_of(const Checkpoint& checkpoint) {
  const auto found = checkpoint.metadata.find(kFittedKeys);
  if (found == checkpoint.metadata.end()) return std::nullopt;
  const auto keys = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!keys.is_array() || !std::ranges::all_of(keys, [](const auto& key) { return key.is_string(); })) {
    throw RunError(fmt::format("{}: its metadata '{}' are no list of keys", checkpoint.place(), kFittedKeys));
  }
  return keys.get<std::vector<std::string>>();
}

void take_over_beginning(const Checkpoint& checkpoint, Experiment& run) {
  const auto found = checkpoint.metadata.find(kPretrainedDigest);
  if (found != checkpoint.metadata.end()) run.pretrained_digest = found->second;
  if (const auto keys = fitted_keys_of(checkpoint)) run.fitted = *keys;
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

void check_same_model(const Experiment& run, const Checkpoint& checkpoint) {
  std::string lines;
  for (const auto& [path, before, after] : config_changes(checkpoint.text("config"), run.config)) {
    if (is_of_network(path) || path == "data.normalisation")
      lines += fmt::format("\n  {}: {} there, {} now", path, before, after);
  }
  // Both may be auto in both configs, and yet differ.
  const RecordedInput there = recorded_input(checkpoint.metadata, checkpoint.place());
  if (there.height > 0 && (there.height != run.input.height || there.width != run.input.width)) {
    lines += fmt::format("\n  input: {}x{} pixels there, {}x{} now", there.height, there.width, run.input.height,
                         run.input.width);
  }
  if (there.height > 0 && there.normalisation != run.loader.normalisation && lines.empty())
    lines += "\n  the input's mean and standard deviation";
  if (lines.empty()) return;
  throw RunError(
      fmt::format("{} was trained with another model or input:{}\nThe run's config.yaml was changed; put it back",
                  checkpoint.place(), lines));
}

void check_same_data(Experiment& run, const Checkpoint& checkpoint) {
  const std::string lines = differing_lines(data(run), checkpoint);
  if (may_train_otherwise(lines, run, checkpoint)) {
    const std::optional<ModelCard> card = card_of(checkpoint);
    const std::string keys = data_set_changes(run, checkpoint), classes = card ? class_change(*card, run.dataset) : "";
    if (!keys.empty() || !classes.empty()) {
      throw RunError(
          fmt::format("{} was trained on other data:{}{}{}\n{}", checkpoint.place(), lines, keys, classes,
                      keys.empty() ? "Take the data as they were" : "The run's config.yaml was changed; put it back"));
    }
  }
  warn_of_splits(lines, run, checkpoint);
  if (const std::optional<ModelCard> card = card_of(checkpoint)) warn_of_classes(run, *card, checkpoint.place());
}

void check_same_identity(Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms) {
  const std::string file = checkpoint.place();
  const int64_t rng = checkpoint.integer("state.rng");
  if (rng != kRngVersion) {
    throw RunError(fmt::format(
        "{} was made with version {} of the random numbers, this program has version {}; go on with the program that "
        "made it",
        file, rng, kRngVersion));
  }
  check_same_training_data(run, checkpoint, terms);
  if (const std::optional<ModelCard> card = card_of(checkpoint)) {
    refuse_other_superclasses(*card, run.dataset, file);
    warn_of_classes(run, *card, file);
  }
  const std::string lines = differing_lines(machine_identity(run), checkpoint);
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

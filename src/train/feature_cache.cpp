#include "src/train/feature_cache.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/config/value.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/evaluation.h"
#include "src/train/identity.h"
#include "src/train/mix.h"
#include "src/train/row_file.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainingSplit = "train";

// Puts the model into evaluation mode as long as it lives.
class Evaluating {
 public:
  explicit Evaluating(Model& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  Evaluating(const Evaluating&) = delete;
  ~Evaluating() { model_.train(was_training_); }

 private:
  Model& model_;
  bool was_training_;
};

// The loaders' context without cached features.
LoaderContext of_images(const Experiment& run) {
  LoaderContext context = run.loader;
  context.features.clear();
  return context;
}

Pipeline training_pipeline(const Experiment& run) {
  return {run.loader.pipeline, run.dataset.height, run.dataset.width, ViewUse::kTraining};
}

// The first parameter that is trained and no part of the head, or an empty text.
std::string trained_in_body(const Experiment& run) {
  const std::set<std::string> head = run.model->head_parameters();
  for (const auto& parameter : run.model->named_parameters()) {
    if (parameter.value().requires_grad() && !head.contains(parameter.key())) return parameter.key();
  }
  return "";
}

// Why the run must see its images in every epoch, or an empty text. Cheap reasons come first.
std::string why_not(const Experiment& run) {
  if (run.train.epochs < 2) return "the run has fewer than two epochs";
  const std::string in_body = trained_in_body(run);
  if (!in_body.empty()) return fmt::format("{} trains, which is no part of the head", in_body);
  if (std::ranges::none_of(run.model->parameters(), &at::Tensor::requires_grad))
    return "no parameter of the head is trained";
  if (run.train.ema_decay > 0) return "train.ema_decay rounds the averaged weights of the body too";
  if (training_pipeline(run).is_random())
    return "images are cropped, mirrored or augmented anew in each epoch (data.pipeline, data.augment)";
  if (run.config.read<MixOptions>("train").is_on()) return "train.mix mixes images";
  if (run.loader.options.on_bad_image != "error") return "images that cannot be read are left out (data.on_bad_image)";
  if (run.dataset.train.images->features()) return "the data are features already";
  return "";
}

// [images, width] float32 on the CPU: the head's inputs.
at::Tensor features_of(const Experiment& run, const at::Tensor& images) {
  return forward(*run.model, images, run.policy).features.to(at::kCPU, at::kFloat).contiguous();
}

// The numbers that the head takes of one image; nothing where it takes pixels.
std::optional<int64_t> feature_width(const Experiment& run) {
  const c10::InferenceMode inference;
  const Evaluating evaluating(*run.model);
  const at::Tensor image = at::zeros({1, run.input.channels, run.input.height, run.input.width}, at::kFloat);
  const at::Tensor features = run.model->features(as_input(image, run.policy));
  if (features.dim() != 2) return std::nullopt;
  return features.size(1);
}

bool is_rounded(const Experiment& run) {
  return run.loader.options.cache_precision == "bfloat16";
}

// The splits that are scored by the centre of their images, in a fixed order. "train" is then scored by its images, in
// batches of another size, as is all that is scored after the training where rows are rounded.
std::vector<std::string> scored_splits(const Experiment& run) {
  const bool has_calibration = run.dataset.calibration.size() > 0;
  std::set<std::string> names = splits_to_score(run.config, run.eval.during_training, has_calibration);
  if (run.eval.view_use() == ViewUse::kEvaluation && !is_rounded(run))
    names.merge(splits_to_score(run.config, run.eval.splits, has_calibration));
  std::vector<std::string> found;
  for (const char* name : {"val", "calibration", "test"}) {
    if (names.contains(name) && split_named(run.dataset, name).size() > 0) found.emplace_back(name);
  }
  return found;
}

// A digest of everything that features depend on, but for the split and the size of batches.
std::string feature_recipe(const Experiment& run) {
  const std::set<std::string> without_effect{"data.batch_size",
                                             "data.eval_batch_size",
                                             "data.workers",
                                             "data.prefetch",
                                             "data.drop_last",
                                             "data.sampler",
                                             "data.augmentation.repeats",
                                             "data.on_bad_image",
                                             "data.on_device",
                                             kCacheFeatures,
                                             "data.taxonomy",
                                             "data.superclasses",
                                             "data.class_names",
                                             "data.calibration_share",
                                             "data.calibration_seed",
                                             "model.trainable",
                                             "model.head",
                                             "model.head_bias",
                                             "model.head_tau",
                                             "model.dropout",
                                             "model.stochastic_depth"};
  Sha256 digest;
  for (const config::Entry& entry : run.config.entries()) {
    const auto is_of = [&](const char* start) { return entry.path.starts_with(start); };
    // Networks can differ though their tensors do not: in how a transformer pools its tokens, for one.
    const bool counts = is_of("data.") || is_of("model.");
    if (!counts || is_of("data.label_noise.") || is_of("model.pretrained") || without_effect.contains(entry.path))
      continue;
    digest.add(fmt::format("{}={}\n", entry.path, config::yaml_value(entry.key, entry.value)));
  }
  const auto& [mean, std] = run.loader.normalisation;
  const PipelineOptions& pipeline = run.loader.pipeline;
  digest.add(fmt::format("{} {} {} {} {} {} {}\n{} {}\n{}\n", run.input.channels, run.input.height, run.input.width,
                         pipeline.pipeline, pipeline.resize_size, pipeline.interpolation, pipeline.crop_share,
                         fmt::join(mean, " "), fmt::join(std, " "), run.policy.describe()));
  for (const auto& [name, value] : machine_identity(run)) digest.add(fmt::format("{}={}\n", name, value));
  const std::set<std::string> head = run.model->head_parameters();
  for (const auto& [name, tensor] : state_dict(*run.model)) {
    if (head.contains(name)) continue;
    const at::Tensor values = tensor.to(at::kCPU).contiguous();
    digest.add(fmt::format("{} {} {}\n", name, c10::toString(values.scalar_type()), fmt::join(values.sizes(), " ")));
    digest.add({static_cast<const uint8_t*>(values.const_data_ptr()), values.nbytes()});
  }
  return digest.hex();
}

// Tells the split's images from others, by the split's digest, which knows files by their names and sizes, and for
// files also where they lie and when they were written.
std::string digest_of_images(const Split& split) {
  Sha256 digest;
  digest.add(split.digest + "\n");
  for (const int64_t id : split.ids) {
    const fs::path file = file_of(*split.images, id);
    if (file.empty()) break;
    struct stat found {};
    if (stat(file.c_str(), &found) != 0) continue;  // what reads it says so
    digest.add(fmt::format("{} {}.{}\n", fs::absolute(file).lexically_normal().string(), found.st_mtim.tv_sec,
                           found.st_mtim.tv_nsec));
  }
  return digest.hex();
}

void check_rows(const at::Tensor& rows, const Batch& batch, const ImageSource& images) {
  const at::Tensor finite = at::isfinite(rows).all(1);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    if (finite.const_data_ptr<bool>()[i]) continue;
    throw DataError(fmt::format("{}: the body's features are not finite",
                                images.describe(batch.sample_ids.const_data_ptr<int64_t>()[i])));
  }
}

// The rows of the batch, made in a batch of `whole` images.
at::Tensor rows_of(const Experiment& run, const Batch& batch, int64_t whole) {
  at::Tensor images = batch.images;
  const int64_t count = batch.size();
  while (images.size(0) < whole)
    images = at::cat({images, images.narrow(0, 0, std::min(images.size(0), whole - images.size(0)))});
  return features_of(run, images).narrow(0, 0, count).contiguous();
}

// Opens the first process's file, and returns the rows that it has. While another run makes the file, the processes
// meet again and again, so that none waits for the first longer than parallel.timeout.
int64_t open_for_all(ProcessGroup& group, RowFile& file, int64_t batch) {
  for (bool is_told = false;;) {
    std::optional<int64_t> rows;
    group.first_does([&] { rows = file.open(batch); });
    const at::Tensor all = group.all_gather(at::tensor({rows.value_or(-1), int64_t{interrupted()}}));
    if (const int64_t signal = all.select(1, 1).max().item<int64_t>()) throw Interrupted(static_cast<int>(signal));
    if (const int64_t found = all[0][0].item<int64_t>(); found >= 0) return found;
    if (!std::exchange(is_told, true))
      log::info(fmt::format("[features] waiting for another process, which makes '{}'", file.path().string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

// Fills the rest of a file by all processes in turn. `file`: of the first.
void fill_rows(const Experiment& run, const Split& split, RowFile* file, int64_t done, int64_t width,
               ProgressBar& bar) {
  const bool is_training = split.name == kTrainingSplit;
  ProcessGroup& group = *run.group;
  const LoaderContext context = of_images(run);
  Loader loader =
      is_training ? training_loader_in_order(run.dataset, context) : evaluation_loader(run.dataset, split, context);
  const int64_t size = loader.settings().batch_size, world = group.world_size();
  Progress progress{"[features] " + split.name, done, split.size(), 0, ""};
  loader.start_epoch(0, done / size);
  for (int64_t first = done / size; first < loader.batches_per_epoch(); first += world) {
    Batch batch;
    at::Tensor rows = at::zeros({size, width}, at::kFloat);
    std::string problem;
    try {
      if (loader.next(batch) && batch.size() > 0) {
        const at::Tensor own = rows_of(run, batch, is_training ? size : batch.size());
        check_rows(own, batch, *split.images);
        rows.narrow(0, 0, own.size(0)).copy_(own);
      }
    } catch (const DataError& error) {
      if (world == 1) throw;
      problem = error.what();
    }
    if (world > 1) {
      for (const std::string& text : group.all_gather(problem))
        if (!text.empty()) throw AgreedError(text);
    }
    const at::Tensor counts = group.all_gather(at::tensor({batch.size(), int64_t{interrupted()}}));
    const at::Tensor all = world == 1 ? rows.unsqueeze(0) : group.all_gather(rows);
    group.first_does([&] {
      // Batch b is that of process b % world, and the file may go on at any batch.
      for (int64_t number = first; number < first + world; ++number) {
        const int64_t rank = number % world;
        file->append(all[rank].narrow(0, 0, counts[rank][0].item<int64_t>()));
      }
    });
    progress.done += counts.select(1, 0).sum().item<int64_t>();
    bar.update(progress);
    if (const int64_t signal = counts.select(1, 1).max().item<int64_t>()) throw Interrupted(static_cast<int>(signal));
  }
  bar.hide();
}

// $SETTRAIN_CACHE/features, which runs share, or the run's own folder.
fs::path cache_folder(const fs::path& run_folder) {
  const char* shared = std::getenv("SETTRAIN_CACHE");
  return (shared && *shared ? fs::path(shared) : run_folder) / "features";
}

// Whether every process sees the file that the first has begun. On other machines it may not be there.
bool is_seen_by_all(ProcessGroup& group, const fs::path& path) {
  const bool is_there = fs::exists(path) || fs::exists(path.string() + ".partial");
  return group.all_gather(at::tensor({int64_t{is_there}})).min().item<int64_t>() != 0;
}

std::shared_ptr<const FeatureTable> mapped(ProcessGroup& group, const std::string& path, int64_t rows,
                                           const FeaturePlan& plan) {
  std::shared_ptr<const FeatureTable> table;
  std::string problem;
  try {
    table = std::make_shared<FeatureTable>(path, RowFile::kHeaderBytes, rows, plan.width, plan.stored);
  } catch (const RunError& error) {
    problem = error.what();
  }
  for (const std::string& text : group.all_gather(problem))
    if (!text.empty())
      throw AgreedError(fmt::format("{}; all processes read the features from the first one's files", text));
  return table;
}

}  // namespace

std::optional<FeaturePlan> feature_plan(const Experiment& run) {
  const config::Switch wanted = run.loader.options.cache_features;
  if (wanted == config::Switch::kOff) return std::nullopt;
  std::string reason = why_not(run);
  const std::optional<int64_t> width = reason.empty() ? feature_width(run) : std::nullopt;
  if (reason.empty() && !width) reason = "the head of this model sees pixels";
  if (!reason.empty()) {
    if (wanted == config::Switch::kOn)
      throw KeyError(kCacheFeatures, fmt::format("on: {}; expected auto or off", reason));
    return std::nullopt;
  }
  FeaturePlan plan{.splits = scored_splits(run),
                   .width = *width,
                   .stored = is_rounded(run) ? FeatureTable::Stored::kBfloat16 : FeatureTable::Stored::kFloat32};
  plan.splits.insert(plan.splits.begin(), kTrainingSplit);
  for (const std::string& name : plan.splits) plan.images += split_named(run.dataset, name).size();
  return plan;
}

void cache_features(Experiment& run, const fs::path& run_folder, ProgressBar& bar) {
  const std::optional<FeaturePlan> plan = feature_plan(run);
  if (!plan) {
    const std::string reason = why_not(run);  // empty where the head takes pixels: there is no body
    const bool is_asked = run.loader.options.cache_features == config::Switch::kAuto && run.train.epochs > 1 &&
                          !run.dataset.train.images->features();
    if (is_asked && !reason.empty() && trained_in_body(run).empty())
      log::info("[features] the frozen body sees the images in every epoch: " + reason);
    return;
  }
  const c10::InferenceMode inference;
  const Evaluating evaluating(*run.model);
  ProcessGroup& group = *run.group;
  const fs::path folder = cache_folder(run_folder);
  log::info(fmt::format(
      "[features] only the head trains: the body sees each of {} images once, and its features ({}) go to '{}'; "
      "{}=off lets it see them in every epoch",
      format_count(plan->images), format_bytes(static_cast<uint64_t>(plan->bytes())), folder.string(), kCacheFeatures));
  const std::string common = feature_recipe(run);
  for (const std::string& name : plan->splits) {
    const Split& split = split_named(run.dataset, name);
    const bool is_training = name == kTrainingSplit;
    const int64_t batch = is_training ? run.loader.options.batch_size : run.loader.options.resolved_eval_batch_size();
    const std::string digest =
        sha256(fmt::format("{}\n{}\n{}\n{}", common, digest_of_images(split), batch, is_training));
    RowFile file(folder / digest, split.size(), plan->width, plan->stored);
    const int64_t done = open_for_all(group, file, batch);
    const std::string path = group.all_gather(file.path().string())[0];
    if (!is_seen_by_all(group, path)) {
      if (run.loader.options.cache_features == config::Switch::kOn)
        throw AgreedError(
            fmt::format("{}: on: not every process sees '{}'; expected auto or off", kCacheFeatures, path));
      log::info("[features] not every process sees that folder: the body sees the images in every epoch");
      run.loader.features.clear();
      return;
    }
    if (done < split.size()) fill_rows(run, split, &file, done, plan->width, bar);
    group.first_does([&] {
      if (!file.is_whole()) file.finish();
    });
    run.loader.features[name] = mapped(group, path, split.size(), *plan);
  }
}

void drop_rounded_features(Experiment& run) {
  if (is_rounded(run)) run.loader.features.clear();
}

void remove_cached_features(const fs::path& run_folder) {
  constexpr size_t kDigits = 64;  // of SHA-256
  const fs::path folder = run_folder / "features";
  std::error_code ignored;
  std::vector<fs::path> ours;  // others may have put files of their own there
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const size_t digits = std::min(name.size(), name.find_first_not_of("0123456789abcdef"));
    const bool is_cache = digits == kDigits && (name.size() == digits || name.substr(digits) == ".partial");
    if (is_cache) ours.push_back(entry->path());
  }
  for (const fs::path& file : ours) fs::remove(file, ignored);
  fs::remove(folder, ignored);  // where it is empty
}

}  // namespace settrain

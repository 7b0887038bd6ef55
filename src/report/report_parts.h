// The parts of a report's data in the order of the page: each run from its folder, then the answers of its model.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/image_records.h"
#include "metrics/entries.h"
#include "src/core/progress_bar.h"
#include "src/studies/compare/compared_run.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// A key that a run does not have at its default.
struct ChangedKey {
  std::string path, value, default_value;  // as YAML
};

/// The changed keys in the order of the configuration. A default that refers to other keys or to the environment is
/// what it comes to in this configuration.
std::vector<ChangedKey> changed_keys(const config::Config& config);

/// The rows of metrics.jsonl, of `names` only: {"epoch": [...], "values": {name: [...]}}, null where a row lacks a
/// value or it is undefined. Throws as read_metrics().
nlohmann::ordered_json curves_json(const std::filesystem::path& metrics_jsonl, int64_t epochs,
                                   const std::vector<std::string>& names);

/// The names of a run's curves: loss, learning rate, and the metrics that it selects on, or its top-K accuracies on the
/// splits of eval.during_training where it selects on none.
std::vector<std::string> curve_names(const config::Config& config);

/// An object for the page: "name", "folder", "setting", "seed", "finished" (whether it has results), "epochs" (asked
/// for), "curves", "results" (a table a checkpoint: "checkpoint", "columns", "rows" of texts), "config" (YAML),
/// "changed", "provenance" (null where it is missing or damaged). `curves` are the names of its curves; where these
/// cannot be read there are none, and `notes` (sentences) say why.
nlohmann::ordered_json run_json(const ComparedRun& run, const std::string& setting,
                                const std::vector<std::string>& curves, nlohmann::ordered_json& notes);

/// The histograms of a checkpoint's set sizes in results.json, of all images of a split: [{"metric", "counts"}]; empty
/// where there are none.
nlohmann::ordered_json set_sizes_json(const ComparedRun& run, const std::string& checkpoint, const std::string& split);

/// How a run answers with sets.
struct AnswerOptions {
  AverageKOptions average_k;
  TopkAccuracyOptions top_k;
  config::Texts select;  // "val/macro_avg5": which of several K is meant
};

struct JudgedSets {
  std::string name;                   // of the metric that judges them: "avg5", "top5"
  at::Tensor in_set;                  // [samples, classes] bool
  at::Tensor probabilities;           // [samples, classes] in [0, 1]: softmax of the scores, or their sigmoid
  bool is_sigmoid = false;            // where eval.average_k_score says so
  std::optional<double> threshold{};  // of average-K: lambda
};

/// The sets of the K that `select` names, else of the largest K: of eval.average_k as average_k_values() decides them;
/// where that is empty, of eval.top_k: the K largest scores, ties going to the lower class. Throws
/// std::invalid_argument where both are empty.
JudgedSets judged_sets(const AnswerOptions& rule, const SplitScores& split, const MetricContext& context);

/// The answers of one run's model to the images of a split.
struct Answers {
  std::string checkpoint;  // "best-val-top5"
  Dataset dataset;
  std::string split;                  // of the dataset
  std::vector<int64_t> train_counts;  // [classes] training labels, noise included
  SplitScores scores;                 // of its images that could be read
  JudgedSets sets;
  std::vector<std::string> organs{};  // [the split's images] what each shows, see organs_of()
};

/// The organ that each image of the split shows, empty where its record names none: [images]. Without any record there
/// is no list.
std::vector<std::string> organs_of(const ImageRecords& records, const Split& split);

/// Evaluates a checkpoint of the run in folder `run` again, on its test split or, where eval.splits has none, on the
/// last of these; `settings` ("key=value") go over its config. Throws what open_trained_run(), load_weights(),
/// score_split() and records_of() throw.
Answers evaluate_answers(const Registries& registries, at::Device device, const std::filesystem::path& run,
                         const std::string& checkpoint, const std::vector<std::string>& settings, ProgressBar& bar);

struct Confusion {
  int64_t truth = 0, predicted = 0;
  int64_t count = 0;  // images of class `truth` whose best class is `predicted`

  bool operator==(const Confusion&) const = default;
};

/// The pairs of different classes that are confused most, at most `limit`: by falling count, then by class. `labels`
/// and `predicted` are of the same images.
std::vector<Confusion> most_confused(const std::vector<int64_t>& labels, const std::vector<int64_t>& predicted,
                                     size_t limit);

/// The superclass of each of `classes`. `superclass_of` [classes].
std::vector<int64_t> to_superclasses(std::vector<int64_t> classes, const std::vector<int64_t>& superclass_of);

/// Samples of a split, by their place in it.
struct ChosenExamples {
  std::vector<int64_t> correct;  // whose set holds the label
  std::vector<int64_t> missed;   // whose set does not
  std::vector<int64_t> large;    // with the largest sets, where not all have the same size
};

/// At most `each` of every kind, none drawn: the right and the missed ones are spread evenly over the split, the large
/// ones go by falling size, then by place. `sizes` [samples] classes in every set, `hits` [samples] whether it holds
/// the label.
ChosenExamples choose_examples(const std::vector<int64_t>& sizes, const std::vector<bool>& hits, size_t each);

/// The whole image `id`, its longer side scaled to `side` pixels where it is longer, as 8-bit pixels. Throws DataError
/// where it cannot be read.
Image thumbnail(const ImageSource& images, int64_t id, int64_t side);

/// A PNG as a URI that holds the picture itself: "data:image/png;base64,...". Throws what encode_png() throws.
std::string picture_uri(const Image& image);

/// An object for the page:
///  - "checkpoint", "split", "images", "sets" (their metric), "threshold" (null for top-K), "probability" ("softmax");
///  - "classes": [name, training images, images, those whose best class is right, those whose set is] a class;
///  - where the data set has records of its images, "organs": {"without", "rows"}, `without` being the images whose
///    organ is not recorded, rows [organ, images, those whose best class is right, those whose set is, mean size of the
///    sets], the most images first;
///  - "confusions" and, where there are superclasses, "superclasses": {"errors", "pairs"}, errors being the images
///    whose best class is wrong, pairs [true, taken for, images, images of the true one] of the most confused;
///  - "examples": by kind ("correct", "missed", "large") objects {"picture", "truth", "truth_probability", "hit",
///    "size", "set"}, set being [class, probability] by falling probability, at most 12; or "examples_missing", a
///    sentence.
nlohmann::ordered_json answers_json(const Answers& answers);

}  // namespace settrain

// Files of scores of labelled images, which calibrate and judge rules.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/split_scores.h"

namespace settrain {

struct ScoreFile {
  SplitScores scores;
  ClassFacts facts;               // as far as the file has them
  std::string model = {};         // SHA-256 of the checkpoint that gave the scores; empty where the file has none
  std::string no_guarantee = {};  // why rules that these images calibrate have no guarantee; empty where they have one
};

/// Writes a safetensors file with `scores`, `labels` and `label_sets`, and the rest and `origin` (such as "run",
/// "checkpoint", "split") as metadata. Throws RunError where it cannot be written.
void write_score_file(const std::filesystem::path& file, const ScoreFile& scores,
                      const std::map<std::string, std::string>& origin);

/// Reads such a file, a safetensors file of another program, or an .npz archive: `scores` [images, classes] floating
/// point (half precision becomes float32), `labels` [images] of integers of any width, signed or not, and, where they
/// are there, `train_counts` and `superclass_of` [classes]; and `label_sets` [images, classes], all labels of images
/// that have several, bool or integers of 0 and 1, in place of `labels` or beside them. Nothing in it is trusted.
/// Throws RunError, naming the file, where it is damaged, lacks scores or labels, or they do not fit together, or an
/// image of `label_sets` has no label, and where a score is not finite. Without `labels` these are the lowest of each
/// image's.
ScoreFile read_score_file(const std::filesystem::path& file);

/// The same for a file that must have `label_sets`.
ScoreFile read_label_set_file(const std::filesystem::path& file);

enum class ScoreScale { kLogits, kProbabilities, kPercentages };

/// The scale that the scores [images, classes] seem to have: probabilities where those of every image are at least 0
/// and sum to 1, percentages where they sum to 100, but for rounding to 4 digits or so; else logits.
ScoreScale scale_of(const at::Tensor& scores);

/// Warnings for a person about scores that are no logits, although their probabilities are a softmax; mostly none.
std::vector<std::string> warnings_of_scale(const ScoreFile& scores, const std::string& file);

/// Throws ConfigError where the two files have scores of different models, of different numbers of classes, or of
/// classes with other names, as far as the files have these facts.
void check_same_model(const std::string& name, const ScoreFile& file, const std::string& other_name,
                      const ScoreFile& other);

}  // namespace settrain

// Sets as JSON: in the files of `settrain predict`, and in the answers of `settrain serve`.
#pragma once

#include <string>
#include <vector>

#include "src/inference/set_maker.h"

namespace settrain {

/// In quotation marks. Paths and names need not be UTF-8, and JSON must be: what is not becomes the character for that.
std::string json_text(const std::string& text);

class SetsAsJson {
 public:
  explicit SetsAsJson(const SetMaker& maker);

  /// {"RULE": {"size": ..., "names": [...], "classes": [...], "probabilities": [...]}, ...} on one line, of [rules]
  /// sets.
  std::string operator()(const std::vector<PredictedSet>& sets) const;

 private:
  std::vector<std::string> rules_, names_;  // as JSON
};

}  // namespace settrain

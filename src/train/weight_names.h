// The names of weights in files of other programs, where they differ from the model's by a prefix or by the head's
// name.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/named_tensors.h"
#include "src/train/transformer_weights.h"

namespace settrain {

/// How the names of batch norm's counters end, which files may lack.
inline constexpr const char* kCounter = ".num_batches_tracked";

/// Whether a tensor is the module's: "fc.weight" is of "fc".
inline bool is_of(const std::string& name, const std::string& module) {
  return name.starts_with(module + ".");
}
inline bool is_of_any(const std::string& name, const std::vector<std::string>& modules) {
  return std::ranges::any_of(modules, [&](const std::string& module) { return is_of(name, module); });
}

/// The same tensors, named as `targets`, the model's, where they have another prefix ("backbone.") or another name of
/// the head. `heads`: the names of the model's; `features`: how many the head takes. What was done is added to `from`,
/// as StateDict::from has it. Throws KeyError, which names the file `path`, where two tensors would have one name, or
/// the file has the model several times.
FileTensors with_names_of_model(FileTensors entries, const NamedTensors& targets, const std::vector<std::string>& heads,
                                int64_t features, const std::string& path, std::string& from);

}  // namespace settrain

// Weights that a run starts from in place of those that were drawn: the key model.pretrained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "models/registry.h"
#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain {

/// The weights that were loaded, for the log and the provenance.
struct Pretrained {
  std::string file, sha256;
  int64_t num_tensors = 0;           // that were copied
  std::vector<std::string> drawn{};  // heads that stayed as they were drawn
  std::string change{};              // what was done to the head that was loaded, if anything
  std::string from{};                // what was done to find them in the file: StateDict::from
  std::string other_head{};          // the file's head where the model's was drawn: "fc.weight [1000, 512] float32"

  std::vector<std::string> head_classes{};  // of the head that was loaded, where the file names them (ModelCard)
  std::vector<std::string> head_keys{};     // their other names

  std::string describe() const;
};

/// Why the head that was loaded may answer with wrong classes: the file names others than those of `data`, or in
/// another order. Else an empty text.
std::string other_classes(const Pretrained& loaded, const Dataset& data);

/// An empty text where model.pretrained is none or a file that is there; else an error's text: what is missing, where
/// it was looked for, and where it comes from.
std::string missing_pretrained(const ModelRegistry& registry, const config::Config& config);

/// Copies the tensors of the file model.pretrained (safetensors or torch.save's, src/formats/weight_file.h), by the
/// model's names, into the freshly drawn `model`; nothing where it is none. A vision transformer's may have the names
/// of other sources, and position embeddings for images of another size (adapt_transformer()). A head whose tensors the
/// file has not, or in other shapes, stays as it was drawn, or is changed as model.pretrained_head says;
/// num_batches_tracked may be missing; other floating-point types are converted.
///
/// Throws KeyError, before anything is copied, that lists other tensors that are missing, too many, or of another
/// shape; also where the file cannot be read, or holds weights that are not finite. It names the model of `registry`,
/// if given, that such tensors fit.
std::optional<Pretrained> load_pretrained(const config::Config& config, Model& model,
                                          const ModelRegistry* registry = nullptr);

}  // namespace settrain

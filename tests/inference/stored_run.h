// A run's folder with checkpoints, without the training.
#pragma once

#include <ATen/ATen.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/config/load.h"
#include "src/inference/trained_run.h"
#include "src/train/experiment_schema.h"
#include "src/train/resume_point.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

inline const Registries& registries() {
  return builtin_registries();
}

inline const std::vector<std::string> kTinyData{"data.name=synthetic", "data.num_classes=3", "data.group_size=1",
                                                "data.train_size=6",   "data.val_size=6",    "data.test_size=6",
                                                "data.image_size=8"};

// A folder with a run's config and checkpoints.
class StoredRun {
 public:
  explicit StoredRun(const std::vector<std::string>& data = kTinyData, int64_t width = 1)
      : folder_(RunFolder::create(files_ / "run", false)) {
    std::vector<std::string> settings{"model.name=resnet8", "model.width=" + std::to_string(width),
                                      "data.workers=1",     "run.threads=1",
                                      "select=[val/top1]",  "eval.top_k=[1]",
                                      "eval.average_k=[]"};
    settings.insert(settings.end(), data.begin(), data.end());
    std::ofstream(folder_.config()) << config::load(experiment_schema(registries()), {}, settings).to_yaml();
  }

  /// A checkpoint in which every weight has one value, or as it was drawn.
  void save(const std::string& name, std::optional<double> weight, int64_t step) const {
    const Experiment run =
        make_experiment(registries(), config::load(experiment_schema(registries()), folder_.config(), {}), at::kCPU);
    Checkpoint checkpoint;
    const NamedTensors weights = state_dict(*run.model);
    {
      at::NoGradGuard no_gradient;
      for (const auto& [tensor_name, tensor] : weights) {
        if (weight) tensor.fill_(*weight);
      }
    }
    checkpoint.add("model.", weights);
    checkpoint.set_integer("state.step", step);
    checkpoint.set_integer("state.epoch", step);
    add_identity(run, checkpoint);
    save_checkpoint(folder_.path() / "checkpoints" / (name + ".safetensors"), checkpoint);
  }

  TrainedRun open(const std::vector<std::string>& checkpoints, const std::vector<std::string>& settings = {}) const {
    return open_trained_run(registries(), folder_.path(), checkpoints, at::kCPU, settings);
  }

  const RunFolder& folder() const { return folder_; }

 private:
  TemporaryFolder files_;
  RunFolder folder_;
};

}  // namespace settrain::test

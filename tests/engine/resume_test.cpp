#include "src/engine/resume.h"

#include <catch2/catch.hpp>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/engine/experiment_schema.h"

namespace settrain {
namespace {

using Catch::Contains;

config::Config configured(const std::vector<std::string>& settings) {
  static Registries registries = [] {
    Registries all;
    register_builtin_datasets(all.datasets);
    register_builtin_models(all.models);
    register_builtin_losses(all.losses);
    register_builtin_metrics(all.metrics);
    return all;
  }();
  return config::load(experiment_schema(registries), {}, settings);
}

Checkpoint made_with(const std::vector<std::string>& settings) {
  Checkpoint checkpoint;
  checkpoint.file = "last.safetensors";
  checkpoint.metadata["config"] = configured(settings).to_yaml();
  return checkpoint;
}

TEST_CASE("a run goes on with its own config, and with one that changes no number", "[fast]") {
  const Checkpoint checkpoint = made_with({"optimizer.lr=0.1"});
  CHECK_NOTHROW(check_same_config(configured({"optimizer.lr=0.1"}), checkpoint, {}));
  CHECK_NOTHROW(check_same_config(configured({"optimizer.lr=0.1", "data.workers=7", "run.dir=elsewhere",
                                              "train.epochs=99", "train.checkpoint_every.steps=5"}),
                                  checkpoint, {}));
}

TEST_CASE("every other changed key is named with both values, and how to allow it", "[fast]") {
  const Checkpoint checkpoint = made_with({"optimizer.lr=0.1"});
  const config::Config changed = configured({"optimizer.lr=0.2", "loss.name=noised_topk"});
  CHECK_THROWS_WITH(check_same_config(changed, checkpoint, {}),
                    Contains("optimizer.lr: 0.1 there, 0.2 now") && Contains("loss.k: no such key there, 5 now") &&
                        Contains("--allow optimizer.lr") && Contains("last.safetensors"));
  CHECK_THROWS_WITH(check_same_config(changed, checkpoint, {{"optimizer.lr"}, false}),
                    !Contains("optimizer.lr") && Contains("loss.name: cross_entropy there, noised_topk now"));
  CHECK_NOTHROW(check_same_config(configured({"optimizer.lr=0.2"}), checkpoint, {{"optimizer.lr"}, false}));
}

TEST_CASE("an allowed key that does not exist is a typing error", "[fast]") {
  const Checkpoint checkpoint = made_with({});
  CHECK_THROWS_WITH(check_same_config(configured({}), checkpoint, {{"optimiser.lr"}, false}),
                    Contains("did you mean 'optimizer.lr'"));
}

TEST_CASE("a key that this version has and the checkpoint has not is a difference", "[fast]") {
  Checkpoint checkpoint = made_with({});
  std::string& yaml = checkpoint.metadata["config"];
  const size_t line = yaml.find("  momentum: 0.9\n");
  REQUIRE(line != std::string::npos);
  yaml.erase(line, std::string("  momentum: 0.9\n").size());
  CHECK_THROWS_WITH(check_same_config(configured({}), checkpoint, {}),
                    Contains("optimizer.momentum: no such key there, 0.9 now"));
}

}  // namespace
}  // namespace settrain

#include "src/inference/trained_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "datasets/decoding/decode_image.h"
#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/inference/results.h"
#include "tests/inference/stored_run.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::kTinyData;
using test::StoredRun;

bool all_weights_are(const Experiment& run, double value) {
  const NamedTensors weights = state_dict(*run.model);
  return std::all_of(weights.begin(), weights.end(),
                     [&](const auto& named) { return at::all(named.second == value).template item<bool>(); });
}

}  // namespace

TEST_CASE("a run is opened with its data and model, and takes the weights of a checkpoint") {
  const StoredRun stored;
  stored.save("last", 2, 20);
  TrainedRun run = stored.open({"last"});
  CHECK(run.select == config::Texts{"val/top1"});
  CHECK(run.experiment.general.select.empty());
  CHECK(run.experiment.dataset.test.size() == 6);
  REQUIRE(run.checkpoints == std::vector{stored.folder().last_checkpoint()});
  CHECK_FALSE(all_weights_are(run.experiment, 2));
  CHECK(load_weights(run.experiment, run.checkpoints.front()).integer("state.epoch") == 20);
  CHECK(all_weights_are(run.experiment, 2));
}

TEST_CASE("without names the checkpoints are the best ones, or the last") {
  const StoredRun stored;
  stored.save("last", 2, 20);
  CHECK(stored.open({}).checkpoints == std::vector{stored.folder().last_checkpoint()});
  stored.save("best-val-top1", 1, 10);
  CHECK(stored.open({}).checkpoints == std::vector{stored.folder().selected_checkpoint("val/top1")});
}

TEST_CASE("what is measured may be set, and not what the run was trained with") {
  const StoredRun stored;
  stored.save("last", 2, 20);
  CHECK(stored.open({}, {"eval.top_k=[2]", "data.eval_batch_size=3"}).experiment.loader.options.eval_batch_size == 3);
  CHECK_THROWS_WITH(stored.open({}, {"optimizer.lr=0.5"}), Contains("optimizer.lr: a run is evaluated as it was"));
}

TEST_CASE("a section may be set to a word where none of its keys changes a number") {
  const StoredRun stored({"data.name=plantnet300k", "data.root=nowhere"});
  CHECK_THROWS_WITH(stored.open({"last"}, {"data.expected=any"}), Contains("has no checkpoint 'last'"));
}

TEST_CASE("a run whose config has become wrong can be opened with a setting that mends it") {
  const test::TemporaryFolder files;
  std::filesystem::create_directory(files / "images");
  std::vector<std::string> settings = kTinyData;
  settings.push_back("eval.threshold_from=" + (files / "images").string());
  const StoredRun stored(settings);
  std::filesystem::remove(files / "images");
  CHECK_THROWS_AS(stored.open({"last"}), ConfigError);
  CHECK_THROWS_WITH(stored.open({"last"}, {"eval.threshold_from=val"}), Contains("has no checkpoint 'last'"));
}

TEST_CASE("a missing checkpoint is reported before the data are read") {
  const StoredRun stored({"data.name=cifar100", "data.root=nowhere"});
  CHECK_THROWS_WITH(stored.open({"best-val-top9"}), Contains("has no checkpoint 'best-val-top9'"));
  CHECK_THROWS_AS(stored.open({}), DataError);
}

TEST_CASE("weights of another model are refused, and the model keeps its own") {
  const StoredRun stored, wide(kTinyData, 2);
  stored.save("last", 2, 20);
  wide.save("last", 3, 20);
  TrainedRun run = stored.open({"last"});
  load_weights(run.experiment, run.checkpoints.front());
  CHECK_THROWS_WITH(load_weights(run.experiment, wide.folder().last_checkpoint()), Contains("model.width: 2 there"));
  CHECK(all_weights_are(run.experiment, 2));
}

TEST_CASE("a run is evaluated with the size and the normalisation that it was trained with, whatever auto is by now") {
  const test::TemporaryFolder files;
  const std::vector<uint8_t> png = encode_png({16, 16, 3, std::vector<uint8_t>(16 * 16 * 3, 9)});
  for (const std::string split : {"train/", "val/", "test/"}) {
    for (const std::string name : {"a", "b"}) files.write(split + name + "/1.png", std::string(png.begin(), png.end()));
  }
  const StoredRun stored({"data.name=image_folder", "data.root=" + files.path().string()});
  stored.save("last", 2, 20);
  const std::filesystem::path file = stored.folder().last_checkpoint();
  CHECK(stored.open({}).experiment.input.height == 16);

  const auto change_card = [&](const std::function<void(ModelCard&)>& change) {
    Checkpoint checkpoint = load_checkpoint(file);
    ModelCard card = model_card_from_text(checkpoint.text("card"), "card");
    change(card);
    checkpoint.metadata["card"] = to_text(card);
    save_checkpoint(file, checkpoint);
  };
  TrainedRun before = stored.open({});
  change_card([](ModelCard& card) {
    card.input_height = card.input_width = 224;
    card.mean = {0.5F, 0.5F, 0.5F};
  });
  TrainedRun run = stored.open({});
  CHECK(run.experiment.input.height == 224);
  CHECK(run.experiment.loader.normalisation.mean[0] == 0.5F);
  CHECK(load_weights(run.experiment, file).integer("state.epoch") == 20);
  CHECK(card_of(run.experiment).input_height == 224);
  CHECK_THROWS_WITH(load_weights(before.experiment, file), Contains("224x224 pixels there, 16x16 now"));
  change_card([](ModelCard& card) { card.input_height = card.input_width = 16; });
  CHECK_THROWS_WITH(load_weights(before.experiment, file), Contains("mean"));

  // An early version took 224 for images in files.
  Checkpoint early = load_checkpoint(file);
  early.metadata.erase("card");
  save_checkpoint(file, early);
  run = stored.open({});
  CHECK(run.experiment.input.height == 224);
  CHECK_NOTHROW(load_weights(run.experiment, file));
}

TEST_CASE("checkpoints of one step are evaluated once, and the last one's weights stay") {
  const StoredRun stored;
  stored.save("first", 0, 10);
  stored.save("second", 2, 20);
  stored.save("third", 0, 10);
  TrainedRun run = stored.open({"first", "second", "third"});
  ProgressBar bar;
  const auto results = evaluate_checkpoints(run.experiment, run.checkpoints, bar);
  REQUIRE(results.size() == 3);
  CHECK(results[2].checkpoint == "third");
  CHECK(results[2].splits[0].result.values[0].value == results[0].splits[0].result.values[0].value);
  CHECK(all_weights_are(run.experiment, 0));
}

}  // namespace settrain

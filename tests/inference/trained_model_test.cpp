#include "src/inference/trained_model.h"

#include <ATen/ATen.h>

#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/model.h"
#include "models/named_tensors.h"
#include "src/core/error.h"
#include "src/inference/export_weights.h"
#include "tests/inference/stored_run.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"

namespace settrain {
namespace {

using Catch::Contains;
using nlohmann::json;
using test::StoredRun;

TrainedModel opened(const std::filesystem::path& file, const std::vector<std::string>& settings = {}) {
  return open_trained_model(test::registries(), file, at::kCPU, settings);
}

at::Tensor answer(const TrainedModel& model) {
  at::manual_seed(1);
  const at::Tensor images = at::randn({2, model.card.channels, model.card.input_height, model.card.input_width});
  return forward(*model.model, images, model.policy).prediction().detach();
}

// The last checkpoint of the run, exported.
std::filesystem::path exported(const StoredRun& run, const std::function<void(Checkpoint&, TextMap&)>& change = {}) {
  Checkpoint checkpoint = load_checkpoint(run.folder().last_checkpoint());
  TextMap more{{"card", checkpoint.text("card")}};
  if (change) change(checkpoint, more);
  const std::filesystem::path file = run.folder().path() / "model.safetensors";
  export_weights(checkpoint, file, more);
  return file;
}

std::filesystem::path with_card(const StoredRun& run, const char* name, const json& value) {
  return exported(run, [&](Checkpoint&, TextMap& more) {
    json card = json::parse(more.at("card"));
    card[name] = value;
    more["card"] = card.dump();
  });
}

std::filesystem::path with_config(const StoredRun& run, const std::string& before, const std::string& after) {
  return exported(run, [&](Checkpoint& checkpoint, TextMap&) {
    std::string& yaml = checkpoint.metadata.at("config");
    yaml.replace(yaml.find(before), before.size(), after);
  });
}

void check_model_refused(const std::filesystem::path& file, const std::string& why) {
  CHECK_THROWS_AS(opened(file), RunError);
  CHECK_THROWS_WITH(opened(file), Contains(file.filename().string()) && Contains(why));
}

}  // namespace

TEST_CASE("a checkpoint says what its model is") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const TrainedModel model = opened(run.folder().last_checkpoint());
  CHECK(model.card.dataset == "synthetic");
  CHECK(model.card.class_names.size() == 3);
  CHECK(model.card.train_counts.size() == 3);
  CHECK(model.card.input_height == 8);
  CHECK(model.card.mean.size() == static_cast<size_t>(model.card.channels));
  CHECK_FALSE(model.card.is_sigmoid);
  CHECK(model.card.head == "linear");
  CHECK_FALSE(model.rules);
  CHECK_FALSE(model.model->is_training());
}

TEST_CASE("probabilities are sigmoids where the loss or average-K takes them for such") {
  const auto is_sigmoid = [](const std::string& setting) {
    std::vector<std::string> settings = test::kTinyData;
    settings.push_back(setting);
    const StoredRun run(settings);
    run.save("last", std::nullopt, 1);
    return opened(run.folder().last_checkpoint()).card.is_sigmoid;
  };
  CHECK(is_sigmoid("loss.name=bce_positive"));
  CHECK(is_sigmoid("eval.average_k_score=sigmoid"));
  CHECK_FALSE(is_sigmoid("loss.name=sparse_top"));
}

TEST_CASE("an exported model answers with the bits of its checkpoint") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const at::Tensor expected = answer(opened(run.folder().last_checkpoint()));
  const TrainedModel model = opened(exported(run));
  CHECK(at::equal(answer(model), expected));
  CHECK(model.card == opened(run.folder().last_checkpoint()).card);
}

TEST_CASE("a scaled head is exported as a linear one, and opened") {
  std::vector<std::string> settings = test::kTinyData;
  settings.insert(settings.end(),
                  {"model.head=scaled", "model.pretrained=trained.safetensors", "model.trainable=[head]"});
  const StoredRun run(settings);
  run.save("last", std::nullopt, 1);
  CHECK(at::allclose(answer(opened(exported(run))), answer(opened(run.folder().last_checkpoint()))));
}

TEST_CASE("what an early file lacks is said, or taken from the run's data") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const ModelCard card = opened(run.folder().last_checkpoint()).card;
  Checkpoint early = load_checkpoint(run.folder().last_checkpoint());
  early.metadata.erase("card");
  save_checkpoint(run.folder().last_checkpoint(), early);
  CHECK(opened(run.folder().last_checkpoint()).card == card);
  std::filesystem::copy_file(run.folder().last_checkpoint(), run.folder().path() / "moved.safetensors");
  check_model_refused(run.folder().path() / "moved.safetensors", "does not lie in its run's folder");
  export_weights(load_checkpoint(run.folder().last_checkpoint()), run.folder().path() / "early.safetensors");
  check_model_refused(run.folder().path() / "early.safetensors", "export the run again");
  write_tensor_file(run.folder().path() / "foreign.safetensors", {{"a", at::ones({2})}});
  check_model_refused(run.folder().path() / "foreign.safetensors", "--model");
  write_tensor_file(run.folder().path() / "scores.safetensors",
                    {{"scores", at::ones({2, 3})}, {"labels", at::zeros({2}, at::kLong)}},
                    {{"checkpoint.sha256", load_checkpoint(run.folder().last_checkpoint()).text("sha256")}});
  check_model_refused(run.folder().path() / "scores.safetensors", "file of scores");
}

TEST_CASE("weights alone answer with the model, the classes and the normalisation that are said") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const TrainedModel trained = opened(run.folder().last_checkpoint());
  TensorMap weights;
  for (const auto& [name, tensor] : state_dict(*trained.model)) weights.emplace("backbone." + name, tensor);
  const std::filesystem::path file = run.folder().path() / "weights.safetensors";
  write_tensor_file(file, weights);
  const auto names = run.folder().path() / "names.txt";
  std::ofstream(names) << "\xEF\xBB\xBF"
                          "first\r\n\nsecond class\n third \n";

  const WeightsAlone all{.model = "resnet8", .classes = names, .normalisation = "none", .input_size = 8};
  const auto open = [&](const WeightsAlone& alone, const std::filesystem::path& of = {}) {
    return open_trained_model(test::registries(), of.empty() ? file : of, at::kCPU, {"model.width=1"}, alone);
  };
  const TrainedModel model = open(all);
  CHECK(model.card.class_names == std::vector<std::string>{"first", "second class", "third"});
  CHECK(at::equal(answer(model), answer(trained)));
  CHECK_FALSE(model.rules);
  CHECK_FALSE(model.model->is_training());

  // As a run of image files, they ignore the orientation of JPEGs unless that is asked for.
  CHECK_FALSE(decode_options(model).apply_orientation);
  CHECK(decode_options(open_trained_model(test::registries(), file, at::kCPU,
                                          {"model.width=1", "data.apply_orientation=true"}, all))
            .apply_orientation);

  // The file says whether the head has a bias.
  TensorMap unbiased = weights;
  unbiased.erase("backbone.fc.bias");
  const std::filesystem::path unbiased_file = run.folder().path() / "unbiased.safetensors";
  write_tensor_file(unbiased_file, unbiased);
  const at::Tensor bias = weights.at("backbone.fc.bias");
  CHECK(at::allclose(answer(open(all, unbiased_file)), answer(trained) - bias));
  const auto open_with = [&](const std::string& setting) {
    return open_trained_model(test::registries(), unbiased_file, at::kCPU, {"model.width=1", setting}, all);
  };
  CHECK_THROWS_WITH(open_with("model.head_bias=true"), Contains("model.head_bias: false"));
  CHECK_THROWS_WITH(open_with("model.pretrained_head=draw"), Contains("model.pretrained_head"));

  // Neither which normalisation nor which classes there are can be guessed; the size can.
  const auto with = [&](const std::function<void(WeightsAlone&)>& change) {
    WeightsAlone alone = all;
    change(alone);
    return alone;
  };
  CHECK(open(with([](WeightsAlone& alone) { alone.input_size = {}; })).card.input_height == 32);
  CHECK(open(with([](WeightsAlone& alone) { alone.normalisation = "imagenet"; })).card.mean[0] == 0.485F);
  CHECK_THROWS_WITH(open(with([](WeightsAlone& alone) { alone.normalisation = ""; })), Contains("--normalisation"));
  CHECK_THROWS_WITH(open(with([](WeightsAlone& alone) { alone.classes = ""; })), Contains("--classes"));
  CHECK_THROWS_WITH(open(with([](WeightsAlone& alone) { alone.model = ""; })), Contains("--model"));
  CHECK_THROWS_WITH(open(with([](WeightsAlone& alone) { alone.model = "resnet80"; })), Contains("resnet80"));
  CHECK_THROWS_WITH(open(with([](WeightsAlone& alone) { alone.model = "resnet20"; })),
                    Contains("weights.safetensors") && Contains("missing"));
  const auto names_twice = run.folder().path() / "twice.txt";
  std::ofstream(names_twice) << "a\nb\na\n";
  const std::string log = test::logged([&] { open(with([&](WeightsAlone& alone) { alone.classes = names_twice; })); });
  CHECK_THAT(log, Contains("twice.txt") && Contains("0 and 2"));
  std::ofstream(names, std::ios::app) << "a fourth\n";
  CHECK_THROWS_WITH(open(all), Contains("4 classes") && Contains("names.txt") && Contains("fc.weight [3, "));
  CHECK_THROWS_AS(open(with([](WeightsAlone& alone) { alone.classes = "nowhere.txt"; })), DataError);
  // A file with a card accepts no --model.
  CHECK_THROWS_WITH(open(all, run.folder().last_checkpoint()), Contains("last.safetensors") && Contains("--model"));
}

TEST_CASE("a model file that does not fit together is refused") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const json names = std::vector<std::string>(4, "x"), counts = std::vector<int>(4, 1);
  check_model_refused(exported(run,
                               [&](Checkpoint&, TextMap& more) {
                                 json card = json::parse(more.at("card"));
                                 card["classes"] = names;
                                 card["train_images"] = counts;
                                 card["superclasses"] = card["superclass_of"] = card["class_keys"] = card["taxonomy"] =
                                     json::array();
                                 more["card"] = card.dump();
                               }),
                      "fc.weight");
  check_model_refused(with_card(run, "classes", {"a", "b"}), "2 classes");
  check_model_refused(with_card(run, "input", {16, 16}), "an input of 16 x 16 pixels");
  check_model_refused(with_card(run, "head", "normalised"), "the head normalised");
  check_model_refused(exported(run, [](Checkpoint&, TextMap& more) { more["card"] = "{"; }), "is not valid JSON");
  check_model_refused(exported(run, [](Checkpoint&, TextMap& more) { more["rules"] = "{}"; }), "rules");
  check_model_refused(exported(run,
                               [](Checkpoint& checkpoint, TextMap&) {
                                 checkpoint.tensors.at("model.fc.bias").fill_(std::numeric_limits<float>::quiet_NaN());
                               }),
                      "fc.bias are not finite");
}

TEST_CASE("a model file's configuration is not trusted") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  check_model_refused(with_config(run, "width: 1\n", "width: 1000\n"), "the file holds fewer");
  check_model_refused(with_config(run, "seed:", "sead:"), "sead");
  check_model_refused(with_config(run, "name: resnet8", "name: ${env:HOME}"), "refers to what is outside");
  check_model_refused(with_config(run, "seed:", "extends: /etc/passwd\nseed:"), "extends another file");
  check_model_refused(with_config(run, "seed:", "\x1B[2J"), "its configuration");
}

TEST_CASE("settings of a trained model are those of eval") {
  const StoredRun run;
  run.save("last", std::nullopt, 1);
  const auto file = run.folder().last_checkpoint();
  CHECK(opened(file, {"data.eval_batch_size=3"}).loader.options.resolved_eval_batch_size() == 3);
  CHECK(opened(file, {"run.threads=1"}).config.get<int64_t>("run.threads") == 1);
  CHECK_THROWS_AS(opened(file, {"optimizer.lr=1"}), ConfigError);
  CHECK_THROWS_WITH(opened(file, {"eval.crops=ten"}), Contains("eval.crops"));
}

}  // namespace settrain

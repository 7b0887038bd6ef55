#include <vector>

#include "src/core/error.h"
#include "src/formats/weight_file.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using Names = std::vector<std::string>;

Contents holding(const std::vector<KeyPath>& paths) {
  Contents contents;
  for (const KeyPath& path : paths)
    contents.tensors.push_back({.path = path, .shape = {}, .stride = {}, .storage = {}});
  return contents;
}

Names names_of(const Contents& contents) {
  Names names;
  for (const auto& entry : find_state_dict(contents, "'file'").tensors) names.push_back(entry.first);
  return names;
}

Names names_in(const std::vector<KeyPath>& paths) {
  return names_of(holding(paths));
}

std::string from(const std::vector<KeyPath>& paths) {
  return find_state_dict(holding(paths), "'file'").from;
}

}  // namespace

TEST_CASE("a model's tensors are found at the top or below their usual keys") {
  CHECK(names_in({{"a.weight"}, {"b.weight"}}) == Names{"a.weight", "b.weight"});
  CHECK(names_in({{"state_dict", "a"}, {"best_acc1"}}) == Names{"a"});
  CHECK(names_in({{"model", "a"}, {"optimizer", "state", 0, "momentum_buffer"}}) == Names{"a"});
  CHECK(names_in({{"model_ema", "a"}, {"model", "b"}}) == Names{"b"});
  CHECK(names_in({{"net", "a"}, {"optimizer", "state", 0, "momentum_buffer"}}) == Names{"a"});
  CHECK(names_in({{"net", "a"}, {"net", "b"}, {"best_accuracy"}}) == Names{"a", "b"});
  CHECK(names_in({{"a"}, {"b"}, {"extra", "c"}}) == Names{"a", "b"});
  CHECK(from({{"state_dict", "a"}}) == "its key state_dict");
  CHECK(from({{"a"}}).empty());
}

TEST_CASE("a model's tensors are found below nested keys") {
  CHECK(names_in({{"state_dict", "model", "a"}}) == Names{"a"});
  CHECK(names_in({{"model", "state_dict", "a"}, {"optimizer", "state", 0, "momentum_buffer"}}) == Names{"a"});
  CHECK(names_in({{"model", "model_state_dict", "state_dict", "a"}, {"epoch"}}) == Names{"a"});
  CHECK(names_in({{"model", "epoch"}, {"model", "state_dict", "a"}}) == Names{"a"});
  CHECK(names_in({{"model", "model", "a"}, {"model", "state_dict", "b"}}) == Names{"b"});
  CHECK(from({{"model", "state_dict", "a"}}) == "its key model.state_dict");
  CHECK_THROWS_WITH(names_in({{"model", 0, "a"}}), Contains("no tensors of a model"));
  CHECK_THROWS_WITH(names_in({{"model", "other", "a"}}), Contains("no tensors of a model"));
}

TEST_CASE("it is an error where no tensors are a model's, or it is open which") {
  CHECK_THROWS_WITH(names_in(std::vector<KeyPath>{}), Contains("'file' holds no tensors of a model"));
  CHECK_THROWS_WITH(names_in({{"optimizer", "state", 0, "momentum_buffer"}}), Contains("no tensors of a model"));
  Contents opaque;
  opaque.leaves.push_back({{"weights"}, Opaque{"my.Weights"}});
  CHECK_THROWS_WITH(names_of(opaque), Contains("my.Weights"));
  CHECK_THROWS_WITH(names_in({{"generator", "a"}, {"critic", "a"}}), Contains("\"critic\", \"generator\""));
  CHECK_THROWS_AS(names_in(std::vector<KeyPath>{}), RunError);
}

TEST_CASE("a key chooses among several models of a file") {
  const auto below = [](const Contents& contents, const std::string& key) {
    Names names;
    for (const auto& entry : find_state_dict(contents, "'file'", key).tensors) names.push_back(entry.first);
    return names;
  };
  const Contents contents = holding({{"state_dict", "a"}, {"state_dict_ema", "module.b"}, {"nets", "teacher", "c"}});
  CHECK(below(contents, "") == Names{"a"});
  CHECK(below(contents, "state_dict_ema") == Names{"b"});
  CHECK(below(contents, "nets.teacher") == Names{"c"});
  CHECK(find_state_dict(contents, "'file'", "state_dict_ema").from ==
        "its key state_dict_ema, without the prefix module.");
  CHECK_THROWS_WITH(below(contents, "ema"), Contains("'file'") && Contains("ema") && Contains("nets.teacher") &&
                                                Contains("state_dict, state_dict_ema"));
  CHECK_THROWS_WITH(below(holding({{"a"}}), "ema"), Contains("ema"));

  Contents checkpoint = holding({{"model.a"}, {"ema.b"}, {"optimizer.momentum.a"}});
  checkpoint.metadata["kind"] = kCheckpointKind;
  CHECK(below(checkpoint, "model") == Names{"a"});
  CHECK(below(checkpoint, "ema") == Names{"b"});
  CHECK_THROWS_WITH(below(checkpoint, "optimizer"), Contains("model") && Contains("ema"));
}

TEST_CASE("prefixes of wrappers are removed where all names have them") {
  CHECK(names_in({{"module.a"}, {"module.b"}}) == Names{"a", "b"});
  CHECK(names_in({{"_orig_mod.module.a"}}) == Names{"a"});
  CHECK(names_in({{"module.a"}, {"b"}}) == Names{"b", "module.a"});
  CHECK(names_in({{"state_dict", "model.a"}, {"state_dict", "model.b"}}) == Names{"a", "b"});
  CHECK(names_in({{"n_averaged"}, {"module.a"}}) == Names{"a"});
  CHECK(from({{"state_dict", "module.a"}}) == "its key state_dict, without the prefix module.");
}

TEST_CASE("old names of DenseNets and vision transformers are renewed, and no others") {
  const std::string block = "encoder.layers.encoder_layer_11.";
  CHECK(names_in({{block + "mlp.linear_1.weight"}, {block + "mlp.linear_2.bias"}}) ==
        Names{block + "mlp.0.weight", block + "mlp.3.bias"});
  CHECK(names_in({{"x." + block + "mlp.linear_1.weight"}}) == Names{"x." + block + "mlp.0.weight"});
  CHECK(names_in({{"features.denseblock1.denselayer12.norm.1.weight"}}) ==
        Names{"features.denseblock1.denselayer12.norm1.weight"});
  CHECK(names_in({{"features.denseblock1.denselayer1.conv.2.weight"}}) ==
        Names{"features.denseblock1.denselayer1.conv2.weight"});
  const Names others{
      "denselayer",       "denselayer1.norm.3.weight", "denselayer1.norm1.weight", "features.norm.1.weight",
      "x.denselayer1.fc", "x.mlp.linear_1.weight"};
  std::vector<KeyPath> paths;
  for (const std::string& name : others) paths.push_back({name});
  CHECK(names_in(paths) == others);
  CHECK_THROWS_WITH(names_in({{"denselayer1.norm.1.weight"}, {"denselayer1.norm1.weight"}}),
                    Contains("two of its tensors would be named \"denselayer1.norm1.weight\""));
}

TEST_CASE("of a checkpoint of settrain come the weights that were evaluated") {
  Contents contents = holding({{"model.a"}, {"optimizer.momentum.a"}, {"state.epoch"}});
  contents.metadata["kind"] = kCheckpointKind;
  CHECK(names_of(contents) == Names{"a"});
  contents.tensors.push_back({.path = {"ema.b"}, .shape = {}, .stride = {}, .storage = {}});
  CHECK(names_of(contents) == Names{"b"});
}

}  // namespace settrain

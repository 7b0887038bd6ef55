#include "src/checkpoint/checkpoint.h"

#include <ATen/ATen.h>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

namespace {

std::string message_of(const Checkpoint& checkpoint, const Tensors& targets) {
  try {
    checkpoint.copy_into("model.", targets);
  } catch (const RunError& error) {
    return error.what();
  }
  return "no RunError";
}

}  // namespace

TEST_CASE("A checkpoint comes back from its file") {
  const test::TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.add("model.", Tensors{{"fc.weight", at::arange(6, at::kFloat).view({2, 3}).requires_grad_()}});
  checkpoint.set_integer("state.step", 123456789012345);
  checkpoint.set_real("state.loss_sum", 0.1);
  checkpoint.metadata["config"] = "seed: 4\n";
  folder.write("metrics.jsonl", std::string(80, 'x'));
  checkpoint.add_log(folder / "metrics.jsonl", 77);
  save_checkpoint(folder / "last.safetensors", checkpoint);

  const Checkpoint loaded = load_checkpoint(folder / "last.safetensors");
  CHECK(at::equal(loaded.tensors.at("model.fc.weight"), at::arange(6, at::kFloat).view({2, 3})));
  CHECK(loaded.integer("state.step") == 123456789012345);
  CHECK(loaded.real("state.loss_sum") == 0.1);
  CHECK(loaded.text("config") == "seed: 4\n");
  CHECK(loaded.text("logs.metrics.jsonl") == "77");
  CHECK(loaded.log_size("elsewhere/metrics.jsonl") == 77);
  CHECK(loaded.log_problem(folder / "metrics.jsonl").empty());
  folder.write("metrics.jsonl", std::string(77, 'y'));
  CHECK(loaded.log_problem(folder / "metrics.jsonl") == "holds something else than it did");
  folder.write("metrics.jsonl", std::string(76, 'x'));
  CHECK(loaded.log_problem(folder / "metrics.jsonl") == "has 76 bytes, and had 77");
  CHECK(loaded.log_problem("elsewhere/metrics.jsonl") == "is missing");
  CHECK(loaded.text("kind") == "settrain checkpoint");
  CHECK(loaded.text("format_version") == "1");
  CHECK(loaded.file == folder / "last.safetensors");
}

TEST_CASE("Another kind of file and another format version are refused with what differs") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "a", {}, {{"format", "pt"}});
  CHECK_THROWS_WITH(load_checkpoint(folder / "a"), Contains("expected kind 'settrain checkpoint', got none"));
  write_tensor_file(folder / "a", {}, {{"kind", "weights"}});
  CHECK_THROWS_WITH(load_checkpoint(folder / "a"), Contains("got 'weights'; the file is not a checkpoint"));
  write_tensor_file(folder / "a", {}, {{"kind", "settrain checkpoint"}, {"format_version", "2"}});
  CHECK_THROWS_WITH(load_checkpoint(folder / "a"), Contains("expected format_version '1', got '2'"));
  CHECK_THROWS_WITH(load_checkpoint(folder / "none"), Contains("none': No such file or directory"));
}

TEST_CASE("A changed bit is damage, wherever it is") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "last.safetensors";
  Checkpoint checkpoint;
  checkpoint.add("model.", Tensors{{"fc.weight", at::arange(6, at::kFloat)}});
  checkpoint.metadata["config"] = "seed: 4\n";
  save_checkpoint(file, checkpoint);
  const std::string whole = test::read_file(file);
  for (const std::string_view part : {"fc.weight", "seed: 4", "[6]"}) {
    std::string damaged = whole;
    damaged[whole.find(part) + 1] ^= 1;
    folder.write("last.safetensors", damaged);
    CHECK_THROWS_AS(load_checkpoint(file), RunError);
  }
  std::string damaged = whole;
  damaged.back() ^= 1;
  folder.write("last.safetensors", damaged);
  CHECK_THROWS_WITH(load_checkpoint(file), Contains("expected sha256") && Contains("the file is damaged"));
}

TEST_CASE("Entries that are not there, or of another kind, are named") {
  Checkpoint checkpoint;
  checkpoint.file = "run/last.safetensors";
  checkpoint.tensors["state.step"] = at::ones({1}, at::kLong);
  checkpoint.tensors["state.rng"] = at::ones({});
  CHECK_THROWS_WITH(checkpoint.integer("state.epoch"),
                    Contains("'run/last.safetensors'") && Contains("'state.epoch' of int64, got none"));
  CHECK_THROWS_WITH(checkpoint.integer("state.step"), Contains("got Long [1]"));
  CHECK_THROWS_WITH(checkpoint.integer("state.rng"), Contains("got Float []"));
  CHECK_THROWS_WITH(checkpoint.real("state.rng"), Contains("of float64, got Float []"));
  checkpoint.metadata["logs.log"] = "7x";
  CHECK_THROWS_WITH(checkpoint.log_size("log"), Contains("'logs.log', got '7x'"));
  CHECK_THROWS_WITH(checkpoint.text("config"), Contains("has no metadata 'config'"));
}

TEST_CASE("Copying keeps the targets' memory and layout") {
  Checkpoint checkpoint;
  const at::Tensor value = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  checkpoint.tensors = {{"model.conv.weight", value}, {"optimizer.momentum.conv.weight", value}};
  const at::Tensor target = at::zeros({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const void* memory = target.data_ptr();
  checkpoint.copy_into("model.", Tensors{{"conv.weight", target}});
  CHECK(at::equal(target, value));
  CHECK(target.data_ptr() == memory);
  CHECK(target.is_contiguous(at::MemoryFormat::ChannelsLast));
  CHECK(target.is_leaf());
}

TEST_CASE("The layout of tensors in memory changes nothing in the file") {
  const test::TemporaryFolder folder;
  Checkpoint checkpoint;
  const at::Tensor value = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  checkpoint.tensors = {{"model.a", value}, {"model.b", value.transpose(0, 1)}};
  save_checkpoint(folder / "plain", checkpoint);
  for (auto& [name, tensor] : checkpoint.tensors) tensor = tensor.contiguous(at::MemoryFormat::ChannelsLast);
  save_checkpoint(folder / "channels_last", checkpoint);
  CHECK(test::read_file(folder / "plain") == test::read_file(folder / "channels_last"));
  CHECK(at::equal(load_checkpoint(folder / "channels_last").tensors.at("model.a"), value));
}

TEST_CASE("All entries that do not fit are listed, and nothing is copied") {
  Checkpoint checkpoint;
  checkpoint.file = "last.safetensors";
  checkpoint.tensors = {{"model.a", at::ones({2})},
                        {"model.b", at::ones({2, 3})},
                        {"model.c", at::ones({2}, at::kLong)},
                        {"model.old", at::ones({1})},
                        {"state.step", at::ones({})}};
  const at::Tensor a = at::zeros({2});
  const std::string message =
      message_of(checkpoint, {{"a", a}, {"b", at::zeros({2, 4})}, {"c", at::zeros({2})}, {"new1", a}, {"new2", a}});
  CHECK_THAT(message, Contains("'last.safetensors' does not fit"));
  CHECK_THAT(message, Contains("\n  missing: model.new1, model.new2"));
  CHECK_THAT(message, Contains("\n  too many: model.old\n"));
  CHECK_THAT(message, Contains("model.b (expected Float [2, 4], got Float [2, 3])"));
  CHECK_THAT(message, Contains("model.c (expected Float [2], got Long [2])"));
  CHECK_THAT(message, !Contains("state.step"));
  CHECK(at::equal(a, at::zeros({2})));
}

TEST_CASE("A long list is cut with its count") {
  Checkpoint checkpoint;
  Tensors targets;
  for (int i = 0; i < 20; ++i) targets.emplace_back(std::to_string(i), at::zeros({1}));
  CHECK_THAT(message_of(checkpoint, targets), Contains("missing: model.0, ") && Contains(" and 12 more"));
}

#include "src/inference/export_weights.h"

#include <ATen/ATen.h>

#include "src/checkpoint/checkpoint.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

Checkpoint checkpoint() {
  Checkpoint checkpoint;
  checkpoint.tensors["model.fc.weight"] = at::arange(6.0).view({2, 3});
  checkpoint.tensors["model.bn.num_batches_tracked"] = at::scalar_tensor(7, at::kLong);
  checkpoint.tensors["optimizer.momentum.fc.weight"] = at::zeros({2, 3});
  checkpoint.set_integer("state.epoch", 3);
  checkpoint.metadata["config"] = "seed: 4\n";
  return checkpoint;
}

}  // namespace

TEST_CASE("the weights alone are written, by their own names") {
  const test::TemporaryFolder folder;
  save_checkpoint(folder / "last.safetensors", checkpoint());
  const ExportedWeights done = export_weights(load_checkpoint(folder / "last.safetensors"), folder / "out.safetensors");
  CHECK(done.num_tensors == 2);
  CHECK(done.num_elements == 7);
  CHECK(done.epoch == 3);
  CHECK_FALSE(done.averaged);
  const Safetensors written = read_safetensors(folder / "out.safetensors");
  REQUIRE(written.tensors.size() == 2);
  CHECK(at::equal(written.tensors.at("fc.weight"), at::arange(6.0).view({2, 3})));
  CHECK(written.tensors.at("bn.num_batches_tracked").item<int64_t>() == 7);
  CHECK(written.metadata.at("format") == "pt");
  CHECK(written.metadata.at("config") == "seed: 4\n");
  CHECK(written.metadata.at("checkpoint.sha256").size() == 64);
}

TEST_CASE("where weights were averaged, the averages are what is written") {
  const test::TemporaryFolder folder;
  Checkpoint averaged = checkpoint();
  averaged.tensors["ema.fc.weight"] = at::ones({2, 3});
  save_checkpoint(folder / "last.safetensors", averaged);
  CHECK(export_weights(load_checkpoint(folder / "last.safetensors"), folder / "out.safetensors").averaged);
  const Safetensors written = read_safetensors(folder / "out.safetensors");
  REQUIRE(written.tensors.size() == 1);
  CHECK(at::equal(written.tensors.at("fc.weight"), at::ones({2, 3})));
}

TEST_CASE("LoRA's products are added to the weights, or the file is refused by name where they do not fit") {
  const test::TemporaryFolder folder;
  Checkpoint adapted = checkpoint();
  adapted.tensors["model.attn.qkv.weight"] = at::ones({6, 2});
  adapted.tensors["model.attn.lora.qkv.up"] = at::full({6, 1}, 3.0F);
  adapted.tensors["model.attn.lora.qkv.down"] = at::ones({1, 2});
  adapted.tensors["model.attn.lora.qkv.scale"] = at::full({}, 2.0F);
  const auto write = [&](const Checkpoint& from) {
    save_checkpoint(folder / "last.safetensors", from);
    return export_weights(load_checkpoint(folder / "last.safetensors"), folder / "out.safetensors").num_tensors;
  };
  CHECK(write(adapted) == 3);
  CHECK(at::equal(read_safetensors(folder / "out.safetensors").tensors.at("attn.qkv.weight"), at::full({6, 2}, 7.0F)));

  for (const char* name :
       {"model.attn.lora.qkv.down", "model.attn.lora.qkv.up", "model.attn.lora.qkv.scale", "model.attn.qkv.weight"}) {
    CAPTURE(name);
    Checkpoint damaged = adapted;
    damaged.tensors.erase(name);
    CHECK_THROWS_AS(write(damaged), RunError);
    CHECK_THROWS_WITH(write(damaged), Catch::Contains("last.safetensors") && Catch::Contains("attn."));
    for (const at::Tensor& other : {at::ones({5}), at::ones({4, 4}), at::ones({1, 1, 1}), at::ones({1, 2, 3})}) {
      damaged.tensors[name] = other;
      CHECK_THROWS_AS(write(damaged), RunError);
      CHECK_THROWS_WITH(write(damaged), Catch::Contains("last.safetensors") && Catch::Contains("attn.lora.qkv"));
    }
  }
  for (const char* name : {"model.attn.lora.qkv", "model.attn.lora.qkv.other", "model.attn.lora.proj.up"}) {
    CAPTURE(name);
    Checkpoint strange = adapted;
    strange.tensors[name] = at::ones({6, 1});
    CHECK_THROWS_WITH(write(strange), Catch::Contains("last.safetensors") && Catch::Contains("attn.lora."));
  }
}

TEST_CASE("a scaled head is written as the linear one with its scores") {
  const test::TemporaryFolder folder;
  Checkpoint scaled = checkpoint();
  scaled.tensors["model.fc.bias"] = at::tensor({1.0F, 1.0F});
  scaled.tensors["model.fc.factor"] = at::tensor({2.0F, 3.0F});
  save_checkpoint(folder / "last.safetensors", scaled);
  CHECK(export_weights(load_checkpoint(folder / "last.safetensors"), folder / "out.safetensors").num_tensors == 3);
  const Safetensors written = read_safetensors(folder / "out.safetensors");
  CHECK_FALSE(written.tensors.contains("fc.factor"));
  CHECK(
      at::equal(written.tensors.at("fc.weight"), at::arange(6.0).view({2, 3}) * at::tensor({2.0F, 3.0F}).view({2, 1})));
  CHECK(at::equal(written.tensors.at("fc.bias"), at::tensor({2.0F, 3.0F})));

  scaled.tensors["model.fc.weight"] = at::arange(6.0).view({2, 3, 1, 1});  // of a head that is a convolution
  save_checkpoint(folder / "other.safetensors", scaled);
  export_weights(load_checkpoint(folder / "other.safetensors"), folder / "other_out.safetensors");
  const at::Tensor weight = read_safetensors(folder / "other_out.safetensors").tensors.at("fc.weight");
  CHECK(at::equal(weight, written.tensors.at("fc.weight").view({2, 3, 1, 1})));
}

TEST_CASE("a checkpoint that is no checkpoint is refused, and nothing is written") {
  const test::TemporaryFolder folder;
  write_tensor_file(folder / "plain.safetensors", {{"a", at::ones({2})}});
  CHECK_THROWS_AS(export_weights(load_checkpoint(folder / "plain.safetensors"), folder / "out.safetensors"), RunError);
  CHECK_FALSE(exists(folder / "out.safetensors"));
}

}  // namespace settrain

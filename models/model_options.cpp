#include "models/model_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/cost.h"
#include "models/model.h"
#include "src/config/schema.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {

config::Keys ModelOptions::keys() {
  return {
      config::key("head", &ModelOptions::head, Head::kLinear,
                  "The last layer: linear; normalised, whose scores are cosines between features and class weights "
                  "(needed by losses with margins); two_head, two linear layers on the same features, for losses "
                  "that also train a multi-label head; or scaled, a linear layer that stays as it is in "
                  "model.pretrained, with a factor for each class' score that is trained (LWS of Kang et al., ICLR "
                  "2020).",
                  {{"linear", Head::kLinear},
                   {"normalised", Head::kNormalised},
                   {"two_head", Head::kTwoHead},
                   {"scaled", Head::kScaled}}),
      config::key("head_bias", &ModelOptions::head_bias, true,
                  "Whether linear heads have a bias; a normalised one has none."),
      config::key(
          "pretrained", &ModelOptions::pretrained, kNone,
          "Pretrained weights: none, for random initialisation; or a file with torchvision's or "
          "timm's names, of transformers also with those of DINOv2, OpenCLIP or Hugging Face, in safetensors or "
          "torch.save's format. A head for another number of classes is initialised "
          "randomly; one of another kind for as many is refused, unless model.pretrained_head is draw. The "
          "file is read only when a run starts.")
          .not_empty(),
      config::key("pretrained_key", &ModelOptions::pretrained_key, kAuto,
                  "The key of the file below which the weights lie, where it holds several: state_dict_ema, the "
                  "averaged ones of timm's checkpoints; a.b of a dict within a dict. auto: state_dict, "
                  "model_state_dict, model, or the only dict of tensors.")
          .not_empty(),
      config::key(
          "pretrained_head", &ModelOptions::pretrained_head, kKeep,
          "The head of model.pretrained: keep; draw, initialise it randomly (cRT of Kang et al., ICLR 2020); or "
          "tau_normalised, divide each class' weights by their Euclidean norm to the power model.head_tau and "
          "drop the bias (from the same paper).",
          {{"keep", kKeep}, {"draw", kDraw}, {"tau_normalised", kTauNormalised}}),
      config::key("head_tau", &ModelOptions::head_tau, 1.0,
                  "The power of pretrained_head: tau_normalised; 0 changes no weight, 1 makes all norms 1.")
          .at_least(0),
      config::key("sync_batch_norm", &ModelOptions::sync_batch_norm, false,
                  "Of several processes: batch norm takes mean and variance of the batches of all processes together, "
                  "where each has one, not of each batch by itself. For small batches; the results then depend on the "
                  "number of processes."),
      config::key(
          "trainable", &ModelOptions::trainable, config::Texts{kBody, kHead},
          "The parts that are trained: head; body, all but the head; norm, the body's normalisation layers; "
          "adapter, see model.adapter.kind; and parts of the body by their names or patterns of them in quotes, such as layer4, blocks.11, \"*.bias\". "
          "Parts without trained parameters stay in evaluation mode: batch norms keep their statistics. "
          "`settrain import FILE` shows names.")
          .distinct()
          .not_empty()};
}

config::Keys AdapterOptions::keys() {
  return {
      config::key("adapter.kind", &AdapterOptions::kind, kNone,
                  "What is trained in place of the network's own weights, which stay as they are in "
                  "model.pretrained; model.trainable then is [adapter, head] by default. lora: products of two narrow "
                  "matrices beside the weights of the attention, which `settrain export` and ONNX files add to them "
                  "(Hu et al., ICLR 2022). adaptformer: a small MLP beside that of each block (Chen et al., NeurIPS "
                  "2022).",
                  {{"none", kNone}, {"lora", kLora}, {"adaptformer", kAdaptFormer}}),
      config::key("adapter.rank", &AdapterOptions::rank, 8,
                  "Rank of LoRA's products, or hidden units of AdaptFormer's MLP. Shi et al. (LIFT, ICML 2024) "
                  "take the power of 2 up to the number of classes divided by twice that of blocks.")
          .at_least(1)
          .at_most(4096),
      config::key("adapter.alpha", &AdapterOptions::alpha, 8.0,
                  "LoRA: its products are multiplied by this divided by the rank.")
          .above(0),
      config::key("adapter.layers", &AdapterOptions::layers, config::Texts{kQkv, kProj},
                  "LoRA: the layers of the attention that have one; qkv makes queries, keys and values, proj is the "
                  "one behind.")
          .one_of({kQkv, kProj})
          .distinct()
          .not_empty(),
      config::key("adapter.scale", &AdapterOptions::scale, 0.1, "AdaptFormer: the factor of what it adds.").above(0)};
}

AdapterOptions AdapterOptions::read(const config::Config& config) {
  return config.has(kKey) ? config.read<AdapterOptions>("model") : AdapterOptions{};
}

config::Texts trained_parts(const config::Config& config) {
  const config::Entry& entry = config.at("model.trainable");
  if (entry.origin.is_default() && AdapterOptions::read(config).kind != AdapterOptions::kNone) {
    return {ModelOptions::kAdapter, ModelOptions::kHead};
  }
  return config.get<config::Texts>("model.trainable");
}

bool ModelOptions::trains(const char* part) const {
  return std::ranges::count(trainable, part) > 0;
}

bool ModelOptions::trains_below_head() const {
  return std::ranges::any_of(trainable, [](const std::string& part) { return part != kHead; });
}

void check_images(bool fit, std::string_view model, std::string_view images, const ModelContext& data) {
  if (fit) return;
  throw KeyError("model.name",
                 fmt::format("{} takes {}, the data's are {}x{}", model, images, data.height, data.width));
}

namespace {

void check_adapter(const config::Config& config, const ModelOptions& options) {
  if (!config.has(AdapterOptions::kKey)) return;
  const auto adapter = AdapterOptions::read(config);
  const bool is_lora = adapter.kind == AdapterOptions::kLora, is_there = adapter.kind != AdapterOptions::kNone;
  config.refuse_unread("model.adapter.rank", is_there, "model.adapter.kind: lora or adaptformer");
  config.refuse_unread("model.adapter.alpha", is_lora, "model.adapter.kind: lora");
  config.refuse_unread("model.adapter.layers", is_lora, "model.adapter.kind: lora");
  config.refuse_unread("model.adapter.scale", adapter.kind == AdapterOptions::kAdaptFormer,
                       "model.adapter.kind: adaptformer");
  if (!is_there) return;
  if (options.trains(ModelOptions::kBody)) {
    config.fail(AdapterOptions::kKey,
                "an adapter is trained in place of a body that model.trainable trains wholly; set model.trainable: "
                "[adapter, head]");
  }
  if (!options.trains(ModelOptions::kAdapter)) {
    config.fail(AdapterOptions::kKey, "an adapter that is not trained adds zeros; name adapter in model.trainable");
  }
}

}  // namespace

void model_rule(const config::Config& config) {
  auto options = config.read<ModelOptions>("model");
  options.trainable = trained_parts(config);
  const bool has_file = options.pretrained != ModelOptions::kNone;
  if (!has_file && options.head == ModelOptions::Head::kScaled) {
    config.fail("model.head",
                "scaled trains factors on a head that is trained already; set model.pretrained to its run's "
                "checkpoint");
  }
  config.refuse_unread("model.pretrained_key", has_file, "model.pretrained");
  config.refuse_unread("model.pretrained_head", has_file, "model.pretrained");
  config.refuse_unread("model.head_tau", options.pretrained_head == ModelOptions::kTauNormalised,
                       "model.pretrained_head: tau_normalised");
  const bool trains_body = options.trains(ModelOptions::kBody), trains_head = options.trains(ModelOptions::kHead);
  if (!has_file && !trains_body) {
    config.fail("model.trainable",
                fmt::format("leaves {} as it was drawn; set model.pretrained to a trained run's checkpoint",
                            options.trains_below_head() ? "some of the body" : "a body"));
  }
  for (const std::string& part : options.trainable) {
    if (trains_body && part != ModelOptions::kBody && part != ModelOptions::kHead) {
      config.fail("model.trainable", fmt::format("'{}' is a part of body, which is trained wholly", part));
    }
  }
  check_adapter(config, options);
  config.refuse_unread(
      "model.sync_batch_norm", options.trains_below_head(),
      "model.trainable: [body, head] or [body]; a body that is not trained keeps its batch statistics");
  if (!trains_head && !has_file) {
    config.fail("model.trainable", "leaves a head as it was drawn; set model.pretrained to a trained run's checkpoint");
  }
  if (!trains_head && options.pretrained_head == ModelOptions::kDraw) {
    config.fail("model.pretrained_head", "draw makes a head that model.trainable leaves as it was drawn");
  }
  if (options.head == ModelOptions::Head::kScaled && options.trains_below_head()) {
    config.fail("model.head", "scaled is for a body and a head that stay as they are; set model.trainable: [head]");
  }
  if (options.pretrained_head == ModelOptions::kTauNormalised && options.head != ModelOptions::Head::kLinear) {
    config.fail("model.pretrained_head", "tau_normalised is for model.head: linear");
  }
  if (options.pretrained_head == ModelOptions::kDraw && options.head == ModelOptions::Head::kScaled) {
    config.fail("model.pretrained_head", "draw leaves model.head: scaled nothing to scale");
  }
}

config::Rule trainable_rule(const ModelRegistry& registry) {
  return [&registry](const config::Config& config) {
    const config::Texts parts = trained_parts(config);
    const auto is_always_there = [](const std::string& part) {
      return part == ModelOptions::kBody || part == ModelOptions::kHead;
    };
    if (std::ranges::all_of(parts, is_always_there)) return;
    const auto& name = config.get<std::string>("model.name");
    const ModelEntry& entry = registry.at(name);
    // The names of parts do not depend on the images' size, but a network is built for one that it takes.
    ModelContext context = entry.usual;
    if (config.has("data.input_size") && config.get<int64_t>("data.input_size") > 0) {
      context.height = context.width = config.get<int64_t>("data.input_size");
    } else if (config.has("model.patch")) {
      context.height = context.width = config.get<int64_t>("model.patch");
    }
    const CostCounter without_storage;
    const auto model = [&] {
      try {
        return entry.make(config, context);
      } catch (const KeyError& error) {
        config.fail(error.path(), error.message());
      }
    }();
    for (const std::string& part : parts) {
      if (is_always_there(part) || !model->parameters_of(part).empty()) continue;
      const std::vector<std::string> known = model->names_of_parts();
      config.fail("model.trainable",
                  fmt::format("'{}' names no parameter of the body of {}{}", part, name, did_you_mean(part, known)));
    }
  };
}

config::Section model_section(const ModelRegistry& registry) {
  return {"model", "The network.", ModelOptions::keys(), "name", "resnet20", config::variants_of(registry)};
}

}  // namespace settrain

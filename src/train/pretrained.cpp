#include "src/train/pretrained.h"

#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/cost.h"
#include "models/heads.h"
#include "models/model.h"
#include "models/model_options.h"
#include "models/named_tensors.h"
#include "src/checkpoint/checkpoint.h"
#include "src/config/load.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/text.h"
#include "src/formats/model_card.h"
#include "src/formats/weight_file.h"
#include "src/run_folder/run_folder.h"
#include "src/train/transformer_weights.h"
#include "src/train/weight_names.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "model.pretrained";

using Entries = FileTensors;

std::vector<std::string> heads_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& module : model.named_modules()) {
    if (module.value()->as<Head>()) names.push_back(module.key());
  }
  return names;
}

// How many features the head takes. A normalised one has its weight as [features, classes].
int64_t features_of(const ModelOptions& options, const std::vector<std::string>& heads, const NamedTensors& targets) {
  for (const auto& [name, target] : targets) {
    if (name == heads.front() + ".weight") return target.size(options.head == ModelOptions::Head::kNormalised ? 0 : 1);
  }
  return 0;
}

std::string describe(at::IntArrayRef sizes, std::optional<Dtype> type) {
  return fmt::format("[{}] {}", fmt::join(sizes, ", "), type ? names_of(*type).name : "of another type");
}

// Wide unsigned integers are no weights and no counter of any model, and may not fit into int64.
bool is_wide_unsigned(Dtype type) {
  return type == Dtype::kUint64 || type == Dtype::kUint32 || type == Dtype::kUint16;
}

bool fits(const at::Tensor& target, const FileTensor& entry) {
  return target.sizes() == at::IntArrayRef(entry.shape) && !is_wide_unsigned(entry.dtype) &&
         target.is_floating_point() == at::isFloatingType(scalar_type(entry.dtype));
}

constexpr std::string_view kInLora = ".lora.", kInAdaptFormer = ".adaptformer.";

bool is_of_adapter(const std::string& name) {
  return name.find(kInLora) != std::string::npos || name.find(kInAdaptFormer) != std::string::npos;
}

// A scaled head's factors are not in the file of the head that they scale, and adapters not in that of the body.
bool is_added(const std::string& name) {
  return name.ends_with(".factor") || is_of_adapter(name);
}

// Whether the file has exactly the head's tensors: a linear one's weight alone is another head.
bool head_fits(const std::string& head, const NamedTensors& targets, const Entries& entries) {
  int64_t theirs = 0;
  for (const auto& entry : entries) theirs += is_of(entry.first, head);
  for (const auto& [name, target] : targets) {
    if (!is_of(name, head) || is_added(name)) continue;
    const auto found = entries.find(name);
    if (found == entries.end() || !fits(target, found->second)) return false;
    --theirs;
  }
  return theirs == 0;
}

// A normalised head has its weight as [features, classes], all others as [classes, features], or as a convolution of
// that shape.
bool is_transposed(const at::Tensor& target, const FileTensor& entry) {
  const auto matrix = [](at::IntArrayRef sizes) {
    return sizes.size() == 4 && sizes[2] == 1 && sizes[3] == 1 ? sizes.slice(0, 2) : sizes;
  };
  const at::IntArrayRef ours = matrix(target.sizes()), theirs = matrix(entry.shape);
  return ours.size() == 2 && theirs.size() == 2 && ours[0] != ours[1] && ours[0] == theirs[1] && ours[1] == theirs[0];
}

// The change that the options make to a head of the file, which has to be a linear one; an empty text for none.
std::string change_of_head(const ModelOptions& options) {
  if (options.head == ModelOptions::Head::kScaled) return "head: scaled";
  return options.pretrained_head == ModelOptions::kTauNormalised ? "pretrained_head: tau_normalised" : "";
}

// Why a head for as many classes and features does not fit, or an empty text. It would be lost otherwise.
std::string head_problem(const ModelOptions& options, const std::string& head, const NamedTensors& targets,
                         const Entries& entries) {
  const auto in_file = [&](const char* name) { return entries.contains(head + name); };
  for (const auto& [name, target] : targets) {
    if (name != head + ".weight" || !in_file(".weight")) continue;
    const bool is_normalised = options.head == ModelOptions::Head::kNormalised;
    const bool is_square_linear = is_normalised && in_file(".bias") && fits(target, entries.at(name));
    if (is_transposed(target, entries.at(name)) || is_square_linear) {
      if (const std::string change = change_of_head(options); !change.empty()) {
        return fmt::format("has a normalised head; model.{} is for linear ones", change);
      }
      return fmt::format("has a {0} head; set model.head: {0}", is_normalised ? "linear" : "normalised");
    }
    if (!fits(target, entries.at(name))) continue;
    if (in_file(".factor")) return "has a scaled head; `settrain export` makes it a linear one";
    const bool has_bias = std::ranges::count(targets, head + ".bias", &NamedTensors::value_type::first) > 0;
    if (in_file(".bias") != has_bias) {
      return has_bias ? "has a head without a bias; set model.head_bias: false"
                      : "has a head with a bias; set model.head_bias: true";
    }
  }
  return "";
}

// The tensors that do not fit, a line each. Where there are many, the first ones of each kind.
std::string shape_mismatches(const NamedTensors& targets, Entries entries) {
  std::vector<std::string> misshapen, missing, unknown;
  for (const auto& [name, target] : targets) {
    const auto found = entries.find(name);
    if (found == entries.end()) {
      if (!name.ends_with(kCounter) && !is_added(name)) missing.push_back(fmt::format("{}: missing", name));
      continue;
    }
    if (!fits(target, found->second)) {
      const bool is_of_positions = name == "pos_embed" || name.ends_with(".pos_embedding");
      const bool is_of_images = target.dim() == 4 && found->second.shape.size() == 4 &&
                                std::max(target.size(1), found->second.shape[1]) == 3 &&
                                std::min(target.size(1), found->second.shape[1]) == 1;
      const char* why = is_of_positions ? ", which depends on the images' size"
                        : is_of_images  ? ", since grey images have one channel, and others three"
                                        : "";
      misshapen.push_back(fmt::format("{}: {}, expected {}{}", name, describe(found->second.shape, found->second.dtype),
                                      describe(target.sizes(), dtype_of(target.scalar_type())), why));
    }
    entries.erase(found);
  }
  for (const auto& entry : entries)
    unknown.push_back(fmt::format("{}: the model has no such tensor", displayed(entry.first)));

  constexpr size_t kMostLines = 40;
  const std::array lists{&misshapen, &unknown, &missing};
  constexpr std::array kinds{"of other shapes", "that the model does not have", "missing"};
  std::array<size_t, lists.size()> numbers{};
  for (bool has_grown = true; has_grown && numbers[0] + numbers[1] + numbers[2] < kMostLines;) {
    has_grown = false;
    for (size_t i = 0; i < lists.size() && numbers[0] + numbers[1] + numbers[2] < kMostLines; ++i) {
      if (numbers[i] == lists[i]->size()) continue;
      ++numbers[i];
      has_grown = true;
    }
  }
  std::string text;
  for (size_t i = 0; i < lists.size(); ++i) {
    const size_t more = lists[i]->size() - numbers[i];
    lists[i]->resize(numbers[i]);
    for (const std::string& line : *lists[i]) text += "\n  " + line;
    if (more > 0) text += fmt::format("\n  and {} more {}", more, kinds[i]);
  }
  return text;
}

// The advice for a file that fits but for the weights of an adapter that the model does not have; empty for others.
std::string adapter_problem(const NamedTensors& targets, Entries entries) {
  const auto has = [&](std::string_view inside) {
    const auto lies_inside = [&](const auto& tensor) { return tensor.first.find(inside) != std::string::npos; };
    return std::ranges::any_of(entries, lies_inside) && std::ranges::none_of(targets, lies_inside);
  };
  std::string problem;
  if (has(kInLora)) problem = "has LoRA's weights beside the model's; `settrain export` merges them into these";
  if (has(kInAdaptFormer)) problem = "has AdaptFormer's weights; set model.adapter.kind: adaptformer";
  if (problem.empty()) return "";
  std::erase_if(entries, [](const auto& entry) { return is_of_adapter(entry.first); });
  return shape_mismatches(targets, std::move(entries)).empty() ? problem : "";
}

// The tau-normalised classifier of Kang et al., ICLR 2020, without the bias.
void normalise_head(const std::string& head, double tau, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (auto [name, tensor] : tensors) {
    if (name == head + ".weight") {
      const at::Tensor divisors = tensor.norm(2, 1, /*keepdim=*/true).clamp_min(1e-12).pow(tau);
      if (!divisors.isfinite().logical_and(divisors.gt(0)).all().item<bool>()) {
        throw KeyError(
            "model.head_tau",
            fmt::format("{}: a norm of {} to this power is 0 or infinite; the paper takes 0 to 1", tau, name));
      }
      tensor.div_(divisors);
    }
    if (name == head + ".bias") tensor.zero_();
  }
}

// Which of the model's heads take the file's weights, and which stay as drawn.
struct HeadChoice {
  std::vector<std::string> kept, drawn;
  std::string problem;  // of a head that would be lost, see head_problem()
};

HeadChoice choose_heads(const ModelOptions& options, const std::vector<std::string>& heads, const NamedTensors& targets,
                        const Entries& entries) {
  HeadChoice choice;
  const bool draw_all = options.pretrained_head == ModelOptions::kDraw;
  for (const std::string& head : heads) {
    const bool keeps = !draw_all && head_fits(head, targets, entries);
    (keeps ? choice.kept : choice.drawn).push_back(head);
    if (!keeps && !draw_all && choice.problem.empty()) choice.problem = head_problem(options, head, targets, entries);
  }
  const std::string change = change_of_head(options);
  if (!change.empty() && choice.kept.empty() && choice.problem.empty()) {
    throw KeyError(kKey, fmt::format("'{}' has no head of this many classes that model.{} could change",
                                     options.pretrained, change));
  }
  if (!choice.drawn.empty() && choice.problem.empty() && !options.trains(ModelOptions::kHead)) {
    choice.problem = fmt::format("has no weights that fit {}, which model.trainable would leave as drawn",
                                 fmt::join(choice.drawn, " and "));
  }
  return choice;
}

// All tensors are read before the first is copied: a file may turn out to be damaged. Returns their number.
int64_t copy_tensors(const std::string& place, const Entries& entries, const NamedTensors& targets) {
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (const auto& [name, target] : targets) {
    const auto found = entries.find(name);
    if (found == entries.end()) continue;
    const at::Tensor& tensor = copies.emplace_back(target, found->second.read()).second;
    // Weights that are not finite would end the run at its first step, with advice that does not help.
    if (tensor.is_floating_point() && !tensor.isfinite().all().item<bool>()) {
      throw KeyError(kKey, fmt::format("{}: {} holds values that are not finite", place, displayed(name)));
    }
  }
  const at::NoGradGuard no_grad;
  for (auto& [target, tensor] : copies) target.copy_(tensor);
  return std::ssize(copies);
}

// The tensors of a file as the model names and sizes them. `images`: see adapt_transformer(). `from`: StateDict::from.
Entries entries_for(const Model& model, const ModelOptions& options, Entries theirs,
                    const std::pair<int64_t, int64_t>& images, std::string& from) {
  if (const auto grid = model.patch_grid()) {
    for (const std::string& done : adapt_transformer(theirs, *grid, images)) from += (from.empty() ? "" : ", ") + done;
  }
  const std::vector<std::string> heads = heads_of(model);
  const NamedTensors targets = state_dict(model);
  Entries named = with_names_of_model(std::move(theirs), targets, heads, features_of(options, heads, targets),
                                      options.pretrained, from);
  for (const std::string& part : model.parts_left_out()) {
    if (std::erase_if(named, [&](const auto& entry) { return is_of(entry.first, part); }) == 0) continue;
    from += fmt::format("{}without {}", from.empty() ? "" : ", ", part);
  }
  return named;
}

// The card in a file of settrain's; sizes of zero and no classes where the file is of another origin.
ModelCard card_of(const Contents& contents, const std::string& place) {
  const auto card = contents.metadata.find("card");
  if (card == contents.metadata.end() || !contents.metadata.contains("config")) return {};
  return model_card_from_text(card->second, place);
}

// "; they fit model.name: vit_base_patch14_reg4_dinov2": the registered models that the file's tensors fit, if any,
// whatever their head.
std::string fitting_models(const ModelRegistry& registry, const Entries& theirs,
                           const std::pair<int64_t, int64_t>& images) {
  const CostCounter without_storage;
  std::vector<std::string> fitting;
  for (const ModelEntry& entry : registry.entries()) {
    const config::Config config = config::load({{model_section(registry)}, {}}, {}, {"model.name=" + entry.name});
    const auto model = entry.make(config, entry.usual);
    const std::vector<std::string> heads = heads_of(*model);
    const auto is_of_head = [&](const auto& tensor) { return is_of_any(tensor.first, heads); };
    try {
      std::string from;
      Entries entries = entries_for(*model, config.read<ModelOptions>("model"), theirs, images, from);
      NamedTensors targets = state_dict(*model);
      std::erase_if(entries, is_of_head);
      std::erase_if(targets, is_of_head);
      if (shape_mismatches(targets, entries).empty()) fitting.push_back(entry.name);
    } catch (const Error&) {  // two of its tensors would have one name: not this model
      continue;
    }
  }
  return fitting.empty() ? "" : fmt::format("; they fit model.name: {}", fmt::join(fitting, " or "));
}

Pretrained load(const ModelOptions& options, Model& model, const ModelRegistry* registry) {
  const std::string& path = options.pretrained;
  Pretrained loaded{.file = path, .sha256 = sha256_of_file(path)};
  WeightFile file(path);
  const auto kind = file.contents().metadata.find("kind");
  if (kind != file.contents().metadata.end() && kind->second == kCheckpointKind) load_checkpoint(path);  // its digest
  StateDict theirs = find_state_dict(file.contents(), fmt::format("'{}'", path),
                                     options.pretrained_key == ModelOptions::kAuto ? "" : options.pretrained_key);
  loaded.from = std::move(theirs.from);
  Entries tensors;
  for (const auto& [name, entry] : theirs.tensors) {
    tensors[name] = {entry.dtype, entry.shape, [&file, entry] { return read_tensor(file, entry); }};
  }
  const ModelCard card = card_of(file.contents(), fmt::format("'{}'", path));
  const std::pair images{card.input_height, card.input_width};
  Entries entries = entries_for(model, options, tensors, images, loaded.from);
  const std::vector<std::string> heads = heads_of(model);
  NamedTensors targets = state_dict(model);
  const HeadChoice choice = choose_heads(options, heads, targets, entries);
  loaded.drawn = choice.drawn;
  if (choice.drawn.empty()) {
    loaded.head_classes = card.class_names;
    loaded.head_keys = card.class_keys;
  }
  const auto is_left = [&](const std::string& name) {
    return is_of_any(name, choice.drawn) && !is_of_any(name, choice.kept);
  };
  for (const auto& [name, entry] : entries) {
    if (is_left(name) && name.ends_with(".weight") && loaded.other_head.empty())
      loaded.other_head = fmt::format("{} {}", name, describe(entry.shape, entry.dtype));
  }
  std::erase_if(entries, [&](const auto& entry) { return is_left(entry.first); });
  std::erase_if(targets, [&](const auto& entry) { return is_left(entry.first); });

  // The names in messages are the model's; `from` says what became of the file's.
  const std::string place = fmt::format("'{}'{}", path, loaded.from.empty() ? "" : " (" + loaded.from + ")");
  const std::string lines = shape_mismatches(targets, entries);
  if (!lines.empty()) {
    const std::string problem = adapter_problem(targets, entries);
    if (!problem.empty()) throw KeyError(kKey, fmt::format("{} {}", place, problem));
    throw KeyError(kKey, fmt::format("{} has other tensors than the model{}:{}", place,
                                     registry ? fitting_models(*registry, tensors, images) : "", lines));
  }
  if (!choice.problem.empty()) {
    const bool may_draw = change_of_head(options).empty() && options.trains(ModelOptions::kHead);
    throw KeyError(kKey,
                   fmt::format("{} {}{}", place, choice.problem, may_draw ? ", or model.pretrained_head: draw" : ""));
  }
  loaded.num_tensors = copy_tensors(place, entries, targets);
  if (options.pretrained_head == ModelOptions::kTauNormalised) {
    normalise_head(choice.kept.front(), options.head_tau, targets);
    loaded.change = fmt::format("head {} normalised with tau {}", choice.kept.front(), options.head_tau);
  }
  return loaded;
}

}  // namespace

std::string Pretrained::describe() const {
  std::string heads = drawn.empty() ? "" : fmt::format(", head '{}' left as drawn", fmt::join(drawn, "' and '"));
  if (!other_head.empty()) heads += fmt::format(" (the file's is {})", other_head);
  return fmt::format("weights of '{}' (SHA-256 {}): {} tensors{}{}{}", file, sha256.substr(0, 16), num_tensors,
                     from.empty() ? "" : " (" + from + ")", heads, change.empty() ? "" : ", " + change);
}

std::string other_classes(const Pretrained& loaded, const Dataset& data) {
  const auto is_same = [](const std::string& theirs, const std::string& ours) { return theirs == printable(ours); };
  const auto& [names, keys] = std::tie(loaded.head_classes, loaded.head_keys);
  if (!keys.empty() && std::ranges::equal(keys, data.class_keys, is_same)) return "";
  const auto [theirs, ours] = std::ranges::mismatch(names, data.class_names, is_same);
  if (theirs == names.end() || ours == data.class_names.end()) return "";
  return fmt::format(
      "the head of '{}' was trained for other classes, or in another order: its class {} is {}, and here "
      "it is {}. Set model.pretrained_head: draw unless they mean the same",
      loaded.file, theirs - names.begin(), in_quotes(*theirs), in_quotes(*ours));
}

std::string missing_pretrained(const ModelRegistry& registry, const config::Config& config) {
  const auto& file = config.get<std::string>(kKey);
  if (file == ModelOptions::kNone || fs::is_regular_file(file)) return "";
  const auto& model = config.get<std::string>("model.name");
  const PretrainedSource& source = registry.at(model).pretrained;
  std::string text =
      fmt::format("{}: {}: there is no file '{}', of weights to start from", config.at(kKey).origin.text, kKey, file);
  if (RunFolder::is_there(file)) {
    return text + fmt::format("; this is a run's folder: name one of its checkpoints, such as '{}'",
                              (fs::path(file) / "checkpoints" / "last.safetensors").string());
  }
  if (fs::is_directory(file)) return text + "; this is a folder: name the file in it";
  text += shell_hint(file);
  if (!source.url.empty())
    text += fmt::format("; for {}, {} has them: {}; `settrain data fetch-weights {}` gets them, or says how", model,
                        source.name, source.url, model);
  if (file.find("checkpoints/") != std::string::npos) return text + "\nIt is a run's checkpoint: train that run first.";
  return text +
         "\nPut it there, set model.pretrained or SETTRAIN_WEIGHTS, or take weights as they are drawn: "
         "model.pretrained=none";
}

std::optional<Pretrained> load_pretrained(const config::Config& config, Model& model, const ModelRegistry* registry) {
  const auto options = config.read<ModelOptions>("model");
  if (options.pretrained == ModelOptions::kNone) return std::nullopt;
  try {
    return load(options, model, registry);
  } catch (const RunError& error) {
    throw KeyError(kKey, error.what());
  }
}

}  // namespace settrain

#include "tests/config/sample.h"

#include <stdlib.h>

#include <fstream>
#include <stdexcept>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain::config::test {

Schema sample_schema() {
  const Key k = key("k", &LossOptions::k, 5, "The K of top-K.").at_least(1).in("classes");
  const Key epsilon = key("epsilon", &LossOptions::epsilon, 1.0, "Noise's standard deviation.").above(0);
  const Key rate = free_key("rate", 0.2, "Share of labels.").at_least(0).below(1);
  Schema schema;
  schema.sections.push_back({"",
                             "The run.",
                             {key("name", &GeneralOptions::name, "${file}", "Name of the run.").not_empty(),
                              key("seed", &GeneralOptions::seed, 4, "Everything random follows it.").at_least(0),
                              key("select", &GeneralOptions::select, {}, "Metrics.")},
                             "",
                             "",
                             {}});
  schema.sections.push_back(
      {"run", "", {free_key("dir", std::string("runs/${name}"), "Run folder.").not_empty()}, "", "", {}});
  schema.sections.push_back(
      {"data",
       "What is trained on.",
       {key("root", &DataOptions::root, "${env:SETTRAIN_SAMPLE_ROOT:-data}", "Folder."),
        key("batch_size", &DataOptions::batch_size, 32, "Images a batch.").at_least(1).in("images"),
        key("workers", &DataOptions::workers, -1, "Threads | auto.").at_least(0).word("auto", -1)},
       "name",
       "synthetic",
       {{"synthetic", "Made up.", {}},
        {"cifar100", "CIFAR-100.", {key("val_size", &DataOptions::val_size, 5000, "Images held out.").at_least(0)}}}});
  schema.sections.push_back(
      {"data.label_noise",
       "",
       {free_key("seed", int64_t{0})},
       "kind",
       "none",
       {{"none", "Clean labels.", {}}, {"uniform", "Any class.", {rate}}, {"superclass", "A sibling.", {rate}}}});
  schema.sections.push_back(
      {"loss",
       "",
       {},
       "name",
       "cross_entropy",
       {{"cross_entropy", "Cross-entropy.", {}},
        {"noised_topk", "Balanced.", {k, epsilon}},
        {"noised_topk_imbalanced",
         "Imbalanced.",
         {k, Key(epsilon).at_most(10),
          key("max_margin", &LossOptions::max_margin, 0.2, "Margin.").at_least(0).by_epoch(),
          key("noise.kind", &LossOptions::noise_kind, "normal", "Noise.").one_of({"normal", "none"})}}}});
  schema.sections.push_back({"optimizer",
                             "",
                             {key("lr", &OptimizerOptions::lr, 0.1, "Learning rate.").above(0).in("1/step"),
                              key("momentum", &OptimizerOptions::momentum, 0.9, "Momentum.").at_least(0).below(1),
                              key("nesterov", &OptimizerOptions::nesterov, true, "Nesterov's step.")},
                             "",
                             "",
                             {}});
  schema.sections.push_back(
      {"eval",
       "",
       {key("top_k", &EvalOptions::top_k, {1, 5}, "Every K.").at_least(1).not_empty().in("classes"),
        key("average_k", &EvalOptions::average_k, {2, 2.5}, "Every mean size.").above(0),
        key("splits", &EvalOptions::splits, {"val", "test"}, "Splits.").one_of({"train", "val", "test"})},
       "",
       "",
       {}});
  return schema;
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "settrain-config-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder in " + name);
  folder_ = name;
}

Folder::~Folder() {
  std::filesystem::remove_all(folder_);
}

std::filesystem::path Folder::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return folder_ / name;
}

Config Folder::load(const std::string& text, const std::vector<std::string>& overrides) const {
  return config::load(sample_schema(), write("run.yaml", text), overrides);
}

std::string Folder::error(const std::string& text, const std::vector<std::string>& overrides) const {
  return error_of_file(write("run.yaml", text), overrides);
}

std::string Folder::error_of_file(const std::filesystem::path& file, const std::vector<std::string>& overrides) const {
  try {
    config::load(sample_schema(), file, overrides);
  } catch (const ConfigError& error) {
    std::string message = error.what();
    const std::string folder = folder_.string() + "/";
    for (size_t at = message.find(folder); at != std::string::npos; at = message.find(folder))
      message.erase(at, folder.size());
    return message;
  }
  return "no error";
}

TEST_CASE("the sample schema loads without a file") {
  CHECK(config::load(sample_schema(), "", {}).get<int64_t>("seed") == 4);
}

}  // namespace settrain::config::test

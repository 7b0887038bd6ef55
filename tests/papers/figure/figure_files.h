// Figures' files and the runs that they show, written for tests.
#pragma once

#include <filesystem>
#include <string>

#include "src/config/key.h"
#include "src/config/schema.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

struct FigureOptions {
  int64_t seed = 0, threads = 0, epochs = 0;
  double epsilon = 0;
  bool gradient_nonzeros = false;
  config::Integers train_top_k;
  std::string name, dir;
  config::Texts select, splits;
};

/// As much of a run's schema as a figure asks for.
inline config::Schema figure_schema() {
  using config::key;
  using Options = FigureOptions;
  return {{{"",
            "",
            {key("seed", &Options::seed, 4, ""), key("name", &Options::name, "${file}", ""),
             key("select", &Options::select, {"val/top1"}, "")},
            "",
            "",
            {}},
           {"run",
            "",
            {key("dir", &Options::dir, "runs", "").free(), key("threads", &Options::threads, 1, "").free()},
            "",
            "",
            {}},
           {"loss",
            "",
            {key("epsilon", &Options::epsilon, 1.0, "").above(0), key("name", &Options::name, "a", "")},
            "",
            "",
            {}},
           {"eval", "", {key("splits", &Options::splits, {"val", "test"}, "")}, "", "", {}},
           {"train",
            "",
            {key("epochs", &Options::epochs, 2, ""), key("top_k", &Options::train_top_k, {}, ""),
             key("gradient_nonzeros", &Options::gradient_nonzeros, false, "")},
            "",
            "",
            {}}},
          {}};
}

/// A figure with a panel of every kind: rows of epsilon, columns of losses.
inline const std::string kFigure = R"yaml(
paper: A paper
title: Of all kinds
base: ../../base.yaml
set: {train.top_k: [5], train.gradient_nonzeros: true}
seeds: [1, 2, 3]
rows:
  name: epsilon
  each:
    - {label: "0.1", set: {loss.epsilon: 0.1}}
    - {label: "1", set: {loss.epsilon: 1.0}}
    - {label: "10", set: {loss.epsilon: 10.0}}
columns:
  name: Loss
  each:
    - {label: A, set: {loss.name: a}}
    - {label: B, set: {loss.name: b}}
panels:
  - number: "1"
    part: a
    title: along epsilon
    select: val/top1
    x: {of: rows, scale: log, label: epsilon}
    y: {metric: test/top1, error: true, label: "Error, %", least: 0}
  - number: "1"
    part: b
    rows: ["0.1"]
    select: val/top1
    x: {of: epochs, label: Epoch}
    y: {metric: train/gradient_nonzeros, label: Coordinates}
  - number: "2"
    rows: ["0.1", "1"]
    columns: [B]
    select: val/top1
    x: {metric: test/top1, column: A, label: A}
    y: {metric: test/top1, label: B}
  - number: "3"
    columns: [A]
    rows: ["10"]
    select: val/top5
    x: {of: set_sizes, label: Classes}
    y: {metric: test/avg2, label: "Images, %"}
presets:
  smoke: {set: {train.epochs: 1}, seeds: [4], rows: ["1", "10"], says: Small.}
  own: {rows: {name: epsilon, each: [{label: "2", set: {loss.epsilon: 2.0}}]}}
)yaml";

class FigureFiles {
 public:
  FigureFiles() { write("base.yaml", "loss: {epsilon: 2.0}\n"); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  std::filesystem::path write_figure(const std::string& text, const std::string& name = "1.yaml") const {
    return write("figures/paper/" + name, text);
  }

  /// A finished run: its config's text beside the figure's own settings, and its results and epochs.
  std::filesystem::path run(const std::string& name, const std::string& config, const std::string& results,
                            const std::string& epochs = "") const {
    write("runs/" + name + "/config.yaml", "train: {top_k: [5], gradient_nonzeros: true}\n" + config);
    write("runs/" + name + "/.settrain-run", "");
    write("runs/" + name + "/results.json", results);
    write("runs/" + name + "/metrics.jsonl", epochs);
    return folder_ / ("runs/" + name);
  }
  std::filesystem::path figures() const { return folder_ / "figures"; }

 private:
  TemporaryFolder folder_;
};

}  // namespace settrain::test

#include "src/train/resume_point.h"

#include <fstream>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/train/experiment_schema.h"
#include "src/train/selection.h"
#include "tests/support/builtin_registries.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

config::Config configured(const std::vector<std::string>& settings) {
  return config::load(experiment_schema(test::builtin_registries()), {}, settings);
}

// A run that was recorded with these settings, and stopped at `state`.
class StoppedRun {
 public:
  explicit StoppedRun(const std::vector<std::string>& settings, const TrainingState& state = {})
      : recorded_(configured(settings)), run_(RunFolder::create(folder_ / "run", false)) {
    std::ofstream(run_.config()) << recorded_.to_yaml();
    std::ofstream(run_.metrics_jsonl()) << "{}\n";
    std::ofstream(run_.tensorboard()) << "events";
    checkpoint_.metadata["config"] = recorded_.to_yaml();
    checkpoint_.add_log(run_.metrics_jsonl(), 3);
    checkpoint_.add_log(run_.tensorboard(), 6);
    add_state(state, checkpoint_);
    save();
  }

  void save() { save_checkpoint(run_.last_checkpoint(), checkpoint_); }

  ResumePoint find(const std::vector<std::string>& settings, const std::vector<std::string>& allowed = {}) const {
    return find_resume_point(run_, recorded_, configured(settings), {allowed, false});
  }

  ResumePoint find_inexactly(const std::vector<std::string>& settings) const {
    return find_resume_point(run_, recorded_, configured(settings), {{}, true});
  }

  const RunFolder& folder() const { return run_; }
  Checkpoint& checkpoint() { return checkpoint_; }

 private:
  test::TemporaryFolder folder_;
  config::Config recorded_;
  RunFolder run_;
  Checkpoint checkpoint_;
};

TEST_CASE("a run goes on with its own config, and with one that changes no number") {
  TrainingState state;
  state.epoch = 3;
  const StoppedRun run({"optimizer.lr=0.1"}, state);
  const ResumePoint same = run.find({"optimizer.lr=0.1"});
  CHECK(same.state.epoch == 3);
  CHECK(same.changes.empty());
  CHECK_FALSE(same.is_finished);
  const ResumePoint free = run.find({"optimizer.lr=0.1", "data.workers=7", "run.dir=elsewhere", "train.epochs=99",
                                     "train.checkpoint_every.steps=5", "eval.splits=[val]"});
  CHECK(free.changes.size() == 5);
}

TEST_CASE("every other changed key is named with both values, and how to allow it") {
  const StoppedRun run({"optimizer.lr=0.1"});
  const std::vector<std::string> changed{"optimizer.lr=0.2", "loss.name=noised_topk", "loss.k=4"};
  CHECK_THROWS_WITH(run.find(changed), Contains("optimizer.lr: 0.1 there, 0.2 now") &&
                                           Contains("loss.k: no such key there, 4 now") &&
                                           Contains("--allow optimizer.lr") && Contains("last.safetensors"));
  CHECK_THROWS_WITH(run.find(changed, {"optimizer.lr"}),
                    !Contains("optimizer.lr") && Contains("loss.name: cross_entropy there, noised_topk now"));
  const ResumePoint point = run.find({"optimizer.lr=0.2"}, {"optimizer.lr"});
  REQUIRE(point.changes.size() == 1);
  CHECK((point.changes[0] == config::Difference{"optimizer.lr", "0.1", "0.2"}));
}

TEST_CASE("a key that the change takes away can be allowed too") {
  const StoppedRun run({"schedule.name=multistep"});
  CHECK_THROWS_WITH(run.find({}), Contains("--allow schedule.milestones"));
  CHECK_NOTHROW(run.find({}, {"schedule.name", "schedule.milestones", "schedule.gamma"}));
}

TEST_CASE("the model cannot change within a run, allowed or not") {
  const StoppedRun run({});
  for (const std::vector<std::string>& allowed : {std::vector<std::string>{}, {"model.width"}}) {
    CHECK_THROWS_WITH(run.find({"model.width=5"}, allowed),
                      Contains("model.width: 16 there, 5 now (cannot change within a run)") && !Contains("--allow"));
  }
}

TEST_CASE("nor can the optimizer") {
  const StoppedRun run({});
  // Nor is it advised to allow the other changes: they do not help.
  CHECK_THROWS_WITH(run.find({"optimizer.name=adamw", "data.batch_size=3"}, {"optimizer.name"}),
                    Contains("optimizer.name: sgd there, adamw now (cannot change within a run)") &&
                        Contains("data.batch_size") && !Contains("--allow"));
}

TEST_CASE("nor can the input, for which the best checkpoints were chosen") {
  const StoppedRun run({});
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>{"data.input_size", "24"}, {"data.normalisation", "imagenet"}}) {
    CHECK_THROWS_WITH(run.find({key + "=" + value}, {key}),
                      Contains(key + ": auto there, " + value + " now (cannot change within a run)"));
  }
}

TEST_CASE("nor can what role keeps of the estimated labels") {
  const auto check_fixed = [](const std::vector<std::string>& before, const std::vector<std::string>& now,
                              const std::vector<std::string>& allowed, const std::string& key) {
    const StoppedRun run(before);
    CHECK_THROWS_WITH(run.find(now, allowed),
                      Contains(key + ": ") && Contains("cannot change within a run") && !Contains("--allow"));
  };
  const std::string path = "loss.theta_optimizer.";
  const std::vector<std::string> plain{"loss.name=role"}, adam{"loss.name=role", path + "name=adam"},
      momentum{"loss.name=role", path + "momentum=0.8"};
  check_fixed(plain, adam, {path + "name"}, path + "name");
  check_fixed(adam, plain, {path + "name"}, path + "name");
  check_fixed(plain, momentum, {path + "momentum"}, path + "momentum");
  check_fixed(momentum, plain, {path + "momentum"}, path + "momentum");
  check_fixed({}, plain, {"loss.name"}, "loss.name");
  check_fixed(plain, {}, {"loss.name"}, "loss.name");
  // These change how the estimates move, and nothing that is kept of them.
  const StoppedRun run(momentum);
  CHECK_NOTHROW(run.find({"loss.name=role", path + "momentum=0.9", path + "lr=2"}, {path + "momentum", path + "lr"}));
}

TEST_CASE("an allowed key that does not exist is a typing error") {
  const StoppedRun run({});
  CHECK_THROWS_WITH(run.find({}, {"optimiser.lr"}), Contains("did you mean 'optimizer.lr'"));
}

TEST_CASE("a key that this version has added is a difference unless it is at its default") {
  StoppedRun run({});
  std::string& yaml = run.checkpoint().metadata["config"];
  const size_t line = yaml.find("  momentum: 0.9\n");
  REQUIRE(line != std::string::npos);
  yaml.erase(line, std::string("  momentum: 0.9\n").size());
  run.save();
  CHECK(run.find({}).changes.empty());
  CHECK_THROWS_WITH(run.find({"optimizer.momentum=0.8"}), Contains("optimizer.momentum: no such key there, 0.8 now"));
}

TEST_CASE("fewer epochs than were begun cannot be asked for") {
  TrainingState state;
  state.epoch = 2;
  const StoppedRun between({"train.epochs=4"}, state);
  CHECK_NOTHROW(between.find({"train.epochs=2"}));
  CHECK_THROWS_WITH(between.find({"train.epochs=1"}), Contains("has completed 2 epochs"));
  state.batch = 1;
  const StoppedRun within({"train.epochs=4"}, state);
  CHECK_THROWS_WITH(within.find({"train.epochs=2"}), Contains("begun another"));
  CHECK_NOTHROW(within.find({"train.epochs=3"}));
}

TEST_CASE("the order of the images cannot change within an epoch") {
  TrainingState state;
  state.epoch = 1;
  for (const std::string key : {"data.sampler", "data.batch_size", "seed"}) {
    const std::string setting = key + (key == "data.sampler" ? "=square_root" : "=99");
    state.batch = 0;
    CHECK_NOTHROW(StoppedRun({}, state).find({setting}, {key}));
    state.batch = 1;
    CHECK_THROWS_WITH(StoppedRun({}, state).find({setting}, {key}), Contains("over which " + key + " cannot change"));
  }
}

TEST_CASE("what is measured cannot change within an epoch") {
  TrainingState state;
  state.epoch = 1;
  const StoppedRun between({"train.top_k=[5]"}, state);
  CHECK_THROWS_WITH(between.find({}), Contains("--allow train.top_k"));
  CHECK_NOTHROW(between.find({}, {"train.top_k"}));
  state.batch = 1;
  const StoppedRun within({"train.top_k=[5]"}, state);
  CHECK_NOTHROW(within.find({"train.top_k=[5]"}));
  CHECK_THROWS_WITH(within.find({"train.top_k=[3]"}, {"train.top_k"}), Contains("stands within an epoch") &&
                                                                           Contains("train.top_k cannot change") &&
                                                                           Contains("train.epochs=2"));
  CHECK_THROWS_AS(
      within.find({"train.top_k=[5]", "train.gradient_nonzeros=true"}, {"train.top_k", "train.gradient_nonzeros"}),
      RunError);
}

TEST_CASE("a run is finished with its epochs trained and its results written") {
  TrainingState state;
  state.epoch = 2;
  const StoppedRun run({"train.epochs=2"}, state);
  CHECK_FALSE(run.find({"train.epochs=2"}).is_finished);
  std::ofstream(run.folder().results_json()) << "[{}]";
  CHECK_FALSE(run.find({"train.epochs=2"}).is_finished);
  std::ofstream(run.folder().results_text()) << "top1";
  for (const char* damaged : {"", "[]", "[{", "{}"}) {
    std::ofstream(run.folder().results_json()) << damaged;
    CHECK_FALSE(run.find({"train.epochs=2"}).is_finished);
  }
  std::ofstream(run.folder().results_json()) << "[{}]";
  CHECK(run.find({"train.epochs=2"}).is_finished);
  CHECK_FALSE(run.find({"train.epochs=3"}).is_finished);

  const StoppedRun untrained({"train.epochs=0", "select=[val/top5]"});
  std::ofstream(untrained.folder().results_text());
  std::ofstream(untrained.folder().results_json()) << "[{}]";
  CHECK(untrained.find({"train.epochs=0", "select=[val/top5]"}).is_finished);
  CHECK_FALSE(untrained.find({"train.epochs=2", "select=[val/top5]"}).is_finished);
}

TEST_CASE("a lost best checkpoint is reported, and forgotten where that may be") {
  TrainingState state;
  state.epoch = 3;
  StoppedRun run({"select=[val/top1, val/top5]", "train.epochs=9"}, state);
  Selection selection({"val/top1", "val/top5"});
  selection.update(2, std::vector<MetricValue>{{"val/top1", 0.5}});
  selection.update(3, std::vector<MetricValue>{{"val/top5", 0.5}});
  selection.add_to(run.checkpoint());
  run.save();
  CHECK_THROWS_WITH(run.find({"select=[val/top1, val/top5]", "train.epochs=9"}),
                    Contains("best-val-top1") && !Contains("best-val-top5") && Contains("--allow-inexact"));
  const ResumePoint point = run.find_inexactly({"select=[val/top1, val/top5]", "train.epochs=9"});
  CHECK_FALSE(point.checkpoint->tensors.contains("selection.val/top1"));
  CHECK(point.checkpoint->tensors.contains("selection.val/top5"));
  CHECK_THROWS_WITH(run.find_inexactly({"select=[val/top1, val/top5]", "train.epochs=3"}),
                    Contains("no epoch is left"));

  Checkpoint other = run.checkpoint();
  Selection of_another_run({"val/top1"});
  of_another_run.update(2, std::vector<MetricValue>{{"val/top1", 0.4}});
  of_another_run.add_to(other);
  save_checkpoint(run.folder().selected_checkpoint("val/top1"), other);
  CHECK_THROWS_WITH(run.find({"select=[val/top1, val/top5]", "train.epochs=9"}), Contains("of another epoch or run"));
  save_checkpoint(run.folder().selected_checkpoint("val/top1"), run.checkpoint());
  CHECK_NOTHROW(run.find({"select=[val/top1, val/top5]", "train.epochs=9"}));
}

TEST_CASE("a log that lost lines is seen before anything is opened") {
  const StoppedRun run({});
  std::ofstream(run.folder().metrics_jsonl()) << "";
  CHECK_THROWS_WITH(run.find({}), Contains("metrics.jsonl' has 0 bytes, and had 3;"));
  std::ofstream(run.folder().metrics_jsonl()) << "{ }";
  CHECK_THROWS_WITH(run.find({}), Contains("holds something else"));
  std::filesystem::remove(run.folder().metrics_jsonl());
  CHECK_THROWS_WITH(run.find({}), Contains("metrics.jsonl' is missing"));
}

TEST_CASE("a damaged provenance is seen before anything is changed") {
  const StoppedRun run({});
  std::ofstream(run.folder().provenance()) << "{";
  CHECK_THROWS_WITH(run.find({}), Contains("provenance.json' is damaged"));
  std::filesystem::remove(run.folder().provenance());
  CHECK_NOTHROW(run.find({}));
}

TEST_CASE("without its last checkpoint a run begins, but only where it left nothing") {
  const StoppedRun run({"optimizer.lr=0.1"});
  std::filesystem::remove(run.folder().last_checkpoint());
  CHECK_THROWS_WITH(run.find({"optimizer.lr=0.1"}), Contains("last.safetensors' is missing"));
  std::filesystem::remove(run.folder().metrics_jsonl());
  const ResumePoint point = run.find({"optimizer.lr=0.1"});
  CHECK_FALSE(point.checkpoint);
  CHECK(point.state.step == 0);
  CHECK_THROWS_WITH(run.find({"optimizer.lr=0.2"}), Contains("optimizer.lr: 0.1 there, 0.2 now"));
  std::ofstream(run.folder().results_json()) << "[]";
  CHECK_THROWS_WITH(run.find({"optimizer.lr=0.1"}), Contains("is missing"));
  std::filesystem::remove(run.folder().results_json());
  std::ofstream(run.folder().selected_checkpoint("val/top1")) << "";
  CHECK_THROWS_WITH(run.find({"optimizer.lr=0.1"}), Contains("is missing"));
}

TEST_CASE("a training state comes back from a checkpoint to the last bit") {
  TrainingState state;
  state.epoch = 3;
  state.batch = 17;
  state.step = 123456789012345;
  state.sum = {0.1, 42, 99};
  state.early_loss = 1e-300;
  state.late_loss = 1.0 / 3;
  state.seconds = 12.3456;
  Checkpoint checkpoint;
  add_state(state, checkpoint);
  const TrainingState read = read_state(checkpoint);
  CHECK(read.epoch == 3);
  CHECK(read.batch == 17);
  CHECK(read.step == 123456789012345);
  CHECK(read.sum.loss_sum == 0.1);
  CHECK(read.sum.correct == 42);
  CHECK(read.sum.count == 99);
  CHECK(read.early_loss == 1e-300);
  CHECK(read.late_loss == 1.0 / 3);
  CHECK(read.seconds == 12.346);  // to the millisecond
}

TEST_CASE("what steps have measured comes back, and leaves no trace where nothing was") {
  TrainingState state;
  state.sum.measured = {0.1, 1.0 / 3};
  Checkpoint checkpoint, without;
  add_state(state, checkpoint);
  CHECK(read_state(checkpoint).sum.measured == state.sum.measured);
  add_state({}, without);
  CHECK(without.tensors.size() + 1 == checkpoint.tensors.size());
  CHECK(read_state(without).sum.measured.empty());
  checkpoint.set_real("state.measured", 1);
  CHECK_THROWS_WITH(read_state(checkpoint), Catch::Contains("state.measured"));
}

TEST_CASE("what no two runs share is no tensor") {
  TrainingState fast, slow;
  fast.seconds = 1;
  slow.seconds = 2;
  Checkpoint a, b;
  add_state(fast, a);
  add_state(slow, b);
  CHECK(a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) CHECK(tensor.equal(b.tensors.at(name)));
  CHECK(a.metadata != b.metadata);
}

TEST_CASE("a state that lacks an entry is refused") {
  Checkpoint checkpoint;
  add_state({}, checkpoint);
  checkpoint.tensors.erase("state.batch");
  CHECK_THROWS_WITH(read_state(checkpoint), Catch::Contains("state.batch"));
}

}  // namespace
}  // namespace settrain

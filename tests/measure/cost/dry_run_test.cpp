#include "src/measure/cost/dry_run.h"

#include <cmath>

#include "tests/support/catch2.h"
#include "tests/train/image_folders.h"

namespace settrain {
namespace {

TEST_CASE("a dry run measures steps where the loss is not finite, too, and says so") {
  const test::SmallFolder folder(8);
  const auto check = [&](const std::string& lr, bool diverges) {
    CAPTURE(lr);
    Experiment run = folder.run({"optimizer.lr=" + lr, "train.epochs=3"});
    ProgressBar bar;
    const DryRun cost = dry_run(run, bar);
    CHECK(cost.divergence.empty() != diverges);
    CHECK(cost.steps == 18);
    CHECK(cost.step_s > 0);
    CHECK(std::isfinite(cost.train_s));
    CHECK(cost.eval_s > 0);
    CHECK(run.config.get<double>("optimizer.lr") == std::stod(lr));
    const std::string told = format_dry_run(run.dataset, 3, run.device, cost);
    CHECK((told.find("learning rate of 0") != std::string::npos) == diverges);
    CHECK(told.find("\ntime ") != std::string::npos);
  };
  check("1e30", true);
  check("0.01", false);
}

}  // namespace
}  // namespace settrain

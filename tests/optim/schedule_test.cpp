#include "src/optim/schedule.h"

#include <cmath>

#include "src/config/load.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

config::Config configured(const std::vector<std::string>& settings) {
  config::Schema schema;
  schema.sections.push_back(schedule_section());
  schema.rules.push_back(schedule_rule());
  return config::load(schema, {}, settings);
}

std::unique_ptr<Schedule> schedule(const std::vector<std::string>& settings, RunLength length) {
  return make_schedule(configured(settings), length);
}

TEST_CASE("a milestone counts completed epochs") {
  const auto multistep =
      schedule({"schedule.name=multistep", "schedule.milestones=[2, 3]", "schedule.gamma=0.1"}, {4, 10});
  CHECK(multistep->factor(19) == 1.0);
  CHECK(multistep->factor(20) == Approx(0.1).epsilon(1e-15));
  CHECK(multistep->factor(29) == Approx(0.1).epsilon(1e-15));
  CHECK(multistep->factor(30) == Approx(0.01).epsilon(1e-15));
}

TEST_CASE("cosine falls from 1 to the final factor, half-way in the middle") {
  const auto cosine = schedule({"schedule.name=cosine", "schedule.final_factor=0.2"}, {2, 50});
  CHECK(cosine->factor(0) == 1.0);
  CHECK(cosine->factor(50) == Approx(0.6));
  CHECK(cosine->factor(100) == Approx(0.2));
  for (int64_t step = 1; step < 100; ++step) CHECK(cosine->factor(step) < cosine->factor(step - 1));
}

TEST_CASE("warm-up rises linearly to the schedule's value, over a part of an epoch too") {
  const auto constant = schedule({"schedule.warmup_epochs=0.5"}, {2, 8});
  CHECK(constant->factor(0) == 0.25);
  CHECK(constant->factor(1) == 0.5);
  CHECK(constant->factor(3) == 1.0);
  CHECK(constant->factor(4) == 1.0);
}

TEST_CASE("milestones must rise") {
  CHECK_THROWS_AS(configured({"schedule.name=multistep", "schedule.milestones=[20, 20]"}), ConfigError);
}

}  // namespace
}  // namespace settrain

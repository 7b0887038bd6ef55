// TensorBoard itself reads what the writer writes.
#include <cstdlib>

#include "src/formats/tensorboard.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;

TEST_CASE("TensorBoard reads the scalars", "[slow]") {
  const std::string python = test::environment("SETTRAIN_PYTHON");
  SKIP_UNLESS(!python.empty(), "SETTRAIN_PYTHON is not set");
  const test::TemporaryFolder folder;
  {
    TensorboardWriter writer(folder / "events.out.tfevents.settrain");
    writer.add_scalars(0, {{"train/loss", 2.5}, {"val/top5", 0.1}});
    writer.add_scalars(300, {{"train/loss", 1e-30}});
  }
  // As after a resume.
  TensorboardWriter(folder / "events.out.tfevents.settrain").add_scalars(5'000'000'000, {{"train/loss", -3}});
  const std::string script = test::environment("SETTRAIN_SOURCE_DIR") + "/tests/formats/check_tensorboard.py";
  CHECK(std::system((python + " " + script + " " + folder.path().string()).c_str()) == 0);
}

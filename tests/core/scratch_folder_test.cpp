#include "src/core/scratch_folder.h"

#include <fstream>

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("a scratch folder goes away with what it holds") {
  std::filesystem::path path;
  {
    const ScratchFolder folder, other;
    path = folder.path();
    CHECK(other.path() != path);
    std::ofstream(path / "file") << "x";
    CHECK(std::filesystem::exists(path / "file"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

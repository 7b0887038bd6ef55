#include "src/data_tools/fetch.h"

#include <cstdlib>
#include <set>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::read_file;
namespace fs = std::filesystem;

namespace {

// An archive far away, made of a folder `tiny` with two files, and its recipe.
struct Tiny {
  test::TemporaryFolder folder;
  fs::path to = folder / "data";
  Download download;

  Tiny() {
    folder.write("far/tiny/train.bin", std::string("training"));
    folder.write("far/tiny/test.bin", std::string("test"));
    const std::string far = (folder / "far").string();
    REQUIRE(std::system(("tar -C " + far + " -czf " + far + "/tiny.tar.gz tiny").c_str()) == 0);
    const std::string content = read_file(folder / "far/tiny.tar.gz");
    download.name = "tiny";
    download.files = {
        {"tiny.tar.gz", "file://" + far + "/tiny.tar.gz", content.size(), {Checksum::Kind::kSha256, sha256(content)}}};
    download.archive = Archive::kTarGz;
    download.folder = "tiny";
    download.proof = {"train.bin", "test.bin"};
  }
  std::set<std::string> files_here() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(to)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".settrain-fetch")) names.insert(name);
    }
    return names;
  }
};

}  // namespace

TEST_CASE("an archive becomes a folder, and nothing else stays") {
  const Tiny tiny;
  CHECK_FALSE(find_complete(tiny.download, tiny.to));
  CHECK(fetch(tiny.download, tiny.to) == tiny.to / "tiny");
  CHECK(read_file(tiny.to / "tiny/train.bin") == "training");
  CHECK(tiny.files_here() == std::set<std::string>{"tiny"});
  CHECK(find_complete(tiny.download, tiny.to) == tiny.to / "tiny");
  // Again: nothing is asked for, since there is nothing far away.
  fs::remove(tiny.folder / "far/tiny.tar.gz");
  CHECK_NOTHROW(fetch(tiny.download, tiny.to));
}

TEST_CASE("a zip archive becomes a folder, and a broken one none") {
  Tiny tiny;
  const std::string far = (tiny.folder / "far").string();
  REQUIRE(std::system(("cd " + far + " && python3 -m zipfile -c tiny.zip tiny").c_str()) == 0);
  tiny.download.archive = Archive::kZip;
  tiny.download.files = {{"tiny.zip", "file://" + far + "/tiny.zip", 0, {}}};
  fetch(tiny.download, tiny.to);
  CHECK(read_file(tiny.to / "tiny/test.bin") == "test");

  tiny.folder.write("far/tiny.zip", read_file(tiny.folder / "far/tiny.zip").substr(0, 200));
  CHECK_THROWS_WITH(fetch(tiny.download, tiny.folder / "other"), Contains("unzip failed"));
  CHECK_FALSE(fs::exists(tiny.folder / "other/tiny"));
}

TEST_CASE("an archive put there by hand is used and kept") {
  Tiny tiny;
  fs::create_directory(tiny.to);
  fs::copy(tiny.folder / "far/tiny.tar.gz", tiny.to / "tiny.tar.gz");
  tiny.download.files[0].url = "file:///nowhere";
  fetch(tiny.download, tiny.to);
  CHECK(tiny.files_here() == std::set<std::string>{"tiny", "tiny.tar.gz"});
}

TEST_CASE("what a killed unpacking left is cleared away") {
  const Tiny tiny;
  tiny.folder.write("data/.tiny.unpacking/tiny/half.bin", {});
  fetch(tiny.download, tiny.to);
  CHECK_FALSE(fs::exists(tiny.to / "tiny/half.bin"));
  CHECK(tiny.files_here() == std::set<std::string>{"tiny"});
}

TEST_CASE("an archive that is something else leaves no folder") {
  Tiny tiny;
  tiny.download.proof.push_back("more.bin");
  CHECK_THROWS_WITH(fetch(tiny.download, tiny.to), Contains("no tiny/more.bin"));
  CHECK(tiny.files_here() == std::set<std::string>{"tiny.tar.gz"});

  Tiny broken;
  const fs::path junk = broken.folder.write("far/junk", std::string("this is no archive"));
  broken.download.files = {{"tiny.tar.gz", "file://" + junk.string(), 0, {}}};
  CHECK_THROWS_WITH(fetch(broken.download, broken.to), Contains("cannot unpack") && Contains("tar failed"));
  CHECK_FALSE(fs::exists(broken.to / "tiny"));
}

TEST_CASE("a folder with something else in it is left alone") {
  const Tiny tiny;
  tiny.folder.write("data/tiny/notes.txt", {});
  CHECK_THROWS_WITH(fetch(tiny.download, tiny.to), Contains("holds no train.bin"));
  CHECK(tiny.files_here() == std::set<std::string>{"tiny"});
}

TEST_CASE("one process at a time") {
  const Tiny tiny;
  fs::create_directory(tiny.to);
  const FileLock other(tiny.to / ".settrain-fetch-tiny");
  CHECK_THROWS_AS(fetch(tiny.download, tiny.to), RunError);
}

TEST_CASE("several files go into their folder") {
  Tiny tiny;
  tiny.download.archive = Archive::kNone;
  tiny.download.files = {{"train.bin", "", 8, {}}, {"test.bin", "", 4, {}}};
  const Download from = with_source(tiny.download, "file://" + (tiny.folder / "far/tiny").string(), "");
  CHECK(fetch(from, tiny.to) == tiny.to / "tiny");
  CHECK(read_file(tiny.to / "tiny/test.bin") == "test");
  CHECK(find_complete(from, tiny.to));
  CHECK_THROWS_AS(with_source(tiny.download, "", std::string(32, 'a')), ConfigError);
}

TEST_CASE("another checksum is another file") {
  const Tiny tiny;
  const Download other = with_source(tiny.download, "https://mirror/x", std::string(32, 'A'));
  CHECK(other.files[0].url == "https://mirror/x");
  CHECK(checksum_text(other.files[0].checksum) == "MD5 " + std::string(32, 'a'));
  CHECK(other.files[0].size == 0);
  for (const char* wrong : {"x", "0123", "zz345678901234567890123456789012"}) {
    CHECK_THROWS_WITH(with_source(tiny.download, "", wrong), Contains("--md5"));
  }
}

TEST_CASE("the shipped recipes are complete") {
  for (const Download& download : downloads(test::builtin_datasets())) {
    CAPTURE(download.name);
    CHECK_FALSE(download.proof.empty());
    CHECK_FALSE(download.licence.empty());
    CHECK(config_line(download, "x") == "data: {name: " + download.name + ", root: \"x\"}");
    CHECK(download.files.empty() == !download.by_hand.empty());
    CHECK((download.archive == Archive::kNone || download.files.size() == 1));
    for (const RemoteFile& file : download.files) {
      CHECK(file.size > 0);
      CHECK(file.checksum.hex.size() == (file.checksum.known() ? 32 : 0));
      CHECK_THAT(describe(download, "data"), Contains(file.url));
    }
    if (!download.files.empty()) continue;
    CHECK_THROWS_WITH(fetch(download, "/somewhere"),
                      Contains("image-net.org") && Contains("/somewhere/imagenet/train"));
    CHECK_FALSE(fs::exists("/somewhere"));
  }
  CHECK_THROWS_WITH(find_download(test::builtin_datasets(), "cifar10"), Contains("did you mean 'cifar100'?"));
}

#include <sys/stat.h>

#include <cstdlib>

#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/data_tools/fetch.h"
#include "tests/support/catch2.h"
#include "tests/support/child_process.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;
using test::read_file;
namespace fs = std::filesystem;

namespace {

// A "network" of one file, and a folder to download to.
struct Desk {
  test::TemporaryFolder folder;
  std::string content = std::string(100000, 'a') + std::string(50000, 'b');
  RemoteFile file;

  Desk() {
    const fs::path remote = folder.write("far/away.bin", content);
    file = {"near.bin", "file://" + remote.string(), content.size(), {Checksum::Kind::kSha256, sha256(content)}};
    fs::create_directory(folder / "to");
  }
  fs::path get() const { return download_file(file, folder / "to", FileLock(folder / "lock")); }
  std::string here(const std::string& name) const { return read_file(folder / ("to/" + name)); }
};

// A PATH with a curl of the test's own; "" for none.
class FakeCurl {
 public:
  explicit FakeCurl(const std::string& body) : path_(std::getenv("PATH")) {
    if (!body.empty()) fs::permissions(folder_.write("curl", "#!/bin/sh\n" + body + "\n"), fs::perms::owner_all);
    ::setenv("PATH", (folder_.path().string() + (body.empty() ? "" : ":" + path_)).c_str(), 1);
  }
  ~FakeCurl() { ::setenv("PATH", path_.c_str(), 1); }
  FakeCurl(const FakeCurl&) = delete;
  FakeCurl& operator=(const FakeCurl&) = delete;

 private:
  test::TemporaryFolder folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("a file is downloaded, checked and renamed") {
  Desk desk;
  CHECK(desk.get() == desk.folder / "to/near.bin");
  CHECK(desk.here("near.bin") == desk.content);
  CHECK_FALSE(fs::exists(desk.folder / "to/near.bin.part"));
  // The second time nothing is asked for.
  fs::remove(desk.folder / "far/away.bin");
  CHECK_NOTHROW(desk.get());
}

TEST_CASE("a download goes on where it was stopped") {
  Desk desk;
  // Other bytes than the file's show that they were not fetched anew; only the length is checked here.
  desk.file.checksum = {};
  desk.folder.write("to/near.bin.part", std::string(100000, 'x'));
  desk.get();
  CHECK(desk.here("near.bin") == std::string(100000, 'x') + std::string(50000, 'b'));
}

TEST_CASE("a part that is whole is only checked, and one that is too long is begun again") {
  Desk desk;
  desk.folder.write("to/near.bin.part", desk.content + "junk");
  desk.get();
  CHECK(desk.here("near.bin") == desk.content);

  Desk whole;
  whole.folder.write("to/near.bin.part", whole.content);
  whole.file.url = "file:///nowhere";
  whole.get();
  CHECK(whole.here("near.bin") == whole.content);
}

TEST_CASE("without a known size, a whole part is taken and a longer one begun again") {
  for (const char* more : {"", "junk"}) {
    Desk desk;
    desk.file.size = 0;
    desk.folder.write("to/near.bin.part", desk.content + more);
    desk.get();
    CHECK(desk.here("near.bin") == desk.content);
  }
}

TEST_CASE("a wrong checksum or size tells got and expected, and moves the file aside") {
  Desk desk;
  desk.file.checksum = {Checksum::Kind::kMd5, std::string(32, '0')};
  CHECK_THROWS_WITH(desk.get(), Contains("MD5 " + Md5().add(desk.content).hex()) && Contains("expected MD5 00000") &&
                                    Contains("near.bin.wrong") && Contains("By hand"));
  CHECK(desk.here("near.bin.wrong") == desk.content);
  CHECK_FALSE(fs::exists(desk.folder / "to/near.bin"));
  CHECK_FALSE(fs::exists(desk.folder / "to/near.bin.part"));

  Desk longer;
  longer.file.size += 1;
  CHECK_THROWS_WITH(longer.get(), Contains("150,000 bytes, expected 150,001"));
}

TEST_CASE("a file put there by hand is checked, and a wrong one is left alone") {
  Desk desk;
  desk.folder.write("to/near.bin", std::string("mine"));
  CHECK_THROWS_WITH(desk.get(), Contains("4 bytes") && Contains("Move it away"));
  CHECK(desk.here("near.bin") == "mine");
}

TEST_CASE("what is not there repeats the address and says what to do by hand") {
  Desk desk;
  desk.file.url += ".none";
  CHECK_THROWS_AS(desk.get(), DataError);
  CHECK_THROWS_WITH(desk.get(), Contains("away.bin.none") && Contains("no such file") &&
                                    Contains("put it at '" + (desk.folder / "to/near.bin").string() + "'"));
}

TEST_CASE("without curl the package is named") {
  const FakeCurl none("");
  CHECK_THROWS_WITH(Desk().get(), Contains("package curl") && Contains("By hand"));
}

TEST_CASE("a host that is not found is reported at once, and a broken connection is taken up again") {
  {
    const FakeCurl fake("echo 'curl: (6) Could not resolve host: far' >&2; exit 6");
    CHECK_THROWS_WITH(Desk().get(), Contains("Could not resolve host") && Contains("connected"));
  }
  // Breaks after every 60,000 bytes; $10 or so is the file: looked for by its option.
  const FakeCurl breaking(
      "while [ $# -gt 0 ]; do case $1 in --output) part=$2 ;; --url) url=${2#file://} ;; esac; shift; done\n"
      "touch \"$part\"; have=$(stat -c %s \"$part\")\n"
      "tail -c +$((have + 1)) \"$url\" | head -c 60000 >>\"$part\"\n"
      "[ $(stat -c %s \"$part\") = 150000 ] || { echo 'curl: (18) transfer closed' >&2; exit 18; }");
  Desk desk;
  desk.get();
  CHECK(desk.here("near.bin") == desk.content);
}

TEST_CASE("a disk that is full is an error, and what came stays to go on with") {
  Desk desk;
  CHECK(test::run_in_child([&] {
          test::limit_file_size(70000);
          try {
            desk.get();
          } catch (const DataError& problem) {
            return std::string(problem.what()).find("By hand") == std::string::npos ? 2 : 1;
          }
          return 0;
        }) == 1);
  desk.get();
  CHECK(desk.here("near.bin") == desk.content);
}

TEST_CASE("more than the disk has room for is refused before the start") {
  Desk desk;
  desk.file.size = uint64_t{1} << 60;
  CHECK_THROWS_WITH(desk.get(), Contains("are missing") && Contains("--to"));
}

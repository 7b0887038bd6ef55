// Files that cannot be images, found without decoding any.
#include "datasets/image_files.h"

#include <array>
#include <memory>
#include <string>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

const std::string kHeic(
    "\0\0\0\x18"
    "ftypheic",
    12),
    kJpeg("\xFF\xD8\xFF\xE0", 4);

// Splits of one table of files, whose names say the split: "train/a.png".
struct NamedFiles {
  test::TemporaryFolder folder;
  FileTable files{folder.path()};
  Split train{.name = "train", .images = {}, .ids = {}, .labels = {}};
  Split test{.name = "test", .images = {}, .ids = {}, .labels = {}};

  void add(const std::string& name, const std::string& contents) {
    folder.write(name, contents);
    Split& split = name.starts_with("train") ? train : test;
    split.ids.push_back(files.size());
    files.add(name);
  }

  void refuse(bool may_skip = false) {
    CHECK_FALSE(files.measure());
    train.images = test.images = std::make_shared<ImageFiles>(files, ImageFileOptions{});
    refuse_unreadable(std::array<const Split*, 2>{&train, &test}, may_skip);
  }
};

}  // namespace

TEST_CASE("empty files are counted by split, and the first are named") {
  NamedFiles named;
  named.add("train/good.png", std::string(2000, 'x'));  // not looked at
  CHECK_NOTHROW(named.refuse());
  for (int i = 0; i < 7; ++i) named.add("train/" + std::to_string(i) + ".png", "");
  named.add("test/z.jpg", std::string());
  CHECK_THROWS_AS(named.refuse(), DataError);
  CHECK_THROWS_WITH(named.refuse(), Contains("8 image files") && Contains("train: 7: ") && Contains("train/4.png'") &&
                                        Contains("and 2 more") && !Contains("train/5.png") && Contains("test: 1: ") &&
                                        Contains("test/z.jpg'") && !Contains("good"));
  named.train.ids.clear();  // files of no split do not matter
  named.test.ids.clear();
  CHECK_NOTHROW(named.refuse());
}

TEST_CASE("a listed file of another kind is refused by its contents, and a JPEG is one whatever its name") {
  NamedFiles named;
  named.add("train/a.heic", kJpeg);
  named.add("train/b.JFIF", kJpeg);
  named.add("train/large.jpg", kHeic + std::string(2000, 'x'));  // only decoding tells
  CHECK_NOTHROW(named.refuse());
  named.add("test/c.HEIC", kHeic);
  CHECK_THROWS_WITH(named.refuse(), Contains("1 image file ") && Contains("test/c.HEIC'"));
}

TEST_CASE(
    "what was left in place of an image is refused: small files of all splits, and any of those that are evaluated") {
  NamedFiles named;
  named.add("train/good.jpg", kJpeg);
  named.add("train/pointer.jpg", "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 3\n");
  named.add("test/good.png", kJpeg + std::string(2000, 'x'));
  named.add("test/page.png", "<!DOCTYPE html>" + std::string(2000, ' '));
  CHECK_THROWS_WITH(named.refuse(), Contains("2 image files") && Contains("train/pointer.jpg' (no JPEG") &&
                                        Contains("test/page.png' (no JPEG") && !Contains("good"));
}

TEST_CASE("a PNG or BMP that is of no size, or too large, is refused by its header") {
  const auto png = [](const std::string& size) {
    return "\x89PNG\r\n\x1A\n" + std::string("\0\0\0\rIHDR", 8) + size + std::string(2000, 'x');
  };
  NamedFiles named;
  named.add("test/good.png", png(std::string("\0\0\0\1\0\0\0\1", 8)));
  CHECK_NOTHROW(named.refuse());
  named.add("test/empty.png", png(std::string(8, '\0')));
  named.add("test/huge.png", png(std::string("\0\1\0\0\0\1\0\0", 8)));
  named.add("test/cut.bmp", "BM" + std::string(12, '\0') + std::string("\x28\0\0\0", 4));
  CHECK_THROWS_WITH(named.refuse(), Contains("3 image files") && Contains("empty.png' (a PNG without a size)") &&
                                        Contains("huge.png' (more pixels than are decoded)") &&
                                        Contains("cut.bmp' (a BMP without a size)"));
}

TEST_CASE("where bad images are skipped, only a split without any other is refused") {
  NamedFiles named;
  named.add("train/good.png", kJpeg);
  named.add("train/empty.png", "");
  named.add("test/empty.png", "");
  named.add("test/text.png", "no image");
  CHECK_THROWS_WITH(named.refuse(true), Contains("a split has no image that can be read") && Contains("test: 2: ") &&
                                            !Contains("\n  train: ") && !Contains("data.on_bad_image"));
  named.add("test/good.png", kJpeg);
  CHECK_NOTHROW(named.refuse(true));
}

TEST_CASE("images in memory are never refused") {
  const Split split{.name = "train",
                    .images = std::make_shared<MemoryImages>(std::vector<uint8_t>(12), 2, 2, 3),
                    .ids = {0},
                    .labels = {0}};
  CHECK_NOTHROW(refuse_unreadable(std::array<const Split*, 1>{&split}));
}

// Lists of image files, with one label a line or several.
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "datasets/image_list.h"
#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

struct ListFiles {
  test::TemporaryFolder folder;

  ListFiles() {
    for (const char* name : {"a.png", "b c.png", "sub/d.png"}) add_image(name);
    folder.write("one.txt", std::string("a.png 0\n"));
  }

  void add_image(const std::string& name) {
    std::vector<uint8_t> png;
    cv::imencode(".png", cv::Mat(6, 9, CV_8UC3, cv::Scalar(30, 20, 10)), png);
    folder.write(name, std::string(png.begin(), png.end()));
  }

  FileTable files{folder.path()};

  ImageList read(const std::string& text, int64_t num_classes = 5) {
    folder.write("list.txt", text);
    files = FileTable(folder.path());
    ImageList list = read_image_list(folder / "list.txt", num_classes, files);
    find_listed_files(list, files);
    return list;
  }

  // The data set with that training list; the other lists are one.txt.
  Dataset load(const std::string& train, const std::vector<std::string>& more = {}) const {
    folder.write("train.txt", train);
    std::vector<std::string> settings{"root=" + folder.path().string(), "train=train.txt", "val=one.txt",
                                      "test=one.txt", "num_classes=5"};
    settings.insert(settings.end(), more.begin(), more.end());
    return test::load_dataset("file_list", settings);
  }
};

}  // namespace

TEST_CASE("a list that is no UTF-8 text says so") {
  ListFiles lists;
  CHECK_THROWS_WITH(lists.read("\xFF\xFE" + std::string("a\0.\0", 4)), Contains("list.txt:1: the file is UTF-16 text"));
  CHECK_THROWS_WITH(lists.read("a.png 0\n" + std::string("b\0c", 3)), Contains("list.txt:2: a byte 0"));
}

TEST_CASE("a list's lines: paths with blanks, one label or several") {
  ListFiles lists;
  const ImageList list = lists.read("a.png 3\r\n\nb c.png\t4,0,2  \nsub/d.png 1");
  CHECK(lists.files.size() == 3);
  CHECK(lists.files.path(0) == lists.folder / "a.png");
  CHECK(lists.files.name(1) == "b c.png");
  CHECK(lists.files.name(2) == "sub/d.png");
  CHECK(list.labels == std::vector<int64_t>{3, 4, 1});
  REQUIRE_FALSE(list.label_sets.empty());
  CHECK(std::vector<int64_t>(list.label_sets.of(1).begin(), list.label_sets.of(1).end()) ==
        std::vector<int64_t>{4, 0, 2});
  CHECK(list.label_sets.of(2).size() == 1);
  CHECK(lists.read("a.png 3\nb c.png 0\n").label_sets.empty());
  CHECK(lists
            .read("\xEF\xBB\xBF"
                  "a.png 3\n")
            .labels == std::vector<int64_t>{3});
}

TEST_CASE("what is wrong with a line is said with file and line") {
  ListFiles lists;
  const std::string file = (lists.folder / "list.txt").string();
  const auto check = [&](const std::string& text, const std::string& place, const std::string& what) {
    CAPTURE(text);
    CHECK_THROWS_WITH(lists.read(text), Contains(file + place) && Contains(what));
  };
  check("a.png 0\na.png\n", ":2: ", "expected 'path label'");
  check("a.png zero\n", ":1: ", "whole numbers");
  check("a.png 1,\n", ":1: ", "whole numbers");
  check("a.png 1;2\n", ":1: ", "whole numbers");
  check("a.png 99999999999999999999\n", ":1: ", "from 0 to 4 (data.num_classes is 5), got 99999999999999999999");
  check(std::string(5000, 'x') + " 1\n", ":1: ", "xxx...");
  check("a.png 1,5\n", ":1: ", "from 0 to 4");
  check("a.png 1, 2\n", ":1: ", "without blanks");
  check("a.png -1\n", ":1: ", "from 0 to 4");
  check("a.png 1,2,1\n", ":1: ", "label 1 is named twice");
  check("\n\nabsent.png 1\n", ":3: ", "absent.png");
  check("absent.png 1\n", ":1: ", "Put it back, or take its line out of the list");
  check("\n \n", "'", "lists no image");
  CHECK_THROWS_MATCHES(
      read_image_list(lists.folder / "none.txt", 5, lists.files), DataError,
      Catch::Message("cannot open '" + (lists.folder / "none.txt").string() + "': No such file or directory"));
}

TEST_CASE("a data set of lists") {
  ListFiles lists;
  const Dataset dataset = lists.load("b c.png 3\nsub/d.png 4,0\n");
  CHECK(dataset.num_classes() == 5);
  CHECK(dataset.train.ids == std::vector<int64_t>{0, 1});
  CHECK(dataset.val.ids == std::vector<int64_t>{2});
  CHECK(dataset.test.ids == std::vector<int64_t>{3});
  CHECK(dataset.val.label_sets.empty());
  CHECK(count_classes(dataset.train, 5) == std::vector<int64_t>{1, 0, 0, 1, 1});
  Image image;
  dataset.train.images->read(1, image);
  CHECK((image.height == 6 && image.width == 9 && image.channels == 3));
  CHECK(std::vector<int>(image.pixels.begin(), image.pixels.begin() + 3) == std::vector<int>{10, 20, 30});

  const auto digest = [&](const std::string& train) { return lists.load(train).digest; };
  CHECK(digest("b c.png 3\nsub/d.png 4,0\n") == dataset.digest);
  CHECK(digest("b c.png 3\nsub/d.png 4,1\n") != dataset.digest);
  CHECK(digest("b c.png 3\nsub/../sub/d.png 4,0\n") != dataset.digest);
  CHECK(lists.load("b c.png 3\nsub/d.png 4\n").train.label_sets.empty());
}

TEST_CASE("absolute paths count in the digest, whatever the root") {
  ListFiles lists;
  const auto digest = [&](const char* name) {
    // The lists have absolute paths too, so that the relative root matters only for the digest.
    const std::string train = (lists.folder / "train.txt").string(), one = (lists.folder / "one.txt").string();
    lists.folder.write("one.txt", (lists.folder / "a.png").string() + std::string(" 0\n"));
    return lists
        .load((lists.folder / name).string() + " 1\n", {"train=" + train, "val=" + one, "test=" + one, "root=."})
        .digest;
  };
  lists.add_image("x/same.png");
  lists.add_image("y/same.png");
  CHECK(digest("x/same.png") != digest("y/same.png"));
}

TEST_CASE("a validation or test list of one class, and one that names an image twice, are warned of") {
  ListFiles lists;
  const auto log_of = [&](const std::string& val) {
    lists.folder.write("val.txt", val);
    return test::logged([&] { lists.load("b c.png 3\n", {"val=val.txt"}); });
  };
  lists.add_image("e.png");
  CHECK_THAT(log_of("sub/d.png 2\ne.png 2\n"), Contains("all 2 images of") && Contains("val.txt"));
  CHECK(log_of("sub/d.png 2\ne.png 1\n").empty());
  CHECK(log_of("sub/d.png 2,1\ne.png 2\n").empty());
  CHECK_THAT(log_of("sub/d.png 2\ne.png 1\n./e.png 1\n"),
             Contains("1 images are listed more than once") && Contains("val.txt:3, as in") && Contains("val.txt:2"));
}

TEST_CASE("an image in the home folder of a shell is not there, and the tilde is reported") {
  ListFiles lists;
  CHECK_THROWS_WITH(lists.load("~/a.png 1\n"), Contains("train.txt:1: ") && Contains("~ is not replaced"));
  lists.add_image("~/a.png");
  CHECK_NOTHROW(lists.load("~/a.png 1\n"));
}

TEST_CASE("a training image in another list is an error with both places") {
  ListFiles lists;
  CHECK_THROWS_WITH(lists.load("b c.png 3\nsub/../a.png 4\n"), Contains("one.txt:1: ") && Contains("train.txt:2"));
}

TEST_CASE("a list that is not there names its key and where it was looked for") {
  ListFiles lists;
  CHECK_THROWS_WITH(lists.load("b c.png 3\n", {"val=absent.txt"}),
                    Contains("data.val") && Contains("absent.txt") && Contains("data.root"));
}

TEST_CASE("a training image in another list is found however its path is written") {
  ListFiles lists;
  for (const std::string& path : {std::string("./a.png"), std::string("sub//../a.png"),
                                  (lists.folder / "a.png").string(), (lists.folder / "sub/../a.png").string()}) {
    CAPTURE(path);
    CHECK_THROWS_WITH(lists.load("sub/d.png 1\n" + path + " 4\n"), Contains("train.txt:2"));
  }
}

TEST_CASE("calibration images may have a list of their own") {
  ListFiles lists;
  lists.add_image("e.png");
  lists.folder.write("calibration.txt", std::string("sub/d.png 2\ne.png 1\n"));
  const Dataset plain = lists.load("b c.png 1\n");
  CHECK(plain.calibration.size() == 0);
  const Dataset dataset = lists.load("b c.png 1\n", {"calibration=calibration.txt"});
  CHECK(dataset.calibration.name == "calibration");
  CHECK(dataset.calibration.labels == std::vector<int64_t>{2, 1});
  CHECK(dataset.val.size() == 1);
  CHECK(dataset.digest != plain.digest);
  CHECK_THROWS_WITH(lists.load("e.png 1\n", {"calibration=calibration.txt"}),
                    Contains("calibration.txt:2") && Contains("is a training image too"));
  CHECK_THROWS_WITH(lists.load("b c.png 1\n", {"calibration=gone.txt"}), Contains("gone.txt"));
}

#include "datasets/recorded_files.h"

#include <array>
#include <memory>

#include "datasets/image_files.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

struct ListedFileOfTest {
  std::string name;
  int64_t size, label;
};

// A data set whose training images are these files, and whose test images are the others. The files are not there.
Dataset data_of(const std::vector<ListedFileOfTest>& train, const std::vector<ListedFileOfTest>& test,
                const std::string& root = "root") {
  FileTable files(root);
  for (const auto* part : {&train, &test}) {
    for (const ListedFileOfTest& file : *part) files.add(file.name, file.size);
  }
  Dataset data;
  data.class_names = {"ash", "elm"};
  data.channels = 3;
  const auto images = std::make_shared<ImageFiles>(std::move(files), ImageFileOptions{});
  int64_t id = 0;
  const auto split_of = [&](const char* name, const std::vector<ListedFileOfTest>& part) {
    Split split{name, images, {}, {}};
    for (const ListedFileOfTest& file : part) {
      split.ids.push_back(id++);
      split.labels.push_back(file.label);
    }
    return split;
  };
  data.train = split_of("train", train);
  data.test = split_of("test", test);
  for (Split* split : {&data.train, &data.test}) split->digest = digest_of(*split, data);
  return data;
}

const std::vector<ListedFileOfTest> kTrainingFiles{{"train/a.png", 10, 0}, {"train/b.png", 20, 1}};
const std::vector<ListedFileOfTest> kTestFiles{{"test/a.png", 30, 0}, {"test/b.png", 40, 1}, {"test/new\nline", 50, 1}};

std::string with_list_of(const Dataset& data, const test::TemporaryFolder& folder) {
  const std::array<const Split*, 2> splits{&data.train, &data.test};
  return folder.write("list.gz", list_of_files(splits)).string();
}

TEST_CASE("a split's digest is of its own files, their sizes and labels, wherever they lie") {
  const Dataset data = data_of(kTrainingFiles, kTestFiles);
  CHECK(data.train.digest != data.test.digest);
  const Dataset moved = data_of(kTrainingFiles, kTestFiles, "elsewhere");
  CHECK(moved.train.digest == data.train.digest);
  CHECK(moved.test.digest == data.test.digest);
  for (size_t i = 0; i < kTestFiles.size(); ++i) {
    std::vector<ListedFileOfTest> larger = kTestFiles, relabelled = kTestFiles, renamed = kTestFiles,
                                  removed = kTestFiles;
    ++larger[i].size;
    relabelled[i].label = 1 - relabelled[i].label;
    renamed[i].name += "x";
    removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
    for (const auto& other : {larger, relabelled, renamed, removed}) {
      const Dataset changed = data_of(kTrainingFiles, other);
      CHECK(changed.test.digest != data.test.digest);
      CHECK(changed.train.digest == data.train.digest);
    }
  }
  // The ids of training images count, for augmentation follows from them; those of others do not.
  const Dataset more = data_of({kTrainingFiles[0], {"train/aa.png", 1, 0}, kTrainingFiles[1]}, kTestFiles);
  CHECK(more.test.digest == data.test.digest);
  Dataset shifted = data;
  for (int64_t& id : shifted.train.ids) id = 1 - id;
  std::swap(shifted.train.labels[0], shifted.train.labels[1]);
  CHECK(digest_of(shifted.train, shifted) != data.train.digest);
}

TEST_CASE("images in memory are told apart by their origin and their ids") {
  Dataset data;
  data.class_names = {"ash", "elm"};
  const auto digest = [&](const std::string& origin, int64_t id) {
    Split split{"test", std::make_shared<MemoryImages>(std::vector<uint8_t>(4), 1, 1, 1, origin), {id}, {0}};
    return digest_of(split, data);
  };
  CHECK(digest("file", 1) == digest("file", 1));
  CHECK(digest("file", 1) != digest("other file", 1));
  CHECK(digest("file", 1) != digest("file", 2));
}

TEST_CASE("the first file that differs is named, with how it does") {
  const test::TemporaryFolder folder;
  const Dataset data = data_of(kTrainingFiles, kTestFiles);
  const std::string list = with_list_of(data, folder);
  const auto difference = [&](const std::vector<ListedFileOfTest>& now) {
    return difference_of_files(list, data.test.digest, data_of(kTrainingFiles, now).test);
  };
  CHECK(difference(kTestFiles).text.empty());
  CHECK(difference(kTestFiles).same_names);

  auto now = kTestFiles;
  now[1].size = 41;
  CHECK_THAT(difference(now).text, Contains("'test/b.png' has 41 bytes, and had 40") && Contains("of 3 images 1 has"));
  CHECK(difference(now).same_names);
  now[2].label = 0;
  CHECK_THAT(difference(now).text, Contains("test/b.png") && Contains("of 3 images 2 have"));
  now = kTestFiles;
  now[2].label = 0;
  CHECK_THAT(difference(now).text, Contains("'test/new\\x0Aline' has the label 0, and had 1"));
  now = kTestFiles;
  now.erase(now.begin());
  CHECK_THAT(difference(now).text, Contains("'test/a.png' is missing") && Contains("of 3 images 1 is"));
  CHECK_FALSE(difference(now).same_names);
  now = kTestFiles;
  now.push_back({"test/c.png", 1, 0});
  CHECK_THAT(difference(now).text, Contains("'test/c.png' is new; 1 is new") && !Contains("of 3"));
  CHECK_FALSE(difference(now).same_names);
  now = {{"test/b.png", 41, 1}};
  for (int i = 0; i < 9; ++i) now.push_back({"test/d" + std::to_string(i), 1, 0});
  CHECK_THAT(difference(now).text, Contains("of 3 images 1 has changed and 2 are missing; 9 are new"));
  now = kTestFiles;
  std::swap(now[0], now[1]);
  CHECK_THAT(difference(now).text, Contains("order"));
}

TEST_CASE("a list that is missing, damaged, or of another time names nothing") {
  const test::TemporaryFolder folder;
  const Dataset data = data_of(kTrainingFiles, kTestFiles);
  const std::string list = with_list_of(data, folder);
  auto changed = kTestFiles;
  changed[0].size = 31;
  const Split now = data_of(kTrainingFiles, changed).test;
  CHECK_FALSE(difference_of_files(list, data.test.digest, now).text.empty());
  CHECK(difference_of_files(folder / "nowhere.gz", data.test.digest, now).text.empty());
  CHECK(difference_of_files(list, now.digest, now).text.empty());
  std::filesystem::resize_file(list, std::filesystem::file_size(list) - 12);
  CHECK(difference_of_files(list, data.test.digest, now).text.empty());
  folder.write("list.gz", std::string("no list"));
  CHECK(difference_of_files(list, data.test.digest, now).text.empty());
}

TEST_CASE("a list has no splits whose images are no files, and is small") {
  Split memory{"test", std::make_shared<MemoryImages>(std::vector<uint8_t>(4), 1, 1, 1), {0}, {0}};
  const std::array<const Split*, 1> none{&memory};
  CHECK(list_of_files(none).empty());

  std::vector<ListedFileOfTest> many;
  for (int i = 0; i < 10000; ++i)
    many.push_back({"train/n0144" + std::to_string(i / 1000) + "/IMG_" + std::to_string(i) + ".JPEG",
                    100000 + i * 7919 % 50000, i / 5000});
  const Dataset data = data_of(many, kTestFiles);
  const std::array<const Split*, 1> splits{&data.train};
  CHECK(list_of_files(splits).size() < 10 * many.size());
}

}  // namespace
}  // namespace settrain

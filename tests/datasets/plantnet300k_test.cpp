// Pl@ntNet-300K's folders and JSON files.
#include "datasets/readers.h"
#include "src/core/error.h"
#include "tests/datasets/tiny_images.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

Dataset load_plants(const std::string& root, const std::vector<std::string>& sizes) {
  std::vector<std::string> settings{"root=" + root};
  const std::vector<std::string> names = {"classes", "genera", "train", "val", "test"};
  for (size_t i = 0; i < names.size(); ++i) settings.push_back("expected." + names[i] + "=" + sizes.at(i));
  return test::load_dataset("plantnet300k", settings);
}

// Three species of two genera: four training images, two of validation, one of test.
struct Plants : test::TinyImages {
  std::string before;  // of the splits' folders: "images_", "images/" or nothing

  explicit Plants(std::string the_layout = "images/") : before(std::move(the_layout)) {
    for (const char* name : {"train/100/a.jpg", "train/100/b.jpg", "train/20/c.jpg", "train/3/d.jpg", "val/100/e.jpg",
                             "val/20/f.jpg", "test/3/g.jpg"}) {
      add(before + name);
    }
    folder.write(
        "plantnet300K_species_id_2_name.json",
        std::string(R"({"20": "Acer rubrum L.", "3": "Acer × freemanii", "100": "Tilia cordata", "7": "rose"})"));
  }
  Dataset load(int64_t classes = 3, int64_t genera = 2, int64_t train = 4, int64_t val = 2, int64_t test = 1) const {
    return load_plants(root(), {std::to_string(classes), std::to_string(genera), std::to_string(train),
                                std::to_string(val), std::to_string(test)});
  }
  Dataset load_any() const { return load_plants(root(), std::vector<std::string>(5, "any")); }
};

}  // namespace

TEST_CASE("Pl@ntNet-300K in each of its layouts") {
  const Plants plants(GENERATE("images_", "images/", ""));
  const Dataset dataset = plants.load();
  CHECK(dataset.class_keys == std::vector<std::string>{"100", "20", "3"});
  CHECK(dataset.class_names == std::vector<std::string>{"Tilia cordata", "Acer rubrum L.", "Acer × freemanii"});
  CHECK(dataset.superclass_names == std::vector<std::string>{"Tilia", "Acer"});
  CHECK(dataset.superclass_of == std::vector<int64_t>{0, 1, 1});
  CHECK(dataset.normalisation == "imagenet");
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 0, 1, 2});
  CHECK(dataset.val.labels == std::vector<int64_t>{0, 1});
  CHECK(dataset.test.labels == std::vector<int64_t>{2});
  CHECK(dataset.test.ids == std::vector<int64_t>{6});
  CHECK_THAT(dataset.test.images->describe(6), Contains(plants.before + "test/3/g.jpg"));
}

TEST_CASE("a folder of Pl@ntNet-300K with another name is named, in each layout") {
  const Plants plants(GENERATE("images_", "images/", ""));
  const auto move = [&](const std::string& from, const std::string& to) {
    std::filesystem::rename(plants.folder / (plants.before + from), plants.folder / (plants.before + to));
  };
  move("val", "Valid");
  CHECK_THROWS_WITH(plants.load_any(), Contains("no folder " + plants.before + "val") && Contains("Valid' is there"));
  move("train", "training");
  CHECK_THROWS_WITH(plants.load_any(), Contains(plants.before + "training' is there: rename it to " +
                                                (plants.before == "images_" ? "images_train" : "train")));
}

TEST_CASE("the file of classes sets their order") {
  const Plants plants;
  const std::string digest = plants.load().digest;
  const auto order = [&](const char* text) { plants.folder.write("class_idx_to_species_id.json", std::string(text)); };
  order(R"({"0": "3", "1": "100", "2": 20})");
  const Dataset dataset = plants.load();
  CHECK(dataset.class_keys == std::vector<std::string>{"3", "100", "20"});
  CHECK(dataset.train.labels == std::vector<int64_t>{0, 1, 1, 2});
  CHECK(dataset.superclass_names == std::vector<std::string>{"Acer", "Tilia"});
  CHECK(dataset.digest != digest);

  order(R"({"0": "3", "1": "100", "2": "21", "3": "22"})");
  CHECK_THROWS_WITH(plants.load(), Contains("2 of its 4 ids have no folder in images/train; the first is 21") &&
                                       Contains("1 folders of images/train are not in it; the first is 20"));
  order(R"({"0": "3", "2": "100", "3": "20"})");
  CHECK_THROWS_WITH(plants.load(), Contains("class_idx_to_species_id.json") && Contains("none for class 1"));
  order(R"({"0": "3", "1": "3", "2": "20"})");
  CHECK_THROWS_WITH(plants.load(), Contains("names the id 3 twice"));
  order(R"({"0": "3", "1": null, "2": "20"})");
  CHECK_THROWS_WITH(plants.load(), Contains("expected an id for class 1, got null"));
  order("[1, 2");
  CHECK_THROWS_WITH(plants.load(), Contains("class_idx_to_species_id.json") && Contains("is not valid JSON"));
  order("[1, 2]");
  CHECK_THROWS_WITH(plants.load(), Contains("expected a JSON object"));
  order(("{\"0\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}").c_str());
  CHECK_THROWS_WITH(plants.load(), Contains("class_idx_to_species_id.json") && Contains("nested more than 32 deep"));
}

TEST_CASE("what is wrong with the names of species is said") {
  const Plants plants;
  const auto names = [&](const char* text) {
    plants.folder.write("plantnet300K_species_id_2_name.json", std::string(text));
  };
  names(R"({"20": "Acer rubrum", "100": "Tilia cordata"})");
  CHECK_THROWS_WITH(plants.load(), Contains("species_id_2_name.json") && Contains("no name for the folder 3"));
  names(R"({"20": " ", "100": "Tilia cordata"})");
  CHECK_THROWS_WITH(plants.load(), Contains("expected a name for the id 20"));

  std::filesystem::remove(plants.folder / "plantnet300K_species_id_2_name.json");
  CHECK_THROWS_WITH(plants.load(), Contains("no file plantnet300K_species_id_2_name.json (data.names)"));
  const Dataset dataset = plants.load_any();
  CHECK(dataset.class_names == dataset.class_keys);
  CHECK(dataset.superclass_of.empty());
}

TEST_CASE("the advice to check no sizes is given only where it helps") {
  const Plants plants;
  CHECK_THROWS_WITH(plants.load(4), Contains("--set data.expected=any"));
  std::filesystem::rename(plants.folder / "images/val", plants.folder / "images/elsewhere");
  CHECK_THROWS_WITH(plants.load(4), Contains("images/val") && !Contains("data.expected=any"));
  CHECK_THROWS_WITH(plants.load_any(), Contains("images/val") && !Contains("data.expected=any"));
}

TEST_CASE("all that differs from the expected sizes is one error") {
  const Plants plants;
  CHECK_NOTHROW(plants.load_any());
  CHECK_THROWS_AS(plants.load(4), DataError);
  CHECK_THROWS_WITH(plants.load(4, 3, 5, 6, 7), Contains("partial download") && Contains("another data set") &&
                                                    Contains(plants.root()) &&
                                                    Contains("classes: 3, expected 4 (data.expected.classes)") &&
                                                    Contains("genera: 2, expected 3 (data.expected.genera)") &&
                                                    Contains("train: 4, expected 5 (data.expected.train)") &&
                                                    Contains("val: 2, expected 6 (data.expected.val)") &&
                                                    Contains("test: 1, expected 7 (data.expected.test)") &&
                                                    Contains("settrain data fetch plantnet300k") && Contains("any"));
  CHECK_THROWS_WITH(plants.load(3, 2, 4, 6, 1), !Contains("train: ") && Contains("val: 2, expected 6"));
}

TEST_CASE("a download that stopped early is told apart, whatever is missing") {
  const Plants plants;
  std::filesystem::remove_all(plants.folder / "images/train/3");
  std::filesystem::remove_all(plants.folder / "images/val");
  CHECK_THROWS_WITH(plants.load(), Contains("classes: 2, expected 3") && Contains("no folder images/val") &&
                                       Contains("1 folders of images/test are not in images/train; the first is 3") &&
                                       Contains("test: 0, expected 1"));
}

TEST_CASE("the metadata say which files are missing") {
  const Plants plants;
  const auto metadata = [&](const std::string& text) { plants.folder.write("plantnet300K_metadata.json", text); };
  metadata(R"({"a": {"species_id": "100", "obs_id": "1", "organ": "leaf", "split": "train"},
               "b": {"species_id": "100", "split": "train"}, "x": {"species_id": "20", "split": "train"},
               "y": {"species_id": 3, "split": "train"}, "g": {"split": "test", "species_id": "3"},
               "z": {"species_id": "20", "split": "val"}})");
  CHECK_NOTHROW(plants.load());
  CHECK_THROWS_WITH(
      plants.load(3, 2, 6),
      Contains("2 of the 4 files of train that plantnet300K_metadata.json lists are missing; the first is "
               "images/train/20/x.jpg") &&
          Contains("1 of the 1 files of val that") && Contains("images/val/20/z.jpg") && !Contains("files of test"));
  metadata(R"({"a": {"species_id": "100"}})");
  CHECK_THROWS_WITH(plants.load(3, 2, 6),
                    Contains("plantnet300K_metadata.json") && Contains("'a'") && Contains("expected a split"));
  metadata(R"({"a": {"split": "val"}})");
  CHECK_THROWS_WITH(plants.load(3, 2, 6), Contains("'a'") && Contains("species_id") && !Contains("expected a split"));
  metadata(R"({"a": {"species_id": "100", "split": "train")");
  CHECK_THROWS_WITH(plants.load(3, 2, 6), Contains("plantnet300K_metadata.json") && Contains("cannot be read as JSON"));
}

TEST_CASE("the metadata say what an image shows, who took it, and its licence") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    std::vector<ImageRecord> records;
    read_image_records(folder.write("meta.json", text), [&](ImageRecord&& record) { records.push_back(record); });
    return records;
  };
  const auto records = read(R"({"a": {"species_id": "100", "obs_id": "17", "organ": "leaf", "split": "train",
    "author": "Ada", "license": "cc-by-sa"}, "b": {"species_id": 3, "obs_id": 17, "organ": null, "split": "test"}})");
  REQUIRE(records.size() == 2);
  CHECK(records[0].image == "a");
  CHECK(records[0].class_key == "100");
  CHECK(records[0].split == "train");
  CHECK(records[0].observation == "17");
  CHECK(records[0].organ == "leaf");
  CHECK(records[0].author == "Ada");
  CHECK(records[0].licence == "cc-by-sa");
  CHECK(records[1].class_key == "3");
  CHECK(records[1].observation == "17");
  CHECK(records[1].organ.empty());

  const auto refuses = [&](const std::string& text, const std::string& what) {
    CHECK_THROWS_WITH(read(text), Contains("meta.json") && Contains(what));
  };
  refuses(R"({"a": {"species_id": "1", "split": "train", "organ": ["leaf"]}})", "organ of 'a'");
  refuses(R"({"a": {"species_id": "1", "split": "train"}, "b": "leaf"})", "'b'");
  refuses(R"({"a": {"species_id": "1", "split": "dev"}})", "'a'");
  refuses(R"({"a": ["1", "train"]})", "'a'");
  refuses("{\n\"a\": {\"species_id\": \"1\", }", "line 2");
  refuses("[1, 2]", "object");
}

TEST_CASE("Pl@ntNet-300K that is not there says where it looked and where it comes from") {
  std::string root = "/no/such/folder";
  const auto load = [&] { test::load_dataset("plantnet300k", {"root=" + root}); };
  CHECK_THROWS_AS(load(), DataError);
  CHECK_THROWS_WITH(load(), Contains("/no/such/folder") && Contains("is not there") &&
                                Contains("https://doi.org/10.5281/zenodo.5645731"));
  const test::TemporaryFolder empty;
  root = empty.path().string();
  CHECK_THROWS_WITH(load(), Contains("no folder of training images") && Contains("images_train/"));
}

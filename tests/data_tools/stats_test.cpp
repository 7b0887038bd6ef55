#include "src/data_tools/stats.h"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "datasets/dataset.h"
#include "datasets/image_files.h"
#include "src/data_tools/stats_files.h"
#include "tests/data_tools/odd_folder.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

ProgressOutput silent() {
  return {.terminal = nullptr, .columns = nullptr, .line = [](std::string_view) {}, .seconds = [] { return 0.0; }};
}

Split made_split(const std::string& name, std::vector<int64_t> labels) {
  const auto n = std::ssize(labels);
  const auto images = std::make_shared<MemoryImages>(std::vector<uint8_t>(static_cast<size_t>(n) * 2 * 3), 2, 3, 1);
  std::vector<int64_t> ids(labels.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
  return {name, images, std::move(ids), std::move(labels)};
}

// Images of 2x3 pixels in memory.
LoadedData made_data(std::vector<std::string> classes, std::vector<int64_t> train, std::vector<int64_t> val,
                     std::vector<int64_t> test) {
  LoadedData data;
  data.dataset.name = "made";
  data.dataset.class_names = std::move(classes);
  data.dataset.channels = 1;
  data.dataset.height = 2;
  data.dataset.width = 3;
  data.dataset.train = made_split("train", std::move(train));
  data.dataset.val = made_split("val", std::move(val));
  data.dataset.test = made_split("test", std::move(test));
  data.clean_labels = data.dataset.train.labels;
  data.label_noise.kind = "none";
  return data;
}

std::vector<int64_t> labels_with(const std::vector<int64_t>& counts) {
  std::vector<int64_t> labels;
  for (size_t c = 0; c < counts.size(); ++c)
    labels.insert(labels.end(), static_cast<size_t>(counts[c]), static_cast<int64_t>(c));
  return labels;
}

}  // namespace

TEST_CASE("a calibration split is counted where there is one") {
  LoadedData data = made_data({"ash", "elm"}, labels_with({3, 2}), labels_with({1, 1}), labels_with({1, 2}));
  CHECK(data_stats(data, 1, silent()).splits.size() == 3);
  data.dataset.calibration = made_split("calibration", labels_with({4, 0}));
  const DataStats stats = data_stats(data, 1, silent());
  REQUIRE(stats.splits.size() == 4);
  CHECK(stats.splits[3].counts == std::vector<int64_t>{4, 0});
  CHECK_THAT(stats_text(stats), Contains("calibration"));
  CHECK(nlohmann::json::parse(stats_json(stats)).at("splits").contains("calibration"));
}

TEST_CASE("Counts, shot groups and missing classes") {
  const auto stats = data_stats(made_data({"ash", "elm", "fir", "oak"}, labels_with({19, 20, 100, 101}),
                                          labels_with({1, 0, 2, 0}), labels_with({0, 0, 0, 5})),
                                1, silent());
  const SplitStats &train = stats.splits[0], &val = stats.splits[1], &test = stats.splits[2];
  CHECK(train.images == 240);
  CHECK(train.labels == 240);
  CHECK(train.counts == std::vector<int64_t>{19, 20, 100, 101});
  CHECK(train.per_class.median == 60);
  CHECK(train.per_class.mean == 60);
  CHECK(train.fewest == std::vector<int64_t>{0});
  CHECK(train.most == std::vector<int64_t>{3});
  CHECK(train.missing.empty());
  CHECK(train.shots[0].classes == 1);
  CHECK(train.shots[1].classes == 2);
  CHECK(train.shots[2].classes == 1);
  CHECK(train.shots[1].images == 120);
  // Groups go by training images in every split.
  CHECK(val.shots[0].images == 1);
  CHECK(val.shots[1].images == 2);
  CHECK(val.shots[2].images == 0);
  CHECK(test.shots[2].images == 5);
  CHECK(val.missing == std::vector<int64_t>{1, 3});
  CHECK(test.gini == Approx(0.75));
  CHECK_FALSE(stats.has_noise());

  const std::string text = stats_text(stats);
  CHECK_THAT(text, Contains("made: 4 classes\n") && Contains("1 few-shot, 2 medium-shot, 1 many-shot"));
  CHECK_THAT(text, Contains("test  has no image of 3 classes: ash, elm, fir\n") && Contains("label noise: none"));
  CHECK_THAT(text, Contains("train most 101 (oak), fewest 19 (ash)\n"));
}

TEST_CASE("Images in memory have one size") {
  const auto stats = data_stats(made_data({"ash"}, {0, 0}, {0}, {0}), 1, silent());
  const ImageSizes& sizes = stats.splits[0].sizes;
  CHECK_FALSE(sizes.files);
  CHECK(sizes.height.min == 2);
  CHECK(sizes.width.max == 3);
  CHECK(sizes.aspect.mean == 1.5);
  CHECK(stats.splits[0].gini == 0);  // one class
  CHECK_THAT(stats_text(stats), Contains("images are 2 pixels high and 3 wide\n") && !Contains("EXIF"));
}

TEST_CASE("Of label sets every label counts") {
  LoadedData data = made_data({"ash", "elm", "oak"}, {0, 2}, {0}, {1});
  data.dataset.train.label_sets.add(std::vector<int64_t>{0, 1});
  data.dataset.train.label_sets.add(std::vector<int64_t>{2, 1});
  const auto stats = data_stats(data, 1, silent());
  CHECK(stats.splits[0].images == 2);
  CHECK(stats.splits[0].labels == 4);
  CHECK(stats.splits[0].counts == std::vector<int64_t>{1, 2, 1});
  CHECK_THAT(stats_text(stats), Contains("labels"));
}

TEST_CASE("The noise matrix") {
  using Cells = std::vector<NoiseCell>;
  const std::vector<int64_t> clean{0, 0, 0, 1, 1, 2}, given{0, 1, 1, 1, 0, 2};
  const Cells cells = noise_matrix(clean, given);
  CHECK(cells == Cells{{0, 0, 1}, {0, 1, 2}, {1, 0, 1}, {1, 1, 1}, {2, 2, 1}});
  CHECK(largest_confusions(cells, 5) == Cells{{0, 1, 2}, {1, 0, 1}});
  CHECK(largest_confusions(cells, 1) == Cells{{0, 1, 2}});
  CHECK_THROWS_AS(noise_matrix({0}, {}), std::invalid_argument);

  LoadedData data = made_data({"ash", "elm", "oak"}, given, {0}, {1});
  data.clean_labels = clean;
  data.label_noise.kind = "uniform";
  data.label_noise.changed = 3;
  data.label_noise.nominal_rate = 0.5;
  const auto stats = data_stats(data, 1, silent());
  CHECK_THAT(stats_text(stats), Contains("3 of 6 training labels changed") && Contains("2  ash -> elm"));
  const auto json = nlohmann::json::parse(stats_json(stats));
  CHECK(json["label_noise"]["matrix"] == nlohmann::json::parse("[[0,0,1],[0,1,2],[1,0,1],[1,1,1],[2,2,1]]"));
  CHECK(json["label_noise"]["changed"] == 3);
  CHECK_FALSE(json["label_noise"].contains("within_superclass"));
}

TEST_CASE("Superclasses and JSON") {
  LoadedData data = made_data({"ash", "elm", "fir"}, {0, 0, 1, 2}, {0}, {1});
  data.dataset.superclass_names = {"broad", "needle"};
  data.dataset.superclass_of = {0, 0, 1};
  const auto stats = data_stats(data, 1, silent());
  REQUIRE(stats.superclasses.size() == 2);
  CHECK(stats.superclasses[0].classes == 2);
  CHECK(stats.superclasses[0].train_images == 3);
  CHECK_THAT(stats_text(stats), Contains("3 classes in 2 superclasses of 1 (needle) to 2 (broad)"));

  const auto json = nlohmann::json::parse(stats_json(stats));
  CHECK(json["classes"].size() == 3);
  CHECK(json["superclasses"][1]["name"] == "needle");
  CHECK(json["splits"]["train"]["class_counts"] == std::vector<int64_t>{2, 1, 1});
  CHECK(json["splits"]["train"]["lorenz"] == std::vector<double>{0, 0.25, 0.5, 1});
  CHECK(json["splits"]["val"]["classes_without_image"] == std::vector<int64_t>{1, 2});
  CHECK(json["splits"]["test"]["shot_groups"]["few"]["images"] == 1);
  CHECK(json["label_noise"] == nlohmann::json{{"kind", "none"}});
}

TEST_CASE("Sizes of files come from their headers, bad ones included") {
  const test::OddFolder folder;
  LoadedData data{folder.load(), {}, {}};
  data.label_noise.kind = "none";
  for (const int64_t workers : {1, 3}) {
    const auto stats = data_stats(data, workers, silent());
    const ImageSizes& sizes = stats.splits[0].sizes;
    CHECK(sizes.files);
    CHECK(sizes.height.min == 37);
    CHECK(sizes.width.max == 53);
    CHECK(sizes.rotated == 1);
    CHECK(sizes.without_size == 2);  // the empty one and the text
    CHECK(sizes.too_large == 0);
    std::map<std::string, int64_t> formats;
    for (const FormatCount& count : sizes.formats) formats[count.format] = count.images;
    CHECK(formats == std::map<std::string, int64_t>{{"BMP", 1}, {"JPEG", 4}, {"PNG", 1}, {"unknown", 2}});
    CHECK_THAT(stats_text(stats), Contains("EXIF says rotated") && Contains("format BMP"));
  }
  folder.add("val/elm/2.jpg", "declares_20000x20000.jpg");
  data.dataset = folder.load();
  CHECK(data_stats(data, 1, silent()).splits[1].sizes.too_large == 1);
}

namespace {

using Counts = std::vector<int64_t>;

// 1 minus twice the area under the curve, by trapezoids: the definition that gini() rearranges.
double gini_by_area(const Counts& counts) {
  const auto curve = lorenz_curve(counts);
  double area = 0;
  for (size_t i = 1; i < curve.size(); ++i) area += (curve[i - 1] + curve[i]) / 2 / static_cast<double>(counts.size());
  return 1 - 2 * area;
}

}  // namespace

TEST_CASE("The Lorenz curve of four classes, by hand") {
  // Sorted 1, 2, 3, 10: sums 1, 3, 6, 16.
  CHECK(lorenz_curve({3, 10, 1, 2}) == std::vector<double>{0, 1.0 / 16, 3.0 / 16, 6.0 / 16, 1});
  CHECK(lorenz_curve({0, 0, 5}) == std::vector<double>{0, 0, 0, 1});
  CHECK(lorenz_curve({7}) == std::vector<double>{0, 1});
  CHECK(lorenz_curve({0, 0}) == std::vector<double>{0, 0.5, 1});
  CHECK(lorenz_curve({}) == std::vector<double>{0});
}

TEST_CASE("Gini's coefficient, by hand and as an area") {
  // (-3 * 1 - 1 * 2 + 1 * 3 + 3 * 10) / (4 * 16)
  CHECK(gini({3, 10, 1, 2}) == Approx(28.0 / 64));
  CHECK(gini({5, 5, 5}) == 0);
  CHECK(gini({0, 0, 0, 9}) == Approx(0.75));  // 1 - 1/n
  CHECK(gini({1, 3}) == Approx(0.25));
  CHECK(gini({4}) == 0);
  CHECK(gini({0, 0}) == 0);
  CHECK(gini({}) == 0);
  for (const Counts& counts : {Counts{3, 10, 1, 2}, Counts{1, 1, 2, 3, 5, 8, 13}, Counts{0, 4, 4}, Counts{6}}) {
    CHECK(gini(counts) == Approx(gini_by_area(counts)).margin(1e-12));
  }
}

TEST_CASE("The share of the largest classes") {
  CHECK(share_of_largest({10, 1, 2, 3, 4}, 0.2) == Approx(0.5));  // one of five
  CHECK(share_of_largest({5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 0.2) == Approx(0.2));
  // A fifth of four classes is 0.8 of the largest.
  CHECK(share_of_largest({3, 10, 1, 2}, 0.2) == Approx(0.8 * 10 / 16));
  CHECK(share_of_largest({7}, 0.2) == Approx(0.2));
  CHECK(share_of_largest({1, 2}, 0) == 0);
  CHECK(share_of_largest({1, 2}, 1) == 1);
  CHECK(share_of_largest({0, 0}, 0.5) == Approx(0.5));
}

TEST_CASE("Least, median, mean and greatest") {
  const Summary odd = summarise({9, 1, 2}), even = summarise({4, 1, 2, 3}), none = summarise({});
  CHECK(odd.min == 1);
  CHECK(odd.median == 2);
  CHECK(odd.mean == 4);
  CHECK(odd.max == 9);
  CHECK(even.median == 2.5);
  CHECK(even.mean == 2.5);
  CHECK(none.max == 0);
}

TEST_CASE("records of images are counted by split, by the names of their files") {
  LoadedData data = made_data({"ash"}, {}, {}, {0});
  FileTable files;
  for (const char* name : {"x/a.jpg", "x/b.jpg", "y/c.png", "y/d.jpg"}) files.add(name);
  data.dataset.train = {
      "train", std::make_shared<ImageFiles>(std::move(files), ImageFileOptions{}), {0, 1, 2, 3}, {0, 0, 0, 0}};
  const std::vector<ImageRecord> records{{.image = "c",
                                          .class_key = "1",
                                          .split = "train",
                                          .observation = "7",
                                          .organ = "leaf",
                                          .author = "Ada",
                                          .licence = "cc-by"},
                                         {.image = "a",
                                          .class_key = "1",
                                          .split = "train",
                                          .observation = "7",
                                          .organ = "flower",
                                          .author = "Bob",
                                          .licence = "cc-by"},
                                         {.image = "b",
                                          .class_key = "1",
                                          .split = "train",
                                          .observation = "8",
                                          .organ = "leaf",
                                          .author = "Ada",
                                          .licence = ""},
                                         {.image = "zzz",
                                          .class_key = "1",
                                          .split = "val",
                                          .observation = "9",
                                          .organ = "bark",
                                          .author = "Eve",
                                          .licence = "cc-0"}};
  DataStats stats = data_stats(data, 1, silent());
  CHECK(stats_text(stats).find("organ") == std::string::npos);
  count_records(ImageRecords({}), data.dataset, stats);
  CHECK_FALSE(stats.splits[0].records.has_value());
  count_records(ImageRecords(records), data.dataset, stats);
  const RecordCounts& train = stats.splits[0].records.value();
  using Counts = std::vector<std::pair<std::string, int64_t>>;
  CHECK(train.organs == Counts{{"leaf", 2}, {"flower", 1}});
  CHECK(train.licences == Counts{{"cc-by", 2}});
  CHECK(train.authors == 2);
  CHECK(train.observations == 2);
  CHECK(train.without == 1);
  CHECK(stats.splits[2].records->without == 1);
  const std::string text = stats_text(stats);
  for (const char* label :
       {"organ leaf", "organ flower", "licence cc-by", "authors", "observations", "without metadata"})
    CHECK_THAT(text, Contains(label));
  const auto json = nlohmann::json::parse(stats_json(stats));
  CHECK(json["splits"]["train"]["records"]["organs"]["leaf"] == 2);
  CHECK(json["splits"]["train"]["records"]["without"] == 1);
}

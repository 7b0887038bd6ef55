// The text files that users hand in beside images, each input as every one of them: lists of images, tables of classes,
// matrices of label noise, ImageNet's labels and synsets.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/class_table.h"
#include "datasets/image_list.h"
#include "datasets/label_noise.h"
#include "datasets/readers.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using std::filesystem::path;
using test::must;
using test::unless_refused;

namespace {

constexpr int64_t kClasses = 3;
const std::vector<std::string> kNames = {"Lactuca virosa", "Lactuca serriola", "Lactuca virosa"};
const std::vector<std::string> kKeys = {"n01440764", "n01443537", "n01484850"};
const std::vector<std::string> kImages = {"ILSVRC2012_val_00000001.JPEG", "ILSVRC2012_val_00000002.JPEG"};
constexpr std::string_view kSomeIds = "2\n1\n";

bool are_classes(std::span<const int64_t> labels) {
  return std::all_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0 && label < kClasses; });
}

void fuzz_image_list(const path& file) {
  FileTable files("/root");
  files.add("of another list");
  const auto list = unless_refused([&] { return read_image_list(file, kClasses, files); });
  if (!list) return;
  must(list->size() > 0 && list->first_file == 1, "a list has an image, behind those of another");
  must(files.size() == 1 + list->size() && std::ssize(list->lines) == list->size(), "every image has file and line");
  must(are_classes(list->labels), "labels are in range");
  must(std::adjacent_find(list->lines.begin(), list->lines.end(), std::greater_equal<>()) == list->lines.end(),
       "lines are in their order");
  for (int64_t i = 0; i < list->size(); ++i) {
    must(!files.name(list->first_file + i).empty(), "every file has a name");
    if (list->label_sets.empty()) continue;
    const std::span<const int64_t> labels = list->label_sets.of(i);
    must(!labels.empty() && labels[0] == list->labels[static_cast<size_t>(i)], "the label is the first of its set");
    must(are_classes(labels), "labels of sets are in range");
    must(std::set(labels.begin(), labels.end()).size() == labels.size(), "no set names a label twice");
  }
}

void fuzz_class_table(const path& file, const std::vector<std::string>& keys) {
  const auto texts = unless_refused([&] { return read_class_table(file, kNames, keys); });
  if (!texts) return;
  must(std::ssize(*texts) == kClasses, "there is a text for every class");
  for (const std::string& text : *texts) {
    must(!text.empty() && text.find_first_of("\n") == std::string::npos, "a text is a part of a line");
    must(text.find_first_of(" \t\r") != 0 && text.find_last_of(" \t\r") != text.size() - 1, "a text has no blank ends");
  }
}

void fuzz_confusion_matrix(const path& file) {
  const auto matrix = unless_refused([&] { return read_confusion_matrix(file, kClasses); });
  if (!matrix) return;
  must(std::ssize(*matrix) == kClasses * kClasses, "the matrix is square");
  must(std::all_of(matrix->begin(), matrix->end(), [](double p) { return p >= 0 && p <= 1.001; }),
       "its numbers are probabilities");
  for (auto row = matrix->begin(); row != matrix->end(); row += kClasses) {
    must(std::abs(std::accumulate(row, row + kClasses, 0.0) - 1) < 1e-5, "a row adds up to 1");
  }
}

void fuzz_imagenet_labels(const path& labels_file, const path& synsets_file) {
  const auto labels = unless_refused([&] { return read_imagenet_labels(labels_file, synsets_file, kImages, kKeys); });
  if (!labels) return;
  must(labels->size() == kImages.size(), "every image has a label");
  must(are_classes(*labels), "labels of ImageNet are in range");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const test::MemoryFile file({data, size});
  fuzz_image_list(file.path());
  fuzz_class_table(file.path(), {});
  fuzz_class_table(file.path(), kKeys);
  fuzz_confusion_matrix(file.path());
  fuzz_imagenet_labels(file.path(), file.path());
  static const test::MemoryFile some_ids({reinterpret_cast<const uint8_t*>(kSomeIds.data()), kSomeIds.size()});
  fuzz_imagenet_labels(some_ids.path(), file.path());
  return 0;
}

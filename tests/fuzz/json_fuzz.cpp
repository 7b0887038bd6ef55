// The JSON files of Pl@ntNet-300K, each input as every one of them.
#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "datasets/readers.h"
#include "tests/support/fuzzing.h"
#include "tests/support/memory_file.h"

using namespace settrain;
using test::must;
using test::unless_refused;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const test::MemoryFile file({data, size});
  const auto order = unless_refused([&] { return read_class_order(file.path()); });
  if (order) {
    must(std::set(order->begin(), order->end()).size() == order->size(), "no id is there twice");
    must(std::find(order->begin(), order->end(), "") == order->end(), "no id is empty");
  }
  const auto names = unless_refused([&] { return read_species_names(file.path()); });
  if (names) {
    for (const auto& [id, name] : *names) must(!name.empty(), "no name is empty");
  }
  FileTable files("/root");
  files.add("images_train/1355868/0a1.jpg");
  const auto report = unless_refused([&] {
    return find_missing_files(file.path(), {"images_train", "images_val", "images_test"}, files);
  });
  if (report) {
    for (const MissingFiles& split : *report) {
      must(split.missing >= 0 && split.missing <= split.listed, "no more files are missing than are listed");
      must((split.missing == 0) == split.first.empty(), "the first is named where one is missing");
    }
  }
  return 0;
}

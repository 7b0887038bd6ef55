// A small data set of image files, some of them bad.
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/builtin_datasets.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

namespace settrain::test {

/// A folder of images of tests/golden/images_odd: train has five good ones of 37x53 and three bad ones.
class OddFolder {
 public:
  OddFolder() {
    add("train/elm/1.jpg", "yuv420_odd.jpg");
    add("train/elm/2.jpg", "truncated.jpg");
    add("train/elm/3.jpg", "exif_orientation_6.jpg");
    add("train/oak/1.jpg", "png_named_jpg.jpg");
    add("train/oak/2.jpg", "empty.jpg");
    add("train/oak/3.bmp", "bmp.bmp");
    add("train/oak/4.jpg", "text.jpg");
    add("train/oak/5.jpg", "gray.jpg");
    add("val/elm/1.jpg", "progressive.jpg");
    add("val/oak/1.jpg", "progressive.jpg");
    add("test/elm/1.jpg", "one_pixel.jpg");
    add("test/oak/1.jpg", "no_end_marker.jpg");
  }

  void add(const std::string& name, const std::string& odd) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::filesystem::copy_file(golden_path("images_odd/" + odd), folder_ / name);
  }

  Dataset load() const { return load_dataset("image_folder", {"root=" + folder_.path().string()}); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace settrain::test

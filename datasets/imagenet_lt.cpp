#include "datasets/imagenet_lt.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "datasets/imagenet.h"
#include "src/core/error.h"

namespace settrain {
namespace {

void check_present(const ImagenetLtOptions& options) {
  const std::filesystem::path root = options.root;
  std::string missing;
  for (const auto& [key, file] :
       {std::pair("data.train", options.train), {"data.val", options.val}, {"data.test", options.test}}) {
    if (!std::filesystem::is_regular_file(root / file)) missing += fmt::format("\n  the list {} ({})", file, key);
  }
  // Where a list is there, it says itself which folders its images are in.
  if (!missing.empty() && !std::filesystem::is_directory(root / "train")) missing += "\n  ImageNet's folder train/";
  if (!missing.empty() && !std::filesystem::is_directory(root / "val")) missing += "\n  ImageNet's folder val/";
  if (missing.empty()) return;
  throw DataError(fmt::format(
      "imagenet_lt: in '{}' (data.root) there is not:{}\nThe lists come with the code of Liu et al. (CVPR 2019), "
      "github.com/zhmiao/OpenLongTailRecognition-OLTR; the images, with a folder a class in train/ and val/, from "
      "image-net.org, which asks for a registration",
      options.root, missing));
}

}  // namespace

config::Keys ImagenetLtOptions::keys() {
  using config::key;
  using Options = ImagenetLtOptions;
  const auto list = [](const char* name, std::string Options::*member, const char* file, const char* help) {
    return key(name, member, file, help).not_empty();
  };
  return {key("root", static_cast<std::string Options::*>(&Options::root), "${env:SETTRAIN_DATA:-data}/imagenet",
              "Folder that the lists' paths, such as train/n01440764/n01440764_190.JPEG, start from.")
              .not_empty()
              .free(),
          list("train", &Options::train, "ImageNet_LT_train.txt",
               "List of the training images, below data.root unless absolute: lines 'path label'."),
          list("val", &Options::val, "ImageNet_LT_val.txt", "The same of the validation images."),
          list("test", &Options::test, "ImageNet_LT_test.txt", "The same of the test images."),
          key("num_classes", static_cast<int64_t Options::*>(&Options::num_classes), 1000, "Number of classes.")
              .at_least(2)
              .at_most(1e6)
              .in("classes")};
}

Dataset load_imagenet_lt(const ImagenetLtOptions& options, const ImageFileOptions& image_options) {
  check_present(options);
  Dataset dataset = load_file_list(options, image_options, ListedNames::kFolders);
  dataset.name = "imagenet_lt";
  dataset.normalisation = "imagenet";
  return dataset;
}

DatasetEntry imagenet_lt_entry() {
  Download download = imagenet_download();
  download.name = "imagenet_lt";
  download.page = "https://github.com/zhmiao/OpenLongTailRecognition-OLTR (lists); the images are ImageNet's";
  download.by_hand +=
      "Get the lists ImageNet_LT_train.txt, ImageNet_LT_val.txt and ImageNet_LT_test.txt by the links of\n"
      "https://github.com/zhmiao/OpenLongTailRecognition-OLTR and put them into {}/\n";
  for (const char* split : {"train", "val", "test"}) download.proof.push_back(fmt::format("ImageNet_LT_{}.txt", split));
  return {.name = "imagenet_lt",
          .help =
              "ImageNet-LT (Liu et al. 2019): 115,846 training images of 1,000 classes, 5 to 1,280 of each, by the "
              "published lists.",
          .keys = config::joined(ImagenetLtOptions::keys(), ImageFileOptions::keys()),
          .make =
              [](const config::Config& config) {
                return load_imagenet_lt(config.read<ImagenetLtOptions>("data"), config.read<ImageFileOptions>("data"));
              },
          .facts =
              [](const config::Config& config) {
                return DataFacts{.classes = 1000,
                                 .train = 115'846,
                                 .val = 20'000,
                                 .test = 50'000,
                                 .channels = config.read<ImageFileOptions>("data").channels()};
              },
          .download = std::move(download)};
}

}  // namespace settrain

#include "src/data_tools/downloads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/suggest.h"

namespace settrain {
namespace {

constexpr auto kMd5 = Checksum::Kind::kMd5;

// MD5: the table of www.cs.toronto.edu/~kriz/cifar.html.
Download cifar100() {
  return {.name = "cifar100",
          .page = "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)",
          .licence = "none stated; cite Krizhevsky, 2009",
          .files = {{"cifar-100-binary.tar.gz",
                     "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                     168513733,
                     {kMd5, "03b5dce01913d631647c71ecec9e9cb8"}}},
          .archive = Archive::kTarGz,
          .folder = "cifar-100-binary",
          .proof = {"train.bin", "test.bin"},
          .usual_place = "",
          .config = "data: {name: cifar100, root: \"{}\"}",
          .by_hand = ""};
}

// MD5: the table "Get the Data" of github.com/zalandoresearch/fashion-mnist's README.
Download fashion_mnist() {
  const auto file = [](const std::string& name, uint64_t size, const char* md5) {
    return RemoteFile{name, "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/" + name, size, {kMd5, md5}};
  };
  return {.name = "fashion_mnist",
          .page = "https://github.com/zalandoresearch/fashion-mnist; Debian's package dataset-fashion-mnist has it too",
          .licence = "MIT",
          .files = {file("train-images-idx3-ubyte.gz", 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                    file("train-labels-idx1-ubyte.gz", 29515, "25c81989df183df01b3e8a0aad5dffbe"),
                    file("t10k-images-idx3-ubyte.gz", 4422102, "bef4ecab320f06d8554ea6380940ec79"),
                    file("t10k-labels-idx1-ubyte.gz", 5148, "bb300cfdad3c16e7a12a480ee83cd310")},
          .archive = Archive::kNone,
          .folder = "fashion-mnist",
          .proof = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
                    "t10k-labels-idx1-ubyte.gz"},
          .usual_place = "/usr/share/datasets/fashion-mnist",
          .config = "data: {name: fashion_mnist, root: \"{}\"}",
          .by_hand = ""};
}

Download plantnet300k() {
  return {.name = "plantnet300k",
          .page = "https://zenodo.org/records/5645731",
          .licence = "CC BY 4.0; each image's own is in plantnet300K_metadata.json",
          .files = {{"plantnet_300K.zip",
                     "https://zenodo.org/records/5645731/files/plantnet_300K.zip?download=1",
                     31670505069,
                     {}}},
          .archive = Archive::kZip,
          .folder = "plantnet_300K",
          .proof = {"images/train", "images/val", "images/test"},
          .usual_place = "",
          .config = "data: {name: plantnet300k, root: \"{}\"}",
          .by_hand = ""};
}

// MD5: torchvision/datasets/imagenet.py.
constexpr const char* kImageNet =
    "Register at https://image-net.org/download-images and get, of ILSVRC 2012 (classification and localisation),\n"
    "  ILSVRC2012_img_train.tar  MD5 1d675b47d978889d74fa0da5fadfb00e\n"
    "  ILSVRC2012_img_val.tar    MD5 29b22e2961454d5413ddabcf34fc5622\n"
    "Unpack them so that every class has a folder:\n"
    "  {}/train/n01440764/n01440764_762.JPEG and so on (the archive holds an archive a class)\n"
    "  {}/val/n01440764/ILSVRC2012_val_00029930.JPEG and so on (the archive is flat; the development kit has the "
    "labels)\n";

Download imagenet() {
  return {.name = "imagenet",
          .page = "https://image-net.org/download-images (after registration)",
          .licence = "for non-commercial research and education, by image-net.org's terms of access",
          .files = {},
          .archive = Archive::kNone,
          .folder = "imagenet",
          .proof = {"train", "val"},
          .usual_place = "",
          .config = "data: {name: imagenet, root: \"{}\"}",
          .by_hand = kImageNet};
}

Download imagenet_lt() {
  return {.name = "imagenet_lt",
          .page = "https://github.com/zhmiao/OpenLongTailRecognition-OLTR (lists); the images are ImageNet's",
          .licence = "for non-commercial research and education, by image-net.org's terms of access",
          .files = {},
          .archive = Archive::kNone,
          .folder = "imagenet",
          .proof = {"train", "val", "ImageNet_LT_train.txt", "ImageNet_LT_val.txt", "ImageNet_LT_test.txt"},
          .usual_place = "",
          .config = "data: {name: imagenet_lt, root: \"{}\"}",
          .by_hand = std::string(kImageNet) +
                     "Get the lists ImageNet_LT_train.txt, ImageNet_LT_val.txt and ImageNet_LT_test.txt by the links "
                     "of\nhttps://github.com/zhmiao/OpenLongTailRecognition-OLTR and put them into {}/\n"};
}

std::string size_of(const RemoteFile& file) {
  if (file.size == 0) return "not known";
  return fmt::format("{} ({} bytes)", format_bytes(file.size), format_count(static_cast<int64_t>(file.size)));
}

}  // namespace

const std::vector<Download>& downloads() {
  static const std::vector<Download> all = {cifar100(), fashion_mnist(), plantnet300k(), imagenet(), imagenet_lt()};
  return all;
}

const Download& find_download(const std::string& name) {
  std::vector<std::string> names;
  for (const Download& download : downloads()) {
    if (download.name == name) return download;
    names.push_back(download.name);
  }
  const std::string near = nearest_name(name, names);
  throw ConfigError(fmt::format("data fetch: there is no data set '{}' to fetch{}; there are {}", name,
                                near.empty() ? "" : ", did you mean '" + near + "'?", fmt::join(names, ", ")));
}

std::string describe(const Download& download, const std::filesystem::path& to) {
  std::string text = fmt::format("{}\n  page      {}\n", download.name, download.page);
  for (const RemoteFile& file : download.files) {
    text += fmt::format(
        "  source    {}\n  size      {}\n  checksum  {}\n", file.url, size_of(file),
        file.checksum.known() ? file.checksum.text() : "not recorded here; the page has it, and --md5 takes it");
  }
  if (download.files.empty()) text += "  source    cannot be fetched: registration\n";
  return text + fmt::format("  licence   {}\n  goes to   {}\n", download.licence, (to / download.folder).string());
}

}  // namespace settrain

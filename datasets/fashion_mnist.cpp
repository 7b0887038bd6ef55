// Fashion-MNIST: Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning
// algorithms" (2017). Its files have the IDX format.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/readers.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;  // the type code in the third byte of an IDX file

// Reads a file through zlib, which also reads uncompressed files.
class IdxReader {
 public:
  explicit IdxReader(const std::filesystem::path& file) : name_(file.string()), file_(gzopen(name_.c_str(), "rb")) {
    if (!file_) fail(std::strerror(errno));
  }

  // Fills `bytes` until the end of the file, and returns the number of bytes read.
  size_t read(std::span<uint8_t> bytes) {
    const int got = gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    // At a truncated end gzread() returns the bytes that it has, and only gzerror() reports the error.
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (got < 0 || code != Z_OK) fail(code == Z_BUF_ERROR ? "the compressed data end too early" : message);
    sha_.add(bytes.first(static_cast<size_t>(got)));
    return static_cast<size_t>(got);
  }

  std::string sha256() { return sha_.hex(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(fmt::format("'{}': {}. Get the file again", name_, what));
  }

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  std::string name_;
  std::unique_ptr<gzFile_s, Close> file_;
  Sha256 sha_;
};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::vector<int64_t> read_idx_header(IdxReader& reader, int rank, int64_t max_values) {
  std::array<uint8_t, 4> magic;
  if (reader.read(magic) != magic.size()) reader.fail("an IDX file starts with 4 bytes, this one is shorter");
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || magic[3] != rank) {
    reader.fail(
        fmt::format("expected an IDX file of unsigned bytes with {} dimensions (it starts 00 00 08 {:02x}), got "
                    "{:02x} {:02x} {:02x} {:02x}",
                    rank, rank, magic[0], magic[1], magic[2], magic[3]));
  }
  std::vector<int64_t> sizes;
  int64_t total = 1;
  for (int i = 0; i < rank; ++i) {
    std::array<uint8_t, 4> bytes;
    if (reader.read(bytes) != bytes.size()) reader.fail("the IDX header ends too early");
    sizes.push_back(big_endian(bytes.data()));
    // A division, since the product of hostile sizes could overflow.
    if (sizes.back() > 0 && total > max_values / sizes.back()) {
      reader.fail(fmt::format("the IDX header declares more than {} values", max_values));
    }
    total *= sizes.back();
  }
  return sizes;
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, int rank, int64_t max_values) {
  IdxReader reader(file);
  IdxArray array;
  array.sizes = read_idx_header(reader, rank, max_values);
  size_t declared = 1;
  for (const int64_t size : array.sizes) declared *= static_cast<size_t>(size);

  constexpr size_t kPiece = size_t{1} << 20;
  while (array.values.size() < declared) {
    const size_t before = array.values.size();
    array.values.resize(std::min(declared, before + kPiece));
    const size_t got = reader.read(std::span(array.values).subspan(before));
    if (got == 0) reader.fail(fmt::format("the IDX header declares {} values, the file holds {}", declared, before));
    array.values.resize(before + got);
  }
  // Reading past the end also makes zlib compare the checksum.
  uint8_t extra;
  if (reader.read(std::span(&extra, 1)) != 0) {
    reader.fail(fmt::format("the file holds more than the {} values that its IDX header declares", declared));
  }
  array.sha256 = reader.sha256();
  return array;
}

namespace {

struct FashionMnistOptions {
  std::string root;
  bool verify = false;

  static config::Keys keys();
};

constexpr int64_t kSide = 28;
constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kClasses[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr const char* kFashionSuperclasses[] = {"tops", "shoes", "trousers", "bags"};
constexpr int64_t kSuperclassOf[] = {0, 2, 0, 0, 0, 1, 0, 1, 3, 1};

// One of the four files: its name without .gz, and the SHA-256 of its uncompressed content as published.
struct IdxFileName {
  const char* name;
  const char* sha256;
};
constexpr IdxFileName kTrainImages = {"train-images-idx3-ubyte",
                                      "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"};
constexpr IdxFileName kTrainLabels = {"train-labels-idx1-ubyte",
                                      "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"};
constexpr IdxFileName kTestImages = {"t10k-images-idx3-ubyte",
                                     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"};
constexpr IdxFileName kTestLabels = {"t10k-labels-idx1-ubyte",
                                     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"};

std::filesystem::path find(const FashionMnistOptions& options, const IdxFileName& file) {
  for (const char* ending : {".gz", ""}) {
    const std::filesystem::path path = std::filesystem::path(options.root) / (std::string(file.name) + ending);
    if (std::filesystem::exists(path)) return path;
  }
  throw DataError(
      fmt::format("fashion_mnist: no file {}.gz, and none without .gz, in '{}' (data.root). `settrain data fetch "
                  "fashion_mnist` downloads the four files and says what to set data.root to; Debian's package "
                  "dataset-fashion-mnist has them in {}; or train without them: --set data.name=synthetic",
                  file.name, options.root, kDebianFolder));
}

struct FoundFile {
  std::string path;
  IdxArray array;
};

FoundFile read_file(const FashionMnistOptions& options, const IdxFileName& file, int rank) {
  FoundFile found{find(options, file).string(), {}};
  found.array = read_idx(found.path, rank);
  if (options.verify && found.array.sha256 != file.sha256) {
    throw DataError(fmt::format(
        "'{}': not Fashion-MNIST's {} as published: SHA-256 of the uncompressed content is {}, expected {}. "
        "Get the file again, or set data.verify: false to use it as it is",
        found.path, file.name, found.array.sha256, file.sha256));
  }
  return found;
}

struct FashionPart {
  std::shared_ptr<const ImageSource> images;
  std::vector<int64_t> labels;
  std::string digests;  // of its two files, a line each
};

FashionPart read_fashion_part(const FashionMnistOptions& options, const IdxFileName& image_file,
                              const IdxFileName& label_file) {
  auto [image_path, images] = read_file(options, image_file, 3);
  const auto [label_path, labels] = read_file(options, label_file, 1);
  if (images.sizes[1] != kSide || images.sizes[2] != kSide) {
    throw DataError(fmt::format("'{}': expected images of {}x{} pixels, got {}x{}", image_path, kSide, kSide,
                                images.sizes[1], images.sizes[2]));
  }
  if (images.sizes[0] != labels.sizes[0] || labels.sizes[0] == 0) {
    throw DataError(fmt::format("'{}': expected one label for each of the {} images in '{}', and at least one; got {}",
                                label_path, images.sizes[0], image_path, labels.sizes[0]));
  }
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] >= std::size(kClasses)) {
      throw DataError(fmt::format("'{}': label {} is {}, expected 0 to {}", label_path, i, labels.values[i],
                                  std::size(kClasses) - 1));
    }
  }
  return {std::make_shared<MemoryImages>(std::move(images.values), kSide, kSide, 1, images.sha256),
          std::vector<int64_t>(labels.values.begin(), labels.values.end()),
          images.sha256 + "\n" + labels.sha256 + "\n"};
}

// MD5: the table "Get the Data" of github.com/zalandoresearch/fashion-mnist's README.
Download fashion_download() {
  Download download{
      .name = "fashion_mnist",
      .page = "https://github.com/zalandoresearch/fashion-mnist; Debian's package dataset-fashion-mnist has it too",
      .licence = "MIT",
      .folder = "fashion-mnist",
      .usual_place = kDebianFolder};
  const auto add = [&download](const IdxFileName& file, uint64_t size, const char* md5) {
    const std::string name = std::string(file.name) + ".gz";
    download.files.push_back({name,
                              "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/" + name,
                              size,
                              {Checksum::Kind::kMd5, md5}});
    download.proof.push_back(name);
  };
  add(kTrainImages, 26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d");
  add(kTrainLabels, 29515, "25c81989df183df01b3e8a0aad5dffbe");
  add(kTestImages, 4422102, "bef4ecab320f06d8554ea6380940ec79");
  add(kTestLabels, 5148, "bb300cfdad3c16e7a12a480ee83cd310");
  return download;
}

config::Keys FashionMnistOptions::keys() {
  using config::key;
  return {
      key("root", &FashionMnistOptions::root, kDebianFolder,
          "Folder with the four IDX files, compressed or not; the default is where Debian's package "
          "dataset-fashion-mnist has them.")
          .not_empty()
          .free(),
      key("verify", &FashionMnistOptions::verify, true, "Refuse files whose digest differs from the published one."),
  };
}

// 60,000 training and 10,000 test images of clothes, grey, 28x28, in ten balanced classes. The data set has no
// superclasses; ours are tops (T-shirt/top, Pullover, Dress, Coat, Shirt), shoes (Sandal, Sneaker, Ankle boot),
// trousers (Trouser) and bags (Bag).
//
// Throws DataError where a file is missing, is corrupt, does not match another or, with `verify`, does not have the
// published digest.
Dataset load_fashion_mnist(const FashionMnistOptions& options, const SplitOptions& split) {
  FashionPart train = read_fashion_part(options, kTrainImages, kTrainLabels);
  FashionPart test = read_fashion_part(options, kTestImages, kTestLabels);
  HeldOut held_out = hold_out(train.labels, std::ssize(kClasses), split);

  Dataset dataset;
  dataset.name = "fashion_mnist";
  dataset.class_names.assign(std::begin(kClasses), std::end(kClasses));
  dataset.superclass_names.assign(std::begin(kFashionSuperclasses), std::end(kFashionSuperclasses));
  dataset.superclass_of.assign(std::begin(kSuperclassOf), std::end(kSuperclassOf));
  dataset.channels = 1;
  dataset.height = dataset.width = kSide;
  dataset.normalisation = "fashion_mnist";
  dataset.train = make_split("train", train.images, std::move(held_out.train), train.labels);
  dataset.val = make_split("val", train.images, std::move(held_out.val), train.labels);
  dataset.test = make_split("test", test.images, std::move(test.labels));
  dataset.digest = sha256("fashion_mnist\n" + train.digests + test.digests + split.recipe());
  return dataset;
}

}  // namespace

DatasetEntry fashion_mnist_entry() {
  return {.name = "fashion_mnist",
          .help =
              "Fashion-MNIST (Xiao et al. 2017): 70,000 grey images of clothes, 28x28, 10 classes; superclasses tops "
              "(T-shirt/top, pullover, dress, coat, shirt), shoes (sandal, sneaker, ankle boot), trousers and bags.",
          .keys = config::joined(FashionMnistOptions::keys(), SplitOptions::keys()),
          .make =
              [](const config::Config& config) {
                return load_fashion_mnist(config.read<FashionMnistOptions>("data"), config.read<SplitOptions>("data"));
              },
          .facts =
              [](const config::Config& config) {
                return held_out_facts(
                    {.classes = std::ssize(kClasses), .train = 60'000, .test = 10'000, .size = kSide, .channels = 1},
                    config.read<SplitOptions>("data"));
              },
          // Over all pixels of all training images, validation images included, in float64.
          .statistics = {{"fashion_mnist", {{0.28604060F}, {0.35302424F}}}},
          .download = fashion_download(),
          .superclasses =
              [](const config::Config&) {
                return std::vector<std::string>(std::begin(kFashionSuperclasses), std::end(kFashionSuperclasses));
              }};
}

}  // namespace settrain

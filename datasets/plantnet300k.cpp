// Pl@ntNet-300K: Garcin et al., "Pl@ntNet-300K: a plant image dataset with high label ambiguity and a long-tailed
// distribution" (NeurIPS Datasets and Benchmarks 2021).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/file_bytes.h"
#include "datasets/file_table.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/readers.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/strict_json.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;

[[noreturn]] void fail_json(const std::filesystem::path& file, const std::string& what) {
  throw DataError(fmt::format("'{}': {}", file.string(), what));
}

constexpr size_t kDeepest = 32;  // levels: the library prints values by recursion, and 10,000 levels are too many

json must_be_object(const std::filesystem::path& file, json content) {
  if (!content.is_object()) fail_json(file, "expected a JSON object");
  return content;
}

json read_json(const std::filesystem::path& file) {
  std::vector<uint8_t> memory;
  const auto bytes = read_file_bytes(file, memory);
  try {
    return must_be_object(file,
                          parse_strict_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kDeepest));
  } catch (const std::invalid_argument& problem) {
    fail_json(file, problem.what());
  }
}

// Parses a JSON file where `callback` drops parts as they come, so that the file is never in memory as a whole.
void scan_json(const std::filesystem::path& file, const json::parser_callback_t& callback) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  try {
    must_be_object(file, json::parse(stream, [&](int depth, json::parse_event_t event, json& parsed) {
                     if (depth > static_cast<int>(kDeepest))
                       fail_json(file, fmt::format("is nested more than {} deep", kDeepest));
                     return callback(depth, event, parsed);
                   }));
  } catch (const json::exception& error) {
    fail_json(file, fmt::format("cannot be read as JSON: {}", error.what()));
  }
}

// An id, which is a string or, in some versions, a number; empty for anything else.
std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? fmt::format("{}", value.get<int64_t>()) : std::string();
}

}  // namespace

std::vector<std::string> read_class_order(const std::filesystem::path& file) {
  const json content = read_json(file);
  std::vector<std::string> ids;
  std::unordered_set<std::string> seen;
  for (size_t c = 0; c < content.size(); ++c) {
    const auto found = content.find(fmt::format("{}", c));
    if (found == content.end())
      fail_json(file, fmt::format("has {} entries, but none for class {}", content.size(), c));
    ids.push_back(text_of(*found));
    if (ids.back().empty()) fail_json(file, fmt::format("expected an id for class {}, got {}", c, found->dump()));
    if (!seen.insert(ids.back()).second) fail_json(file, fmt::format("names the id {} twice", ids.back()));
  }
  return ids;
}

std::unordered_map<std::string, std::string> read_species_names(const std::filesystem::path& file) {
  const json content = read_json(file);
  std::unordered_map<std::string, std::string> names;
  for (const auto& [id, name] : content.items()) {
    if (!name.is_string() || name.get<std::string>().find_first_not_of(' ') == std::string::npos) {
      fail_json(file, fmt::format("expected a name for the id {}, got {}", id, name.dump()));
    }
    names.emplace(id, name.get<std::string>());
  }
  return names;
}

void read_image_records(const std::filesystem::path& file, const std::function<void(ImageRecord&&)>& take) {
  std::string image;
  const auto record_of = [&](const json& entry) {
    ImageRecord record;
    record.image = image;
    const auto read = [&](const char* key, std::string& text) {
      const auto found = entry.find(key);
      if (found == entry.end() || found->is_null()) return;
      if (!found->is_string() && !found->is_number_integer())
        fail_json(file, fmt::format("expected a text for {} of {}, got {}", key, in_quotes(image),
                                    found->dump().substr(0, 120)));
      text = text_of(*found);
    };
    read("species_id", record.class_key);
    read("split", record.split);
    read("obs_id", record.observation);
    read("organ", record.organ);
    read("author", record.author);
    read("license", record.licence);
    const auto expect = [&](bool is_there, const char* what) {
      if (is_there) return;
      fail_json(file, fmt::format("expected {} in the record of the image {}, got {}", what, in_quotes(image),
                                  entry.dump().substr(0, 120)));
    };
    expect(!record.class_key.empty(), "a species_id");
    expect(record.split == "train" || record.split == "val" || record.split == "test",
           "a split, which is train, val or test,");
    return record;
  };
  // Each is dropped after it was taken: the check of files, for which a run reads them, needs none of them again.
  scan_json(file, [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key) image = parsed.get<std::string>();
    if (depth == 1 && (event == json::parse_event_t::value || event == json::parse_event_t::array_end))
      fail_json(file, fmt::format("expected an object for {}, got {}", in_quotes(image), parsed.dump().substr(0, 120)));
    if (depth == 1 && event == json::parse_event_t::object_end) {
      take(record_of(parsed));
      return false;
    }
    return true;
  });
}

std::array<MissingFiles, 3> find_missing_files(const std::filesystem::path& file,
                                               const std::array<std::string, 3>& folders, const FileTable& files) {
  const FilePlaces places(files, 0, files.size());
  std::array<MissingFiles, 3> report;
  read_image_records(file, [&](const ImageRecord& record) {
    const size_t s = record.split == "train" ? 0 : record.split == "val" ? 1 : 2;
    const std::string path = fmt::format("{}/{}/{}.jpg", folders[s], record.class_key, record.image);
    ++report[s].listed;
    if (!places.find(path) && ++report[s].missing == 1) report[s].first = path;
  });
  return report;
}

namespace {

struct Plantnet300kOptions {
  std::string root, names;
  // Expected sizes; kAny: not checked.
  int64_t classes = 0, genera = 0, train = 0, val = 0, test = 0;

  static constexpr int64_t kAny = -1;

  static config::Keys keys();
};

constexpr std::array<const char*, 3> kSplits = {"train", "val", "test"};
constexpr const char* kSource = "https://doi.org/10.5281/zenodo.5645731";
constexpr const char* kClassOrder = "class_idx_to_species_id.json";
constexpr std::array<const char*, 2> kNames = {"plantnet300K_species_id_2_name.json", "species_id_2_name.json"};
constexpr const char* kMetadata = "plantnet300K_metadata.json";

using Folders = std::array<std::string, 3>;  // of the splits, relative to the root

// The folders of the splits in the first layout whose training folder exists.
Folders find_folders(const Plantnet300kOptions& options) {
  for (const char* before : {"images_", "images/", ""}) {
    Folders folders;
    for (size_t s = 0; s < 3; ++s) folders[s] = std::string(before) + kSplits[s];
    if (fs::is_directory(fs::path(options.root) / folders[0])) return folders;
  }
  std::string other;
  for (const char* before : {"images_", "images/", ""}) {
    if (other.empty()) other = misnamed_split(fs::path(options.root) / (std::string(before) + kSplits[0]));
  }
  throw DataError(fmt::format(
      "plantnet300k: '{}' (data.root) {}{}, expected a folder of images for every species in images_train/, "
      "images/train/ or train/, and the same for val and test. `settrain data fetch plantnet300k` fetches the data, "
      "and so does {}; then set data.root or SETTRAIN_DATA",
      options.root, fs::is_directory(options.root) ? "has no folder of training images" : "is not there",
      other.empty() ? "" : " (" + other + ")", kSource));
}

// Collects the differences from the options, for one error.
class Differences {
 public:
  void compare(const char* what, int64_t expected, int64_t found) {
    if (expected == Plantnet300kOptions::kAny || expected == found) return;
    add_waivable(fmt::format("{}: {}, expected {} (data.expected.{})", what, found, expected, what));
  }
  void add(const std::string& line) {
    add_waivable(line);
    all_are_waivable_ = false;
  }
  /// A difference that is none where no size is expected.
  void add_waivable(const std::string& line) { text_ += "\n  " + line; }
  bool empty() const { return text_.empty(); }
  [[noreturn]] void fail(const std::string& root) const {
    throw DataError(fmt::format(
        "plantnet300k: what is in '{}' (data.root) is a partial download, or another data set:{}\nmove the folder away "
        "and `settrain data fetch plantnet300k` gets all of it anew (from {}); {}",
        root, text_, kSource,
        all_are_waivable_
            ? "to use the images as they are, give --set data.expected=any, which checks no size, or set "
              "each of data.expected.classes, .genera, .train, .val and .test to the size found, or to any"
            : "the images cannot be used as they are: folders that are missing or do not go together are "
              "refused whatever data.expected says"));
  }

 private:
  std::string text_;
  bool all_are_waivable_ = true;
};

// The folders of train; in the order of class_idx_to_species_id.json where it exists and matches them.
std::vector<std::string> find_classes(const fs::path& root, const std::string& train, Differences& differences) {
  std::vector<std::string> folders = folders_in(root / train, "expected a folder for every species");
  if (!fs::exists(root / kClassOrder)) return folders;
  std::vector<std::string> order = read_class_order(root / kClassOrder);
  std::vector<std::string> sorted = order, without_folder, without_entry;
  std::sort(sorted.begin(), sorted.end());
  std::set_difference(sorted.begin(), sorted.end(), folders.begin(), folders.end(), std::back_inserter(without_folder));
  std::set_difference(folders.begin(), folders.end(), sorted.begin(), sorted.end(), std::back_inserter(without_entry));
  if (without_folder.empty() && without_entry.empty()) return order;
  if (!without_folder.empty()) {
    differences.add(fmt::format("{}: {} of its {} ids have no folder in {}; the first is {}", kClassOrder,
                                without_folder.size(), order.size(), train, without_folder[0]));
  }
  if (!without_entry.empty()) {
    differences.add(fmt::format("{}: {} folders of {} are not in it; the first is {}", kClassOrder,
                                without_entry.size(), train, without_entry[0]));
  }
  return folders;
}

// The first word of a name.
std::string genus_of(const std::string& name) {
  const size_t begin = name.find_first_not_of(' ');
  return name.substr(begin, name.find(' ', begin) - begin);
}

// The file of the species' names: data.names, or the published file, which has a long and a short name. Empty where
// there is none.
fs::path find_names(const Plantnet300kOptions& options) {
  const fs::path root = options.root;
  if (!options.names.empty()) return fs::exists(root / options.names) ? root / options.names : fs::path();
  for (const char* name : kNames) {
    if (fs::exists(root / name)) return root / name;
  }
  return {};
}

// Names classes and superclasses, where the file of names exists.
void name_classes(const Plantnet300kOptions& options, Dataset& dataset, Differences& differences) {
  dataset.class_keys = dataset.class_names;
  const fs::path file = find_names(options);
  if (file.empty()) {
    if (options.genera != Plantnet300kOptions::kAny) {
      differences.add_waivable(fmt::format("no file {} (data.names), which names species and genera",
                                           options.names.empty() ? kNames[0] : options.names));
    }
    return;
  }
  const auto names = read_species_names(file);
  std::vector<std::string> genera;
  for (size_t c = 0; c < dataset.class_names.size(); ++c) {
    const auto found = names.find(dataset.class_keys[c]);
    if (found == names.end()) {
      throw DataError(fmt::format("'{}' has no name for the folder {}", file.string(), dataset.class_keys[c]));
    }
    dataset.class_names[c] = found->second;
    genera.push_back(genus_of(found->second));
  }
  set_superclasses(genera, dataset);
  differences.compare("genera", options.genera, std::ssize(dataset.superclass_names));
}

// The genera of the file of names, where it exists.
std::vector<std::string> plantnet_genera(const config::Config& config) {
  const fs::path file = find_names(config.read<Plantnet300kOptions>("data"));
  std::set<std::string> genera;
  if (!file.empty()) {
    for (const auto& [id, name] : read_species_names(file)) genera.insert(genus_of(name));
  }
  return {genera.begin(), genera.end()};
}

std::vector<ImageRecord> plantnet_records(const config::Config& config) {
  const fs::path file = fs::path(config.read<Plantnet300kOptions>("data").root) / kMetadata;
  std::vector<ImageRecord> records;
  if (fs::exists(file)) {
    read_image_records(file, [&](ImageRecord&& record) { records.push_back(std::move(record)); });
  }
  return records;
}

// Adds the files that the metadata list and that are missing. Without metadata it adds nothing.
void add_missing_files(const fs::path& root, const Folders& folders, const FileTable& files, Differences& differences) {
  if (!fs::exists(root / kMetadata)) return;
  const auto missing = find_missing_files(root / kMetadata, folders, files);
  for (size_t s = 0; s < 3; ++s) {
    if (missing[s].missing == 0) continue;
    differences.add_waivable(fmt::format("{} of the {} files of {} that {} lists are missing; the first is {}",
                                         missing[s].missing, missing[s].listed, kSplits[s], kMetadata,
                                         missing[s].first));
  }
}

std::string plantnet_digest(const Dataset& dataset, const FileTable& files) {
  Sha256 sha;
  sha.add(fmt::format("plantnet300k\nchannels {}\n", dataset.channels));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("{} {}\n", files.name(i), files.file_size(i)));
  for (const std::string& id : dataset.class_keys) sha.add(id + "\n");
  return sha.hex();
}

// The facts are the expected sizes, unless one is not checked.
std::optional<DataFacts> plantnet_facts(const config::Config& config) {
  const auto options = config.read<Plantnet300kOptions>("data");
  for (const int64_t number : {options.classes, options.train, options.val, options.test}) {
    if (number == Plantnet300kOptions::kAny) return std::nullopt;
  }
  return DataFacts{.classes = options.classes,
                   .train = options.train,
                   .val = options.val,
                   .test = options.test,
                   .channels = config.read<ImageFileOptions>("data").channels()};
}

config::Keys Plantnet300kOptions::keys() {
  using config::key;
  using Options = Plantnet300kOptions;
  const auto expected = [](const char* name, int64_t Options::*member, int64_t size, const char* help,
                           const char* unit) {
    return key(name, member, size, help).at_least(1).word("any", kAny).in(unit).free();
  };
  return {
      key("root", &Options::root, "${env:SETTRAIN_DATA:-data}/plantnet_300K",
          "Folder with images_train, images/train or train, the same for val and test, and the JSON files.")
          .not_empty()
          .free(),
      key("names", &Options::names, "",
          "JSON file with the species' names by id, below data.root unless absolute; the first word is the genus, which "
          "is the superclass. Where it is empty: plantnet300K_species_id_2_name.json, or species_id_2_name.json."),
      expected("expected.classes", &Options::classes, 1081,
               "Expected number of species; any: not checked. On the command line data.expected=any sets all five.",
               "classes"),
      expected("expected.genera", &Options::genera, 303, "Expected number of genera.", "superclasses"),
      expected("expected.train", &Options::train, 243916, "Expected number of training images.", "images"),
      expected("expected.val", &Options::val, 31118, "Expected number of validation images.", "images"),
      expected("expected.test", &Options::test, 31112, "Expected number of test images.", "images"),
  };
}

// The images below root/images_SPLIT/ID, root/images/SPLIT/ID or root/SPLIT/ID, whichever exists, for the splits train,
// val and test. The classes are the folders of train, in the order of class_idx_to_species_id.json where that file
// exists, else in the order of their names. The file `names` names the classes, and the first word of a name, the
// genus, is the superclass. Without that file, classes have the names of their folders and no superclass. A sample's id
// is its place among all files of train, val and test, class by class, in the order of their paths.
//
// Throws DataError that lists everything that is missing or differs from the expected sizes, and the missing files by
// plantnet300K_metadata.json where it exists; or one that names a JSON file and the error in it.
Dataset load_plantnet300k(const Plantnet300kOptions& options, const ImageFileOptions& image_options) {
  const fs::path root = options.root;
  const Folders folders = find_folders(options);
  Differences differences;
  Dataset dataset;
  dataset.name = "plantnet300k";
  dataset.class_names = find_classes(root, folders[0], differences);
  differences.compare("classes", options.classes, dataset.num_classes());
  name_classes(options, dataset, differences);
  dataset.channels = image_options.channels();
  dataset.normalisation = "imagenet";

  FileTable files(root);
  const std::array<Split*, 3> splits = {&dataset.train, &dataset.val, &dataset.test};
  const std::array<int64_t, 3> sizes = {options.train, options.val, options.test};
  for (size_t s = 0; s < 3; ++s) {
    if (!fs::is_directory(root / folders[s])) {
      const std::string other = misnamed_split(root / folders[s]);
      differences.add(fmt::format("no folder {}{}", folders[s], other.empty() ? "" : "; " + other));
      continue;
    }
    const std::vector<std::string> unknown = unknown_folders(root / folders[s], dataset.class_keys);
    if (!unknown.empty()) {
      differences.add(fmt::format("{} folders of {} are not in {}; the first is {}", unknown.size(), folders[s],
                                  folders[0], unknown[0]));
    }
    const int64_t first = files.size();
    *splits[s] = make_split(kSplits[s], nullptr, add_class_images(folders[s], dataset.class_keys, files), first);
    differences.compare(kSplits[s], sizes[s], splits[s]->size());
  }
  if (!differences.empty()) {
    add_missing_files(root, folders, files, differences);
    differences.fail(options.root);
  }
  for (size_t s = 0; s < 3; ++s) {
    check_every_class(splits[s]->labels, dataset.class_keys, root / folders[s], /*may_lack=*/s > 0, files.unread());
  }
  measure_found(files);
  dataset.digest = plantnet_digest(dataset, files);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  for (Split* split : splits) split->images = images;
  return dataset;
}

}  // namespace

DatasetEntry plantnet300k_entry() {
  return {.name = "plantnet300k",
          .help =
              "Pl@ntNet-300K (Garcin et al. 2021): 306,146 photographs of 1,081 plant species; superclasses are the "
              "303 genera.",
          .keys = config::joined(Plantnet300kOptions::keys(), ImageFileOptions::keys()),
          .make =
              [](const config::Config& config) {
                return load_plantnet300k(config.read<Plantnet300kOptions>("data"),
                                         config.read<ImageFileOptions>("data"));
              },
          .facts = plantnet_facts,
          .download = Download{.name = "plantnet300k",
                               .page = "https://zenodo.org/records/5645731",
                               .licence = "CC BY 4.0; each image's own is in plantnet300K_metadata.json",
                               .files = {{"plantnet_300K.zip",
                                          "https://zenodo.org/records/5645731/files/plantnet_300K.zip?download=1",
                                          31670505069,
                                          {}}},
                               .archive = Archive::kZip,
                               .folder = "plantnet_300K",
                               .proof = {"images/train", "images/val", "images/test"}},
          .superclasses = plantnet_genera,
          .records = plantnet_records};
}

}  // namespace settrain

#include "datasets/find_images.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "datasets/decoding/image_header.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The order of std::filesystem::path: folder by folder, so a slash comes before every other character.
bool path_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

// A folder's device and inode numbers: equal for all paths to one folder.
using FolderIdentity = std::pair<dev_t, ino_t>;

// Follows an entry's links. Returns nothing for a link to itself, too.
fs::file_type target_of(const fs::directory_entry& entry) {
  std::error_code error;
  const fs::file_type type = entry.status(error).type();
  if (type != fs::file_type::none) return type;
  if (error == std::errc::too_many_symbolic_link_levels) return fs::file_type::not_found;
  throw fs::filesystem_error("status", entry.path(), error);
}

bool is_folder(const fs::directory_entry& entry) {
  return target_of(entry) == fs::file_type::directory;
}

// A class whose folder is elsewhere, and not there today, must not go missing.
void refuse_lost_folder(const fs::directory_entry& entry) {
  if (!entry.is_symlink() || target_of(entry) != fs::file_type::not_found) return;
  if (!lower_ending(entry.path().native()).empty()) return;
  throw DataError(fmt::format("'{}' is a link to nothing; mend or remove the link", entry.path().string()));
}

// A folder that zip programs of macOS add, with the files' attributes.
bool is_leftover(const fs::path& folder) {
  return folder.filename() == "__MACOSX";
}

// The link by which a folder, which is in `depth` others, leads back to one of them.
fs::path last_link(const fs::path& folder, size_t depth) {
  fs::path link = folder;
  for (; depth > 0 && !fs::is_symlink(link); --depth) link = link.parent_path();
  return fs::is_symlink(link) ? link : folder;
}

// Whether a file is an image under a name that browsers on Windows give JPEGs. They also leave broken downloads under
// such names, so the file's header must tell a size. A file that cannot be opened is taken, to be refused when it is
// measured or read.
bool is_saved_image(const fs::path& file) {
  static constexpr std::array<std::string_view, 3> kEndings = {".jfif", ".pjpeg", ".pjp"};
  if (std::find(kEndings.begin(), kEndings.end(), lower_ending(file.native())) == kEndings.end()) return false;
  const std::optional<ImageHeader> header = read_image_header(file);
  return !header || header->height > 0;
}

// find_images() of one folder, which lies in the folders `around`. `above`: characters of a path before its name in the
// table.
void search_images(const fs::path& folder, size_t above, bool (*takes)(std::string_view),
                   std::vector<FolderIdentity>& around, FileTable& found, UnreadFiles& unread) {
  struct stat status {};
  const FolderIdentity self = stat(folder.c_str(), &status) == 0
                                  ? FolderIdentity(status.st_dev, status.st_ino)
                                  : FolderIdentity();  // listing it fails with the reason
  if (std::find(around.begin(), around.end(), self) != around.end()) {
    throw DataError(fmt::format("'{}' leads back to a folder that it lies in, by a link; remove the link",
                                last_link(folder, around.size()).string()));
  }
  around.push_back(self);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    if (is_folder(entry) && is_leftover(entry.path())) {
      unread.add(entry.path());
    } else if (is_folder(entry)) {
      search_images(entry.path(), above, takes, around, found, unread);
    } else if (takes(entry.path().native()) ||
               is_saved_image(entry.path())) {  // a link to nothing too, which measure_found() refuses
      std::string_view name = entry.path().native();
      name.remove_prefix(above);
      name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
      found.add(name);
    } else {
      refuse_lost_folder(entry);
      unread.add(entry.path());
    }
  }
  around.pop_back();
}

// Counts the files, and what zip programs left, beside the folders of the classes.
void count_misplaced(const fs::path& folder, UnreadFiles& unread) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with('.')) continue;
    if (is_folder(entry) && !is_leftover(entry.path())) continue;
    if (is_image(entry.path().native()) || is_saved_image(entry.path())) {
      unread.add_misplaced(entry.path());
    } else {
      unread.add(entry.path());
    }
  }
}

// The end of an error about missing images, which may be among those that were passed over.
std::string unread_clause(const UnreadFiles& unread) {
  std::string clause;
  for (const std::string& text : unread_texts(unread)) clause += ". " + text;
  return clause;
}

}  // namespace

bool is_image(std::string_view file) {
  static constexpr std::array<std::string_view, 8> kEndings = {".jpg", ".jpeg", ".jpe", ".png",
                                                               ".bmp", ".webp", ".tif", ".tiff"};
  return std::find(kEndings.begin(), kEndings.end(), lower_ending(file)) != kEndings.end();
}

bool is_picture(std::string_view file) {
  static constexpr std::array<std::string_view, 30> kOthers = {
      ".heic", ".heif", ".hif", ".avif", ".gif", ".jfif", ".pjpeg", ".pjp", ".apng", ".dib",
      ".jxl",  ".jp2",  ".j2k", ".jpx",  ".jxr", ".svg",  ".ico",   ".psd", ".tga",  ".ppm",
      ".pgm",  ".pbm",  ".exr", ".dng",  ".cr2", ".cr3",  ".nef",   ".arw", ".orf",  ".rw2"};
  return is_image(file) || std::find(kOthers.begin(), kOthers.end(), lower_ending(file)) != kOthers.end();
}

std::vector<std::string> unread_texts(const UnreadFiles& unread) {
  std::vector<std::string> texts;
  if (unread.count > 0) {
    std::vector<std::pair<int64_t, std::string>> kinds;
    for (const auto& [ending, count] : unread.endings)
      kinds.emplace_back(-count, ending.empty() ? "without an ending" : ending);
    std::sort(kinds.begin(), kinds.end());
    constexpr size_t kShown = 8;
    std::string shown;
    for (size_t i = 0; i < std::min(kinds.size(), kShown); ++i) {
      shown += fmt::format("{}{} {}", i == 0 ? "" : ", ", -kinds[i].first, kinds[i].second);
    }
    if (kinds.size() > kShown) shown += fmt::format(" and {} other endings", kinds.size() - kShown);
    texts.push_back(
        fmt::format("{} beside the images {} not read: {}; the first is '{}'. Images are {} files "
                    "(.jfif only where its content is an image)",
                    unread.count == 1 ? "1 file" : fmt::format("{} files", unread.count),
                    unread.count == 1 ? "is" : "are", shown, unread.first.string(), kImageEndings));
  }
  if (unread.misplaced > 0) {
    texts.push_back(fmt::format("{} beside the class folders and {} left out; the first is '{}'",
                                unread.misplaced == 1 ? "1 image lies" : fmt::format("{} images lie", unread.misplaced),
                                unread.misplaced == 1 ? "is" : "are", unread.first_misplaced.string()));
  }
  return texts;
}

void find_images(const fs::path& folder, FileTable& files, bool (*takes)(std::string_view)) {
  const fs::path start = files.root() / folder;
  FileTable found;
  std::vector<FolderIdentity> around;
  try {
    search_images(start, start.string().size() - folder.string().size(), takes, around, found, files.unread());
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the images of '{}': {}", error.path1().string(), error.code().message()));
  }
  std::vector<int64_t> order(static_cast<size_t>(found.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return path_less(found.name(a), found.name(b)); });
  for (const int64_t i : order) files.add(found.name(i));
}

FileTable unlabelled_images(const fs::path& root) {
  FileTable files(root);
  find_images("", files);
  if (files.size() == 0) {
    throw DataError(fmt::format("no {} file in '{}' or the folders in it{}", kImageEndings, root.string(),
                                unread_clause(files.unread())));
  }
  measure_found(files);
  return files;
}

std::vector<std::string> folders_in(const fs::path& folder, const std::string& advice) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.')) continue;
      refuse_lost_folder(entry);
      if (is_folder(entry) && !is_leftover(entry.path())) names.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(
        fmt::format("cannot list the classes in '{}': {}; {}", error.path1().string(), error.code().message(), advice));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string folders_in_classes(const fs::path& folder, const std::vector<std::string>& classes) {
  constexpr int64_t kShown = 3;
  std::string shown;
  int64_t count = 0;
  for (const std::string& name : classes) {
    for (const std::string& inner : folders_in(folder / name, "")) {
      if (count++ == kShown) return shown;
      shown += fmt::format("{}{}/{}", count == 1 ? "" : ", ", name, inner);
    }
  }
  return shown;
}

void warn_of_inner_classes(const fs::path& folder, const std::vector<std::string>& classes, const FileTable& files,
                           int64_t depth) {
  for (int64_t i = 0; i < files.size(); ++i) {
    if (std::ranges::count(files.name(i), '/') == depth) return;
  }
  if (files.size() == 0) return;
  log::warning(fmt::format(
      "[data] no image of '{}' lies directly in the folder of its class. The {} classes are the folders in it, the first "
      "is {}. If the classes are the folders in these (such as {}), there is a folder too many above them",
      folder.string(), classes.size(), classes[0], folders_in_classes(folder, classes)));
}

std::vector<std::string> unknown_folders(const fs::path& folder, const std::vector<std::string>& classes) {
  const std::unordered_set<std::string> known(classes.begin(), classes.end());
  std::vector<std::string> found = folders_in(folder, "expected a folder for every class");
  std::erase_if(found, [&](const std::string& name) { return known.contains(name); });
  return found;
}

std::string usual_split(std::string_view folder) {
  static constexpr std::array<std::pair<const char*, const char*>, 8> kNames = {{{"train", "train"},
                                                                                 {"training", "train"},
                                                                                 {"val", "val"},
                                                                                 {"valid", "val"},
                                                                                 {"validation", "val"},
                                                                                 {"dev", "val"},
                                                                                 {"test", "test"},
                                                                                 {"testing", "test"}}};
  const std::string lower = lower_case(folder);
  for (const auto& [name, split] : kNames) {
    if (lower == name) return split;
  }
  return {};
}

std::string misnamed_split(const fs::path& missing) {
  std::error_code error;
  if (fs::exists(missing, error)) return {};
  const std::string name = missing.filename().string();
  for (const std::string split : {"train", "val", "test"}) {
    if (!name.ends_with(split)) continue;
    const std::string before = lower_case(name.substr(0, name.size() - split.size()));  // "images_" of "images_val"
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(missing.parent_path(), error)) {
      const std::string other = lower_case(entry.path().filename().string());
      if (other.starts_with(before) && usual_split(other.substr(before.size())) == split && entry.is_directory(error)) {
        found.push_back(entry.path());
      }
    }
    if (found.empty()) return {};
    return fmt::format("'{}' is there: rename it to {}, or make a link of that name",
                       std::min_element(found.begin(), found.end())->string(), name);
  }
  return {};
}

std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files) {
  const int64_t first = files.size();
  std::vector<int64_t> labels;
  count_misplaced(files.root() / split, files.unread());
  for (size_t c = 0; c < classes.size(); ++c) {
    const fs::path folder = fs::path(split) / classes[c];
    if (!fs::is_directory(files.root() / folder)) continue;
    find_images(folder, files);
    labels.resize(static_cast<size_t>(files.size() - first), static_cast<int64_t>(c));
  }
  return labels;
}

void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const fs::path& folder, bool may_lack, const UnreadFiles& unread) {
  if (labels.empty()) {
    throw DataError(
        fmt::format("no {} file in the folders of '{}'{}", kImageEndings, folder.string(), unread_clause(unread)));
  }
  std::vector<bool> has_image(classes.size());
  for (const int64_t label : labels) has_image.at(static_cast<size_t>(label)) = true;
  std::vector<std::string> without;
  int64_t empty = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    if (has_image[c]) continue;
    std::error_code error;
    const bool is_empty = fs::is_empty(folder / classes[c], error) && !error;
    without.push_back(classes[c] + (is_empty ? " (an empty folder)" : ""));
    empty += is_empty;
  }
  if (without.empty()) return;
  std::string what = fmt::format("{} of {} classes have no image in '{}'; the first is {}", without.size(),
                                 classes.size(), folder.string(), without.front());
  if (may_lack) {
    log::warning("[data] " + what);
    return;
  }
  if (empty > 0) {
    what += fmt::format(". Every folder there is a class: remove the empty one{}, or put images in",
                        empty == 1 ? "" : fmt::format("s ({})", empty));
  }
  throw DataError(what + unread_clause(unread));
}

std::vector<int64_t> read_class_images(const std::string& split, const std::vector<std::string>& classes, bool may_lack,
                                       FileTable& files) {
  const fs::path folder = files.root() / split;
  for (const std::string& name : unknown_folders(folder, classes)) {
    throw DataError(fmt::format("'{}' is a class that the training split has not{}", (folder / name).string(),
                                did_you_mean(name, classes)));
  }
  std::vector<int64_t> labels = add_class_images(split, classes, files);
  check_every_class(labels, classes, folder, may_lack, files.unread());
  return labels;
}

void measure_found(FileTable& files) {
  if (const auto gone = files.measure()) {
    std::error_code error;
    throw DataError(fmt::format("'{}' is {}", files.path(*gone).string(),
                                fs::exists(files.path(*gone), error)
                                    ? "no regular file"
                                    : "a link to nothing, or went away while its folder was read"));
  }
  files.shrink_to_fit();
  for (const std::string& text : unread_texts(files.unread())) log::warning("[data] " + text);
}

}  // namespace settrain

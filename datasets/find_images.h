// The image files below a folder, and in a folder for every class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// Whether a file's name ends as those do that data sets of folders take for images, in capitals or not.
bool is_image(std::string_view file);

/// Whether a file's name ends as any picture's does: as an image's, or as .heic, .gif and others that are not taken.
bool is_picture(std::string_view file);

/// The endings of image files, for messages.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .jpe, .jfif, .png, .bmp, .webp, .tif or .tiff";

/// Adds to `files` all images of `folder`, a path from their root, and of the folders in it, in the order of their
/// paths. `takes` says by its name whether a file is one; a .jfif, .pjpeg or .pjp file is one where its header has
/// a size, or it cannot be opened. Links to
/// folders are followed. Hidden files and folders are left out; all other files, and folders __MACOSX, are counted in
/// files.unread(). Throws DataError where there is no such folder, where a link leads back to a folder around it, and
/// for a link to nothing whose name has no ending: it may have led to a folder.
void find_images(const std::filesystem::path& folder, FileTable& files, bool (*takes)(std::string_view) = is_image);

/// Sentences about files that were passed over: how many, of which endings, and the first. None where there are none.
std::vector<std::string> unread_texts(const UnreadFiles& unread);

/// The images that find_images() finds below `root`, measured. Throws DataError where there is no such folder, or no
/// image in it.
FileTable unlabelled_images(const std::filesystem::path& root);

/// The names of the folders in `folder`, sorted, without hidden ones and __MACOSX. Throws DataError, with `advice` at
/// its end, where `folder` cannot be listed, and for a link to nothing that may have led to a folder.
std::vector<std::string> folders_in(const std::filesystem::path& folder, const std::string& advice);

/// Some folders that lie in those of the classes, for messages: "oak/leaf, oak/bark, elm/leaf". Empty where none does.
std::string folders_in_classes(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// Warns where no image lies directly in the folder of its class, `folder`/CLASS: there may be a folder too many above
/// the classes. `depth`: the slashes in the name of an image in `files` that does.
void warn_of_inner_classes(const std::filesystem::path& folder, const std::vector<std::string>& classes,
                           const FileTable& files, int64_t depth);

/// The folders in `folder` that are not named after a class.
std::vector<std::string> unknown_folders(const std::filesystem::path& folder, const std::vector<std::string>& classes);

/// The split ("train", "val" or "test") that people mean by a folder's name: "val" by "Validation", "valid" and "dev";
/// an empty text for other names.
std::string usual_split(std::string_view folder);

/// Where the folder of a split, such as DATA/val or DATA/images_val, is missing and another seems to be meant:
/// "'DATA/Validation' is there: rename it to val, or make a link of that name". Else an empty text.
std::string misnamed_split(const std::filesystem::path& missing);

/// Adds the images of the existing folders root/split/CLASS to `files`, class by class and in the order of their paths,
/// as find_images() does. Returns their labels. `split` is a path from the root of `files`.
std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files);

/// Throws DataError where no label is of some class. With `may_lack` that is a warning, unless there is no label at
/// all. `folder`: the split's, for the message; an error also lists `unread`, which may be the missing images.
void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const std::filesystem::path& folder, bool may_lack, const UnreadFiles& unread);

/// add_class_images() and check_every_class(). Throws DataError also for a folder that is no class.
std::vector<int64_t> read_class_images(const std::string& split, const std::vector<std::string>& classes, bool may_lack,
                                       FileTable& files);

/// Measures all files, see FileTable, and warns of files.unread(). Throws DataError naming a file that is a link to
/// nothing, no regular file, or was removed meanwhile.
void measure_found(FileTable& files);

}  // namespace settrain

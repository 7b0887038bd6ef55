#include "datasets/recorded_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr std::string_view kHeader = "settrain files 1\n";
constexpr std::string_view kSplit = "split ";

const FileTable* files_of(const Split& split) {
  const auto* images = dynamic_cast<const ImageFiles*>(split.images.get());
  return images ? &images->files() : nullptr;
}

// "3", or "3,0" for several labels.
void append_labels(const Split& split, int64_t sample, std::string& text) {
  if (split.label_sets.empty()) {
    fmt::format_to(std::back_inserter(text), "{}", split.labels[static_cast<size_t>(sample)]);
    return;
  }
  const char* comma = "";
  for (const int64_t label : split.label_sets.of(sample)) {
    fmt::format_to(std::back_inserter(text), "{}{}", comma, label);
    comma = ",";
  }
}

// Makes a .gz file's bytes.
class Gzip {
 public:
  Gzip() {
    constexpr int kGzipFormat = 16, kMemory = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::runtime_error("zlib cannot begin to compress");
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  void add(std::string_view text) { feed(text, Z_NO_FLUSH); }
  std::string finish() {
    feed({}, Z_FINISH);
    return std::move(bytes_);
  }

 private:
  void feed(std::string_view text, int flush) {
    std::array<Bytef, 1 << 15> out;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    do {
      stream_.next_out = out.data();
      stream_.avail_out = static_cast<uInt>(out.size());
      deflate(&stream_, flush);
      bytes_.append(reinterpret_cast<const char*>(out.data()), out.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
  std::string bytes_;
};

std::optional<std::string> read_gzip(const std::filesystem::path& file) {
  struct Close {
    void operator()(gzFile_s* open) const { gzclose(open); }
  };
  const std::unique_ptr<gzFile_s, Close> stream(gzopen(file.c_str(), "rb"));
  if (!stream) return std::nullopt;
  std::string text;
  std::vector<char> piece(size_t{1} << 16);
  int got;
  while ((got = gzread(stream.get(), piece.data(), static_cast<unsigned>(piece.size()))) > 0) {
    text.append(piece.data(), static_cast<size_t>(got));
  }
  int error = Z_OK;
  gzerror(stream.get(), &error);  // gzread() returns the bytes before a truncated end
  return got == 0 && error == Z_OK ? std::optional(std::move(text)) : std::nullopt;
}

struct ListedFile {
  std::string_view size, labels, name;
};

// "300 0 train/a/1.png"
std::string line_of(const Split& split, const FileTable& files, int64_t sample) {
  const int64_t id = split.ids[static_cast<size_t>(sample)];
  std::string line = fmt::format("{} ", files.file_size(id));
  append_labels(split, sample, line);
  return line + " " + on_one_line(files.name_from_root(id));
}

ListedFile parsed(std::string_view line) {
  const size_t first = line.find(' '), second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return {};
  return {line.substr(0, first), line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

// The files of the split that had that digest; nothing where the list has none.
std::optional<std::vector<ListedFile>> listed(std::string_view list, const std::string& digest) {
  const size_t begin = list.find(fmt::format("\n{}{} ", kSplit, digest));
  if (!list.starts_with(kHeader) || begin == std::string_view::npos) return std::nullopt;
  std::vector<ListedFile> files;
  for (size_t at = std::min(list.find('\n', begin + 1), list.size() - 1) + 1; at < list.size();) {
    const size_t end = std::min(list.find('\n', at), list.size());
    const std::string_view line = list.substr(at, end - at);
    if (line.starts_with(kSplit)) break;
    files.push_back(parsed(line));
    at = end + 1;
  }
  return files;
}

using FilesByName = std::unordered_map<std::string_view, const ListedFile*>;

FilesByName by_name(const std::vector<ListedFile>& files) {
  FilesByName names;
  for (const ListedFile& file : files) names.emplace(file.name, &file);
  return names;
}

// "; of 13 images 2 have changed and 3 are missing; 1 is new"
std::string counts_text(int64_t changed, int64_t missing, int64_t added, int64_t before) {
  std::string text;
  if (changed + missing > 0) text = fmt::format("; of {} image{}", before, before == 1 ? "" : "s");
  if (changed > 0) text += fmt::format(" {} {} changed", changed, changed == 1 ? "has" : "have");
  if (missing > 0)
    text += fmt::format("{} {} {} missing", changed > 0 ? " and" : "", missing, missing == 1 ? "is" : "are");
  if (added > 0) text += fmt::format("; {} {} new", added, added == 1 ? "is" : "are");
  return text;
}

FileDifference compared(const std::vector<ListedFile>& before, const std::vector<ListedFile>& now) {
  const FilesByName names_before = by_name(before), names_now = by_name(now);
  FileDifference difference;
  std::string first;
  int64_t changed = 0, added = 0, missing = 0;
  const auto note = [&](int64_t& count, const std::string& text) {
    ++count;
    if (first.empty()) first = text;
  };
  for (const ListedFile& file : now) {
    const auto found = names_before.find(file.name);
    if (found == names_before.end()) {
      note(added, fmt::format("'{}' is new", file.name));
    } else if (const ListedFile& old = *found->second; old.size != file.size) {
      note(changed, fmt::format("'{}' has {} bytes, and had {}", file.name, file.size, old.size));
    } else if (old.labels != file.labels) {
      note(changed, fmt::format("'{}' has the label {}, and had {}", file.name, file.labels, old.labels));
    }
  }
  for (const ListedFile& file : before) {
    if (!names_now.contains(file.name)) note(missing, fmt::format("'{}' is missing", file.name));
  }
  difference.same_names = std::ranges::equal(before, now, {}, &ListedFile::name, &ListedFile::name);
  if (!first.empty()) {
    difference.text = first + counts_text(changed, missing, added, std::ssize(before));
  } else if (!difference.same_names) {
    difference.text = "the images are in another order, or listed another number of times";
  }
  return difference;
}

}  // namespace

std::string digest_of(const Split& split, const Dataset& dataset) {
  const FileTable* files = files_of(split);
  const bool ids_count = !files || &split == &dataset.train;
  Sha256 sha;
  sha.add(fmt::format("images {}\nclasses {}\nchannels {}\norigin {}\n", split.size(), dataset.num_classes(),
                      dataset.channels, split.images->origin()));
  std::string line;
  for (int64_t i = 0; i < split.size(); ++i) {
    const int64_t id = split.ids[static_cast<size_t>(i)];
    line.clear();
    if (ids_count) fmt::format_to(std::back_inserter(line), "{} ", id);
    append_labels(split, i, line);
    if (files) fmt::format_to(std::back_inserter(line), " {} {}", files->file_size(id), files->name_from_root(id));
    sha.add(line += '\n');
  }
  return sha.hex();
}

std::string list_of_files(std::span<const Split* const> splits) {
  Gzip list;
  list.add(kHeader);
  bool has_files = false;
  for (const Split* split : splits) {
    const FileTable* files = files_of(*split);
    if (!files || split->size() == 0) continue;
    has_files = true;
    list.add(fmt::format("{}{} {}\n", kSplit, split->digest, on_one_line(split->name)));
    for (int64_t i = 0; i < split->size(); ++i) list.add(line_of(*split, *files, i) + "\n");
  }
  return has_files ? list.finish() : std::string();
}

FileDifference difference_of_files(const std::filesystem::path& list, const std::string& digest, const Split& now) {
  const FileTable* files = files_of(now);
  if (!files) return {};
  const std::optional<std::string> text = read_gzip(list);
  if (!text) return {};
  const auto before = listed(*text, digest);
  if (!before) return {};
  std::vector<std::string> lines;
  std::vector<ListedFile> files_now;
  for (int64_t i = 0; i < now.size(); ++i) lines.push_back(line_of(now, *files, i));
  for (const std::string& line : lines) files_now.push_back(parsed(line));
  return compared(*before, files_now);
}

}  // namespace settrain

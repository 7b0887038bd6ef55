#include "src/config/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "src/config/interpolate.h"
#include "src/config/text.h"
#include "src/core/suggest.h"

namespace settrain::config {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestFile = 1024 * 1024;  // bytes

/// The file's bytes. Throws InvalidValue where it cannot be read.
std::string read_bytes(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw InvalidValue("is a folder, not a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InvalidValue(std::string("cannot be read: ") + std::strerror(errno));
  std::string bytes(kLargestFile + 1, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.bad()) throw InvalidValue("cannot be read to its end");
  bytes.resize(static_cast<size_t>(stream.gcount()));
  if (bytes.size() > kLargestFile) throw InvalidValue("is larger than 1 MiB, which is no configuration");
  return bytes;
}

/// ", did you mean 'quickstart.yaml'?" for a file that does not exist, from its folder.
std::string nearest_file(const fs::path& file) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(file.has_parent_path() ? file.parent_path() : ".", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".yaml") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string near = nearest_name(file.filename().string(), names);
  return near.empty() ? "" : did_you_mean((file.parent_path() / near).string());
}

class FileReader {
 public:
  FileReader(const std::string& stem, const Declarations& declarations, Problems& problems)
      : stem_(stem), declarations_(declarations), problems_(problems) {}

  std::optional<std::vector<Layer>> read(fs::path file) {
    // Until a file names its base, there is only the command line to blame for a missing one.
    Origin named_at{on_one_line(file.string())};
    std::string named_by;
    while (!file.empty()) {
      if (!enter(file, named_at, named_by)) return std::nullopt;
      const std::optional<YamlNode> root = parse(file, named_at, named_by);
      if (!root) return std::nullopt;
      layers_.insert(layers_.begin(), flatten(*root, declarations_, problems_));
      const YamlNode* base = base_of(*root);
      if (!base) break;
      const std::optional<std::string> name = base_name(*base);
      if (!name) return std::nullopt;
      file = (file.parent_path() / *name).lexically_normal();
      named_at = base->origin;
      named_by = "extends";
    }
    return std::move(layers_);
  }

 private:
  bool enter(const fs::path& file, const Origin& named_at, const std::string& named_by) {
    std::error_code error;
    const fs::path canonical = fs::weakly_canonical(file, error);
    const bool cycle = std::find(entered_.begin(), entered_.end(), canonical) != entered_.end();
    names_.push_back(on_one_line(file.string()));
    entered_.push_back(canonical);
    if (cycle) problems_.add(named_at, named_by, "files extend each other: " + join(names_, " -> "));
    return !cycle;
  }

  std::optional<YamlNode> parse(const fs::path& file, const Origin& named_at, const std::string& named_by) {
    const Source source{names_.back(), static_cast<int>(layers_.size()), true};
    const std::string prefix = named_by.empty() ? "" : in_quotes(file.string()) + " ";
    try {
      std::error_code error;
      if (!fs::exists(file, error)) {
        throw InvalidValue((named_by.empty() ? "does not exist" : "does not exist (looked for beside this file)") +
                           nearest_file(file));
      }
      const std::optional<YamlNode> root = parse_yaml(read_bytes(file), source, problems_);
      if (root && !root->is(YamlNode::Kind::kMap) && !root->is(YamlNode::Kind::kNull)) {
        problems_.add(root->origin, "",
                      "a configuration is a map of keys, not a " +
                          std::string(root->is(YamlNode::Kind::kList) ? "list" : "single value"));
        return std::nullopt;
      }
      return root;
    } catch (const InvalidValue& error) {
      problems_.add(named_at, named_by, prefix + error.what());
      return std::nullopt;
    }
  }

  static const YamlNode* base_of(const YamlNode& root) {
    for (size_t i = 0; i < root.keys.size(); ++i) {
      if (root.keys[i].text == "extends") return &root.values[i];
    }
    return nullptr;
  }

  std::optional<std::string> base_name(const YamlNode& base) {
    if (!base.is(YamlNode::Kind::kScalar) || base.text.empty()) {
      problems_.add(base.origin, "extends", "must be the name of one file");
      return std::nullopt;
    }
    const Lookup lookup = [this](const std::string& name) -> std::string {
      if (name == "file") return stem_;
      throw InvalidValue("cannot refer to keys, since it decides what they are");
    };
    try {
      return expand(base.text, lookup).text;
    } catch (const InvalidValue& error) {
      problems_.add(base.origin, "extends", error.what());
      return std::nullopt;
    }
  }

  const std::string& stem_;
  const Declarations& declarations_;
  Problems& problems_;
  std::vector<Layer> layers_;
  std::vector<fs::path> entered_;
  std::vector<std::string> names_;
};

}  // namespace

std::optional<std::vector<Layer>> read_files(const fs::path& file, const std::string& stem,
                                             const Declarations& declarations, Problems& problems) {
  return FileReader(stem, declarations, problems).read(file);
}

}  // namespace settrain::config

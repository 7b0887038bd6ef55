#include "datasets/plantnet300k_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "datasets/data_file_error.h"
#include "datasets/file_bytes.h"
#include "datasets/file_places.h"
#include "src/core/error.h"
#include "src/core/strict_json.h"

namespace settrain {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw DataError(fmt::format("'{}': {}", file.string(), what));
}

// Levels. The library prints values by recursion, for which some 10,000 of them are too many.
constexpr size_t kDeepest = 32;

json must_be_object(const std::filesystem::path& file, json content) {
  if (!content.is_object()) fail(file, "expected a JSON object");
  return content;
}

json read_json(const std::filesystem::path& file) {
  std::vector<uint8_t> memory;
  const auto bytes = read_file_bytes(file, memory);
  try {
    return must_be_object(file,
                          parse_strict_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kDeepest));
  } catch (const std::invalid_argument& problem) {
    fail(file, problem.what());
  }
}

// The same where `callback` drops parts of the file as they come, so that it is never in memory as a whole.
void scan_json(const std::filesystem::path& file, const json::parser_callback_t& callback) {
  std::ifstream stream(file);
  if (!stream) throw data_file_error("open", file);
  try {
    must_be_object(file, json::parse(stream, [&](int depth, json::parse_event_t event, json& parsed) {
                     if (depth > static_cast<int>(kDeepest))
                       fail(file, fmt::format("is nested more than {} deep", kDeepest));
                     return callback(depth, event, parsed);
                   }));
  } catch (const json::exception& error) {
    fail(file, fmt::format("cannot be read as JSON: {}", error.what()));
  }
}

// An id, which some versions write as a number. Empty where it is neither.
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
    if (found == content.end()) fail(file, fmt::format("has {} entries, but none for class {}", content.size(), c));
    ids.push_back(text_of(*found));
    if (ids.back().empty()) fail(file, fmt::format("expected an id for class {}, got {}", c, found->dump()));
    if (!seen.insert(ids.back()).second) fail(file, fmt::format("names the id {} twice", ids.back()));
  }
  return ids;
}

std::unordered_map<std::string, std::string> read_species_names(const std::filesystem::path& file) {
  const json content = read_json(file);
  std::unordered_map<std::string, std::string> names;
  for (const auto& [id, name] : content.items()) {
    if (!name.is_string() || name.get<std::string>().find_first_not_of(' ') == std::string::npos) {
      fail(file, fmt::format("expected a name for the id {}, got {}", id, name.dump()));
    }
    names.emplace(id, name.get<std::string>());
  }
  return names;
}

std::array<MissingFiles, 3> find_missing_files(const std::filesystem::path& file,
                                               const std::array<std::string, 3>& folders, const FileTable& files) {
  const std::array<std::string, 3> splits = {"train", "val", "test"};
  const FilePlaces places(files, 0, files.size());
  std::array<MissingFiles, 3> report;
  std::string image;
  const auto look_for = [&](const json& entry) {
    const std::string species = entry.contains("species_id") ? text_of(entry["species_id"]) : "";
    const std::string split = entry.contains("split") ? text_of(entry["split"]) : "";
    const auto s = static_cast<size_t>(std::find(splits.begin(), splits.end(), split) - splits.begin());
    if (species.empty() || s == splits.size()) {
      fail(file, fmt::format("expected species_id and split (train, val or test) of '{}', got {}", image,
                             entry.dump().substr(0, 120)));
    }
    const std::string path = fmt::format("{}/{}/{}.jpg", folders[s], species, image);
    ++report[s].listed;
    if (!places.find(path) && ++report[s].missing == 1) report[s].first = path;
  };
  // 300,000 images with six texts each would fill several hundred MB: every one is dropped once it was looked at.
  scan_json(file, [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key) image = parsed.get<std::string>();
    if (depth == 1 && event == json::parse_event_t::object_end) {
      look_for(parsed);
      return false;
    }
    return true;
  });
  return report;
}

}  // namespace settrain

#include "src/run_folder/metrics_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/table_text.h"

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;

std::string to_json_line(const MetricsRow& row) {
  Json json{{"step", row.step}, {"epoch", row.epoch}};
  // The library writes null for NaN and infinities.
  for (const auto& [name, value] : row.values) json[name] = value;
  return json.dump() + "\n";
}

MetricsRow from_json_line(const std::string& line) {
  const Json json = Json::parse(line);
  if (!json.is_object()) throw RunError("expected an object");
  MetricsRow row;
  for (const auto& [name, value] : json.items()) {
    if (name == "step") {
      row.step = value.get<int64_t>();
    } else if (name == "epoch") {
      row.epoch = value.get<int64_t>();
    } else {
      row.values.emplace_back(name, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    }
  }
  return row;
}

void check_names(const MetricsRow& row) {
  for (const auto& [name, value] : row.values) {
    if (name.empty() || name == "step" || name == "epoch") {
      throw std::invalid_argument("'" + name + "' cannot be the name of a metric");
    }
  }
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

std::vector<MetricsRow> complete_rows(const std::string& text, const std::filesystem::path& file) {
  std::vector<MetricsRow> rows;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    try {
      rows.push_back(from_json_line(text.substr(begin, end - begin)));
    } catch (const std::exception& error) {
      throw RunError(fmt::format("'{}', line {}: {}", file.string(), rows.size() + 1, error.what()));
    }
  }
  return rows;
}

}  // namespace

std::vector<MetricsRow> read_metrics(const std::filesystem::path& jsonl, int64_t epochs) {
  std::vector<MetricsRow> rows = complete_rows(read_text(jsonl), jsonl);
  if (std::ssize(rows) < epochs) {
    throw RunError(fmt::format(
        "'{}' {}, and the run has finished {} epochs: put the file back, or leave the run out", jsonl.string(),
        std::filesystem::exists(jsonl) ? fmt::format("has {} rows", rows.size()) : "is missing", epochs));
  }
  return rows;
}

MetricsLog::MetricsLog(const std::filesystem::path& jsonl, std::filesystem::path csv)
    : jsonl_(jsonl), csv_(std::move(csv)) {
  read_rows();
}

void MetricsLog::append(const MetricsRow& row) {
  check_names(row);
  jsonl_.append(to_json_line(row));
  rows_.push_back(row);
  if (add_columns(row)) {
    write_csv();
  } else {
    AppendFile(csv_).append(csv_line(row));
  }
}

uint64_t MetricsLog::offset() {
  jsonl_.sync();
  return jsonl_.size();
}

void MetricsLog::truncate_to(uint64_t offset) {
  jsonl_.truncate_to(offset);
  read_rows();
  if (jsonl_.size() != offset) {
    throw RunError(fmt::format("'{}': byte {} is not the end of a line", jsonl_.path().string(), offset));
  }
}

void MetricsLog::read_rows() {
  columns_.clear();
  const std::string text = read_text(jsonl_.path());
  if (text.size() != jsonl_.size()) throw RunError("cannot read '" + jsonl_.path().string() + "'");
  rows_ = complete_rows(text, jsonl_.path());
  for (const MetricsRow& row : rows_) add_columns(row);
  jsonl_.truncate_to(text.rfind('\n') + 1);  // npos + 1 is 0
  write_csv();
}

bool MetricsLog::add_columns(const MetricsRow& row) {
  const size_t before = columns_.size();
  for (const auto& [name, value] : row.values) {
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) columns_.push_back(name);
  }
  return columns_.size() > before;
}

std::string MetricsLog::csv_line(const MetricsRow& row) const {
  std::string line = fmt::format("{},{}", row.step, row.epoch);
  for (const std::string& column : columns_) {
    const auto found =
        std::find_if(row.values.begin(), row.values.end(), [&](const auto& value) { return value.first == column; });
    line += found == row.values.end() ? "," : fmt::format(",{}", found->second);
  }
  return line + "\n";
}

void MetricsLog::write_csv() {
  std::vector<std::string> head{"step", "epoch"};
  head.insert(head.end(), columns_.begin(), columns_.end());
  std::string table = csv_row(head);
  for (const MetricsRow& row : rows_) table += csv_line(row);
  write_file_atomically(csv_, table);
}

}  // namespace settrain

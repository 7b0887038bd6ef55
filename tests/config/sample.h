// A small schema with every kind of key, and files to load with it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain::config::test {

struct GeneralOptions {
  std::string name;
  int64_t seed = 0;
  Texts select;
};

struct OptimizerOptions {
  double lr = 0, momentum = 0;
  bool nesterov = false;
};

struct LossOptions {
  int64_t k = 0;
  double epsilon = 0, max_margin = 0;
  std::string noise_kind;
};

struct DataOptions {
  std::string root;
  int64_t batch_size = 0, workers = 0, val_size = 0;
};

struct EvalOptions {
  Integers top_k;
  Reals average_k;
  Texts splits;
};

/// The key for any T that no options struct takes.
template <class T>
Key free_key(std::string name, T default_value, std::string help = "Some key.") {
  Key key;
  key.name = std::move(name);
  key.default_value = std::move(default_value);
  key.help = std::move(help);
  return key;
}

Schema sample_schema();

/// A folder of its own for the files of one test, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Writes a file and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const;
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  /// Writes `text` to run.yaml and loads it.
  Config load(const std::string& text, const std::vector<std::string>& overrides = {}) const;

  /// The message of the ConfigError of that, without the folder's name; "no error" where there is none.
  std::string error(const std::string& text, const std::vector<std::string>& overrides = {}) const;
  std::string error_of_file(const std::filesystem::path& file, const std::vector<std::string>& overrides = {}) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace settrain::config::test

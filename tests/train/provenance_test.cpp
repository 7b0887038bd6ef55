#include "src/train/provenance.h"

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "src/core/files.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Json = nlohmann::ordered_json;

namespace {

const ProvenanceInput kInput{{"settrain", "--config", "a.yaml"}, at::kCPU, 4, 1, "fashion_mnist", "abc123"};

}  // namespace

TEST_CASE("Provenance holds what the run was given and where it ran") {
  const Json json = collect_provenance(kInput);
  CHECK(json["command_line"] == Json{"settrain", "--config", "a.yaml"});
  CHECK(json["seed"] == 4);
  CHECK(json["rng_version"] == 1);
  CHECK(json["dataset"] == "fashion_mnist");
  CHECK(json["data_digest"] == "abc123");
  CHECK(json["device"] == "cpu");
  CHECK_FALSE(json.contains("cuda"));
  CHECK(json["host"] == host_name());
  CHECK(json["threads"] == at::get_num_threads());
  CHECK(json["libraries"]["libtorch"] == "2.11.0");
  for (const char* library : {"yaml-cpp", "spdlog", "libjpeg-turbo", "libpng", "libtiff", "libwebp"}) {
    CAPTURE(library);
    CHECK(std::regex_match(json["libraries"][library].get<std::string>(), std::regex(R"(\d+\.\d+\.\d+)")));
  }
  CHECK(std::regex_match(json["compiler"].get<std::string>(), std::regex(R"(\w+ \d+\.\d+\.\d+)")));
  CHECK_THAT(json["libraries"]["opencv"].get<std::string>(), Catch::StartsWith("4."));
  CHECK_FALSE(json["instruction_set"].get<std::string>().empty());
  CHECK_FALSE(json["processor"].get<std::string>().empty());
  CHECK(std::regex_match(json["date"].get<std::string>(),
                         std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ)")));
}

TEST_CASE("The program knows its version and commit") {
  const Json json = collect_provenance(kInput);
  CHECK(json["settrain"] == build_info().version);
  CHECK(std::regex_match(build_info().version, std::regex(R"(\d+\.\d+\.\d+)")));
  CHECK(std::regex_match(json["git_commit"].get<std::string>(), std::regex("unknown|[0-9a-f]{40}(-dirty)?")));
}

TEST_CASE("Provenance is written as JSON, also where an argument is not UTF-8") {
  const test::TemporaryFolder folder;
  Json json = collect_provenance(kInput);
  json["label_noise"] = {{"kind", "superclass"}, {"effective_rate", 0.2}};
  json["command_line"].push_back("\xFF.yaml");
  write_provenance(folder / "provenance.json", json);
  const Json read = Json::parse(test::read_file(folder / "provenance.json"));
  CHECK(read["label_noise"]["effective_rate"] == 0.2);
  CHECK(read["command_line"][3] == "\xEF\xBF\xBD.yaml");
}

TEST_CASE("Provenance is read back; a missing file is null, and a damaged one is reported") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "provenance.json";
  CHECK(read_provenance(file).is_null());
  write_provenance(file, {{"seed", 4}, {"resumed", Json::array({1})}});
  CHECK(read_provenance(file)["seed"] == 4);
  for (const std::string damaged : {"", "{\"seed\": 4", "[1]", "{\"resumed\": 4}"}) {
    folder.write("provenance.json", damaged);
    CHECK_THROWS_WITH(read_provenance(file), Catch::Contains("provenance.json' is damaged"));
    CHECK(test::read_file(file) == damaged);
  }
  std::filesystem::create_directory(folder / "folder");
  CHECK_THROWS_AS(read_provenance(folder / "folder"), RunError);
}

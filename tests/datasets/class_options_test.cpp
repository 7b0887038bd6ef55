// Superclasses and names of classes from text files.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/class_table.h"
#include "datasets/load_data.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/temporary_folder.h"

using namespace settrain;
using Catch::Contains;

namespace {

struct Trees {
  test::TemporaryFolder folder;
  Dataset dataset;

  Trees() {
    dataset.class_names = {"ash", "elm", "oak"};
    dataset.superclass_names = {"own"};
    dataset.superclass_of = {0, 0, 0};
  }

  void apply(const std::string& superclasses, const std::string& names = "") {
    ClassOptions options;
    if (!superclasses.empty()) options.superclasses = folder.write("super.csv", superclasses).string();
    if (!names.empty()) options.class_names = folder.write("names.csv", names).string();
    apply_class_options(options, dataset);
  }
};

}  // namespace

TEST_CASE("without files the data set's own classes stay") {
  Trees trees;
  trees.apply("");
  CHECK(trees.dataset.class_names == std::vector<std::string>{"ash", "elm", "oak"});
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 0, 0});
}

TEST_CASE("superclasses and names come from text files, in the place of the data set's own") {
  Trees trees;
  trees.apply("oak,Fagaceae\nelm,Ulmaceae\r\n\nash, Fagaceae\n", "ash,Ash, common\nelm,Elm\noak,Oak\n");
  CHECK(trees.dataset.superclass_names == std::vector<std::string>{"Fagaceae", "Ulmaceae"});
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK(trees.dataset.class_names == std::vector<std::string>{"Ash, common", "Elm", "Oak"});
}

TEST_CASE("a class is called by its key or by its name") {
  Trees trees;
  trees.dataset.class_keys = {"17", "18", "19"};
  trees.apply("17,A\nelm,B\n19,A\n");
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK_THROWS_WITH(trees.apply("17,A\nash,B\n"), Contains("super.csv:2: ") && Contains("line above"));
  CHECK_THROWS_WITH(trees.apply("17,A\n18,B\n"), Contains("no line for the class '19'"));

  trees.dataset.class_names[1] = "ash";
  trees.apply("17,A\n18,B\n19,A\n");
  CHECK_THROWS_WITH(trees.apply("ash,A\n"),
                    Contains("super.csv:1: several classes are called 'ash'") && Contains("17"));
}

TEST_CASE("a text file that does not fit the classes is an error with its line") {
  Trees trees;
  CHECK_THROWS_WITH(trees.apply("oak,A\noaks,A\n"), Contains("super.csv:2: ") && Contains("did you mean 'oak'?"));
  CHECK_THROWS_WITH(trees.apply("oak,A\noak,B\n"), Contains("super.csv:2: ") && Contains("line above"));
  CHECK_THROWS_WITH(trees.apply("oak\n"), Contains("super.csv:1: ") && Contains("expected 'class,text'"));
  CHECK_THROWS_WITH(trees.apply("oak,A\nelm,B\n"), Contains("super.csv: no line for the class 'ash'"));
  CHECK_THROWS_WITH(apply_class_options({.superclasses = "/no/such.csv", .class_names = ""}, trees.dataset),
                    Contains("/no/such.csv"));
}

TEST_CASE("a file of one line of megabytes is refused quickly, and in a few words") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> classes(200, "Lactuca virosa");
  for (const char* behind : {"", ",Asteraceae"}) {
    const std::filesystem::path file = folder.write("names.csv", std::string(2'000'000, 'x') + behind + "\n");
    const auto start = std::chrono::steady_clock::now();
    std::string message;
    try {
      read_class_table(file, classes);
    } catch (const DataError& error) {
      message = error.what();
    }
    CHECK_THAT(message, Contains("names.csv:1: ") && Contains("xxx"));
    CHECK(message.size() < 500);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  }
}

// Superclasses and names of classes from text files.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "datasets/class_table.h"
#include "datasets/load_data.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/logged.h"
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

// Twelve classes of four superclasses, the classes mixed; class c has the key "k<c>". Split s has c + s images of class
// c, and image 100 s + i is its i-th.
Dataset make_kinds() {
  Dataset dataset;
  dataset.name = "kinds";
  dataset.digest = "d";
  std::vector<std::string> superclasses;
  for (int64_t c = 0; c < 12; ++c) {
    dataset.class_names.push_back("c" + std::to_string(c));
    dataset.class_keys.push_back("k" + std::to_string(c));
    superclasses.push_back(std::string(1, static_cast<char>('A' + c % 4)));
  }
  set_superclasses(superclasses, dataset);
  int64_t s = 1;
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    for (int64_t c = 11; c >= 0; --c) {
      for (int64_t i = 0; i < c + s; ++i) {
        split->ids.push_back(100 * s + split->size());
        split->labels.push_back(c);
      }
    }
    ++s;
  }
  return dataset;
}

std::vector<std::string> names_of_labels(const Split& split, const Dataset& dataset) {
  std::vector<std::string> names;
  for (const int64_t label : split.labels) names.push_back(dataset.class_names.at(static_cast<size_t>(label)));
  return names;
}

}  // namespace

TEST_CASE("only the classes of some superclasses stay, in all splits, numbered anew") {
  const Dataset all = make_kinds();
  Dataset kept = make_kinds();
  keep_superclasses({.only_superclasses = {"D", "B"}}, kept);
  CHECK(kept.class_names == std::vector<std::string>{"c1", "c3", "c5", "c7", "c9", "c11"});
  CHECK(kept.class_keys == std::vector<std::string>{"k1", "k3", "k5", "k7", "k9", "k11"});
  CHECK(kept.superclass_names == std::vector<std::string>{"B", "D"});
  CHECK(kept.superclass_of == std::vector<int64_t>{0, 1, 0, 1, 0, 1});
  CHECK(kept.digest != all.digest);
  for (const char* name : {"train", "val", "test"}) {
    const Split &before = split_named(all, name), &after = split_named(kept, name);
    // The images that stay keep their ids, their order and their classes' names.
    const std::vector<std::string> old_names = names_of_labels(before, all), new_names = names_of_labels(after, kept);
    std::vector<std::pair<int64_t, std::string>> expected, found;
    for (size_t i = 0; i < old_names.size(); ++i) {
      if (before.labels[i] % 2 == 1) expected.emplace_back(before.ids[i], old_names[i]);
    }
    for (size_t i = 0; i < new_names.size(); ++i) found.emplace_back(after.ids[i], new_names[i]);
    CHECK(found == expected);
    CHECK(after.name == name);
  }
}

TEST_CASE("a share of the superclasses is drawn by its seed, whole") {
  const auto kept = [](double share, int64_t seed) {
    Dataset dataset = make_kinds();
    keep_superclasses({.superclass_share = share, .superclass_seed = seed}, dataset);
    for (const std::string& name : dataset.superclass_names) {
      const auto place = std::ranges::find(dataset.superclass_names, name) - dataset.superclass_names.begin();
      CHECK(std::ranges::count(dataset.superclass_of, place) == 3);
    }
    return dataset.superclass_names;
  };
  CHECK(kept(0.5, 1).size() == 2);
  CHECK(kept(0.5, 1) == kept(0.5, 1));
  CHECK(kept(0.01, 1).size() == 1);  // at least one
  CHECK(kept(1, 1).size() == 4);
  std::set<std::vector<std::string>> drawn;
  for (int64_t seed = 0; seed < 60; ++seed) drawn.insert(kept(0.5, seed));
  CHECK(drawn.size() == 6);  // every pair of the four
}

TEST_CASE("of several labels of an image those of the kept superclasses stay") {
  Dataset dataset = make_kinds();
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    for (const int64_t label : split->labels) split->label_sets.add(std::vector<int64_t>{label, (label + 1) % 12});
  }
  const int64_t images = dataset.train.size(), of_a = 2 * dataset.train.size();
  keep_superclasses({.only_superclasses = {"A", "B"}}, dataset);
  CHECK(dataset.train.size() < images);
  CHECK(std::ssize(dataset.train.label_sets.classes) < of_a);
  for (int64_t i = 0; i < dataset.train.size(); ++i) {
    const auto labels = dataset.train.label_sets.of(i);
    REQUIRE(!labels.empty());
    CHECK(labels[0] == dataset.train.labels[static_cast<size_t>(i)]);
    for (const int64_t label : labels) CHECK(label < 6);
  }
}

TEST_CASE("superclasses that are unknown, missing or without images are refused, and known truth is") {
  Dataset dataset = make_kinds();
  const auto keep = [&](const config::Texts& names) { keep_superclasses({.only_superclasses = names}, dataset); };
  dataset.superclass_names[0] = "Lupinus";
  CHECK_THROWS_WITH(keep({"B", "Lupins", "Crotalaria"}), Contains("data.only_superclasses") && Contains("'Lupinus'") &&
                                                             Contains("'Crotalaria'") && !Contains("'B'"));
  dataset.truth = std::make_shared<KnownTruth>();
  CHECK_THROWS_AS(keep({"B"}), KeyError);
  dataset.truth = nullptr;
  dataset.val = {"val"};  // a data set without validation images stays one
  keep({"B"});
  CHECK(dataset.val.size() == 0);
  dataset = make_kinds();
  for (int64_t& label : dataset.test.labels) label = 0;
  CHECK_THROWS_WITH(keep({"B"}), Contains("test"));
  dataset = make_kinds();
  dataset.superclass_of.clear();
  CHECK_THROWS_WITH(keep_superclasses({.superclass_share = 0.5}, dataset), Contains("data.superclass_share"));
}

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

TEST_CASE("classes that answers cannot tell apart are warned of") {
  Trees trees;
  const auto warned = [&](const std::string& names) { return test::logged([&] { trees.apply("", names); }); };
  CHECK(warned("ash,Ash\nelm,Elm\noak,Oak\n").empty());
  trees.dataset.class_names = {"ash", "elm", "oak"};
  CHECK_THAT(warned("ash,Tree\nelm,Elm\noak,Tree\n"), Contains("1 of 3 classes") && Contains("two are called 'Tree'"));
  trees.dataset.class_names = {"ash", "elm", "oak"};
  CHECK_THAT(warned("ash,elm\nelm,Elm \noak,ELM\n"), Contains("2 of 3 classes") && Contains("'elm' and 'Elm'"));
}

TEST_CASE("a first line that begins with no class is a header") {
  Trees trees;
  trees.apply("species,family\noak,A\nelm,B\nash,A\n", "species,name\nash,Ash\nelm,Elm\noak,Oak\n");
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK(trees.dataset.class_names == std::vector<std::string>{"Ash", "Elm", "Oak"});
  CHECK_THROWS_WITH(
      Trees().apply("oaks,A\nelm,B\nash,A\n"),
      Contains("super.csv: no line for the class 'oak'") &&
          Contains("the first line, 'oaks,A', begins with no class, and was taken as a header, did you mean 'oak'?"));
}

TEST_CASE("a class is called by its key or by its name") {
  Trees trees;
  trees.dataset.class_keys = {"17", "18", "19"};
  trees.apply("17,A\nelm,B\n19,A\n");
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK_THROWS_WITH(trees.apply("17,A\nash,B\n"), Contains("super.csv:2: ") && Contains("line above"));
  CHECK_THROWS_WITH(trees.apply("17,A\n18,B\n"), Contains("no line for the class '19'; 2 of 3 classes have one"));

  trees.dataset.class_names[1] = "ash";
  trees.apply("17,A\n18,B\n19,A\n");
  CHECK_THROWS_WITH(trees.apply("ash,A\n"),
                    Contains("super.csv:1: several classes are called 'ash'") && Contains("17"));
}

TEST_CASE("a text that is a name and another class' key is the name, and that is told") {
  Trees trees;
  trees.dataset.class_names = {"10", "2", "oak"};
  trees.dataset.class_keys = {"0", "1", "2"};
  const std::string told = test::logged([&] { trees.apply("10,A\n2,B\noak,A\n"); });
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK_THAT(told, Contains("super.csv:2: '2' is the name of one class and the key of another"));
  CHECK_THAT(test::logged([&] { trees.apply("0,A\n1,B\noak,A\n"); }), !Contains("the key of another"));
}

TEST_CASE("superclasses are of the new names, and the earlier ones count too") {
  Trees trees;
  trees.apply("Esche,A\nelm,B\nEiche,A\n", "ash,Esche\nelm,Ulme\noak,Eiche\n");
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 0});
  CHECK(trees.dataset.class_names == std::vector<std::string>{"Esche", "Ulme", "Eiche"});
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
    CHECK_THAT(message, Contains(*behind ? "names.csv: no line" : "names.csv:1: ") && Contains("xxx"));
    CHECK(message.size() < 500);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  }
}

TEST_CASE("a taxonomy gives ranks, and superclasses that stay apart") {
  Trees trees;
  ClassOptions options;
  const auto apply = [&](const std::string& text) {
    options.taxonomy = trees.folder.write("taxonomy.csv", text).string();
    apply_class_options(options, trees.dataset);
  };
  apply("species,genus,family\nelm, Ulmus ,Ulmaceae\nash,Fraxinus,Oleaceae\n\noak,,Fagaceae\n");
  CHECK(trees.dataset.taxonomy.ranks == std::vector<std::string>{"species", "genus", "family"});
  CHECK(paths_of(trees.dataset.taxonomy) ==
        std::vector<std::vector<std::string>>{{"Fraxinus", "Oleaceae"}, {"Ulmus", "Ulmaceae"}, {"", "Fagaceae"}});
  CHECK(trees.dataset.superclass_names == std::vector<std::string>{"Fraxinus", "Ulmus", "Fagaceae"});
  apply("ash,T,X\nelm,T,Y\noak,T,Y\n");
  CHECK(trees.dataset.taxonomy.ranks == std::vector<std::string>{"class", "rank 1", "rank 2"});
  CHECK(trees.dataset.superclass_names == std::vector<std::string>{"T, X", "T, Y"});
  CHECK(trees.dataset.superclass_of == std::vector<int64_t>{0, 1, 1});
  apply("ash,,\nelm,ash,Y\noak,ash,Y\n");
  CHECK(trees.dataset.superclass_names == std::vector<std::string>{"ash (a class)", "ash, Y"});
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"ash,T,X\nelm,T\noak,T,Y\n", "taxonomy.csv:2: 1 names behind the class"},
           {"species,genus,genus\nash,T,X\nelm,T,X\noak,T,Y\n", "the rank 'genus' is there twice"},
           {"species,,family\nash,T,X\nelm,T,X\noak,T,Y\n", "a rank without a name"},
           {"asch,T,X\nelm,T,X\noak,T,Y\n", "no line for the class 'ash'; 2 of 3 classes have one; the first line"},
           {"ash,T,X\nelm,T,X\nelm,T,X\noak,T,Y\n", "taxonomy.csv:3: the class 'elm' has a line above"},
           {"ash,T\nyew,T\nelm,T\noak,T\n", "taxonomy.csv:2: there is no class 'yew'"}}) {
    INFO(text);
    CHECK_THROWS_WITH(apply(text), Contains(why));
  }
}

TEST_CASE("classes that stay keep their place in the taxonomy") {
  Dataset dataset = make_kinds();
  std::vector<std::vector<std::string>> paths;
  for (size_t c = 0; c < 12; ++c) paths.push_back({dataset.superclass_names[c % 4], c % 4 < 2 ? "X" : "Y"});
  dataset.taxonomy = make_taxonomy({"kind", "group", "family"}, paths);
  ClassOptions options;
  options.only_superclasses = {"B", "D"};
  keep_superclasses(options, dataset);
  CHECK(dataset.taxonomy.num_classes() == 6);
  CHECK(paths_of(dataset.taxonomy).front() == std::vector<std::string>{"B", "X"});
  CHECK(paths_of(dataset.taxonomy).at(1) == std::vector<std::string>{"D", "Y"});
  CHECK(dataset.taxonomy.ranks.front() == "kind");
}

TEST_CASE("lists of classes tell the names that are none") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> classes{"ash", "elm", "oak, red"}, keys{"k0", "k1", "k2"};
  const auto read = [&](const std::string& text, bool with_weights) {
    return read_listed_classes(folder.write("place.csv", text), classes, keys, with_weights);
  };
  const ListedClasses only = read("elm\r\n\n yew \nk2\n", false);
  CHECK(only.weights == std::vector<double>{0, 1, 1});
  CHECK(only.unknown == std::vector<std::string>{"yew"});
  const ListedClasses prior = read("species,count\noak, red, 3\nyew,5\nk0,0.5\n", true);
  CHECK(prior.weights == std::vector<double>{0.5, 0, 3});
  CHECK(prior.unknown == std::vector<std::string>{"yew"});
  CHECK_THROWS_WITH(read("ash,1\nelm,-1\n", true), Contains("place.csv:2: expected 'class,weight'"));
  CHECK_THROWS_WITH(read("ash,many\n", true), Contains("place.csv:1: expected"));
  CHECK_THROWS_WITH(read("yew,-3\nash,1\n", true), Contains("place.csv:1: expected"));
  CHECK_THROWS_WITH(read("yew\nash,1\n", true), Contains("place.csv:1: expected"));
  CHECK(read("\nspecies,count\nash,2\n", true).weights.front() == 2);
  // As spreadsheets and R write it.
  const ListedClasses quoted = read("\"species\",\"count\"\n\"oak, red\",3\n\"a \"\"b\"\"\",1\nelm,\"2\"\n", true);
  CHECK(quoted.weights == std::vector<double>{0, 2, 3});
  CHECK(quoted.unknown == std::vector<std::string>{"a \"b\""});
  CHECK(read("\"oak, red\"\n\" elm\n", false).unknown == std::vector<std::string>{"\" elm"});
  CHECK_THROWS_WITH(read("ash,1\nelm,nan\n", true), Contains("place.csv:2"));
  CHECK_THROWS_WITH(read("ash\nk0\n", false), Contains("place.csv:2: the class 'k0' has a line above"));
  CHECK_THROWS_WITH(read_listed_classes(folder.path() / "none", classes, keys, false), Contains("none"));
}

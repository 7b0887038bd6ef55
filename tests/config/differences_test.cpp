#include "src/config/differences.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;
using config::Difference;
using config::differences;

TEST_CASE("Equal configurations do not differ, whatever their layout") {
  CHECK(differences("a: 1\nb: {c: [1, 2]}\n", "b:\n  c:\n  - 1\n  - 2\na: 1\n").empty());
}

TEST_CASE("A changed, a new and a lost key are reported with both values") {
  const auto found = differences("seed: 1\nloss: {name: noised_topk, k: 5}\neval: {top_k: [1, 5]}\n",
                                 "seed: 1\nloss: {name: cross_entropy}\neval: {top_k: [1, 3]}\ntrain: {epochs: 2}\n");
  CHECK(found == std::vector<Difference>{{"loss.name", "noised_topk", "cross_entropy"},
                                         {"eval.top_k", "[1, 5]", "[1, 3]"},
                                         {"train.epochs", "", "2"},
                                         {"loss.k", "5", ""}});
}

TEST_CASE("A text is not the number that it spells") {
  CHECK(differences("name: '1'\n", "name: 1\n").size() == 1);
}

TEST_CASE("A text that is no YAML is refused") {
  CHECK_THROWS_AS(differences("a: [", "a: 1\n"), ConfigError);
}

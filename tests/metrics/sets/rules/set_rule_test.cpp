#include "metrics/sets/rules/set_rule.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("a rule's name is read as it was written") {
  for (const char* name : {"top:5",
                           "average:2.5",
                           "error:0.1",
                           "average-error:0.05",
                           "conformal:lac:0.1",
                           "conformal:aps:0.1",
                           "conformal:aps(randomised=true):0.1",
                           "conformal:raps(lambda=0.2,k=3):0.1",
                           "conformal:saps(lambda=0.1):0.25",
                           "conformal:raps(k=0,randomised=true):0.1:classwise",
                           "conformal:pas:0.1:superclass",
                           "conformal:wpas(weights=a:b/c d.csv):0.1",
                           "conformal:tree(nodes=3):0.1",
                           "conformal:risk:0.1",
                           "conformal:lac(nonempty=true):0.1",
                           "conformal:raps(k=3,randomised=true,nonempty=true):0.1:classwise",
                           "conformal:risk(nonempty=true):0.1",
                           "conformal:raps(tune=size,randomised=true):0.1",
                           "conformal:raps(tune=strata):0.1:classwise",
                           "conformal:lac:0.1:interpolated(0.99)",
                           "conformal:aps:0.1:rc3p",
                           "conformal:lac:0.1:clustered",
                           "conformal:lac:0.1:clustered(clusters=4,share=0.3)",
                           "conformal:lac:0.1:fuzzy(1e-05)",
                           "conformal:lac:0.1:fuzzy(0.5,share=0.75)"}) {
    CAPTURE(name);
    CHECK(parse_set_rule(name).name() == name);
    CHECK(parse_set_rule(parse_set_rule(name).name()) == parse_set_rule(name));
  }
}

TEST_CASE("parameters that are not named have their defaults") {
  const SetRule raps = parse_set_rule("conformal:raps:0.1");
  CHECK(raps.kind == SetRule::Kind::kConformal);
  CHECK(raps.score == ConformalScore::kRaps);
  CHECK(raps.threshold == ConformalThreshold::kMarginal);
  CHECK(raps.level == 0.1);
  CHECK(raps.lambda == 0.01);
  CHECK(raps.k == 5);
  CHECK_FALSE(raps.randomised);
  CHECK(parse_set_rule("conformal:saps:0.1").lambda == 0.2);
  CHECK(parse_set_rule("conformal:raps(lambda=0.01,k=5,randomised=false):0.1:marginal") == raps);
}

TEST_CASE("a rule that cannot be read is refused with what is wrong") {
  struct Refusal {
    std::string name, part;
  };
  for (const auto& [name, part] :
       std::vector<Refusal>{{"", "'' is not a kind of rule"},
                            {"conformal:wpas(weights=\xFF):0.1", "it is not UTF-8"},
                            {"tops:5", "did you mean 'top'?"},
                            {"top", "such as top:5"},
                            {"top:0", "K must be a whole number, at least 1"},
                            {"top:2.5", "got '2.5'"},
                            {"top:5:1", "expected one number"},
                            {"top(3):5", "'top' takes nothing in parentheses"},
                            {"average:0", "K must be above 0"},
                            {"average:nan", "K must be a number"},
                            {"error:1", "E must lie between 0 and 1"},
                            {"average-error:0", "E must lie between 0 and 1"},
                            {"conformal", "conformal:SCORE:ALPHA"},
                            {"conformal:lac", "conformal:SCORE:ALPHA"},
                            {"conformal:lax:0.1", "did you mean 'lac'?"},
                            {"conformal:lac:0", "alpha must lie between 0 and 1"},
                            {"conformal:lac:1", "alpha must lie between 0 and 1"},
                            {"conformal:lac:-0.1", "alpha must lie between 0 and 1"},
                            {"conformal:lac:x", "alpha must be a number, got 'x'"},
                            {"conformal:lac:0.1:claswise", "did you mean 'classwise'?"},
                            {"conformal:lac:0.1:classwise:2", "no more than"},
                            {"conformal:lac(k=3):0.1", "'k' is not a parameter of 'lac'"},
                            {"conformal:lac(nonempty=1):0.1", "nonempty must be true or false, got '1'"},
                            {"conformal:risk:0.1:classwise", "all images together"},
                            {"conformal:raps(tune=sice):0.1", "did you mean 'size'?"},
                            {"conformal:raps(tune=size,k=3):0.1", "or tunes them"},
                            {"conformal:raps(lamda=1):0.1", "did you mean 'lambda'?"},
                            {"conformal:raps(k=1,k=2):0.1", "'k' twice"},
                            {"conformal:raps(k=-1):0.1", "k must be a whole number, at least 0"},
                            {"conformal:raps(lambda=-1):0.1", "lambda must be at least 0"},
                            {"conformal:raps(lambda=inf):0.1", "lambda must be a number"},
                            {"conformal:aps(randomised=yes):0.1", "true or false"},
                            {"conformal:aps(randomised):0.1", "write randomised=VALUE"},
                            {"conformal:wpas:0.1", "wpas(weights=FILE)"},
                            {"conformal:tree:0.1", "tree(nodes=3)"},
                            {"conformal:tree(nodes=33):0.1", "at most 32"},
                            {"conformal:tree(nodes=0):0.1", "nodes must be a whole number"},
                            {"conformal:tree(nodes=2):0.1:classwise", "all images together"},
                            {"conformal:aps(randomised=true:0.1", "parentheses do not match"},
                            {"conformal:aps)(:0.1", "parentheses do not match"},
                            {"conformal:raps(k=1)x:0.1", "goes on behind its parentheses"},
                            {"conformal:lac:0.1:interpolated", "interpolated(0.9)"},
                            {"conformal:lac:0.1:interpolated(2)", "TAU must lie in [0, 1]"},
                            {"conformal:aps:0.1:interpolated(0.5)", "for the score lac"},
                            {"conformal:lac:0.1:fuzzy", "fuzzy(1e-5)"},
                            {"conformal:lac:0.1:fuzzy(0)", "SIGMA must be above 0"},
                            {"conformal:lac:0.1:fuzzy(1,2)", "twice"},
                            {"conformal:lac:0.1:clustered(clusters=1)", "at least 2"},
                            {"conformal:lac:0.1:clustered(share=1)", "share must lie between 0 and 1"}}) {
    CAPTURE(name);
    CHECK_THROWS_AS(parse_set_rule(name), ConfigError);
    CHECK_THROWS_WITH(parse_set_rule(name),
                      Catch::StartsWith("rule '") && Catch::Contains("': ") && Catch::Contains(part));
  }
}

}  // namespace
}  // namespace settrain

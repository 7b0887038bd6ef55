#include "src/data_tools/vote.h"

#include <cmath>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

// An expert who gave 100 labels on images of their own, and novices with one label each.
std::vector<Answer> with_expert(std::vector<Answer> answers) {
  for (int i = 0; i < 99; ++i) answers.push_back({"own" + std::to_string(i), "expert", "species" + std::to_string(i)});
  return answers;
}

}  // namespace

TEST_CASE("a user's weight follows the formula") {
  const VoteOptions options{.base = 0.7, .threshold = 2};
  CHECK(vote_weight(1, options) == Approx(0.7));
  CHECK(vote_weight(100, options) == Approx(10 - std::pow(100, 0.2) + 0.7));
  CHECK(vote_weight(16, {.alpha = 0.75, .beta = 0.25, .base = -1}) == Approx(8 - 2 - 1));
  CHECK_THROWS_AS(vote_weight(0, options), std::invalid_argument);
}

TEST_CASE("one expert outweighs several novices, and alone is enough") {
  const VoteOptions options{.base = 0.7, .threshold = 2};
  const VoteResult result = vote(with_expert({{"a", "n1", "oak"},
                                              {"a", "n2", "oak"},
                                              {"a", "n3", "oak"},
                                              {"a", "expert", "elm"},
                                              {"b", "n1", "oak"},
                                              {"b", "n2", "oak"},
                                              {"c", "n1", "oak"},
                                              {"c", "n2", "oak"},
                                              {"c", "n3", "oak"}}),
                                 {}, options);
  CHECK(result.rounds == 1);
  CHECK(result.has_settled);
  REQUIRE(result.votes.size() == 102);
  const double expert = vote_weight(100, options);
  CHECK(result.votes[0].label == "elm");
  CHECK(result.votes[0].weight == Approx(expert));
  CHECK(result.votes[0].all_weights == Approx(expert + 3 * 0.7));
  CHECK(result.votes[0].answers == 4);
  CHECK(result.votes[0].is_valid);
  CHECK(result.votes[1].image == "b");
  CHECK_FALSE(result.votes[1].is_valid);  // 1.4
  CHECK(result.votes[2].is_valid);        // 2.1
  CHECK(result.votes[3].is_valid);        // the expert alone
}

TEST_CASE("the threshold itself is not enough, and equal sums fall to the first in the alphabet") {
  const std::vector<Answer> answers{{"a", "u", "oak"}, {"a", "v", "elm"}};
  const VoteResult result = vote(answers, {}, {.base = 1, .threshold = 1});
  CHECK(result.votes[0].label == "elm");
  CHECK_FALSE(result.votes[0].is_valid);
  CHECK(vote(answers, {}, {.base = 1, .threshold = 0.99}).votes[0].is_valid);
}

TEST_CASE("species of valid images that a user took count, until nothing changes") {
  // With base 1, u has weight 1 with one label. Image a is valid, and u took it: then u has n = 2.
  const VoteOptions options{.base = 1, .threshold = 0.9};
  const std::vector<Answer> answers{{"a", "u", "oak"}, {"b", "u", "oak"}, {"b", "v", "elm"}};
  const VoteResult alone = vote(answers, {}, options);
  CHECK(alone.votes[1].label == "elm");  // a tie
  const VoteResult with_author = vote(answers, {{"a", "u"}, {"zzz", "u"}, {"b", "nobody"}}, options);
  CHECK(with_author.votes[1].label == "oak");
  CHECK(with_author.votes[1].weight == Approx(std::sqrt(2.0) - std::pow(2.0, 0.2) + 1));
  CHECK(with_author.rounds == 2);
  CHECK(with_author.has_settled);
  CHECK_FALSE(vote(answers, {{"a", "u"}}, options, 1).has_settled);
}

TEST_CASE("answers are read from lines, and what is wrong with them is said") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) { return read_answers(folder.write("answers.csv", text)); };
  const auto answers = read("\xEF\xBB\xBFimage,user,label\n1.jpg, ada ,Lupinus albus, L.\r\n\n1.jpg,bob,elm\n");
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].user == "ada");
  CHECK(answers[0].label == "Lupinus albus, L.");
  CHECK_THROWS_WITH(read(""), Contains("answers.csv") && Contains("image,user,label"));
  CHECK_THROWS_WITH(read("1.jpg,ada,elm\n"), Contains("answers.csv:1: "));
  CHECK_THROWS_WITH(read("image,user,label\n1.jpg,ada\n"), Contains("answers.csv:2: "));
  CHECK_THROWS_WITH(read("image,user,label\n1.jpg,,elm\n"), Contains("answers.csv:2: "));
  CHECK_THROWS_WITH(read("image,user,label\n1.jpg,ada,elm\n1.jpg,ada,oak\n"),
                    Contains("answers.csv:3: ") && Contains("line 2"));
  CHECK_THROWS_WITH(read_authors(folder.write("authors.csv", std::string("image,user\n1.jpg,ada\n1.jpg,bob\n"))),
                    Contains("authors.csv:3: "));
  CHECK_THROWS_AS(read_answers(folder / "none.csv"), DataError);
}

TEST_CASE("votes become lines") {
  const VoteResult result = vote({{"a.jpg", "u", "Lupinus albus, L."}}, {}, {.base = 1, .threshold = 0.5});
  CHECK(votes_csv(result) == "image,label,weight,all_weights,answers,valid\na.jpg,\"Lupinus albus, L.\",1,1,1,1\n");
}

}  // namespace settrain

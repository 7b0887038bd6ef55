// Labels from the answers of many people, by a weighted majority vote: `settrain data vote`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// A user's label for an image.
struct Answer {
  std::string image, user, label;
};

/// Reads a CSV file whose first line names the columns `image,user,label`; a label may hold commas. Blanks at the ends
/// of a text and empty lines are ignored. Throws DataError naming file and line for another first line, for a line with
/// an empty text or without three, and for a user's second answer to an image.
std::vector<Answer> read_answers(const std::filesystem::path& file);

/// The person who took an image.
struct Author {
  std::string image, user;
};

/// The same for the columns `image,user`, with one author an image.
std::vector<Author> read_authors(const std::filesystem::path& file);

/// The weight of a user with number n is n^alpha - n^beta + base (b_0). A label is valid where its weights sum to more
/// than `threshold` (theta).
struct VoteOptions {
  double alpha = 0.5, beta = 0.2;
  double base = 0, threshold = 0;
};

/// The weight of a user with that number, at least 1.
double vote_weight(int64_t number, const VoteOptions& options);

/// The label with the largest sum of weights of the users who gave it, of equal ones the first in the alphabet.
struct Vote {
  std::string image, label;
  double weight = 0, all_weights = 0;  // of the label, and of all answers to the image
  int64_t answers = 0;
  bool is_valid = false;
};

struct VoteResult {
  std::vector<Vote> votes;   // of every image with an answer, in the order of their first answers
  int64_t rounds = 0;        // of voting
  bool has_settled = false;  // the last round changed no label and no validity
};

/// Pl@ntNet's validation of labels (Garcin 2023, section 3.8.1). A user's number n is the number of species of which
/// the user took a valid image, plus the number of different labels that the user gave. Which images are valid depends
/// on the weights in turn: the first round counts no image as valid, and each further one those of the round before,
/// until nothing changes or `most_rounds` are over. Without authors there is one round.
VoteResult vote(const std::vector<Answer>& answers, const std::vector<Author>& authors, const VoteOptions& options,
                int64_t most_rounds = 100);

/// "image,label,weight,all_weights,answers,valid", a line for every image; valid is 1 or 0.
std::string votes_csv(const VoteResult& result);

}  // namespace settrain

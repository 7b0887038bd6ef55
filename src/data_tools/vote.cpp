#include "src/data_tools/vote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "datasets/class_table.h"
#include "datasets/text_lines.h"
#include "src/core/error.h"
#include "src/core/table_text.h"
#include "src/core/text.h"

namespace settrain {
namespace {

// The texts of every line below the first, which is `head`; commas beyond the last column belong to it. `key_columns`:
// no two lines may have the same texts in so many columns.
std::vector<std::vector<std::string>> read_rows(const std::filesystem::path& file, const std::string& head,
                                                size_t key_columns) {
  TextLines text_lines(file);
  const auto columns = static_cast<size_t>(std::ranges::count(head, ',') + 1);
  std::vector<std::vector<std::string>> rows;
  std::map<std::vector<std::string>, int64_t> lines;
  bool has_head = false;
  while (text_lines.next()) {
    const std::string& line = text_lines.line();
    const auto fail = [&](const std::string& what) { text_lines.fail(what); };
    if (trimmed(line).empty()) continue;
    if (!has_head) {
      if (trimmed(line) != head) fail(fmt::format("expected the line '{}', got {}", head, in_quotes(line)));
      has_head = true;
      continue;
    }
    std::vector<std::string> row;
    std::string_view rest = line;
    while (row.size() + 1 < columns && rest.find(',') != std::string_view::npos) {
      row.push_back(trimmed(rest.substr(0, rest.find(','))));
      rest.remove_prefix(rest.find(',') + 1);
    }
    row.push_back(trimmed(rest));
    if (std::ranges::any_of(row, [](const std::string& text) { return text.starts_with('"'); }))
      fail(fmt::format("{}: quotes are not read; write the texts without them, and names without commas",
                       in_quotes(line)));
    if (row.size() < columns || std::ranges::count(row, "") > 0)
      fail(fmt::format("expected '{}', got {}", head, in_quotes(line)));
    const auto [above, is_new] =
        lines.emplace(std::vector(row.begin(), row.begin() + static_cast<int64_t>(key_columns)), text_lines.number());
    if (!is_new) fail(fmt::format("{} has been answered in line {}", in_quotes(line), above->second));
    rows.push_back(std::move(row));
  }
  if (!has_head) throw DataError(fmt::format("'{}' is empty; expected the line '{}'", file.string(), head));
  return rows;
}

// Images, users or labels by their places.
class Names {
 public:
  size_t place_of(const std::string& name) {
    const auto [found, is_new] = places_.emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return found->second;
  }
  std::optional<size_t> find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& at(size_t place) const { return names_[place]; }
  size_t size() const { return names_.size(); }

 private:
  std::unordered_map<std::string, size_t> places_;
  std::vector<std::string> names_;
};

struct PlacedAnswer {
  size_t user, label;
};

Vote winner_of(const std::string& image, const std::vector<PlacedAnswer>& answers, const std::vector<double>& weights,
               const Names& labels, double threshold) {
  std::map<std::string, double> sums;  // alphabetical
  Vote vote;
  vote.image = image;
  vote.answers = std::ssize(answers);
  for (const auto& [user, label] : answers) {
    sums[labels.at(label)] += weights[user];
    vote.all_weights += weights[user];
  }
  const auto largest = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  vote.label = largest->first;
  vote.weight = largest->second;
  vote.is_valid = vote.weight > threshold;
  return vote;
}

}  // namespace

std::vector<Answer> read_answers(const std::filesystem::path& file) {
  std::vector<Answer> answers;
  for (auto& row : read_rows(file, "image,user,label", 2))
    answers.push_back({std::move(row[0]), std::move(row[1]), std::move(row[2])});
  return answers;
}

std::vector<Author> read_authors(const std::filesystem::path& file) {
  std::vector<Author> authors;
  for (auto& row : read_rows(file, "image,user", 1)) authors.push_back({std::move(row[0]), std::move(row[1])});
  return authors;
}

double vote_weight(int64_t number, const VoteOptions& options) {
  if (number < 1) throw std::invalid_argument("vote_weight: a user with an answer has a number of at least 1");
  const auto n = static_cast<double>(number);
  return std::pow(n, options.alpha) - std::pow(n, options.beta) + options.base;
}

VoteResult vote(const std::vector<Answer>& answers, const std::vector<Author>& authors, const VoteOptions& options,
                int64_t most_rounds) {
  Names images, users, labels;
  std::vector<std::vector<PlacedAnswer>> of_image;
  std::vector<std::set<size_t>> given;  // [users] labels
  for (const Answer& answer : answers) {
    const size_t image = images.place_of(answer.image), user = users.place_of(answer.user);
    of_image.resize(images.size());
    given.resize(users.size());
    of_image[image].push_back({user, labels.place_of(answer.label)});
    given[user].insert(of_image[image].back().label);
  }
  std::vector<std::optional<size_t>> author_of(images.size());  // none: unknown, or answers nothing and has no weight
  for (const Author& author : authors) {
    if (const auto image = images.find(author.image)) author_of[*image] = users.find(author.user);
  }

  VoteResult result;
  std::vector<std::set<std::string>> observed(users.size());  // species of the user's valid images
  while (!result.has_settled && result.rounds < std::max<int64_t>(1, most_rounds)) {
    ++result.rounds;
    std::vector<double> weights;
    for (size_t user = 0; user < users.size(); ++user)
      weights.push_back(vote_weight(std::ssize(observed[user]) + std::ssize(given[user]), options));
    std::vector<Vote> votes;
    for (size_t image = 0; image < of_image.size(); ++image)
      votes.push_back(winner_of(images.at(image), of_image[image], weights, labels, options.threshold));
    std::vector<std::set<std::string>> now(users.size());
    for (size_t image = 0; image < votes.size(); ++image) {
      if (votes[image].is_valid && author_of[image]) now[*author_of[image]].insert(votes[image].label);
    }
    result.has_settled = now == observed;
    observed = std::move(now);
    result.votes = std::move(votes);
  }
  return result;
}

std::string votes_csv(const VoteResult& result) {
  std::string text = "image,label,weight,all_weights,answers,valid\n";
  for (const Vote& vote : result.votes) {
    text += csv_row({vote.image, vote.label, fmt::format("{}", vote.weight), fmt::format("{}", vote.all_weights),
                     std::to_string(vote.answers), vote.is_valid ? "1" : "0"});
  }
  return text;
}

}  // namespace settrain

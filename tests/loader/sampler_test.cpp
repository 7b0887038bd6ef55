#include "src/loader/sampler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "src/core/random.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

std::vector<int64_t> labels_of(const std::vector<int64_t>& counts) {
  std::vector<int64_t> labels;
  for (size_t j = 0; j < counts.size(); ++j) labels.insert(labels.end(), counts[j], static_cast<int64_t>(j));
  return labels;
}

std::vector<int64_t> positions_of(const std::vector<Draw>& order) {
  std::vector<int64_t> positions;
  for (const Draw& draw : order) positions.push_back(draw.position);
  return positions;
}

// [classes] how many draws are of each class.
std::vector<int64_t> draws_of_classes(const std::vector<Draw>& order, const std::vector<int64_t>& labels) {
  std::vector<int64_t> draws(static_cast<size_t>(labels.back()) + 1);
  for (const Draw& draw : order) ++draws[static_cast<size_t>(labels[static_cast<size_t>(draw.position)])];
  return draws;
}

const std::vector<int64_t> kLongTail{4000, 0, 900, 100, 1};
const std::vector<const char*> kByClass{Sampling::kClassBalanced, Sampling::kSquareRoot, Sampling::kProgressive};

}  // namespace

TEST_CASE("without a seed an epoch goes through the split as it is") {
  for (const Draw& draw : epoch_order(labels_of({2, 2}), std::nullopt, 3, {Sampling::kClassBalanced}))
    CHECK(draw.repetition == 0);
  CHECK(positions_of(epoch_order(labels_of({2, 2}), std::nullopt, 3)) == std::vector<int64_t>{0, 1, 2, 3});
}

TEST_CASE("a uniform epoch holds every sample once and follows (seed, epoch)") {
  const std::vector<int64_t> labels(1000, 0);
  const std::vector<Draw> order = epoch_order(labels, 4, 0);
  CHECK((order == epoch_order(labels, 4, 0)));
  CHECK((order != epoch_order(labels, 4, 1)));
  CHECK((order != epoch_order(labels, 5, 0)));
  CHECK(std::all_of(order.begin(), order.end(), [](const Draw& draw) { return draw.repetition == 0; }));
  CHECK(positions_of(order) == permutation(1000, 4, Stream::kShuffle, 0));
  // Recorded: another order would change every run.
  CHECK(positions_of(epoch_order(labels_of({10}), 4, 7)) == std::vector<int64_t>{7, 5, 1, 0, 3, 2, 6, 4, 9, 8});
}

TEST_CASE("a sampler by class draws each as often as its probability says") {
  const std::vector<int64_t> labels = labels_of(kLongTail);
  const auto size = static_cast<double>(labels.size());
  for (const char* name : kByClass) {
    for (const int64_t epoch : {0, 3, 9}) {
      const Sampling sampling{name, 10};
      const std::vector<Draw> order = epoch_order(labels, 11, epoch, sampling);
      REQUIRE(order.size() == labels.size());
      const std::vector<double> p = class_probabilities(sampling, kLongTail, epoch);
      const std::vector<int64_t> draws = draws_of_classes(order, labels);
      for (size_t j = 0; j < p.size(); ++j) {
        CAPTURE(name, epoch, j);
        // Binomial: four standard errors.
        CHECK(std::abs(static_cast<double>(draws[j]) - size * p[j]) <= 4 * std::sqrt(size * p[j] * (1 - p[j])));
      }
      CHECK(draws[1] == 0);
      CHECK((order == epoch_order(labels, 11, epoch, sampling)));
      CHECK((order != epoch_order(labels, 12, epoch, sampling)));
      CHECK((order != epoch_order(labels, 11, epoch + 1, sampling)));
    }
  }
}

TEST_CASE("no image of a class comes again before all others have come") {
  const std::vector<int64_t> labels = labels_of({60, 7, 1});
  const std::vector<Draw> order = epoch_order(labels, 2, 5, {Sampling::kClassBalanced});
  std::map<int64_t, std::vector<Draw>> draws;
  for (const Draw& draw : order) draws[labels[static_cast<size_t>(draw.position)]].push_back(draw);
  REQUIRE((draws[1].size() >= 14 && draws[2].size() > 1));
  for (const auto& [label, of_class] : draws) {
    const auto images = static_cast<size_t>(std::count(labels.begin(), labels.end(), label));
    std::set<int64_t> round;
    for (size_t i = 0; i < of_class.size(); ++i) {
      if (i % images == 0) round.clear();
      CHECK(round.insert(of_class[i].position).second);
      CHECK(of_class[i].repetition == static_cast<int64_t>(i / images));
    }
  }
  const std::vector<int64_t> seven = positions_of(draws[1]);
  CHECK_FALSE(std::equal(seven.begin(), seven.begin() + 7, seven.begin() + 7));  // another order in the next round
}

TEST_CASE("a class' images come in another order in every epoch, and apart from other classes'") {
  const std::vector<int64_t> labels = labels_of({50, 50});
  const auto first_of = [&](int64_t label, int64_t epoch) {
    std::vector<int64_t> positions = positions_of(epoch_order(labels, 2, epoch, {Sampling::kSquareRoot}));
    std::erase_if(positions, [&](int64_t i) { return labels[static_cast<size_t>(i)] != label; });
    for (int64_t& position : positions) position -= 50 * label;
    positions.resize(20);
    return positions;
  };
  CHECK(first_of(0, 0) != first_of(0, 1));
  CHECK(first_of(0, 0) != first_of(1, 0));
}

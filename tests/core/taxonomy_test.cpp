#include "src/core/taxonomy.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <random>
#include <stdexcept>
#include <tuple>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Nodes = std::vector<int64_t>;

Taxonomy plants() {
  return make_taxonomy({"species", "genus", "family"}, {{"Acer", "Sapindaceae"},
                                                        {"Quercus", "Fagaceae"},
                                                        {"Acer", "Sapindaceae"},
                                                        {"Fagus", "Fagaceae"},
                                                        {"", "Rosaceae"},
                                                        {"Acer", "Fagaceae"}});
}

TEST_CASE("a taxonomy has a node for each path, behind its children") {
  const Taxonomy tree = plants();
  CHECK(tree.names ==
        std::vector<std::string>{"Acer", "Quercus", "Fagus", "Acer", "Sapindaceae", "Fagaceae", "Rosaceae", ""});
  CHECK(tree.parent == Nodes{6, 7, 6, 8, 12, 9, 10, 11, 11, 11, 13, 13, 13, -1});
  CHECK(tree.rank == Nodes{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3});
  CHECK_THROWS_AS(make_taxonomy({"species", "genus"}, {{"Acer"}, {}}), std::invalid_argument);
  CHECK_THROWS_AS(make_taxonomy({}, {{}}), std::invalid_argument);
}

TEST_CASE("a cover takes the fewest leaves, then the fewest nodes") {
  const NodeCover tree(plants().parent, 6);
  const std::vector<double> p{0.1, 0.2, 0.1, 0.2, 0.3, 0.1}, mass = tree.masses(p.data());
  CHECK(tree.leaves(11) == Nodes{1, 3, 5});
  CHECK(tree.cover({0, 2}, mass, 3) == Nodes{6});  // the genus has no other species
  CHECK(tree.cover({0, 1}, mass, 2) == Nodes{0, 1});
  CHECK(tree.cover({0, 1}, mass, 1) == Nodes{13});
  CHECK(tree.cover({1, 3}, mass, 1) == Nodes{11});
  CHECK(tree.cover({1, 3, 4}, mass, 2) == Nodes{11, 4});  // and not the family whose one species it is
  CHECK(tree.cover({6, 1}, mass, 2) == Nodes{6, 1});      // nodes as well as leaves
}

TEST_CASE("what is no tree is refused") {
  for (const Nodes& parent :
       {Nodes{2, 2}, Nodes{2, 3, -1}, Nodes{3, 3, 3, -1}, Nodes{1, 2, -1}, Nodes{2, 2, 5}, Nodes{-1, 2, -1}}) {
    CHECK_THROWS_AS(NodeCover(parent, 2), std::invalid_argument);
  }
  CHECK_THROWS_AS(NodeCover({}, 0), std::invalid_argument);
}

/// A tree over `classes` leaves, with chains of only children.
Nodes random_tree(int64_t classes, std::mt19937& random) {
  Nodes parent(static_cast<size_t>(classes), -1), tops(static_cast<size_t>(classes));
  for (size_t c = 0; c < tops.size(); ++c) tops[c] = static_cast<int64_t>(c);
  while (tops.size() > 1 || parent.size() == static_cast<size_t>(classes)) {
    std::ranges::shuffle(tops, random);
    const size_t joined = std::min<size_t>(tops.size(), 1 + random() % 4);
    const int64_t node = std::ssize(parent);
    for (size_t i = 0; i < joined; ++i) parent[static_cast<size_t>(tops[tops.size() - 1 - i])] = node;
    tops.resize(tops.size() - joined);
    tops.push_back(node);
    parent.push_back(-1);
  }
  return parent;
}

/// The best cover by its definition, of all sets of nodes.
Nodes best_of_all(const Nodes& parent, const NodeCover& tree, uint32_t wanted, const std::vector<double>& mass,
                  int64_t most) {
  std::vector<uint32_t> held(parent.size());
  for (int64_t node = 0; node < tree.nodes(); ++node) {
    for (const int64_t leaf : tree.leaves(node)) held[static_cast<size_t>(node)] |= 1U << leaf;
  }
  const auto has_only_child = [&](size_t node) { return std::ranges::count(parent, static_cast<int64_t>(node)) == 1; };
  // Preorder, by walking from each node to the root.
  const auto path = [&](int64_t node) {
    Nodes firsts;  // the first leaf of each node on the way, from the root down
    for (; node >= 0; node = parent[static_cast<size_t>(node)])
      firsts.insert(firsts.begin(), tree.leaves(node).front());
    return firsts;
  };
  using Key = std::tuple<int, size_t, double, std::vector<Nodes>>;
  std::optional<Key> best;
  Nodes best_nodes;
  for (uint32_t chosen = 1; chosen < 1U << parent.size(); ++chosen) {
    if (std::popcount(chosen) > most) continue;
    uint32_t leaves = 0;
    int count = 0;
    double sum = 0;
    Nodes nodes;
    bool allowed = true;
    for (size_t node = 0; node < parent.size(); ++node) {
      if (!(chosen >> node & 1)) continue;
      allowed = allowed && !(leaves & held[node]) && !has_only_child(node);
      leaves |= held[node];
      count += std::popcount(held[node]);
      sum += mass[node];
      nodes.push_back(static_cast<int64_t>(node));
    }
    if (!allowed || (wanted & ~leaves)) continue;
    std::ranges::sort(nodes, {}, path);
    std::vector<Nodes> paths;
    for (const int64_t node : nodes) paths.push_back(path(node));
    Key key{count, nodes.size(), -sum, paths};
    if (!best || key < *best) {
      best = key;
      best_nodes = nodes;
    }
  }
  return best_nodes;
}

TEST_CASE("covers are the best of all sets of nodes") {
  const auto seed = GENERATE(range(0U, 60U));
  std::mt19937 random(seed);
  const auto classes = static_cast<int64_t>(1 + random() % 7);
  const Nodes parent = random_tree(classes, random);
  if (parent.size() > 14) return;  // all sets of its nodes are too many
  const NodeCover tree(parent, classes);
  std::vector<double> p;
  for (int64_t c = 0; c < classes; ++c)
    p.push_back(static_cast<double>(random() % 3) / 4);  // sums have no rounding, and tie
  const std::vector<double> mass = tree.masses(p.data());
  for (uint32_t wanted = 1; wanted < 1U << classes; ++wanted) {
    Nodes leaves;
    for (int64_t c = 0; c < classes; ++c) {
      if (wanted >> c & 1) leaves.push_back(c);
    }
    for (int64_t most = 1; most <= 4; ++most) {
      INFO("seed " << seed << ", wanted " << wanted << ", most " << most);
      CHECK(tree.cover(leaves, mass, most) == best_of_all(parent, tree, wanted, mass, most));
    }
  }
}

}  // namespace
}  // namespace settrain

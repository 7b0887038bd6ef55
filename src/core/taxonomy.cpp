#include "src/core/taxonomy.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "src/core/text.h"

namespace settrain {
namespace {

/// Nodes that cover the wanted leaves below a node of the tree.
struct Cover {
  int64_t leaves = 0;            // below all of them
  double mass = 0;               // of these leaves
  std::vector<int64_t> order{};  // the nodes' places in preorder, ascending
};

/// Whether the first of two covers by equally many nodes is the better one.
bool is_better(const Cover& cover, const Cover& other) {
  if (cover.leaves != other.leaves) return cover.leaves < other.leaves;
  if (cover.mass != other.mass) return cover.mass > other.mass;
  return cover.order < other.order;
}

/// The best covers by exactly 0, 1, 2, ... nodes; nothing where there is none. Counts of nodes are told apart because
/// the best of few nodes below one child may leave more of them for another.
using Covers = std::vector<std::optional<Cover>>;

void take(Covers& covers, size_t nodes, Cover cover) {
  if (covers.size() <= nodes) covers.resize(nodes + 1);
  if (!covers[nodes] || is_better(cover, *covers[nodes])) covers[nodes] = std::move(cover);
}

/// The best covers of what two children hold, by at most `most` nodes.
Covers joined(const Covers& left, const Covers& right, size_t most) {
  Covers both;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < right.size() && i + j <= most; ++j) {
      if (!left[i] || !right[j]) continue;
      Cover cover{left[i]->leaves + right[j]->leaves, left[i]->mass + right[j]->mass, {}};
      std::ranges::merge(left[i]->order, right[j]->order, std::back_inserter(cover.order));
      take(both, i + j, std::move(cover));
    }
  }
  return both;
}

/// The state of a node of which some children are done.
struct Below {
  int64_t wanted = 0;        // leaves
  Covers covers{{Cover{}}};  // of the children so far
};

}  // namespace

Taxonomy make_taxonomy(std::vector<std::string> ranks, const std::vector<std::vector<std::string>>& paths) {
  const size_t classes = paths.size();
  Taxonomy tree{.ranks = std::move(ranks), .parent = {}, .rank = {}, .names = {}};
  const size_t above = tree.ranks.empty() ? 0 : tree.ranks.size() - 1;
  if (tree.ranks.empty()) throw std::invalid_argument("a taxonomy without a rank");
  tree.parent.resize(classes);
  tree.rank.resize(classes, 0);
  std::vector<int64_t> top(classes);  // of each class, the last node so far
  std::iota(top.begin(), top.end(), int64_t{0});
  if (std::ranges::any_of(paths, [above](const auto& path) { return path.size() != above; })) {
    throw std::invalid_argument("a class whose path has other ranks than the taxonomy");
  }
  for (size_t r = 0; r < above; ++r) {
    std::map<std::vector<std::string>, int64_t> nodes;  // by the names from this rank upward
    for (size_t c = 0; c < classes; ++c) {
      if (paths[c][r].empty()) continue;
      const auto [node, is_new] = nodes.emplace(std::vector(paths[c].begin() + static_cast<int64_t>(r), paths[c].end()),
                                                std::ssize(tree.parent));
      if (is_new) {
        tree.parent.push_back(-1);
        tree.rank.push_back(static_cast<int64_t>(r) + 1);
        tree.names.push_back(paths[c][r]);
      }
      tree.parent[static_cast<size_t>(std::exchange(top[c], node->second))] = node->second;
    }
  }
  const int64_t root = std::ssize(tree.parent);
  for (const int64_t node : top) tree.parent[static_cast<size_t>(node)] = root;
  tree.parent.push_back(-1);
  tree.rank.push_back(std::ssize(tree.ranks));
  tree.names.emplace_back();
  return tree;
}

Taxonomy superclass_taxonomy(const std::vector<std::string>& names, const std::vector<int64_t>& superclass_of) {
  if (superclass_of.empty()) return {};
  std::vector<std::vector<std::string>> paths;
  for (const int64_t superclass : superclass_of) paths.push_back({names.at(static_cast<size_t>(superclass))});
  return make_taxonomy({"class", "superclass"}, paths);
}

std::vector<std::vector<std::string>> paths_of(const Taxonomy& tree) {
  const auto classes = static_cast<size_t>(tree.num_classes());
  std::vector<std::vector<std::string>> paths(classes, std::vector<std::string>(tree.ranks.size() - 1));
  for (size_t c = 0; c < classes; ++c) {
    for (auto node = static_cast<size_t>(tree.parent[c]); tree.parent[node] >= 0;) {
      paths[c][static_cast<size_t>(tree.rank[node]) - 1] = tree.names[node - classes];
      node = static_cast<size_t>(tree.parent[node]);
    }
  }
  return paths;
}

nlohmann::json to_json(const Taxonomy& tree) {
  nlohmann::json lists = nlohmann::json::array();
  if (tree.empty()) return lists;
  lists.push_back(tree.ranks);
  for (const std::vector<std::string>& path : paths_of(tree)) lists.push_back(path);
  return lists;
}

Taxonomy taxonomy_from_json(const nlohmann::json& json, size_t classes) {
  if (!json.is_array() || (!json.empty() && json.size() != classes + 1))
    throw std::invalid_argument("another list than the ranks and a path for each class");
  if (json.empty()) return {};
  std::vector<std::vector<std::string>> lists;
  for (const nlohmann::json& names : json) {
    if (!names.is_array()) throw std::invalid_argument("an entry that is no list");
    lists.emplace_back();
    for (const nlohmann::json& name : names) {
      if (!name.is_string() || printable(name.get<std::string>()) != name.get<std::string>())
        throw std::invalid_argument("an entry that is no name, or has control characters");
      lists.back().push_back(name.get<std::string>());
    }
  }
  const std::vector<std::string> ranks = std::move(lists.front());
  lists.erase(lists.begin());
  return make_taxonomy(ranks, lists);
}

NodeCover::NodeCover(std::vector<int64_t> parent, int64_t classes)
    : classes_(classes),
      parent_(std::move(parent)),
      preorder_(parent_.size()),
      depth_(parent_.size()),
      leaves_(parent_.size()) {
  const auto fail = [] { throw std::invalid_argument("no tree whose nodes stand behind their children"); };
  if (classes < 1 || nodes() <= classes || parent_.back() != -1) fail();
  std::vector<std::vector<int64_t>> children(parent_.size());
  for (int64_t node = 0; node < nodes(); ++node) {
    const auto at = static_cast<size_t>(node);
    if (node < classes) leaves_[at] = {node};
    if (leaves_[at].empty()) fail();
    std::ranges::sort(leaves_[at]);
    lowest_.push_back(children[at].size() == 1 ? lowest_[static_cast<size_t>(children[at].front())] : node);
    if (node == root()) break;
    const int64_t above = parent_[at];
    if (above <= node || above < classes || above >= nodes()) fail();
    children[static_cast<size_t>(above)].push_back(node);
    leaves_[static_cast<size_t>(above)].insert(leaves_[static_cast<size_t>(above)].end(), leaves_[at].begin(),
                                               leaves_[at].end());
  }
  std::vector<int64_t> open{root()};
  for (int64_t place = 0; !open.empty(); ++place) {
    const int64_t node = open.back();
    open.pop_back();
    preorder_[static_cast<size_t>(node)] = place;
    if (node != root()) depth_[static_cast<size_t>(node)] = depth(parent_[static_cast<size_t>(node)]) + 1;
    std::vector<int64_t>& below = children[static_cast<size_t>(node)];
    std::ranges::sort(below, std::greater<>(), [this](int64_t child) { return leaves(child).front(); });
    open.insert(open.end(), below.begin(), below.end());
  }
}

std::vector<double> NodeCover::masses(const double* p) const {
  std::vector<double> mass;
  for (const std::vector<int64_t>& below : leaves_) {
    mass.push_back(std::accumulate(below.begin(), below.end(), 0.0, [p](double sum, int64_t c) { return sum + p[c]; }));
  }
  return mass;
}

std::vector<int64_t> NodeCover::cover(const std::vector<int64_t>& wanted, const std::vector<double>& mass,
                                      int64_t most) const {
  const auto limit = std::min(static_cast<size_t>(most), wanted.size());
  if (std::ssize(wanted) <= most) {
    // No other class has to be held, and what is held has its fewest nodes.
    const auto held = std::make_unique<bool[]>(static_cast<size_t>(classes_));
    for (const int64_t node : wanted)
      for (const int64_t leaf : leaves(node)) held[static_cast<size_t>(leaf)] = true;
    return exactly(held.get());
  }
  std::map<int64_t, Below> touched;  // ascending: children before their parents
  for (const int64_t node : wanted) touched[node].wanted = std::ssize(leaves(node));
  std::map<int64_t, int64_t> node_of_place;
  for (auto& entry : touched) {
    const int64_t node = entry.first;
    Below& below = entry.second;
    const int64_t all = std::ssize(leaves(node));
    const auto alone = [&](int64_t chosen) {
      const int64_t place = preorder_[static_cast<size_t>(chosen)];
      node_of_place[place] = chosen;
      take(below.covers, 1, {all, mass[static_cast<size_t>(chosen)], {place}});
    };
    const int64_t lowest = lowest_[static_cast<size_t>(node)];
    if (below.wanted == all) below.covers = {};  // more nodes would cover no fewer leaves
    if (below.wanted == all || lowest == node) alone(lowest);
    if (node == root()) break;
    below.covers.resize(std::min(below.covers.size(), limit + 1));
    if (!below.covers.empty()) below.covers.front().reset();
    Below& above = touched[parent_[static_cast<size_t>(node)]];
    above.wanted += below.wanted;
    above.covers = joined(above.covers, below.covers, limit);
  }
  const Cover* best = nullptr;
  for (const auto& cover : touched.at(root()).covers) {
    if (cover && !cover->order.empty() && (!best || cover->leaves < best->leaves)) best = &*cover;
  }
  std::vector<int64_t> nodes;
  for (const int64_t place : best->order) nodes.push_back(node_of_place.at(place));
  return nodes;
}

std::vector<int64_t> NodeCover::exactly(const bool* held) const {
  const auto is_full = [&](int64_t node) {
    return std::ranges::all_of(leaves(node), [held](int64_t c) { return held[c]; });
  };
  std::vector<int64_t> nodes;
  std::vector<bool> full(parent_.size());
  for (int64_t node = root(); node >= 0; --node) {
    const auto at = static_cast<size_t>(node);
    const bool is_below = node != root() && full[static_cast<size_t>(parent_[at])];
    full[at] = is_below || is_full(node);
    if (full[at] && !is_below) nodes.push_back(lowest_[at]);
  }
  std::ranges::sort(nodes, {}, [this](int64_t node) { return preorder_[static_cast<size_t>(node)]; });
  return nodes;
}

}  // namespace settrain

// A tree over the classes, such as the genera and families of species, and answers by its nodes.
#pragma once

#include <cstdint>
#include <iterator>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace settrain {

/// Node c < classes is class c, a leaf. The other nodes follow, each behind its children; the last one is the root,
/// whose parent is -1. The children of a node are in the order of their first classes.
struct Taxonomy {
  bool empty() const { return parent.empty(); }
  int64_t num_classes() const { return std::ssize(parent) - std::ssize(names); }

  std::vector<std::string> ranks;  // from the classes' own upward, without the root: "species", "genus", "family"
  std::vector<int64_t> parent;     // [nodes]
  std::vector<int64_t> rank;       // [nodes] the place in `ranks`; that of the root is the number of ranks
  std::vector<std::string> names;  // [nodes - classes], of the nodes above the classes; empty for the root

  bool operator==(const Taxonomy&) const = default;
};

/// Makes the tree of `paths` [classes]: for each class the names of what it belongs to, from the rank above its own
/// upward, [ranks - 1]; an empty name where the class has nothing of that rank. A node is all of its path, so that
/// equal names in different families stay apart. Throws std::invalid_argument where the lists differ in length.
Taxonomy make_taxonomy(std::vector<std::string> ranks, const std::vector<std::vector<std::string>>& paths);

/// The tree of classes and superclasses alone; empty where there are no superclasses. `superclass_of` [classes].
Taxonomy superclass_taxonomy(const std::vector<std::string>& names, const std::vector<int64_t>& superclass_of);

/// [classes] the paths that make_taxonomy() made the tree of.
std::vector<std::vector<std::string>> paths_of(const Taxonomy& tree);

/// [[ranks], [path], [path], ...]: the ranks, and the path of each class; [] where the taxonomy is empty.
nlohmann::json to_json(const Taxonomy& tree);
/// Trusts nothing: throws std::invalid_argument where it is not what to_json() writes for `classes` classes, or a name
/// has control characters.
Taxonomy taxonomy_from_json(const nlohmann::json& json, size_t classes);

/// Sets of leaves as few nodes of a tree.
class NodeCover {
 public:
  /// `parent` [nodes] as in Taxonomy. Throws std::invalid_argument where it is no such tree over `classes` leaves.
  NodeCover(std::vector<int64_t> parent, int64_t classes);

  int64_t classes() const { return classes_; }
  int64_t nodes() const { return static_cast<int64_t>(parent_.size()); }
  int64_t root() const { return nodes() - 1; }

  /// The leaves below the node, and the node itself where it is one: ascending.
  const std::vector<int64_t>& leaves(int64_t node) const { return leaves_[static_cast<size_t>(node)]; }

  /// [nodes] the summed probabilities of each node's leaves; `p` [classes].
  std::vector<double> masses(const double* p) const;

  /// At most `most` >= 1 nodes, none below another, whose leaves hold all those of `wanted`: those with the fewest
  /// leaves in all. Where several such covers have equally many leaves, it is the one of the fewest nodes, then of the
  /// largest mass (`mass` [nodes]), and then the first in preorder; of a chain of only children it is the lowest node.
  /// In preorder. `wanted`: nodes, none below another, at least one.
  std::vector<int64_t> cover(const std::vector<int64_t>& wanted, const std::vector<double>& mass, int64_t most) const;

  /// The fewest nodes whose leaves are exactly those that are held, in preorder. `held` [classes].
  std::vector<int64_t> exactly(const bool* held) const;

  /// Steps from the root down to the node.
  int64_t depth(int64_t node) const { return depth_[static_cast<size_t>(node)]; }

 private:
  int64_t classes_;
  std::vector<int64_t> parent_;               // [nodes]
  std::vector<int64_t> preorder_, depth_;     // [nodes] each node's place, and its steps from the root
  std::vector<int64_t> lowest_;               // [nodes] the lowest node with the same leaves
  std::vector<std::vector<int64_t>> leaves_;  // [nodes]
};

}  // namespace settrain

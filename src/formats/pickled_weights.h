// What torch.save pickles: containers of tensors, numbers and texts. Of the calls that a pickle can ask for, those that
// make tensors, ordered dicts, counters (dicts, of learning-rate schedules) and sizes (tuples) are understood;
// everything else is refused by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/pickle.h"

namespace settrain {

/// Memory that the pickle refers to and the file holds elsewhere.
struct PickledStorage {
  Dtype dtype;
  int64_t num_elements;

  auto operator<=>(const PickledStorage&) const = default;
};

/// A tensor in such memory: `offset` and `stride` in elements.
struct PickledTensor {
  KeyPath path;
  std::string storage;  // its key
  PickledStorage part;  // as this tensor refers to it: another type than another tensor's, or a part of it
  int64_t offset;
  std::vector<int64_t> shape, stride;
};

struct PickledWeights {
  std::vector<PickledTensor> tensors;
  std::vector<Leaf> leaves;
  std::map<std::string, PickledStorage> storages;  // whole ones, by key: all that the pickle names
};

/// Throws RunError, `place` in front ("'FILE'"), that names what was met: another class or function (also where its
/// value is dropped), a whole module, a state that is set, a key that is neither text nor integer, a key twice, an
/// integer beyond 64 bits, containers nested more than 64 deep, more than kMostPickleValues or 64 MiB of names and
/// texts once everything shared is written out.
PickledWeights find_weights(const Pickle& pickle, const std::string& place);

}  // namespace settrain

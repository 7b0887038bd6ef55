// The tensors, numbers and texts that a pickle of torch.save names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/formats/contents.h"
#include "src/formats/input_file.h"
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

/// Walks the tree of what torch.save pickled: containers of tensors, numbers and texts. Of the calls that a pickle can
/// ask for, those that make tensors, ordered dicts, counters (dicts, of learning-rate schedules) and sizes (tuples) are
/// understood. Those of PyTorch's other classes, which tensors could be, and of functions that would run something are
/// refused by name. All others become opaque values, such as the argparse.Namespace of timm's checkpoints: no class is
/// looked for, and what such a value holds is not walked. A value that is shared counts each time that the walk meets
/// it, so that a few bytes cannot ask for much memory.
///
/// Throws RunError that names what it met: a class or function that is refused (also where its value is dropped), a
/// whole module, a state that is set of a tensor, a key that is neither text nor integer, a key twice, an integer
/// beyond 64 bits, containers nested more than 64 deep, more than kMostPickleValues or 64 MiB of names and texts once
/// everything shared is written out.
PickledWeights read_pickled_weights(const Pickle& pickle, const InputFile& file);

}  // namespace settrain

#include "datasets/class_options.h"

#include <unordered_map>
#include <vector>

#include "datasets/class_table.h"

namespace settrain {

config::Keys ClassOptions::keys() {
  using config::key;
  return {key("superclasses", &ClassOptions::superclasses, "",
              "Text file with a line 'class,superclass' for every class, for label noise within superclasses; where "
              "empty, the data set's own superclasses, if any."),
          key("class_names", &ClassOptions::class_names, "",
              "Text file with a line 'class,name' for every class, for tables; where empty, the data set's own "
              "names.")};
}

void set_superclasses(const std::vector<std::string>& superclass_by_class, Dataset& dataset) {
  dataset.superclass_names.clear();
  dataset.superclass_of.clear();
  std::unordered_map<std::string, int64_t> index_of;
  for (const std::string& name : superclass_by_class) {
    const auto [found, is_new] = index_of.emplace(name, std::ssize(dataset.superclass_names));
    if (is_new) dataset.superclass_names.push_back(name);
    dataset.superclass_of.push_back(found->second);
  }
}

void apply_class_options(const ClassOptions& options, Dataset& dataset) {
  if (!options.superclasses.empty()) {
    set_superclasses(read_class_table(options.superclasses, dataset.class_names, dataset.class_keys), dataset);
  }
  if (!options.class_names.empty()) {
    dataset.class_names = read_class_table(options.class_names, dataset.class_names, dataset.class_keys);
  }
}

}  // namespace settrain

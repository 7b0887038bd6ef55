#include "datasets/load_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "datasets/calibration_split.h"
#include "datasets/class_table.h"
#include "datasets/long_tail.h"
#include "datasets/recorded_files.h"
#include "datasets/shared_images.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr const char *kOnlySuperclasses = "data.only_superclasses", *kSuperclassShare = "data.superclass_share";

// The superclasses that stay, each once.
std::set<std::string> kept_superclasses(const ClassOptions& options, const std::vector<std::string>& all) {
  if (!options.only_superclasses.empty()) {
    check_superclass_names(kOnlySuperclasses, options.only_superclasses, all);
    return {options.only_superclasses.begin(), options.only_superclasses.end()};
  }
  const auto wanted = std::llround(options.superclass_share * static_cast<double>(all.size()));
  const auto order = permutation(std::ssize(all), static_cast<uint64_t>(options.superclass_seed), Stream::kSubset);
  std::set<std::string> kept;
  for (int64_t i = 0; i < std::max<int64_t>(1, wanted); ++i) {
    kept.insert(all[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  }
  return kept;
}

// The tree of superclasses where no file gives another.
Taxonomy taxonomy_of(const Dataset& dataset) {
  if (!dataset.taxonomy.empty()) return dataset.taxonomy;
  return superclass_taxonomy(dataset.superclass_names, dataset.superclass_of);
}

// The samples that have labels left, with these; new_labels [classes], -1 for a class that goes.
Split with_new_labels(const Split& split, const std::vector<int64_t>& new_labels) {
  std::vector<int64_t> samples;
  LabelLists label_sets;
  for (int64_t i = 0; i < split.size(); ++i) {
    const std::span<const int64_t> labels =
        split.label_sets.empty() ? std::span(&split.labels[static_cast<size_t>(i)], 1) : split.label_sets.of(i);
    std::vector<int64_t> left;
    for (const int64_t label : labels) {
      if (new_labels[static_cast<size_t>(label)] >= 0) left.push_back(new_labels[static_cast<size_t>(label)]);
    }
    if (left.empty()) continue;
    samples.push_back(i);
    label_sets.add(left);
  }
  Split kept{split.name, split.images};
  for (size_t i = 0; i < samples.size(); ++i) {
    kept.ids.push_back(split.ids[static_cast<size_t>(samples[i])]);
    kept.labels.push_back(label_sets.of(static_cast<int64_t>(i)).front());
  }
  if (!split.label_sets.empty()) kept.label_sets = std::move(label_sets);
  return kept;
}

}  // namespace

config::Keys ClassOptions::keys() {
  using config::key;
  return {
      key("superclasses", &ClassOptions::superclasses, "",
          "Text file with a line 'class,superclass' for every class, for label noise within superclasses; where "
          "empty, the data set's own superclasses, if any."),
      key("taxonomy", &ClassOptions::taxonomy, "",
          "CSV file with a line 'class,genus,family' for every class: what it belongs to, from the rank above its own "
          "upward, for answers by genera and families (the rule conformal:tree, `settrain predict --roll-up`). A first "
          "line that begins with no class names the ranks: species,genus,family. The names of the rank above the "
          "classes become the superclasses. Where it is empty, the superclasses are the only rank."),
      key("class_names", &ClassOptions::class_names, "",
          "Text file with a line 'class,name' for every class, for tables; where empty, the data set's own "
          "names. A relative path begins at data.root where that has the file, else at the current folder."),
      key("only_superclasses", &ClassOptions::only_superclasses, {},
          "Names of superclasses, such as genera: only their classes and images stay, in all splits, and the model "
          "has only these classes, numbered anew in their order. Where it is empty, all stay. eval.subset.superclasses "
          "measures a model of all classes on the images of some.")
          .distinct(),
      key("superclass_share", &ClassOptions::superclass_share, 1.0,
          "Share of the superclasses that stay in the same way, drawn uniformly. Pl@ntNet-300K is a tenth of "
          "Pl@ntNet's genera: whole genera, and not single species or images, since species of a genus look alike "
          "and the ambiguity between them is to be kept (Garcin 2023, section 3.2.2). 1 keeps all.")
          .above(0)
          .at_most(1),
      key("superclass_seed", &ClassOptions::superclass_seed, int64_t{1},
          "Seed that selects the superclasses of data.superclass_share.")
          .at_least(0)};
}

void superclass_rule(const config::Config& config) {
  if (!config.get<std::string>("data.taxonomy").empty() && !config.get<std::string>("data.superclasses").empty()) {
    config.fail("data.taxonomy", "gives the classes superclasses, and data.superclasses does: set one of both");
  }
  const bool has_share = config.get<double>(kSuperclassShare) < 1;
  if (has_share && !config.get<config::Texts>(kOnlySuperclasses).empty()) {
    config.fail(kSuperclassShare,
                fmt::format("draws superclasses, and {} names them: set one of both", kOnlySuperclasses));
  }
  config.refuse_unread("data.superclass_seed", has_share, fmt::format("{} below 1", kSuperclassShare));
}

// The classes' superclasses are the nodes above them; a class with nothing but the root above it is one of its own.
// Each has a name of its own: that of its node, with the path above it where another has the same.
void set_taxonomy(Taxonomy tree, Dataset& dataset) {
  const auto classes = dataset.class_names.size();
  std::vector<size_t> nodes;
  for (size_t c = 0; c < classes; ++c) {
    const auto above = static_cast<size_t>(tree.parent[c]);
    nodes.push_back(tree.parent[above] < 0 ? c : above);
  }
  const auto name_of = [&](size_t node) {
    return node < classes ? dataset.class_names[node] : tree.names[node - classes];
  };
  const auto path_of = [&](size_t node) {
    std::string path = name_of(node);
    for (auto above = static_cast<size_t>(tree.parent[node]); tree.parent[above] >= 0;
         above = static_cast<size_t>(tree.parent[above]))
      path += ", " + name_of(above);
    return path;
  };
  std::map<std::string, std::set<size_t>> named;
  for (const size_t node : nodes) named[name_of(node)].insert(node);
  std::vector<std::string> superclasses;
  for (const size_t node : nodes) {
    const bool is_shared = named.at(name_of(node)).size() > 1;
    superclasses.push_back(!is_shared ? name_of(node) : node < classes ? name_of(node) + " (a class)" : path_of(node));
  }
  set_superclasses(superclasses, dataset);
  dataset.taxonomy = std::move(tree);
}

// Warns of classes that answers cannot tell apart, or hardly.
void warn_of_like_names(const std::vector<std::string>& names) {
  std::map<std::string, std::string> seen;  // the first class' name, by its letters
  std::string first;
  int64_t count = 0;
  for (const std::string& name : names) {
    std::string letters = lower_case(trimmed(name));
    const auto [other, is_new] = seen.emplace(std::move(letters), name);
    if (is_new || ++count > 1) continue;
    first = other->second == name ? fmt::format("two are called {}", in_quotes(name))
                                  : fmt::format("{} and {}", in_quotes(other->second), in_quotes(name));
  }
  if (count > 0)
    log::warning(fmt::format("[data] {} of {} classes have the name of another, but for capitals and blanks: {}", count,
                             names.size(), first));
}

void apply_class_options(const ClassOptions& options, Dataset& dataset) {
  const std::vector<std::string>&earlier = dataset.class_names, &keys = dataset.class_keys;
  std::vector<std::string> names =
      options.class_names.empty() ? earlier : read_class_table(options.class_names, earlier, keys);
  if (!options.taxonomy.empty()) set_taxonomy(read_taxonomy(options.taxonomy, names, keys, earlier), dataset);
  if (!options.superclasses.empty())
    set_superclasses(read_class_table(options.superclasses, names, keys, earlier), dataset);
  dataset.class_names = std::move(names);  // superclasses of one class are called by its earlier name
  warn_of_like_names(dataset.class_names);
}

void check_superclass_names(const std::string& path, const config::Texts& names,
                            const std::vector<std::string>& known) {
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    if (std::ranges::count(known, name) > 0) continue;
    lines.push_back(
        fmt::format("{} is none of the {} superclasses{}", in_quotes(name), known.size(), did_you_mean(name, known)));
  }
  if (!lines.empty()) {
    throw KeyError(path, fmt::format("{} (`settrain data stats --json` lists them)", fmt::join(lines, "\n  ")));
  }
}

void check_known_superclasses(const DatasetRegistry& registry, const config::Config& config, const std::string& path) {
  const DatasetEntry& entry = registry.at(config.get<std::string>("data.name"));
  const auto& names = config.get<config::Texts>(path);
  // The names in data.superclasses and data.taxonomy are known when the classes are.
  if (names.empty() || !entry.superclasses || !config.get<std::string>("data.superclasses").empty() ||
      !config.get<std::string>("data.taxonomy").empty())
    return;
  const std::vector<std::string> known = entry.superclasses(config);
  if (!known.empty()) check_superclass_names(path, names, known);
}

void keep_superclasses(const ClassOptions& options, Dataset& dataset) {
  if (options.only_superclasses.empty() && options.superclass_share == 1) return;
  const char* key = options.only_superclasses.empty() ? kSuperclassShare : kOnlySuperclasses;
  if (dataset.superclass_of.empty()) {
    throw KeyError(key, fmt::format("data set '{}' has no superclasses; data.superclasses names them", dataset.name));
  }
  if (dataset.truth) throw KeyError(key, "this data set's P(y | x) is known and would no longer hold");
  const std::set<std::string> kept = kept_superclasses(options, dataset.superclass_names);
  std::vector<int64_t> new_labels;
  std::vector<std::string> class_names, class_keys, superclasses;
  std::vector<std::vector<std::string>> paths;
  const Taxonomy tree = taxonomy_of(dataset);
  const std::vector<std::vector<std::string>> all_paths = paths_of(tree);
  for (size_t c = 0; c < dataset.class_names.size(); ++c) {
    const std::string& superclass = dataset.superclass_names[static_cast<size_t>(dataset.superclass_of[c])];
    const bool stays = kept.contains(superclass);
    new_labels.push_back(stays ? std::ssize(class_names) : -1);
    if (!stays) continue;
    class_names.push_back(dataset.class_names[c]);
    if (!dataset.class_keys.empty()) class_keys.push_back(dataset.class_keys[c]);
    superclasses.push_back(superclass);
    paths.push_back(all_paths[c]);
  }
  for (Split* split : {&dataset.train, &dataset.val, &dataset.calibration, &dataset.test}) {
    const bool had_images = split->size() > 0;
    *split = with_new_labels(*split, new_labels);
    if (had_images && split->size() == 0) throw KeyError(key, fmt::format("leaves no image in {}", split->name));
  }
  dataset.class_names = std::move(class_names);
  dataset.class_keys = std::move(class_keys);
  set_superclasses(superclasses, dataset);
  dataset.taxonomy = make_taxonomy(tree.ranks, paths);
  dataset.digest = sha256(fmt::format("{}\nsuperclasses\n{}\n", dataset.digest, fmt::join(kept, "\n")));
}

namespace {

// The class options, with data.class_names as a path from data.root where that leads to a file, as the paths of lists.
ClassOptions class_options(const config::Config& config) {
  auto options = config.read<ClassOptions>("data");
  if (options.class_names.empty() || !config.has("data.root")) return options;
  std::error_code ignored;
  const auto from_root = std::filesystem::path(config.get<std::string>("data.root")) / options.class_names;
  if (std::filesystem::exists(from_root, ignored)) options.class_names = from_root.string();
  return options;
}

// Warns of images that are in two splits, or have two labels.
void find_shared(LoadedData& data) {
  SharedImageSearch search = find_shared_images(data.dataset, kFilesToCompare);
  search.warn();
  data.dataset.shared_images = std::move(search.found);
  data.not_compared = search.not_compared;
}

}  // namespace

LoadedData load_data(const DatasetRegistry& registry, const config::Config& config) {
  try {
    check_known_superclasses(registry, config, kOnlySuperclasses);
    LoadedData data;
    data.dataset = registry.at(config.get<std::string>("data.name")).make(config);
    const ClassOptions classes = class_options(config);
    apply_class_options(classes, data.dataset);
    keep_superclasses(classes, data.dataset);
    data.dataset.taxonomy = taxonomy_of(data.dataset);
    apply_long_tail(config.read<LongTailOptions>("data"), data.dataset);
    hold_out_calibration(config.read<CalibrationOptions>("data"), data.dataset);
    for (Split* split : {&data.dataset.train, &data.dataset.val, &data.dataset.calibration, &data.dataset.test}) {
      if (split->size() > 0) split->digest = digest_of(*split, data.dataset);
    }
    find_shared(data);
    data.clean_labels = data.dataset.train.labels;
    data.label_noise = apply_label_noise(read_label_noise(config), data.dataset);
    return data;
  } catch (const KeyError& error) {
    if (!config.has(error.path())) throw;
    config.fail(error.path(), error.message());
  }
}

}  // namespace settrain

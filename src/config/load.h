// From files and --set to a Config.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain::config {

/// Reads `file` (an empty path: no file, the overrides alone), what it extends, and the overrides "key.path=value"
/// (YAML values), in rising precedence: default, base of `extends`, file, overrides (the last one of a path wins).
///
/// Any scalar may hold `${env:VAR}`, `${env:VAR:-default}` (unset or empty: the default), `${key.path}` (another
/// key's resolved value) and `${file}` (the file's name without its ending, "settrain" without a file); `$${` stands
/// for a literal `${`. A scalar that holds one is typed after it was replaced, quoted or not, since flow style needs
/// the quotes. The keys that choose variants cannot refer to other keys.
///
/// A layer that changes a section's variant (loss.name) resets the variant's own keys: what a lower layer gave to the
/// other variant is dropped, since it was meant for that one. Keys common to all variants of a section stay.
///
/// `places`: where the first of the overrides come from, for errors, instead of "--set key.path=value".
///
/// Throws ConfigError with every offender at once, each line "place: path: what is wrong[, did you mean 'x'?]": unknown
/// key, a key of another variant, wrong type, out of range, not one of the choices, duplicate key, cycle of `extends`
/// or `${}`, unset variable without a default, merge key `<<`, non-map where a map belongs, YAML syntax, more than
/// 10,000 nodes, and broken rules. The rules run only once everything else is right.
Config load(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides,
            const std::vector<std::string>& places = {});

/// The config that a run recorded in `file`. The rules are not checked, since they may be newer than the run.
Config load_recorded(const Schema& schema, const std::filesystem::path& file);

/// The recorded config with `overrides`, for a run or an evaluation. The rules are checked, but a mistake that the file
/// has without the overrides is let pass.
Config load_amended(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// The same as load() for text that Config::to_yaml() wrote, from an untrusted file: `yaml` can neither extend files
/// nor refer to the environment or to other keys. `name` is its place in messages.
Config load_resolved(const Schema& schema, const std::string& yaml, const std::string& name,
                     const std::vector<std::string>& overrides);

}  // namespace settrain::config

#include <algorithm>
#include <array>

#include "src/config/declarations.h"
#include "src/config/describe.h"
#include "src/config/document.h"
#include "src/config/text.h"
#include "src/core/characters.h"
#include "src/core/table_text.h"

namespace settrain::config {
namespace {

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

// One row for all variants of the section that declare the key alike, at the first of them.
std::vector<const Declaration*> declared_alike(const Declarations& declarations, const Declaration& declaration) {
  std::vector<const Declaration*> alike;
  for (const Declaration* other : declarations.of(declaration.path)) {
    if (same_declaration(other->key, declaration.key)) alike.push_back(other);
  }
  return alike;
}

std::string variant_names(const std::vector<const Declaration*>& declarations) {
  std::vector<std::string> names;
  for (const Declaration* declaration : declarations) {
    if (declaration->variant) names.push_back(declaration->variant->name);
  }
  return names.empty() ? "" : " [" + join(names, ", ") + "]";
}

}  // namespace

std::string list_keys(const Schema& schema, size_t columns) {
  const Declarations declarations(schema);
  std::vector<Row> rows = {{"key", "type", "default", "range", "unit", "meaning [variants that have it]"}};
  for (const Declaration& declaration : declarations.all()) {
    const auto alike = declared_alike(declarations, declaration);
    if (alike.front() != &declaration) continue;
    const Key& key = declaration.key;
    rows.push_back({declaration.path, type_text(key), default_text(key), range_text(key), key.unit,
                    key.help + variant_names(alike)});
  }
  if (columns > 0) {
    std::string text;
    for (const Row& row : rows) {
      std::string head = row[0];
      for (size_t i = 1; i + 1 < kColumns; ++i) head += row[i].empty() ? "" : "  " + row[i];
      text += wrap_words(head + "\n" + row.back(), columns, 4);
    }
    return text;
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], count_characters(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < kColumns; ++i)
      text += row[i] + std::string(widths[i] - count_characters(row[i]) + 2, ' ');
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace settrain::config

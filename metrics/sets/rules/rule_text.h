// The parts of a rule's name: "conformal:raps(k=5):0.1" has three.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace settrain {

/// key=value in parentheses; without `=` the key is empty.
struct RuleArgument {
  std::string key, value;
};

struct RulePart {
  std::string name;
  std::vector<RuleArgument> arguments;
};

/// A rule's name as it is read; what it throws are ConfigErrors that quote the name.
class RuleText {
 public:
  explicit RuleText(std::string_view text);

  const std::vector<RulePart>& parts() const { return parts_; }

  [[noreturn]] void fail(const std::string& what) const;
  /// That `word` is not one of the words which may stand at its place, and the nearest of them. `place`: "a score".
  [[noreturn]] void fail_unknown(std::string_view place, std::string_view word,
                                 std::span<const std::string> words) const;

  /// Where the part has an argument or a parenthesis that it does not take.
  void check_arguments(const RulePart& part, std::span<const std::string> keys) const;
  /// The value of a part's argument, or null. The first argument without a key is called "".
  const std::string* argument(const RulePart& part, std::string_view key) const;

  /// `what` names the number in messages. Of double: finite.
  double number(std::string_view what, std::string_view text) const;
  int64_t whole_number(std::string_view what, std::string_view text, int64_t least) const;
  /// In (0, 1).
  double fraction(std::string_view what, std::string_view text) const;

 private:
  std::string text_;
  std::vector<RulePart> parts_;
};

}  // namespace settrain

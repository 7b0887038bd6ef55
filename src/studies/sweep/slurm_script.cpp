#include "src/studies/sweep/slurm_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {
namespace {

struct OwnOption {
  std::string_view name, letter, reason;
};

constexpr const char* kLogsReason = "the logs lie in the sweep's folder, a file an element";
constexpr std::array<OwnOption, 6> kOwnOptions{{
    {"--array", "-a",
     "an element is a run; `sbatch --array=1-9%2 SCRIPT` chooses elements, and how many run at a time"},
    {"--output", "-o", kLogsReason},
    {"--error", "-e", kLogsReason},
    {"--open-mode", "", "a log goes on where its element does"},
    {"--chdir", "-D", "elements run where the script was written"},
    {"--wrap", "", "there is a script"},
}};

bool is_option(std::string_view word, const OwnOption& option) {
  return word.substr(0, word.find('=')) == option.name ||
         (!option.letter.empty() && !word.starts_with("--") && word.starts_with(option.letter));
}

// A quoted word of an #SBATCH line, in which "%" begins what Slurm replaces.
std::string log_pattern(const std::filesystem::path& logs) {
  std::string folder;
  for (const char byte : logs.string()) {
    if (std::string_view("\"\\\n").find(byte) != std::string_view::npos) {
      throw ConfigError(
          fmt::format("Slurm cannot write to '{}': quotes, backslashes and line breaks mean something else "
                      "to it; --dir names another folder",
                      logs.string()));
    }
    folder += byte == '%' ? std::string("%%") : std::string(1, byte);
  }
  return fmt::format("\"{}/%A_%a.log\"", folder);
}

bool is_of_tasks(std::string_view option) {
  return option.starts_with("--ntasks") || option.starts_with("-n");
}

// To be signalled, the run must be the batch shell's own process.
constexpr const char* kRun = R"(
run() {{
  exec {}{} "$@"
}}

cd {} || exit
case $SLURM_ARRAY_TASK_ID in
)";
// A signal to srun would kill its tasks at once. Since Slurm 22.05 it takes no number of cores from the job.
constexpr const char* kSrun =
    R"(srun --kill-on-bad-exit=1 ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"} )";

}  // namespace

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char byte) {
    return std::isalnum(static_cast<unsigned char>(byte)) != 0 ||
           std::string_view("._/=:,@%+-").find(byte) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string word = "'";
  for (const char byte : text) word += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return word + "'";
}

std::vector<std::string> split_slurm_options(const std::string& text) {
  std::vector<std::string> options;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!word.starts_with('-')) {  // the value of the option before
      if (options.empty())
        throw ConfigError(fmt::format("--slurm: '{}' is no option of sbatch: those begin with -", word));
      options.back() += " " + word;
      continue;
    }
    for (const OwnOption& own : kOwnOptions) {
      if (is_option(word, own)) throw ConfigError(fmt::format("--slurm: {}: {}", word, own.reason));
    }
    options.push_back(word);
  }
  return options;
}

int64_t cpus_per_task(const std::vector<std::string>& options) {
  int64_t cpus = 1;
  for (const std::string& option : options) {
    if (!option.starts_with("--cpus-per-task") && !option.starts_with("-c")) continue;
    const size_t digits = std::min(option.find_first_of("0123456789"), option.size());
    cpus = parse_number<int64_t>(std::string_view(option).substr(digits)).value_or(0);
    if (cpus < 1) {
      throw ConfigError(fmt::format("--slurm: {}: expected a number of cores", option));
    }
  }
  return cpus;
}

std::string slurm_script(const SlurmArray& array, const std::vector<SlurmElement>& elements) {
  std::string script = fmt::format(
      "#!/bin/bash\n# Written by settrain: {} runs, an element each. One that was stopped goes on when it is submitted "
      "again.\n",
      elements.size());
  const bool has_tasks = std::any_of(array.options.begin(), array.options.end(), is_of_tasks);
  std::vector<std::string> options{"--job-name=settrain",
                                   fmt::format("--array=1-{}", elements.size()),
                                   fmt::format("--output={}", log_pattern(array.logs)),
                                   "--open-mode=append",
                                   "--requeue",
                                   has_tasks ? "--signal=TERM@120" : "--signal=B:TERM@120"};
  options.insert(options.end(), array.options.begin(), array.options.end());  // of two alike the last holds
  for (const std::string& option : options) script += fmt::format("#SBATCH {}\n", option);
  script += fmt::format(kRun, has_tasks ? kSrun : "", shell_word(array.program), shell_word(array.folder.string()));
  for (size_t i = 0; i < elements.size(); ++i) {
    std::vector<std::string> words;
    std::transform(elements[i].arguments.begin(), elements[i].arguments.end(), std::back_inserter(words), shell_word);
    script += fmt::format("  {}) # {}\n    run {} ;;\n", i + 1, elements[i].name, fmt::join(words, " "));
  }
  script += fmt::format("  *) echo \"there are elements 1 to {}, not '$SLURM_ARRAY_TASK_ID'\" >&2; exit 2 ;;\nesac\n",
                        elements.size());
  return script;
}

void write_slurm_array(const Sweep& sweep, const std::vector<int64_t>& runs, const std::vector<std::string>& options,
                       const std::string& device) {
  const SlurmArray array{.program = program_file().string(),
                         .folder = std::filesystem::current_path(),
                         .logs = std::filesystem::absolute(sweep.folder.slurm_logs()),
                         .options = options};
  std::vector<SlurmElement> elements;
  for (const int64_t run : runs) {
    const SweepPoint& point = sweep.points[static_cast<size_t>(run)];
    SlurmElement element{point.name, training_arguments(sweep, point, device)};
    if (sweep.folder.status_of(point) == PointStatus::kPending) element.arguments.push_back("--resume-if-there");
    elements.push_back(std::move(element));
  }
  const std::string script = slurm_script(array, elements);
  std::error_code ignored;  // Slurm then says why no log can be written
  std::filesystem::create_directories(array.logs, ignored);
  write_file_atomically(sweep.folder.slurm_script(), script);
}

}  // namespace settrain

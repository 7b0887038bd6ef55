#include "src/studies/sweep/slurm_array.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "src/core/files.h"
#include "src/core/process.h"
#include "src/studies/sweep/slurm_script.h"

namespace settrain {

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

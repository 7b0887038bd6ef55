// Losses against golden files.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <vector>

#include "losses/loss.h"
#include "src/measure/check/check_report.h"

namespace settrain {

/// Feeds every case of every file, with its recorded noise, to the loss it names, and makes two rows of it. In float64:
/// losses, mean and gradient of the mean against the file, within 1e-9 of max(1, |value|), or 1e-7 where scores exceed
/// 1000. Then the same in float32 against float64, both on the inputs rounded to float32, within the tolerance table,
/// relative to the size of the scores. A case without a gradient is compared without, and the note says so. A loss that
/// is not registered, or a case that the loss refuses, is a failed row. Throws DataError naming the file and the place
/// in it where a file is missing or malformed.
std::vector<CheckRow> check_losses(const LossRegistry& registry, at::Device device,
                                   const std::vector<std::filesystem::path>& files);

}  // namespace settrain

// The subcommands of `settrain data`.
#pragma once

#include "apps/settrain/command_line.h"

namespace settrain {}  // namespace settrain

// The figure of how unequally images are spread over classes.
#pragma once

#include "datasets/dataset.h"
#include "src/config/config.h"
#include "src/config/schema.h"
#include "src/papers/figure/paper_figure.h"
#include "src/plot/chart.h"

namespace settrain {

/// The figure's base config with its settings. Throws ConfigError.
config::Config lorenz_config(const PaperFigure& figure, const config::Schema& schema);

/// The Lorenz curve of the images of all splits together (lorenz_curve() of src/data_tools), in percent, beside that of
/// classes of equal size.
Chart lorenz_chart(const PaperFigure& figure, const Dataset& dataset);

}  // namespace settrain

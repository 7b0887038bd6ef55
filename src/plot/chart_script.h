// The script that draws a chart.
#pragma once

#include <string>

#include "src/plot/chart.h"

namespace settrain {

/// A script for gnuplot 5.4 that reads NAME.csv (chart_csv()) in its folder and writes NAME.svg and NAME.png there;
/// `gnuplot -e 'out="other"' NAME.gp` writes other.svg and other.png. Names and labels are drawn as they are, whatever
/// they hold. Throws Error as check_chart().
std::string chart_script(const Chart& chart);

}  // namespace settrain

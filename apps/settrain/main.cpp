#include "apps/settrain/run_command_line.h"
#include "src/core/process.h"

int main(int argc, char** argv) {
  settrain::keep_onednn_from_amx();
  return settrain::run_command_line(argc, argv);
}

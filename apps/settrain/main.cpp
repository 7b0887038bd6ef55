#include "apps/settrain/run_command_line.h"

int main(int argc, char** argv) {
  return settrain::run_command_line(argc, argv);
}

#include "src/formats/pickle_opcode.h"

namespace settrain {

std::string_view purpose_of(uint8_t opcode) {
  switch (opcode) {
    case 'I':
    case 'L':
    case 'F':
    case 'S':
    case 'V':
    case 'g':
    case 'p':
      return "a value of protocol 0, which torch.save does not use";
    case 'i':
    case 'o':
      return "an object of a class";
    case 'B':
    case 'C':
    case 0x8e:
    case 0x96:
    case 0x97:
    case 0x98:
      return "bytes";
    case 0x8f:
    case 0x90:
    case 0x91:
      return "a set";
    case 'P':
      return "a persistent object of protocol 0";
    case 0x82:
    case 0x83:
    case 0x84:
      return "an extension of the pickle format";
    default:
      return "nothing that Python knows";
  }
}

}  // namespace settrain

# Run with OUTPUT, a C++ file to write, and PARTS, NAME=FILE with | between them: defines settrain::page_parts::NAME, a string_view of
# each file's text.
string(REPLACE "|" ";" parts "${PARTS}")
set(source "#include \"src/report/page_parts.h\"\n\nnamespace settrain::page_parts {\n\n")
foreach(part IN LISTS parts)
  string(REGEX MATCH "^([a-z_]+)=(.+)$" matched "${part}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  string(APPEND source "const std::string_view ${name} = R\"settrain(${text})settrain\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${source}\n}  // namespace settrain::page_parts\n")

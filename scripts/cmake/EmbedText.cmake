# settrain_embed(output HEADER header NAMESPACE namespace PARTS name=file...)
#   Sets `output` to a C++ file that the build writes: it defines in the namespace a string_view of each file's text, as the header
#   declares them.
# The file is also what writes it: run as a script, with these as variables, PARTS with | between them.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(settrain_embed_script "${CMAKE_CURRENT_LIST_FILE}")
  function(settrain_embed output)
    cmake_parse_arguments(arg "" "HEADER;NAMESPACE" "PARTS" ${ARGN})
    set(files ${arg_PARTS})
    list(TRANSFORM files REPLACE "^[a-z_]+=" "")
    list(JOIN arg_PARTS "|" parts)
    set(file "${CMAKE_CURRENT_BINARY_DIR}/embedded_text.cpp")
    add_custom_command(OUTPUT "${file}" VERBATIM DEPENDS ${files} "${settrain_embed_script}"
                       COMMAND "${CMAKE_COMMAND}" -D "OUTPUT=${file}" -D "HEADER=${arg_HEADER}" -D "NAMESPACE=${arg_NAMESPACE}"
                               -D "PARTS=${parts}" -P "${settrain_embed_script}")
    set(${output} "${file}" PARENT_SCOPE)
  endfunction()
  return()
endif()

string(REPLACE "|" ";" parts "${PARTS}")
set(source "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\n")
foreach(part IN LISTS parts)
  string(REGEX MATCH "^([a-z_]+)=(.+)$" matched "${part}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" text)
  string(APPEND source "const std::string_view ${name} = R\"settrain(${text})settrain\";\n")
endforeach()
file(WRITE "${OUTPUT}" "${source}\n}  // namespace ${NAMESPACE}\n")

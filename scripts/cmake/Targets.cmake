# How a folder of this tree becomes a target. Files are globbed, so that a new loss or test needs no edit here.

add_library(settrain_options INTERFACE)
target_include_directories(settrain_options INTERFACE "${CMAKE_SOURCE_DIR}")
# -ffp-contract=off: the compiler must not fuse a multiplication and an addition on its own, or results would depend on
# the instruction set; where a fused operation is meant, the code says std::fma.
set(settrain_warnings -Wall -Wextra)
if(SETTRAIN_WARNINGS_ARE_ERRORS)
  list(APPEND settrain_warnings -Werror)
endif()
target_compile_options(settrain_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${settrain_warnings};-ffp-contract=off>")
# GCC 12 warns of overlapping copies inside std::string's own operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(settrain_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# GCC 14 warns of array bounds inside std::vector<bool>, and of uninitialised members inside LibTorch's InferenceMode, where it inlines them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
  target_compile_options(settrain_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-maybe-uninitialized>)
endif()
if(SETTRAIN_SANITIZE)
  target_compile_options(settrain_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SETTRAIN_SANITIZE} -fno-omit-frame-pointer>)
  target_link_options(settrain_options INTERFACE -fsanitize=${SETTRAIN_SANITIZE})
endif()
if(SETTRAIN_FUZZ)
  # libFuzzer sees only what ends the program: undefined behaviour has to, and so has an index beyond a std::vector's size.
  target_compile_options(settrain_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  target_compile_definitions(settrain_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# settrain_precompile(target headers...): compiles the headers once for all targets that name the same ones. LibTorch's take 5 to
# 20 s a file, most of a build from nothing. Every file still includes what it uses.
function(settrain_precompile target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>) # for ccache
  string(MAKE_C_IDENTIFIER "settrain_precompiled ${ARGN}" property)
  get_property(owner GLOBAL PROPERTY ${property})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
    target_precompile_headers(${target} PRIVATE ${headers})
    set_property(GLOBAL PROPERTY ${property} ${target})
  endif()
endfunction()

# What most files include that use tensors, and those that use modules (which are twice as large).
set(settrain_tensor_headers ATen/core/Tensor.h ATen/ops/empty.h fmt/format.h)
set(settrain_module_headers ${settrain_tensor_headers} torch/nn/module.h)

# settrain_unity(target): compiles the target's files in groups, each as one: a header, LibTorch's above all, is then read once a
# group. Off in the preset dev, whose builds begin with one changed file.
option(SETTRAIN_UNITY "Compile files in groups: from nothing it takes a fifth of the time" ON)
function(settrain_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SETTRAIN_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# settrain_brief(target): compiles code that runs briefly, such as a subcommand's, in two thirds of the time.
function(settrain_brief target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# settrain_library(name [SHARED] [BRIEF] [TENSORS | MODULES] [LINK libraries...] [EXTRA sources...] [WITHOUT files...])
#   One library settrain_<name>, static but for SHARED, from every .cpp of the calling folder. BRIEF: see settrain_brief(). TENSORS: most of them use LibTorch's
#   tensors; MODULES: its modules too. EXTRA: further sources, which are compiled alone and without precompiled headers. WITHOUT: files to leave out.
function(settrain_library name)
  cmake_parse_arguments(arg "SHARED;BRIEF;TENSORS;MODULES" "" "LINK;EXTRA;WITHOUT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  list(TRANSFORM arg_WITHOUT PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(REMOVE_ITEM sources ${arg_WITHOUT})
  set(kind STATIC)
  if(arg_SHARED)
    set(kind SHARED)
  endif()
  add_library(settrain_${name} ${kind} ${sources} ${arg_EXTRA})
  settrain_unity(settrain_${name})
  if(arg_BRIEF)
    settrain_brief(settrain_${name})
  endif()
  target_link_libraries(settrain_${name} PUBLIC settrain_options ${arg_LINK})
  if(arg_TENSORS OR arg_MODULES)
    target_link_libraries(settrain_${name} PUBLIC settrain_torch)
    if(arg_MODULES)
      settrain_precompile(settrain_${name} ${settrain_module_headers})
    else()
      settrain_precompile(settrain_${name} ${settrain_tensor_headers})
    endif()
  endif()
  set_source_files_properties(${arg_EXTRA} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# settrain_tests(folder [TORCH] [WITHOUT subfolder] [LINK libraries...])
#   One Catch2 program from the files *_test.cpp below tests/<folder>, and one CTest entry a file. The word before _test is a CTest
#   label where it is one of data, gpu, python, slow: loader/photographs_data_test has the label data. TORCH: the files include
#   ATen/ATen.h, and ask ATen for a GPU. WITHOUT: a folder below that has a program of its own.
function(settrain_tests folder)
  cmake_parse_arguments(arg "TORCH" "WITHOUT" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cpp")
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/tests/${folder}/${arg_WITHOUT}/")
  endif()
  string(REPLACE "/" "_" program "tests_${folder}")
  add_executable(${program} ${sources})
  settrain_unity(${program})
  target_compile_options(${program} PRIVATE -O0)
  target_link_libraries(${program} PRIVATE settrain_test_main ${arg_LINK})
  if(arg_TORCH)
    settrain_precompile(${program} ATen/ATen.h tests/support/catch2.h)
    if(SETTRAIN_HAS_CUDA)
      target_link_libraries(${program} PRIVATE settrain_torch_cuda)
    endif()
  endif()
  # A file without a case fails: Catch2 3's default.
  set(warn_no_tests)
  if(Catch2_VERSION VERSION_LESS 3)
    set(warn_no_tests --warn NoTests)
  endif()
  foreach(source IN LISTS sources)
    get_filename_component(file "${source}" NAME_WE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}/tests" OUTPUT_VARIABLE test)
    string(REPLACE ".cpp" "" test "${test}")
    # -#: a file's name is a tag of its cases.
    add_test(NAME ${test} COMMAND ${program} -\# ${warn_no_tests} "[#${file}]")
    settrain_test_properties(${test})
  endforeach()
endfunction()

# settrain_fuzzers([LINK libraries...])
#   One libFuzzer program fuzz_<name> from each tests/fuzz/<name>_fuzz.cpp, and the target `fuzzers` for all of them. scripts/fuzz
#   runs them.
function(settrain_fuzzers)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_custom_target(fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(file "${source}" NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name "${file}")
    add_executable(fuzz_${name} "${source}")
    target_link_libraries(fuzz_${name} PRIVATE settrain_options ${arg_LINK})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  endforeach()
endfunction()

# settrain_script_tests(folder)
#   One CTest entry for each tests/<folder>/*_test.sh and *_test.py.
function(settrain_script_tests folder)
  find_program(SETTRAIN_PYTHON3 python3 REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.sh" "${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.py")
  foreach(source IN LISTS sources)
    get_filename_component(file "${source}" NAME_WE)
    set(interpreter bash)
    if(source MATCHES "\\.py$")
      set(interpreter "${SETTRAIN_PYTHON3}" -B)
    endif()
    add_test(NAME ${folder}/${file} COMMAND ${interpreter} "${source}")
    settrain_test_properties(${folder}/${file})
  endforeach()
endfunction()

# settrain_test_properties(test): what every test shares: its label, one compute thread, since CTest runs as many tests as there are
# cores, and exit code 77, which says that cases were skipped (tests/support/skip.h).
function(settrain_test_properties test)
  set(environment "SETTRAIN_SOURCE_DIR=${CMAKE_SOURCE_DIR}" OMP_NUM_THREADS=1)
  if(SETTRAIN_SANITIZE)
    list(APPEND environment SETTRAIN_SANITIZED=1)
  endif()
  if(TARGET settrain)
    list(APPEND environment "SETTRAIN_PROGRAM=$<TARGET_FILE:settrain>")
  endif()
  set_tests_properties(${test} PROPERTIES ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77 TIMEOUT 900)
  if(test MATCHES "_(data|gpu|python|slow)_test$")
    set_tests_properties(${test} PROPERTIES LABELS "${CMAKE_MATCH_1}")
  endif()
endfunction()

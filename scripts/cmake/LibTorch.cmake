# settrain_torch: LibTorch from a PyPI wheel, and the CUDA language where both nvcc and LibTorch's CUDA libraries are found;
# settrain_torch_cuda: with its CUDA library, for what refers to that by name.
# A target of our own: the wheel's CMake files demand a CUDA toolkit even for a build without CUDA, and overwrite its flags.
# Sets SETTRAIN_HAS_CUDA.

set(SETTRAIN_TORCH_ROOT "" CACHE PATH "The folder torch/ of an installed PyTorch wheel (it has include/ and lib/)")
set(torch "${SETTRAIN_TORCH_ROOT}")
if(NOT torch)
  set(torch "$ENV{SETTRAIN_TORCH_ROOT}")
endif()
if(NOT torch AND EXISTS "${CMAKE_SOURCE_DIR}/build/setup.txt")
  file(STRINGS "${CMAKE_SOURCE_DIR}/build/setup.txt" torch REGEX "^torch_root=")  # where scripts/setup put it
  string(REPLACE "torch_root=" "" torch "${torch}")
endif()
if(NOT torch AND SETTRAIN_ONLY_PYTHON)
  # The PyTorch of the Python that asks for the package. -I: not what an isolated build puts before it.
  execute_process(COMMAND "${Python_EXECUTABLE}" -I -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE torch)
  if(NOT torch)
    message(FATAL_ERROR "No PyTorch beside ${Python_EXECUTABLE}, which settrain links: first pip install torch==2.11.0")
  endif()
endif()
if(NOT EXISTS "${torch}/include/ATen/ATen.h")
  message(FATAL_ERROR "No LibTorch in '${torch}'. Run scripts/setup, which installs it and configures, or pass "
                      "-DSETTRAIN_TORCH_ROOT=<site-packages>/torch")
endif()
get_filename_component(site_packages "${torch}" DIRECTORY)

# A set-up for the CPU alone has libtorch_cuda.so, which is in the same wheel, but not the libraries it needs.
set(SETTRAIN_HAS_CUDA OFF)
if(NOT SETTRAIN_CUDA STREQUAL "OFF")
  find_program(SETTRAIN_NVCC nvcc HINTS ENV CUDACXX "${site_packages}/nvidia/cu13/bin" PATHS /usr/local/cuda/bin)
  find_library(SETTRAIN_CUDNN NAMES libcudnn.so.9 HINTS "${site_packages}/nvidia/cudnn/lib" PATHS /usr/local/cuda/lib64)
  # ProcessGroupNCCL.hpp includes it. The wheel's own comes first: its version is that of the library.
  find_path(SETTRAIN_NCCL nccl.h HINTS "${site_packages}/nvidia/nccl/include" PATHS /usr/local/cuda/include)
  if(SETTRAIN_NVCC AND SETTRAIN_CUDNN AND (SETTRAIN_NCCL OR SETTRAIN_ONLY_PYTHON) AND EXISTS "${torch}/lib/libtorch_cuda.so")
    set(SETTRAIN_HAS_CUDA ON)
  elseif(SETTRAIN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SETTRAIN_CUDA=ON, but nvcc ('${SETTRAIN_NVCC}'), cuDNN ('${SETTRAIN_CUDNN}'), nccl.h ('${SETTRAIN_NCCL}') or "
                        "'${torch}/lib/libtorch_cuda.so' is missing. Run scripts/setup --cuda")
  endif()
endif()

add_library(settrain_torch INTERFACE)
target_include_directories(settrain_torch SYSTEM INTERFACE "${torch}/include" "${torch}/include/torch/csrc/api/include")
# at::parallel_for is serial in a file compiled without OpenMP, and says nothing.
target_compile_options(settrain_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
# The wheel brings fmt 12, which hides the system's fmt 9; header-only, so that neither links against the other.
target_compile_definitions(settrain_torch INTERFACE FMT_HEADER_ONLY)
# Code compiled so needs the OpenMP runtime: the wheel's own, so that there is one pool of threads.
file(GLOB torch_openmp "${torch}/lib/libgomp*.so*")
target_link_libraries(settrain_torch INTERFACE
  "${torch}/lib/libtorch_cpu.so" "${torch}/lib/libc10.so" ${torch_openmp} Threads::Threads)

if(SETTRAIN_HAS_CUDA)
  # CMake 3.25 does not know that nvcc 13 no longer has compute_52, its default.
  set(CMAKE_CUDA_COMPILER "${SETTRAIN_NVCC}")
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90 CACHE STRING "Compute capabilities to compile for")
  enable_language(CUDA)
  # CMake 3.25 does not know CUDA C++20 with nvcc 13.
  set(CMAKE_CUDA_STANDARD 17)
  # One CUDA runtime in the process, LibTorch's own; nvcc's default is a static copy beside it.
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  find_library(SETTRAIN_CUDART NAMES libcudart.so.13 HINTS "${site_packages}/nvidia/cu13/lib"
               PATHS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} REQUIRED)
  target_include_directories(settrain_torch SYSTEM INTERFACE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_definitions(settrain_torch INTERFACE SETTRAIN_HAS_CUDA)
  target_link_libraries(settrain_torch INTERFACE "${SETTRAIN_CUDART}")
  add_library(settrain_torch_cuda INTERFACE)
  # It registers itself when loaded, so the linker must not drop it.
  target_link_libraries(settrain_torch_cuda INTERFACE settrain_torch
    -Wl,--no-as-needed "${torch}/lib/libtorch_cuda.so" "${torch}/lib/libc10_cuda.so" -Wl,--as-needed)
endif()
message(STATUS "settrain: LibTorch at ${torch}, CUDA kernels ${SETTRAIN_HAS_CUDA}")

# Finds the system's libraries. scripts/setup installs them: keep its list of packages in step, and that of
# scripts/gpu_check.sh.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(yaml-cpp REQUIRED)
set(SETTRAIN_YAML_CPP yaml-cpp::yaml-cpp)
if(NOT TARGET yaml-cpp::yaml-cpp) # its name before 0.8
  set(SETTRAIN_YAML_CPP yaml-cpp)
endif()
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
if(NOT SETTRAIN_ONLY_PYTHON)
  find_package(CLI11 REQUIRED)
  if(SETTRAIN_TESTS)
    find_package(Catch2 REQUIRED) # 2 or 3: tests/support/catch2.h
  endif()
endif()

if(SETTRAIN_ONNX AND SETTRAIN_TORCH AND NOT SETTRAIN_ONLY_PYTHON)
  find_program(SETTRAIN_PROTOC protoc REQUIRED)
  find_path(SETTRAIN_ONNX_PROTO onnx.proto PATH_SUFFIXES onnx REQUIRED) # Debian's libonnx-dev
  find_library(SETTRAIN_PROTOBUF libprotobuf-lite.a REQUIRED)
endif()

if(SETTRAIN_SERVE AND NOT SETTRAIN_ONLY_PYTHON)
  find_package(Boost 1.74 CONFIG REQUIRED) # Beast, which is headers only
endif()

if(SETTRAIN_IMAGE_FILES)
  find_package(JPEG REQUIRED) # libjpeg-turbo
  find_package(PNG REQUIRED)
  find_package(TIFF 4.5 REQUIRED) # the first version whose messages come with the file that they are about
  find_path(WebP_INCLUDE_DIR webp/demux.h REQUIRED)
  find_library(WebP_LIBRARY webp REQUIRED)
  find_library(WebP_demux_LIBRARY webpdemux REQUIRED)
  add_library(settrain_webp INTERFACE)
  target_include_directories(settrain_webp SYSTEM INTERFACE "${WebP_INCLUDE_DIR}")
  target_link_libraries(settrain_webp INTERFACE "${WebP_demux_LIBRARY}" "${WebP_LIBRARY}")
  # Debian's CMake files for OpenCV come with a package that brings Qt and GDAL along; the libraries used do not need it.
  find_path(OpenCV_INCLUDE_DIR opencv2/core.hpp PATH_SUFFIXES opencv4 REQUIRED)
  find_library(OpenCV_core_LIBRARY opencv_core REQUIRED)
  add_library(settrain_opencv INTERFACE)
  target_include_directories(settrain_opencv SYSTEM INTERFACE "${OpenCV_INCLUDE_DIR}")
  target_link_libraries(settrain_opencv INTERFACE "${OpenCV_core_LIBRARY}")
  if(SETTRAIN_TESTS)
    # Only tests write images by OpenCV: imgcodecs loads 112 libraries, GDAL among them.
    find_library(OpenCV_imgproc_LIBRARY opencv_imgproc REQUIRED)
    find_library(OpenCV_imgcodecs_LIBRARY opencv_imgcodecs REQUIRED)
    add_library(settrain_opencv_codecs INTERFACE)
    target_link_libraries(settrain_opencv_codecs INTERFACE settrain_opencv "${OpenCV_imgproc_LIBRARY}" "${OpenCV_imgcodecs_LIBRARY}")
  endif()
endif()

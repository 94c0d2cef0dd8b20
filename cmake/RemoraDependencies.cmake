# SPDX-License-Identifier: Apache-2.0
# Third-party packages, all from the distribution; the CUDA toolkit gives headers and nvcc.
# scripts/setup installs what is missing.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The preload library lives in other people's processes: what it links is static and hidden there.
find_path(REMORA_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(REMORA_ZSTD NAMES libzstd.a REQUIRED)
find_library(REMORA_LZ4 NAMES liblz4.a REQUIRED)
find_library(REMORA_CRYPTO NAMES libcrypto.a REQUIRED)

# UCX: the headers only. libucp is opened with dlopen, late (docs/architecture.md).
find_path(REMORA_UCX_INCLUDE ucp/api/ucp.h REQUIRED)

# The CUDA toolkit: an installed one, or the pinned pieces that scripts/setup put into .cache/cuda.
set(REMORA_CUDA_ROOT "" CACHE PATH "CUDA toolkit (bin/nvcc, include/cuda.h); found when empty")
find_program(REMORA_NVCC nvcc
  HINTS ${REMORA_CUDA_ROOT}/bin ENV CUDA_HOME
  PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/.cache/cuda/bin REQUIRED)
file(REAL_PATH ${REMORA_NVCC} remora_nvcc_real)
cmake_path(GET remora_nvcc_real PARENT_PATH remora_nvcc_bin)
cmake_path(GET remora_nvcc_bin PARENT_PATH REMORA_CUDA_HOME)
find_path(REMORA_CUDA_INCLUDE cuda.h HINTS ${REMORA_CUDA_HOME}/include REQUIRED)

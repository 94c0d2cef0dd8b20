# SPDX-License-Identifier: Apache-2.0
# How every target of the project is made: language level, warnings, sanitizers, visibility, and
# where the result lands (programs in bin/, libraries in lib/). Flags are per target, never global.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archive)

set(REMORA_SANITIZE "" CACHE STRING "Sanitizers for every target, as -fsanitize takes them")
option(REMORA_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(REMORA_WERROR "Treat warnings as errors (CI does)" OFF)
option(REMORA_CUDART_HANDSHAKE "Answer the CUDA runtime's validity handshake" ON)

include(CTest)

find_program(REMORA_CCACHE ccache)
if(REMORA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${REMORA_CCACHE})
endif()

add_library(remora_options INTERFACE)
target_compile_features(remora_options INTERFACE cxx_std_20)
target_include_directories(remora_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(remora_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -fno-strict-aliasing -fvisibility=hidden)
if(REMORA_WERROR)
  target_compile_options(remora_options INTERFACE -Werror)
endif()
if(REMORA_SANITIZE)
  target_compile_options(remora_options INTERFACE
    -fsanitize=${REMORA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(remora_options INTERFACE -fsanitize=${REMORA_SANITIZE})
endif()
if(REMORA_FUZZ)
  target_compile_options(remora_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# remora_library(name sources...): a static, position-independent part of one floor.
function(remora_library name)
  add_library(${name} STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PUBLIC remora_options)
endfunction()

# remora_test(name LABELS label... SOURCES file... LIBS lib...): a GoogleTest program, one ctest
# entry per program (a suite that starts servers shares them within the program).
function(remora_test name)
  if(NOT BUILD_TESTING OR REMORA_FUZZ)
    return()
  endif()
  cmake_parse_arguments(T "" "" "LABELS;SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE ${T_LIBS} remora_options GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT 60)
endfunction()

# remora_fuzz(name SOURCES file... LIBS lib...): with the fuzz preset a libFuzzer program; in every
# other preset the same target replays its corpus (tests/fuzz/corpus/<name>) under ctest.
function(remora_fuzz name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(F "" "" "SOURCES;LIBS" ${ARGN})
  if(REMORA_FUZZ)
    add_executable(${name} ${F_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${F_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME ${name}_replay COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(${name}_replay PROPERTIES LABELS unit TIMEOUT 60)
  endif()
  target_link_libraries(${name} PRIVATE ${F_LIBS} remora_options)
endfunction()

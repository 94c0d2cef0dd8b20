# SPDX-License-Identifier: Apache-2.0
# CUDA programs and device code made by stock nvcc, called directly: they must be what any user's
# build gives, so neither CMake's CUDA language nor the project's own flags touch them.

# remora_nvcc(OUTPUT file SOURCES file... [ARGS arg...] [DEPENDS file...]): one call of nvcc.
# A source may be a file of the folder or one made by another call.
function(remora_nvcc)
  cmake_parse_arguments(N "" "OUTPUT" "SOURCES;ARGS;DEPENDS" ${ARGN})
  set(sources)
  foreach(source ${N_SOURCES} ${N_DEPENDS})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND sources ${source})
  endforeach()
  list(LENGTH N_SOURCES count)
  list(SUBLIST sources 0 ${count} inputs)
  cmake_path(GET N_OUTPUT PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  cmake_path(GET N_OUTPUT FILENAME shown)
  add_custom_command(OUTPUT ${N_OUTPUT}
    COMMAND ${REMORA_NVCC} -ccbin g++ ${N_ARGS} ${inputs} -o ${N_OUTPUT}
    DEPENDS ${sources}
    COMMENT "nvcc ${shown}" VERBATIM)
endfunction()

# remora_cuda_program(name SOURCES file... [ARGS arg...] [FOLDER folder]): the program twice, as
# bin/<folder>/<name> with nvcc's default, a statically linked cudart, and as <name>_shared with
# -cudart shared. Both are built by the target <name>.
function(remora_cuda_program name)
  cmake_parse_arguments(P "" "FOLDER" "SOURCES;ARGS" ${ARGN})
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${P_FOLDER}/${name})
  cmake_path(NORMAL_PATH program)
  remora_nvcc(OUTPUT ${program} SOURCES ${P_SOURCES} ARGS ${P_ARGS})
  remora_nvcc(OUTPUT ${program}_shared SOURCES ${P_SOURCES} ARGS -cudart shared ${P_ARGS})
  add_custom_target(${name} ALL DEPENDS ${program} ${program}_shared)
endfunction()

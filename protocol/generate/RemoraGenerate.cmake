# SPDX-License-Identifier: Apache-2.0
# remora_generate(name EMITTERS emitter... OUTPUTS file...): runs emit_<emitter>.py over the
# description at build time. OUTPUTS are all the files that the emitters make, relative to
# <build>/generated. Sets REMORA_GENERATED_<name> to their full paths, to be named as sources of one
# target; other targets that include them link that target, or add_dependencies on generate_<name>.

set(REMORA_GENERATE_DIR ${CMAKE_CURRENT_LIST_DIR} CACHE INTERNAL "")

function(remora_generate name)
  cmake_parse_arguments(G "" "" "EMITTERS;OUTPUTS" ${ARGN})
  file(GLOB description CONFIGURE_DEPENDS ${REMORA_GENERATE_DIR}/../api/*)
  list(TRANSFORM G_OUTPUTS PREPEND ${PROJECT_BINARY_DIR}/generated/)
  set(scripts read model check import_headers generate)
  foreach(emitter IN LISTS G_EMITTERS)
    list(APPEND scripts emit_${emitter})
  endforeach()
  list(TRANSFORM scripts PREPEND ${REMORA_GENERATE_DIR}/)
  list(TRANSFORM scripts APPEND .py)
  add_custom_command(
    OUTPUT ${G_OUTPUTS}
    COMMAND ${Python3_EXECUTABLE} ${REMORA_GENERATE_DIR}/generate.py
      --cuda ${REMORA_CUDA_INCLUDE} --cc ${CMAKE_C_COMPILER}
      --out ${PROJECT_BINARY_DIR}/generated ${G_EMITTERS}
    DEPENDS ${scripts} ${description}
    COMMENT "Generating ${name} from protocol/api"
    VERBATIM)
  add_custom_target(generate_${name} DEPENDS ${G_OUTPUTS})
  set(REMORA_GENERATED_${name} ${G_OUTPUTS} PARENT_SCOPE)
endfunction()

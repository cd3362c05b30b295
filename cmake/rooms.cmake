# A room is a directory and a target; USES lists the rooms and libraries it
# may see.  A call to one that is not listed is an undefined symbol, an include of
# its headers an error of cmake/headers.cmake.
add_library(fm_flags INTERFACE)
target_include_directories(fm_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(fm_flags INTERFACE # kernels emulated for tests are C++
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Wpointer-arith;-ffp-contract=off;-fno-math-errno>"
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes;-Werror=implicit-function-declaration>")
if(FM_SANITIZE)
  list(JOIN FM_SANITIZE "," fm_sanitizers)
  target_compile_options(fm_flags INTERFACE -fsanitize=${fm_sanitizers} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(fm_flags INTERFACE -fsanitize=${fm_sanitizers})
endif()

# The file name says which instructions the file may use.
set(FM_ISA_avx2   -mavx2 -mfma -mf16c)
set(FM_ISA_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma)
set(FM_ISA_vbmi   ${FM_ISA_avx512} -mavx512vbmi -mavx512vbmi2)
set(FM_ISA_amx    ${FM_ISA_vbmi} -mgfni -mamx-tile -mamx-bf16 -mamx-int8)
# Of the checks by sanitizers, vector files go without those of each pointer before it is used: unrolled loops have thousands,
# which take minutes to compile, and AddressSanitizer checks what is read and written there all the same.
if(FM_SANITIZE)
  foreach(isa avx2 avx512 vbmi amx)
    list(APPEND FM_ISA_${isa} -fno-sanitize=pointer-overflow,null,alignment,object-size)
  endforeach()
endif()

# fm_room_law(op_cuda DIR cuda USES fm_op fm_cuda): what the files of a room may include, for
# rooms whose sources are compiled into other targets.  DIR defaults to this directory.
function(fm_room_law name)
  cmake_parse_arguments(ROOM "" "DIR" "SOURCES;USES" ${ARGN})
  file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  cmake_path(SET dir NORMALIZE ${here}/${ROOM_DIR})
  string(REGEX REPLACE "/$" "" dir ${dir})
  list(FILTER ROOM_USES INCLUDE REGEX "^fm_")
  list(FILTER ROOM_SOURCES EXCLUDE REGEX "^/")
  list(TRANSFORM ROOM_SOURCES PREPEND ${here}/)
  list(JOIN ROOM_USES " " uses)
  list(JOIN ROOM_SOURCES " " sources)
  string(REPLACE "fm_" "" uses "${uses}")
  set_property(GLOBAL APPEND PROPERTY FM_LAWS "${name} ${dir} ${uses} = ${sources}")
endfunction()

function(fm_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES" ${ARGN})
  fm_room_law(${name} ${ARGN})
  if(NOT ROOM_SOURCES MATCHES "\\.c") # headers only
    add_library(fm_${name} INTERFACE)
    target_link_libraries(fm_${name} INTERFACE fm_flags ${ROOM_USES})
    return()
  endif()
  add_library(fm_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(fm_${name} PUBLIC fm_flags ${ROOM_USES})
  foreach(src IN LISTS ROOM_SOURCES)
    if(src MATCHES "_(avx2|avx512|vbmi|amx)\\.c$")
      set_source_files_properties(${src} PROPERTIES COMPILE_OPTIONS "${FM_ISA_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()

# A room is a directory and a target; USES lists the rooms and libraries it
# may see, so an undeclared friendship shows as an undefined symbol.
add_library(fm_flags INTERFACE)
target_include_directories(fm_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(fm_flags INTERFACE # kernels emulated for tests are C++
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Wpointer-arith;-ffp-contract=off;-fno-math-errno>"
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(FM_SANITIZE)
  list(JOIN FM_SANITIZE "," fm_sanitizers)
  target_compile_options(fm_flags INTERFACE -fsanitize=${fm_sanitizers} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(fm_flags INTERFACE -fsanitize=${fm_sanitizers})
endif()

# The file name says which instructions the file may use.
set(FM_ISA_avx2   -mavx2 -mfma -mf16c)
set(FM_ISA_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mavx512vnni -mfma)
set(FM_ISA_amx    ${FM_ISA_avx512} -mavx512vbmi -mavx512vbmi2 -mgfni -mamx-tile -mamx-bf16)

function(fm_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES" ${ARGN})
  add_library(fm_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(fm_${name} PUBLIC fm_flags ${ROOM_USES})
  foreach(src IN LISTS ROOM_SOURCES)
    if(src MATCHES "_(avx2|avx512|amx)\\.c$")
      set_source_files_properties(${src} PROPERTIES COMPILE_OPTIONS "${FM_ISA_${CMAKE_MATCH_1}}")
    endif()
  endforeach()
endfunction()

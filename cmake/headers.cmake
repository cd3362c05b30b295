# Headers obey the law of rooms as symbols do: tools/rooms.awk reads what every fm_room
# declared and every #include, and stops the build at one that is not declared.
get_property(fm_laws GLOBAL PROPERTY FM_LAWS)
list(JOIN fm_laws "\n" fm_laws)
file(GLOB_RECURSE fm_files RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/src/*.[ch] ${PROJECT_SOURCE_DIR}/src/*.cu ${PROJECT_SOURCE_DIR}/src/*.cuh)
set(fm_paths ${fm_files})
list(TRANSFORM fm_paths PREPEND ${PROJECT_SOURCE_DIR}/src/)
list(JOIN fm_files "\n" fm_files)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/rooms.txt CONTENT "${fm_laws}\n" @ONLY)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers.txt CONTENT "${fm_files}\n" @ONLY)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/headers.stamp
  COMMAND xargs -a ${PROJECT_BINARY_DIR}/headers.txt
          awk -f ${PROJECT_SOURCE_DIR}/tools/rooms.awk ${PROJECT_BINARY_DIR}/rooms.txt
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/headers.stamp
  DEPENDS ${fm_paths} ${PROJECT_BINARY_DIR}/rooms.txt ${PROJECT_SOURCE_DIR}/tools/rooms.awk
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/src COMMENT "Rooms include what they declare" VERBATIM)
add_custom_target(headers ALL DEPENDS ${PROJECT_BINARY_DIR}/headers.stamp)

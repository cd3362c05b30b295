# make install: the program, libfathom, its headers, fathom.pc, fathom-tiny, man page and docs.
include(GNUInstallDirs)

# libfathom is the rooms behind the public header; only FM_API symbols leave
# it.  The rooms that define such symbols go in whole, the others as needed.
set(fm_public_rooms fm_llm fm_grammar fm_sample fm_base)
list(TRANSFORM fm_public_rooms REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE fm_objects)
add_library(fathom_shared SHARED ${fm_objects})
target_link_libraries(fathom_shared PRIVATE ${fm_public_rooms})
fm_link_backends(fathom_shared)
target_link_options(fathom_shared PRIVATE -Wl,--exclude-libs,ALL) # function clones stay inside, too
set_target_properties(fathom_shared PROPERTIES
  OUTPUT_NAME fathom LINKER_LANGUAGE C LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})

# The .pc file finds the prefix from where it lies, so --prefix and DESTDIR
# given at install time are right, too.
file(RELATIVE_PATH FM_PREFIX_FROM_PC
  /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(${PROJECT_SOURCE_DIR}/cmake/fathom.pc.in ${PROJECT_BINARY_DIR}/fathom.pc @ONLY)

# Installed, the program looks beside itself first, and so do the libraries it brings along: a tree
# can be moved.  The old tag holds for libraries of libraries, too.
set_target_properties(fathom_app fathom_shared PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
target_link_options(fathom_app PRIVATE -Wl,--disable-new-dtags)
target_link_options(fathom_shared PRIVATE -Wl,--disable-new-dtags)

install(TARGETS fathom_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fathom_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/fathom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/fathom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tuned DESTINATION ${CMAKE_INSTALL_DATADIR}/fathom)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/fathom-tiny DESTINATION ${CMAKE_INSTALL_DATADIR}/fathom/models)
# What shells complete is asked of the program, which has the tables of options.
set(fm_completion ${PROJECT_SOURCE_DIR}/contrib/completion)
install(FILES ${fm_completion}/fathom.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fathom)
install(FILES ${fm_completion}/_fathom DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${fm_completion}/fathom.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PROJECT_SOURCE_DIR}/docs/fathom.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
# Messages name pages of docs, and whoever has the package alone wants units and job scripts, too.
set(fm_doc ${CMAKE_INSTALL_DATADIR}/doc/fathom)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${fm_doc})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${fm_doc} PATTERN fathom.1 EXCLUDE)
foreach(folder systemd pbs slurm grafana)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/contrib/${folder} DESTINATION ${fm_doc}/contrib)
endforeach()

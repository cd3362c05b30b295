# MPI of any vendor: Open MPI, MPICH, Intel's and Cray's.  Where the compiler's wrapper is says
# where mpi.h is: Open MPI answers to --showme:incdirs, the others to -show.  Without a wrapper,
# pkg-config is asked, and a compiler that is itself the wrapper (Cray's cc) needs nothing.
# A wrapper without headers must be found out before find_package(MPI), which would end the configure.
function(fm_mpi_include_dirs out wrapper)
  execute_process(COMMAND ${wrapper} --showme:incdirs OUTPUT_VARIABLE dirs RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed EQUAL 0)
    execute_process(COMMAND ${wrapper} -show OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REGEX MATCHALL "-I *[^ ]+" words "${words}")
    list(TRANSFORM words REPLACE "^-I *" "" OUTPUT_VARIABLE dirs)
  else()
    separate_arguments(dirs)
  endif()
  set(${out} "${dirs}" PARENT_SCOPE)
endfunction()

# Sets MPI::MPI_C from what pkg-config knows.
function(fm_mpi_from_pkg_config)
  foreach(module ompi-c ompi mpich cray-mpich impi)
    pkg_check_modules(FM_MPI_PC QUIET IMPORTED_TARGET GLOBAL ${module})
    if(FM_MPI_PC_FOUND)
      add_library(MPI::MPI_C INTERFACE IMPORTED GLOBAL)
      target_link_libraries(MPI::MPI_C INTERFACE PkgConfig::FM_MPI_PC)
      set(MPI_C_VERSION "${module} ${FM_MPI_PC_VERSION}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

set(FM_HAVE_MPI OFF)
if(NOT FM_MPI)
  return()
endif()

include(CheckIncludeFile)
check_include_file(mpi.h FM_COMPILER_HAS_MPI) # the compiler is the wrapper
find_program(FM_MPICC NAMES mpicc mpiicx mpiicc)
if(FM_MPICC)
  fm_mpi_include_dirs(fm_mpi_dirs ${FM_MPICC})
  find_file(FM_MPI_H mpi.h PATHS ${fm_mpi_dirs} NO_DEFAULT_PATH)
endif()

if(FM_COMPILER_HAS_MPI OR FM_MPI_H)
  if(FM_MPI_H AND NOT FM_COMPILER_HAS_MPI)
    set(MPI_C_COMPILER ${FM_MPICC} CACHE FILEPATH "")
  endif()
  find_package(MPI COMPONENTS C)
  set(FM_HAVE_MPI ${MPI_C_FOUND})
else()
  fm_mpi_from_pkg_config()
  if(TARGET MPI::MPI_C)
    set(FM_HAVE_MPI ON)
  endif()
endif()

# The launcher beside the wrapper: mpirun.mpich of mpicc.mpich, where Debian has two MPIs.
set(FM_MPIRUN mpirun)
if(FM_HAVE_MPI AND FM_MPI_H)
  cmake_path(GET FM_MPICC FILENAME fm_wrapper)
  cmake_path(GET FM_MPICC PARENT_PATH fm_wrapper_dir)
  string(REGEX REPLACE "^mpi(cc|icx|icc)" "mpirun" fm_launcher ${fm_wrapper})
  if(EXISTS ${fm_wrapper_dir}/${fm_launcher})
    set(FM_MPIRUN ${fm_launcher})
  endif()
endif()

if(FM_MPI STREQUAL "ON" AND NOT FM_HAVE_MPI)
  message(FATAL_ERROR "MPI asked for but mpi.h not found: put mpicc into PATH or give -DFM_MPICC=... "
                      "(Debian: libopenmpi-dev or libmpich-dev)")
endif()

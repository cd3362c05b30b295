# Every library fathom links.  A missing one stops the configure with the
# name of its Debian package.
find_package(PkgConfig REQUIRED)

function(fm_need target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} not found (apt install ${package})")
  endif()
  set(${target}_VERSION "${${target}_VERSION}" PARENT_SCOPE)
endfunction()

fm_need(JANSSON jansson     libjansson-dev)
fm_need(PCRE2   libpcre2-8  libpcre2-dev)
fm_need(EVENT   libevent    libevent-dev)
fm_need(EVENT_TLS libevent_openssl libevent-dev)
fm_need(OPENSSL openssl     libssl-dev)
fm_need(HWLOC   hwloc       libhwloc-dev)
fm_need(EDIT    libedit     libedit-dev)
fm_need(OPENBLAS openblas   libopenblas-dev)
fm_need(LAPACKE lapacke     liblapacke-dev)
fm_need(LIBXC   libxc       libxc-dev)

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)

# Look for mpi.h before find_package(MPI): where the wrapper is installed
# without headers, find_package ends the configure even without REQUIRED.
set(FM_HAVE_MPI OFF)
if(FM_MPI)
  find_program(FM_MPICC mpicc)
  if(FM_MPICC)
    execute_process(COMMAND ${FM_MPICC} --showme:incdirs OUTPUT_VARIABLE fm_mpi_dirs
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    separate_arguments(fm_mpi_dirs)
    find_file(FM_MPI_H mpi.h PATHS ${fm_mpi_dirs} NO_DEFAULT_PATH)
    if(FM_MPI_H)
      find_package(MPI COMPONENTS C)
      set(FM_HAVE_MPI ${MPI_C_FOUND})
    endif()
  endif()
  if(FM_MPI STREQUAL "ON" AND NOT FM_HAVE_MPI)
    message(FATAL_ERROR "MPI asked for but mpi.h not found (apt install libopenmpi-dev)")
  endif()
endif()

include(cmake/cuda.cmake)

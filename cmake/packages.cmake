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
fm_need(XXHASH  libxxhash   libxxhash-dev)

# Tests need one library more; without it the program is built all the same.
set(FM_HAVE_TESTS OFF)
if(FM_TESTS STREQUAL "AUTO")
  pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET GLOBAL cmocka)
  set(FM_HAVE_TESTS ${CMOCKA_FOUND})
elseif(FM_TESTS)
  fm_need(CMOCKA cmocka libcmocka-dev)
  set(FM_HAVE_TESTS ON)
endif()
if(NOT FM_HAVE_TESTS)
  set(FM_EMULATOR OFF)
endif()

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)

include(cmake/mpi.cmake)
include(cmake/cuda.cmake)

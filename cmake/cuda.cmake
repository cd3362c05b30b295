# CUDA is optional.  With nvcc every kernel is compiled for sm_90a; with a C++
# compiler every kernel is tested over an emulator, on any x86-64 machine.
# Languages come before the first target: one created before
# CMAKE_CUDA_ARCHITECTURES is known fails at generate time.
include(CheckLanguage)

set(FM_HAVE_CUDA OFF)
if(FM_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90a-real)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(FM_HAVE_CUDA ON)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3 -lineinfo")
  elseif(FM_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CUDA asked for but nvcc not found (set CUDACXX, or add its directory to PATH)")
  endif()
endif()

set(FM_HAVE_EMULATOR OFF)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(FM_HAVE_EMULATOR ON)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_EXTENSIONS OFF)
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")
  endif()
endif()

# An executable or library that computes wherever this build can.
function(fm_link_backends target)
  if(FM_HAVE_CUDA AND NOT FM_SANITIZE)
    target_sources(${target} PRIVATE ${FM_BACKEND_CUDA_SOURCES} $<TARGET_OBJECTS:fm_cuda>)
    target_link_libraries(${target} PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
  else()
    target_link_libraries(${target} PRIVATE fm_backend_none)
  endif()
endfunction()

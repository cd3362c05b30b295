# Programs that are built here and run on another machine, which has a GPU, its
# driver and CUDA's libraries but few others: what is not CUDA's and not the C
# library's goes in whole, what nothing calls is left out.
#
#     fm_gpu_program(target)
function(fm_gpu_program target)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libgomp.a
                  OUTPUT_VARIABLE gomp OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_library(FM_JANSSON_STATIC libjansson.a)
  find_library(FM_PCRE2_STATIC libpcre2-8.a)
  set(whole ${FM_JANSSON_STATIC} ${FM_PCRE2_STATIC})
  if(IS_ABSOLUTE "${gomp}")
    list(APPEND whole ${gomp})
  endif()
  list(FILTER whole EXCLUDE REGEX "NOTFOUND")
  list(TRANSFORM whole PREPEND "LINKER:")
  # Whole archives before everything else: the shared ones behind find nothing to do.
  target_link_options(${target} BEFORE PRIVATE LINKER:--as-needed
                      LINKER:--push-state,--whole-archive ${whole} LINKER:--pop-state
                      -static-libstdc++ -static-libgcc)
endfunction()

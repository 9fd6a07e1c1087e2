# Sets FULCRUM_HAVE_CUDA: true where a CUDA compiler was found (and FULCRUM_ENABLE_CUDA is on). Included
# from the top-level list, because a language must be enabled above every target that uses it.
set(FULCRUM_HAVE_CUDA OFF)
if(FULCRUM_ENABLE_CUDA)
  # The toolkit's installer does not put nvcc on the path.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(FULCRUM_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
      PATH_SUFFIXES bin)
    if(FULCRUM_NVCC)
      set(CMAKE_CUDA_COMPILER ${FULCRUM_NVCC} CACHE FILEPATH "CUDA compiler")
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  find_package(CUDAToolkit QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-real;90-real;100-real;120-real")
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    # CMake 3.25 (Debian 12) does not know that nvcc >= 12 has C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(FULCRUM_HAVE_CUDA ON)
  else()
    message(STATUS "No CUDA compiler: kernels/ keeps its host references, replay/ says so at run time")
  endif()
endif()

# fulcrum_cuda_options(target): lines in profiles, warnings as errors, all kernels compiled in parallel.
function(fulcrum_cuda_options target)
  # Error messages name files of the repository, not of the machine that built it.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
    $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
    $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo --expt-relaxed-constexpr --extended-lambda -Xcompiler=-Wall,-Wextra>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${FULCRUM_WERROR}>>:-Werror all-warnings>)
endfunction()

# fulcrum_add_test(name SOURCES ... LIBS ... [LABELS ...]): one GoogleTest binary, one ctest entry.
# Labels: gpu needs a GPU; data needs the public tables named by FULCRUM_SILICON_DIR (skips itself
# without them).
if(FULCRUM_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR
      "fulcrum: GoogleTest is needed for the tests (Debian: apt-get install libgtest-dev), "
      "or configure with -DFULCRUM_BUILD_TESTS=OFF")
  endif()
endif()

function(fulcrum_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE FULCRUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  fulcrum_warnings(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 600)
endfunction()

# fulcrum_add_benchmark(name SOURCES ... LIBS ...): one Google Benchmark program, left out where the
# library is missing. CI builds it and runs it briefly, so that it keeps working; its times are read
# by people, on a quiet machine.
if(FULCRUM_BUILD_TESTS)
  find_package(benchmark QUIET)
endif()
function(fulcrum_add_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT benchmark_FOUND)
    message(STATUS "fulcrum: ${name} is left out (Debian: libbenchmark-dev)")
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} benchmark::benchmark benchmark::benchmark_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE FULCRUM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  fulcrum_warnings(${name})
  add_test(NAME ${name}_runs COMMAND ${name} --benchmark_min_time=0.01)
  set_tests_properties(${name}_runs PROPERTIES LABELS benchmark TIMEOUT 120)
endfunction()

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

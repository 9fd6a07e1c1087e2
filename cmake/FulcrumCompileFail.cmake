# fulcrum_add_compile_fail_tests(name SOURCE file): one ctest entry per case of `file`.
#
# The file holds `#ifdef CASE_<name>` blocks, each preceded by a line
#   // EXPECT <name>: <regular expression the compiler's message must match>
# Without any CASE_ macro the file is the control and must compile: it uses the same types rightly,
# so that a case can only fail for the reason it states.
function(fulcrum_add_compile_fail_tests name)
  cmake_parse_arguments(ARG "" "SOURCE" "" ${ARGN})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  set(compile ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -I${PROJECT_SOURCE_DIR} ${source})
  add_test(NAME ${name}_control COMMAND ${compile})
  set_tests_properties(${name}_control PROPERTIES LABELS text FIXTURES_SETUP ${name}_control)

  file(STRINGS ${source} expectations REGEX "^ *// EXPECT [a-z0-9_]+: ")
  file(STRINGS ${source} blocks REGEX "^ *#if(def)? CASE_|^ *#if defined\\(CASE_")
  list(LENGTH expectations num_expectations)
  list(LENGTH blocks num_blocks)
  if(NOT num_expectations EQUAL num_blocks OR num_blocks EQUAL 0)
    message(FATAL_ERROR "${source}: ${num_blocks} cases but ${num_expectations} EXPECT lines")
  endif()
  foreach(line IN LISTS expectations)
    string(REGEX MATCH "EXPECT ([a-z0-9_]+): (.*)$" unused "${line}")
    add_test(NAME ${name}_${CMAKE_MATCH_1}
      COMMAND ${CMAKE_COMMAND} "-DCOMPILE=${compile};-DCASE_${CMAKE_MATCH_1}"
        "-DEXPECTED=${CMAKE_MATCH_2}" -P ${PROJECT_SOURCE_DIR}/cmake/expect_compile_error.cmake)
    set_tests_properties(${name}_${CMAKE_MATCH_1} PROPERTIES
      LABELS text FIXTURES_REQUIRED ${name}_control)
  endforeach()
endfunction()

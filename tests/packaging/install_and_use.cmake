# Driver of the packaging test: install, build the consumer against the installed tree, run it, and
# run the installed program from another folder with no help from the environment.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output WORKING_DIRECTORY ${WORK_DIR})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}\n${output}")
  endif()
endfunction()

string(REPLACE "," ";" targets "${TARGETS}")
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(prefix ${WORK_DIR}/prefix)
unset(ENV{FULCRUM_DATA_DIR})

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  -DCMAKE_CXX_FLAGS=${CXX_FLAGS} "-DFULCRUM_TARGETS=${targets}")
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)

if("fulcrum_cli" IN_LIST targets)
  run(${prefix}/bin/fulcrum predict --json)
  # Broken scenarios in the installed data must be noticed: proof that this data was read.
  file(GLOB scenarios ${prefix}/share/fulcrum/data/scenarios/*.json)
  foreach(scenario IN LISTS scenarios)
    file(WRITE ${scenario} "{")
  endforeach()
  execute_process(COMMAND ${prefix}/bin/fulcrum predict RESULT_VARIABLE result OUTPUT_QUIET
    ERROR_QUIET)
  if(NOT result EQUAL 2)
    message(FATAL_ERROR "the installed program did not read its installed data (exit ${result})")
  endif()
endif()

# Runs COMPILE (a list); passes if it fails with a message that matches EXPECTED.
set(ENV{LC_ALL} C)
execute_process(COMMAND ${COMPILE} RESULT_VARIABLE result OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "this compiled, but must not: ${COMPILE}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "failed for another reason than \"${EXPECTED}\":\n${output}")
endif()

# Writes OUTPUT with the commit of SOURCE_DIR, at build time and only when it changed: a measurement must
# name the code that took it. "-dirty" marks uncommitted changes in kernels/ or replay/.
set(sha "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse HEAD WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
  if(code EQUAL 0)
    set(sha ${head})
    execute_process(COMMAND ${GIT_EXECUTABLE} status --porcelain -- kernels replay
                    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(sha "${sha}-dirty")
    endif()
  endif()
endif()
set(text "#pragma once\n#define FULCRUM_GIT_SHA \"${sha}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()

# fulcrum_warnings(target): the project's warning level for the host C++ of one target.
function(fulcrum_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
      # GCC 12 reports string concatenations falsely (GCC bug 105651).
      -Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FULCRUM_WERROR}>>:-Werror>)
endfunction()

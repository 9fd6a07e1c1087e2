# fulcrum_warnings(target): the project's warning level for the host C++ of one target.
#
# -Wrestrict is off for GCC 12: it reports impossible overlaps inside operator+(const char*,
# std::string&&) (GCC bug 105651, fixed in 13).
function(fulcrum_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FULCRUM_WERROR}>>:-Werror>)
endfunction()

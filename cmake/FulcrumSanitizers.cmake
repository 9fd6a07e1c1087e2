# Instruments every host C++ target: one uninstrumented library would hide its own errors.
if(FULCRUM_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fsanitize=address,undefined>)
endif()
# Coverage for libFuzzer and the same sanitizers; needs clang.
if(FULCRUM_FUZZ)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link,address,undefined>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fsanitize=address,undefined>)
endif()

# airlock_musl_executable(NAME SOURCE…): a tiny static program against musl.
#
# The stub is exec'ed once per routed program, so its start-up time is everybody's: static musl
# starts in 0.11 ms where static glibc needs 0.44. Debian ships musl as a C library only; the C++
# here is libstdc++'s headers (templates), compiled without exceptions, RTTI and libstdc++.a.
# base/freestanding.cc supplies the few symbols those templates refer to.
set(AIRLOCK_MUSL_ARCH ${CMAKE_SYSTEM_PROCESSOR})
set(AIRLOCK_MUSL_LIBRARY_DIR ${CMAKE_SYSROOT}/usr/lib/${AIRLOCK_MUSL_ARCH}-linux-musl)
if(NOT EXISTS ${AIRLOCK_MUSL_LIBRARY_DIR}/crt1.o)
  message(FATAL_ERROR "musl is missing: install musl-tools (.ci/aarch64-sysroot to cross-compile)")
endif()

# Kernel headers without glibc's beside them; tl::expected likewise.
set(AIRLOCK_MUSL_EXTRA ${PROJECT_BINARY_DIR}/musl-include)
file(MAKE_DIRECTORY ${AIRLOCK_MUSL_EXTRA})
foreach(folder linux asm-generic tl)
  file(CREATE_LINK ${CMAKE_SYSROOT}/usr/include/${folder} ${AIRLOCK_MUSL_EXTRA}/${folder} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_SYSROOT}/usr/include/${AIRLOCK_MUSL_ARCH}-linux-gnu/asm
                 ${AIRLOCK_MUSL_EXTRA}/asm SYMBOLIC)

set(AIRLOCK_LIBSTDCXX_FOLDERS "")
foreach(folder ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  if(folder MATCHES "c\\+\\+")
    list(APPEND AIRLOCK_LIBSTDCXX_FOLDERS ${folder})
  endif()
endforeach()
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir
                OUTPUT_VARIABLE AIRLOCK_CLANG_RESOURCES OUTPUT_STRIP_TRAILING_WHITESPACE)
set(cross_flags "")
if(CMAKE_CXX_COMPILER_TARGET)
  set(cross_flags --target=${CMAKE_CXX_COMPILER_TARGET} --sysroot=${CMAKE_SYSROOT})
endif()
execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${cross_flags} -print-libgcc-file-name
                OUTPUT_VARIABLE AIRLOCK_LIBGCC OUTPUT_STRIP_TRAILING_WHITESPACE)

function(airlock_musl_executable name)
  add_executable(${name} ${ARGN})
  target_compile_options(${name} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-sign-compare
    $<$<BOOL:${AIRLOCK_WERROR}>:-Werror>
    -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables -fno-stack-protector
    -fno-threadsafe-statics -ffunction-sections -fno-pie -Os
    -nostdinc -nostdinc++)
  foreach(folder ${AIRLOCK_LIBSTDCXX_FOLDERS} ${CMAKE_SYSROOT}/usr/include/${AIRLOCK_MUSL_ARCH}-linux-musl
                 ${AIRLOCK_CLANG_RESOURCES}/include ${AIRLOCK_MUSL_EXTRA})
    target_compile_options(${name} PRIVATE "SHELL:-isystem ${folder}")
  endforeach()
  target_compile_options(${name} PRIVATE "SHELL:-include ${PROJECT_SOURCE_DIR}/base/musl_config.h")
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set(dir ${AIRLOCK_MUSL_LIBRARY_DIR})
  target_link_options(${name} PRIVATE -static -nostdlib -nostartfiles
    -Wl,--gc-sections -Wl,-z,noexecstack -Wl,-z,noseparate-code -s ${dir}/crt1.o ${dir}/crti.o)
  target_link_libraries(${name} PRIVATE ${dir}/libc.a ${AIRLOCK_LIBGCC} ${dir}/crtn.o)
endfunction()

# airlock_options: warnings and sanitizers of every C++ target that may use the standard library.
add_library(airlock_options INTERFACE)
target_include_directories(airlock_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(airlock_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<BOOL:${AIRLOCK_WERROR}>:-Werror>)

if(AIRLOCK_SANITIZE)
  # -fno-sanitize=function must follow: clang 14 cannot instrument coroutines with it.
  target_compile_options(airlock_options INTERFACE
    -fsanitize=${AIRLOCK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    -fno-sanitize=function)
  target_link_options(airlock_options INTERFACE -fsanitize=${AIRLOCK_SANITIZE})
endif()

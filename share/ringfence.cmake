# CMake toolchain file: builds modules with `ringfence cc`.
#
#   cmake -S . -B build -DCMAKE_TOOLCHAIN_FILE=/usr/local/share/ringfence/ringfence.cmake -DBUILD_SHARED_LIBS=OFF
#
# The command is taken from the variable RINGFENCE (-D or environment), else found on PATH.
# A program becomes a script that starts the module beside it (NAME.rf) as if natively, so that CTest and whatever else a build
# starts find what they expect. -DRINGFENCE_WRAPPER="OPTIONS" gives other options of `ringfence run`, with commas between;
# -DRINGFENCE_WRAPPER=OFF makes plain modules, which CMake's own commands and tests start by `ringfence run`.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
# Not the host's system, although it looks like it: nothing built is to be run directly.
set(CMAKE_CROSSCOMPILING TRUE)

# A variable set here would hide what find_program finds in projects that ask for a CMake before 3.21.
if(NOT RINGFENCE AND DEFINED ENV{RINGFENCE})
  set(RINGFENCE "$ENV{RINGFENCE}")
endif()
if(NOT RINGFENCE)
  find_program(RINGFENCE ringfence)
endif()
if(NOT RINGFENCE)
  message(FATAL_ERROR "there is no ringfence command on PATH; name it: -DRINGFENCE=/path/to/ringfence")
endif()
set(RINGFENCE "${RINGFENCE}" CACHE FILEPATH "The ringfence command")
# CMake starts itself anew for its checks; they need the same command.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGFENCE)

set(CMAKE_C_COMPILER "${RINGFENCE}" cc)
set(CMAKE_CXX_COMPILER "${RINGFENCE}" c++)
set(CMAKE_ASM_COMPILER "${RINGFENCE}" cc)
# CMake asks an assembler for its name in a way that drops the second word.
set(CMAKE_ASM_COMPILER_ID GNU)
if(NOT DEFINED RINGFENCE_WRAPPER)
  set(RINGFENCE_WRAPPER "--native")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RINGFENCE_WRAPPER)
if(RINGFENCE_WRAPPER)
  set(CMAKE_EXE_LINKER_FLAGS_INIT "--wrapper=${RINGFENCE_WRAPPER}")
  # Starts the script. Projects that write the emulator into their tests name programs as they lie below the directory of the test.
  set(RINGFENCE_START "${CMAKE_BINARY_DIR}/CMakeFiles/ringfence-start.sh")
  file(WRITE "${RINGFENCE_START}" [=[
program=$1
shift
if [ -f "./$program" ] && [ -x "./$program" ]; then program=./$program; fi
exec "$program" "$@"
]=])
  set(CMAKE_CROSSCOMPILING_EMULATOR /bin/sh "${RINGFENCE_START}")
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR "${RINGFENCE}" run)
endif()

# Libraries and headers of the host's are of no use; programs (code generators) are.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
if(NOT CMAKE_FIND_ROOT_PATH)
  set(CMAKE_FIND_ROOT_PATH "${CMAKE_CURRENT_LIST_DIR}")
endif()

# There are no position-dependent modules.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(THREADS_PREFER_PTHREAD_FLAG OFF)

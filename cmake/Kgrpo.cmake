# The kinds of target of this project, so that each folder's CMakeLists.txt is a list of files and no more.
find_program(KGRPO_CCACHE ccache)
if(KGRPO_CCACHE)
  # What ccache wants to know of a unit with a precompiled header (kgrpo_test_headers).
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${KGRPO_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${KGRPO_CCACHE}")
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(KGRPO_PLUGIN_DIRECTORY "${CMAKE_BINARY_DIR}/lib/kgrpo")

# What every target is compiled with. -ffp-contract=off: results must not depend on which function the compiler chose to fuse.
add_library(kgrpo_options INTERFACE)
# -Wno-restrict: g++ 12 warns wrongly of `"literal" + std::string` (GCC bug 105651).
target_compile_options(kgrpo_options INTERFACE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> -ffp-contract=off)
# Of core/ only what plugins may use; the rest is the host's (kgrpo_host_library). Of plugins/ each target sees its own folder and those
# of the libraries it links (kgrpo_header_root). tests/boundary holds this.
target_include_directories(kgrpo_options INTERFACE
  "${PROJECT_SOURCE_DIR}/core/abi" "${PROJECT_SOURCE_DIR}/core/sdk" "${PROJECT_SOURCE_DIR}/core/support")
if(KGRPO_SANITIZE)
  target_compile_options(kgrpo_options INTERFACE -fsanitize=${KGRPO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(kgrpo_options INTERFACE -fsanitize=${KGRPO_SANITIZE})
endif()

# Several sources of a target as one unit: a first build parses headers once for all of them. Off by default: a change to one file would
# compile its neighbours too, and compile_commands.json would name no source. Sources with options of their own stay alone.
option(KGRPO_UNITY "Compile several files of a target as one unit (scripts/setup does where no tests are built)" OFF)
set(KGRPO_UNITY_BATCH 16 CACHE STRING "How many files such a unit has at most")

# kgrpo_unity(TARGET): for a target whose files share no name that only one of them should see.
function(kgrpo_unity target)
  if(KGRPO_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${KGRPO_UNITY_BATCH})
    # In such a unit g++ takes a file's own type for one of a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# kgrpo_header_root(VARIABLE NAME [HEADER...]): an include path by which "NAME/..." is plugins/NAME/... and nothing else of plugins/ is found;
# with headers, those of plugins/NAME alone. Headers are written from plugins/ on, so the path is a folder that holds a link.
function(kgrpo_header_root variable name)
  list(JOIN ARGN "+" headers)
  set(root "${CMAKE_BINARY_DIR}/include/plugins/${name}")
  if(ARGN)
    set(root "${root}+${headers}")
  endif()
  file(MAKE_DIRECTORY "${root}")
  if(ARGN)
    foreach(header IN LISTS ARGN)
      file(MAKE_DIRECTORY "${root}/${name}")
      file(CREATE_LINK "${PROJECT_SOURCE_DIR}/plugins/${name}/${header}" "${root}/${name}/${header}" SYMBOLIC)
    endforeach()
  else()
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/plugins/${name}" "${root}/${name}" SYMBOLIC)
  endif()
  set(${variable} "${root}" PARENT_SCOPE)
endfunction()

# kgrpo_own_headers(TARGET PUBLIC|PRIVATE [HEADER...]): a target of a folder below plugins/NAME sees "NAME/...".
function(kgrpo_own_headers target scope)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/plugins" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT folder MATCHES "^\\.\\.")
    string(REGEX REPLACE "/.*" "" name "${folder}")
    kgrpo_header_root(root "${name}" ${ARGN})
    target_include_directories(${target} ${scope} "${root}")
  endif()
endfunction()

# kgrpo_library(NAME SOURCES ... LINK ... [HEADERS header...]): a static library, position independent. HEADERS: what it
# and those who link it see of its folder in plugins/; default: all.
function(kgrpo_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;HEADERS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC kgrpo_options ${arg_LINK})
  kgrpo_own_headers(${name} PUBLIC ${arg_HEADERS})
  kgrpo_unity(${name})
endfunction()

# For what waits on others, and for texts: -O1 takes two thirds of -O3's time. At -O1 g++ 12 warns wrongly of the standard library's own copies.
function(kgrpo_quick_to_compile target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>)
endfunction()

# kgrpo_host_library(NAME SOURCES ... LINK ...): the same for the host, whose own headers it and what links it see.
function(kgrpo_host_library name)
  kgrpo_library(${name} ${ARGN})
  kgrpo_quick_to_compile(${name})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/core")
endfunction()

# kgrpo_plugin(NAME SOURCES ... LINK ...): build/lib/kgrpo/NAME.so, which exports kgrpo_plugin_entry and nothing else.
function(kgrpo_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} MODULE ${arg_SOURCES})
  set_property(GLOBAL APPEND PROPERTY KGRPO_PLUGINS ${name})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${KGRPO_PLUGIN_DIRECTORY}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${name} PRIVATE kgrpo_options ${arg_LINK})
  target_compile_definitions(${name} PRIVATE KGRPO_VERSION="${PROJECT_VERSION}")
  kgrpo_own_headers(${name} PRIVATE)
  kgrpo_unity(${name})
  target_link_options(${name} PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map")
  set_target_properties(${name} PROPERTIES LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/plugin.map")
  if(NOT KGRPO_SANITIZE)  # the sanitizer runtime is found in the executable, so its symbols stay undefined here
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()

# kgrpo_shipped_plugins(VARIABLE): the targets of plugins/; the tests have plugins of their own.
function(kgrpo_shipped_plugins variable)
  get_property(plugins GLOBAL PROPERTY KGRPO_PLUGINS)
  set(shipped "")
  foreach(plugin IN LISTS plugins)
    get_target_property(folder ${plugin} SOURCE_DIR)
    string(FIND "${folder}" "${PROJECT_SOURCE_DIR}/plugins/" at)
    if(at EQUAL 0)
      list(APPEND shipped ${plugin})
    endif()
  endforeach()
  set(${variable} ${shipped} PARENT_SCOPE)
endfunction()

# build/lib/kgrpo/shipped_plugins: the name of each plugin of plugins/, one a line, built or not. The host's error for a missing plugin reads
# it (core/plugin/loader.h). It is not installed: an installed kgrpo has all of them.
function(kgrpo_write_shipped_plugins)
  kgrpo_shipped_plugins(plugins)
  list(JOIN plugins "\n" lines)
  file(CONFIGURE OUTPUT "${KGRPO_PLUGIN_DIRECTORY}/shipped_plugins" CONTENT "${lines}\n")
endfunction()

# kgrpo_precompile(NAME): tests/test.h, compiled once for all tests with the same options: kgrpo_test_headers, and
# kgrpo_computing_test_headers with -O1 (KGRPO_UNITY). An executable, since its options must be the tests'.
function(kgrpo_precompile name)
  if(TARGET ${name})
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/tests/headers.cc" CONTENT "int main() {}\n")
  add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/tests/headers.cc")
  target_link_libraries(${name} PRIVATE kgrpo_options GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/test.h")
  kgrpo_test_options(${name})
  if(name STREQUAL "kgrpo_computing_test_headers")
    kgrpo_quick_to_compile(${name})
  endif()
endfunction()

function(kgrpo_test_options name)
  target_compile_definitions(${name} PRIVATE
    KGRPO_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KGRPO_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0> $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# kgrpo_test(NAME [COMPUTES] SOURCES ... LINK ...): a GoogleTest program, build/tests/NAME; one ctest entry for the whole program.
# COMPUTES: its own code takes seconds, so it is compiled with -O1. The others wait for what they test: -O0 saves a third of their compilation.
function(kgrpo_test name)
  cmake_parse_arguments(arg "COMPUTES" "" "SOURCES;LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kgrpo_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  kgrpo_unity(${name})
  kgrpo_test_options(${name})
  set(headers kgrpo_test_headers)
  if(arg_COMPUTES)
    kgrpo_quick_to_compile(${name})
    set(headers kgrpo_computing_test_headers)
  endif()
  if(KGRPO_UNITY)
    kgrpo_precompile(${headers})
    target_precompile_headers(${name} REUSE_FROM ${headers})
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# kgrpo_test_data(NAME TEST...): tests/golden/NAME.tar.xz, unpacked into build/test_data/NAME before the tests are built. Look into it there;
# tests/golden/pack.py and the make_*.py in tests/golden/NAME change it.
function(kgrpo_test_data name)
  set(packed "${PROJECT_SOURCE_DIR}/tests/golden/${name}.tar.xz")
  set(folder "${CMAKE_BINARY_DIR}/test_data")
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${folder}/${name}.unpacked"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${name}"
    COMMAND "${CMAKE_COMMAND}" -E tar xf "${packed}" --touch
    COMMAND "${CMAKE_COMMAND}" -E touch "${name}.unpacked"
    DEPENDS "${packed}" WORKING_DIRECTORY "${folder}" VERBATIM)
  add_custom_target(test_data_${name} DEPENDS "${folder}/${name}.unpacked")
  foreach(test IN LISTS ARGN)
    add_dependencies(${test} test_data_${name})
  endforeach()
endfunction()

# kgrpo_source_digest(TARGET FOLDER...): source_digest.h for the target, which defines KGRPO_SOURCE_DIGEST, the SHA-256 of all
# sources below the folders, but for those in folders named report: how an evaluation is shown is no part of it.
function(kgrpo_source_digest target)
  set(patterns)
  foreach(folder IN LISTS ARGN)
    foreach(kind IN ITEMS cc h cu inc yaml map list)
      list(APPEND patterns "${folder}/*.${kind}")
    endforeach()
    file(GLOB standard_headers CONFIGURE_DEPENDS "${folder}/*/host_include_std/*")  # they have no suffix
    list(APPEND patterns ${standard_headers})
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "/report/")
  list(JOIN sources "\n" lines)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/source_digest_files.txt" CONTENT "${lines}\n")
  add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/source_digest.h"
    COMMAND ${CMAKE_COMMAND} -DLIST=${CMAKE_CURRENT_BINARY_DIR}/source_digest_files.txt
      -DOUTPUT=${CMAKE_CURRENT_BINARY_DIR}/source_digest.h -P "${PROJECT_SOURCE_DIR}/cmake/SourceDigest.cmake"
    DEPENDS ${sources} "${CMAKE_CURRENT_BINARY_DIR}/source_digest_files.txt" "${PROJECT_SOURCE_DIR}/cmake/SourceDigest.cmake" VERBATIM)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/source_digest.h")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

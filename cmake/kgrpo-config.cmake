# find_package(kgrpo): for plugins built outside kgrpo's tree. In an installed kgrpo and, as cmake/, in a checkout.
#
#   find_package(kgrpo REQUIRED)                        # -Dkgrpo_ROOT=/path/to/kgrpo where it is not found
#   kgrpo_add_plugin(my_reward SOURCES my_reward.cc)    # my_reward.so, in the build folder
#   enable_testing()
#   kgrpo_test_plugin(my_reward)                        # ctest: `kgrpo-host plugins validate` of it
#
# kgrpo::sdk are the headers: <kgrpo/abi.h> and its kin for C, <kgrpo/sdk/plugin.h> for C++ (which wants nlohmann_json).
# kgrpo::support, of find_package(kgrpo REQUIRED COMPONENTS support), is a static library in C++20 that the shipped plugins use too:
# <kgrpo/support/...>, SHA-256, SQLite, templates, evaluations and figures as text. It wants OpenSSL, SQLite 3 and nlohmann_json.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/../core/abi/kgrpo/abi.h")
  get_filename_component(kgrpo_source "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
  set(kgrpo_INCLUDE_DIRS "${kgrpo_source}/core/abi" "${kgrpo_source}/core/sdk")
  set(kgrpo_SUPPORT_INCLUDE_DIRS "${kgrpo_source}/core/support")
  set(kgrpo_SUPPORT_LIBRARY "${kgrpo_source}/build/core/support/libkgrpo_support.a")
else()
  get_filename_component(kgrpo_INCLUDE_DIRS "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
  set(kgrpo_SUPPORT_INCLUDE_DIRS "${kgrpo_INCLUDE_DIRS}")
  get_filename_component(kgrpo_SUPPORT_LIBRARY "${CMAKE_CURRENT_LIST_DIR}/../../libkgrpo_support.a" ABSOLUTE)
endif()
set(kgrpo_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

if(NOT TARGET kgrpo::sdk)
  add_library(kgrpo::sdk INTERFACE IMPORTED)
  set_target_properties(kgrpo::sdk PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kgrpo_INCLUDE_DIRS}")
endif()

if("support" IN_LIST kgrpo_FIND_COMPONENTS AND NOT TARGET kgrpo::support)
  if(EXISTS "${kgrpo_SUPPORT_LIBRARY}")
    include(CMakeFindDependencyMacro)
    find_dependency(OpenSSL COMPONENTS Crypto)
    find_dependency(SQLite3)
    find_dependency(nlohmann_json)
    add_library(kgrpo::support STATIC IMPORTED)
    set_target_properties(kgrpo::support PROPERTIES
      IMPORTED_LOCATION "${kgrpo_SUPPORT_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${kgrpo_SUPPORT_INCLUDE_DIRS}"
      INTERFACE_COMPILE_FEATURES cxx_std_20
      INTERFACE_LINK_LIBRARIES "kgrpo::sdk;OpenSSL::Crypto;SQLite::SQLite3;nlohmann_json::nlohmann_json")
  elseif(kgrpo_FIND_REQUIRED_support)
    set(kgrpo_FOUND FALSE)
    set(kgrpo_NOT_FOUND_MESSAGE "there is no ${kgrpo_SUPPORT_LIBRARY}: install kgrpo-dev, or build the target kgrpo_support")
    return()
  endif()
endif()

# kgrpo_add_plugin(NAME SOURCES ... [LINK ...]): NAME.so, which exports kgrpo_plugin_entry and nothing else and has no undefined
# symbols, so that mistakes show when it is built and not when it is loaded.
function(kgrpo_add_plugin name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "kgrpo_add_plugin(${name}): SOURCES is missing")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kgrpo::sdk ${arg_LINK})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  target_link_options(${name} PRIVATE "LINKER:--version-script=${kgrpo_PLUGIN_MAP}" "LINKER:-z,defs")
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}" POSITION_INDEPENDENT_CODE ON
    C_STANDARD 11 CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# kgrpo_test_plugin(NAME): the test `validate`, in which the host calls every function with made-up requests, from two threads too.
# KGRPO_HOST is the host, for further tests; where there is none, the test fails.
find_program(KGRPO_HOST kgrpo-host HINTS "${kgrpo_ROOT}/bin" "${kgrpo_ROOT}/build/bin")
function(kgrpo_test_plugin name)
  if(NOT KGRPO_HOST)
    message(WARNING "kgrpo-host is not on PATH: the test of ${name} will fail. -DKGRPO_HOST=/path/to/kgrpo-host")
  endif()
  add_test(NAME validate COMMAND "${KGRPO_HOST}" plugins validate "$<TARGET_FILE:${name}>")
endfunction()

# No source of plugins/ includes by "../": such a path leads to any folder, whatever the include paths are.
#   cmake -D FOLDER=plugins -P no_parent_folders.cmake
cmake_minimum_required(VERSION 3.20)
file(GLOB_RECURSE files RELATIVE "${FOLDER}" "${FOLDER}/*.cc" "${FOLDER}/*.cu" "${FOLDER}/*.h" "${FOLDER}/*.cuh" "${FOLDER}/*.inc")
if(NOT files)
  message(FATAL_ERROR "${FOLDER}: no sources")
endif()
foreach(file IN LISTS files)
  file(STRINGS "${FOLDER}/${file}" includes REGEX "^ *# *include +\"[^\"]*\\.\\./")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^ *# *include +" "" include "${include}")
    message(SEND_ERROR "${file} includes ${include}: write the path from plugins/ on, of a folder whose library its target links")
  endforeach()
endforeach()

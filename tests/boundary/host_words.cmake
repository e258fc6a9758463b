# The host knows no plugin and no word of CUDA: its sources (core/ but for abi/ and sdk/, which plugins are written against, and the
# programs of its commands in tools/) name none of plugins/ and none of the words below. What an evaluator measures reaches the host as
# declared metrics, remarks, diagnosis and reports; which option a command sets, as a mark in the options' schema.
#   cmake -D CORE=core -D PLUGINS=plugins [-D EXCEPTIONS=FILE.cmake] -P host_words.cmake
cmake_minimum_required(VERSION 3.20)

# In lower case, as regular expressions over text in lower case.
set(words cuda nvidia gpu nvcc nvrtc nsight cubin occupancy roofline multiprocessor "__global__" "__syncthreads" "shared memory"
  "bank conflict" "tensor core" "[^a-z]warps?[^a-z]" "[^a-z]ptx[^a-z]" "[^a-z]sass[^a-z]" "[^a-z]ncu[^a-z]" "[^a-z]dram[^a-z]"
  "[^a-z]sms?[^a-z]" "[^a-z0-9]l2[^a-z0-9]" "[^a-z]registers?[^a-z]" h100 h200)

file(GLOB lists "${PLUGINS}/*/CMakeLists.txt")
foreach(list IN LISTS lists)
  file(STRINGS "${list}" begins REGEX "^ *kgrpo_plugin\\(")
  foreach(line IN LISTS begins)
    string(REGEX REPLACE "^ *kgrpo_plugin\\(([a-z0-9_]+).*" "\\1" name "${line}")
    list(APPEND words "[^a-z0-9_]${name}[^a-z0-9_]")
  endforeach()
endforeach()

# FILE WORD REASON: the exceptions. One that is no longer needed fails too.
include("${EXCEPTIONS}")

file(GLOB_RECURSE files RELATIVE "${CORE}" "${CORE}/*.cc" "${CORE}/*.h" "${CORE}/*.js" "${CORE}/*.html" "${CORE}/*.css")
foreach(program compare eval optimize report serve)
  file(GLOB_RECURSE more RELATIVE "${CORE}" "${CORE}/../tools/${program}/*.cc" "${CORE}/../tools/${program}/*.h")
  list(APPEND files ${more})
endforeach()
list(FILTER files EXCLUDE REGEX "^(abi|sdk)/")
if(NOT files)
  message(FATAL_ERROR "${CORE}: no sources")
endif()
foreach(file IN LISTS files)
  file(READ "${CORE}/${file}" text)
  string(TOLOWER "\n${text}\n" text)
  foreach(word IN LISTS words)
    string(REGEX MATCH "[^\n]*${word}[^\n]*" line "${text}")
    string(REGEX REPLACE "\\[[^]]*\\]\\??" "" plain "${word}")
    if(line STREQUAL "")
      continue()
    elseif("${file} ${plain}" IN_LIST allowed)
      list(APPEND used "${file} ${plain}")
    else()
      message(SEND_ERROR "core/${file} says \"${plain}\", which is for plugins to know: ${line}")
    endif()
  endforeach()
endforeach()
foreach(exception IN LISTS allowed)
  if(NOT exception IN_LIST used)
    message(SEND_ERROR "host_words_allowed.cmake: \"${exception}\" is no longer there: take the exception out")
  endif()
endforeach()

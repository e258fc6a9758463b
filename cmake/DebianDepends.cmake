# Read by cpack before it makes a package: the Debian packages that hold the libraries which the built programs ask for by
# name. dpkg-shlibdeps would do, but stops at libtorch, which is no package's.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
execute_process(
  COMMAND bash -c [[
    set -euo pipefail
    known=$(ldconfig -p)
    find "$1/bin" "$1/lib/kgrpo" -type f \( -perm -u+x -o -name '*.so*' \) | while read -r file; do
      needed=$(objdump -p "$file" 2>/dev/null | awk '$1 == "NEEDED" {print $2}') || continue
      for name in $needed; do awk -v name="$name" '$1 == name && /x86-64|AArch64/ && !found {print $NF; found = 1}' <<< "$known"; done
    done | sort -u | xargs -r readlink -f | sort -u | while read -r library; do
      # Some packages say /lib where the file is in /usr/lib.
      dpkg -S "$library" 2>/dev/null || dpkg -S "${library#/usr}" 2>/dev/null || true
    done | cut -d: -f1 | sort -u
  ]] bash "${CPACK_KGRPO_BUILD}"
  OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE result)
if(result OR NOT packages MATCHES "libc6")
  message(FATAL_ERROR "the packages that the libraries are from cannot be told (dpkg -S, objdump): ${result}")
endif()
string(REPLACE "\n" ", " CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "${packages}, bubblewrap, python3")

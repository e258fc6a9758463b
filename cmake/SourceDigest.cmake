# Writes OUTPUT, a header that defines KGRPO_SOURCE_DIGEST: one SHA-256 over the files named in LIST, a line each. Run by
# `cmake -P` when one of them changes, so that what was computed by other sources is recognised as such.
file(STRINGS "${LIST}" files)
set(digests "")
foreach(file IN LISTS files)
  file(SHA256 "${file}" digest)
  string(APPEND digests "${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
file(WRITE "${OUTPUT}" "#define KGRPO_SOURCE_DIGEST \"${digest}\"\n")

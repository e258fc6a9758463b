// Shared by the tests of this folder: the plugin of tests/fixtures, and structs at the end of readable memory.
#ifndef KGRPO_TESTS_PLUGIN_IN_PROCESS_H
#define KGRPO_TESTS_PLUGIN_IN_PROCESS_H

#include <sys/mman.h>
#include <unistd.h>

#include "base/services.h"
#include "plugin/library.h"
#include "test.h"

namespace kgrpo::test {

// Folders of the fixtures: sound plugins, and broken ones.
inline const std::filesystem::path kGood = std::filesystem::path(KGRPO_BINARY_DIR) / "tests" / "plugins";
inline const std::filesystem::path kBad = std::filesystem::path(KGRPO_BINARY_DIR) / "tests" / "bad_plugins";

inline const PluginLibrary& Fakes() {
  static const PluginLibrary library(kGood / "fakes.so");
  return library;
}

// A test with a host for its plugin instances.
class InstancesTest : public testing::Test {
 protected:
  HostServices services_{{}};
  const kgrpo_host* host_ = services_.ForInstance("test");
};

// A struct of `size` bytes, as the other side may have compiled it, at the end of a page before an unreadable one:
// reading beyond its size, rounded up to 8 bytes, crashes. struct_size is set to `size`.
template <typename T>
class AtPageEnd {
 public:
  AtPageEnd(const T& value, size_t size) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    length_ = 2 * page;
    memory_ = static_cast<char*>(mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(memory_ + page, page, PROT_NONE);
    char* place = memory_ + page - (size + 7) / 8 * 8;
    std::memset(place, 0xEE, (size + 7) / 8 * 8);
    std::memcpy(place, &value, std::min(size, sizeof value));
    object_ = reinterpret_cast<T*>(place);
    object_->struct_size = static_cast<uint32_t>(size);
  }
  ~AtPageEnd() { munmap(memory_, length_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;

  T* get() const { return object_; }
  const T& operator*() const { return *object_; }

 private:
  size_t length_;
  char* memory_;
  T* object_;
};

}  // namespace kgrpo::test
#endif

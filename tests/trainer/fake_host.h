// fake_host.h - a kgrpo_host for tests: random numbers by a hash, recorded log lines and device locks, and a flag that
// cancels.
#ifndef KGRPO_TESTS_TRAINER_FAKE_HOST_H
#define KGRPO_TESTS_TRAINER_FAKE_HOST_H
#include <kgrpo/draft/collective.h>
#include <kgrpo/host.h>
#include <kgrpo/sdk/text.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kgrpo::testing {

class FakeHost {
 public:
  explicit FakeHost(uint64_t seed = 0) : seed_(seed) {
    api_.struct_size = sizeof(api_);
    api_.log = [](void* context, uint32_t, kgrpo_str message) { Self(context).lines.push_back(Copy(message)); };
    api_.declare_metric = [](void* context, const kgrpo_metric_declaration* declaration) -> kgrpo_error* {
      Self(context).declared.push_back(
          {Copy(declaration->name), Copy(declaration->label), Copy(declaration->group), declaration->direction});
      return nullptr;
    };
    api_.add_metric = [](void*, kgrpo_str, double) {};
    api_.lock_device = [](void* context, kgrpo_str device) -> kgrpo_error* {
      Self(context).locks.push_back("lock " + Copy(device));
      return nullptr;
    };
    api_.unlock_device = [](void* context, kgrpo_str device) {
      Self(context).locks.push_back("unlock " + Copy(device));
    };
    api_.cancelled = [](void* context) { return Self(context).cancel ? 1 : 0; };
    api_.random = [](void* context, const uint64_t* key, size_t size, uint64_t index) {
      uint64_t hash = Self(context).seed_;
      for (size_t i = 0; i < size; ++i) hash = Mix(hash ^ key[i]);
      return Mix(hash ^ index);
    };
    host_ = {this, [](void* context, kgrpo_str id) -> const void* {
               if (View(id) == KGRPO_COLLECTIVE_INTERFACE) return Self(context).collective;
               return View(id) == KGRPO_HOST_INTERFACE ? &Self(context).api_ : nullptr;
             }};
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  const kgrpo_host* get() const { return &host_; }

  struct Declared {
    std::string name, label, group;
    uint32_t direction;
  };

  std::vector<std::string> lines;
  std::vector<Declared> declared;  // metrics, in order
  std::vector<std::string> locks;  // "lock cpu", "unlock cpu", in the order of the calls
  bool cancel = false;
  const kgrpo_collective_interface* collective = nullptr;  // its context is this object; see thread_ranks.h
  void* ranks = nullptr;                                   // the ThreadRanks that made the collective
  uint32_t rank = 0;

 private:
  static FakeHost& Self(void* context) { return *static_cast<FakeHost*>(context); }
  // The finaliser of splitmix64 (Steele, Lea and Flood 2014).
  static uint64_t Mix(uint64_t value) {
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  kgrpo_host host_ = {};
  kgrpo_host_interface api_ = {};
  uint64_t seed_;
};

}  // namespace kgrpo::testing
#endif

// Writes one generated kernel: its values, the statements that compute them, and the stores at its end. Used by
// kernel_generator.cc and programs.cc.
#ifndef KGRPO_TESTS_SIMT_GENERATED_BUILDER_H_
#define KGRPO_TESTS_SIMT_GENERATED_BUILDER_H_

#include <string>
#include <vector>

#include "kernel_generator.h"
#include "operations.h"

namespace kgrpo::generated {

// A random number generator with the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

const char* CppType(char type);  // `type`: a letter of Operation

class Builder {
 public:
  Builder(uint64_t number, Kind kind);

  // Adds `count` values by random operations of the kernel's kind.
  void Straight(int count);
  // Adds a value of `type`, which is also a result. `text`: its declaration and statements, with $ for its name.
  std::string Add(char type, const std::string& text, const std::string& description, double ulps = 0,
                  double absolute = 0);
  // Adds a value that an expression gives.
  std::string AddExpression(char type, const std::string& expression, double ulps = 0, double absolute = 0);
  // An expression of `type` by a random operation of `list` on existing values.
  std::string Expression(const std::vector<Operation>& list, char type);
  // An existing value of the type, or an input: always if there is no value yet, otherwise sometimes.
  std::string Value(char type);
  std::string Number(uint64_t below) { return std::to_string(random.Below(below)); }
  void Line(const std::string& text) { body_ += "  " + text + "\n"; }
  void Declare(const std::string& text) { before_ += text + "\n"; }
  GeneratedKernel Finish();

  Random random;
  GeneratedKernel kernel;
  const std::vector<Operation> operations;

 private:
  std::string Fill(const Operation& operation);
  struct Value_ {
    char type;
    std::string name;
  };
  std::vector<Value_> values_;  // values that operations may use
  std::vector<std::string> stored_;
  std::string before_, body_;
  int inputs_ = 0;
};

void WriteControl(Builder& builder);
void WriteWarp(Builder& builder);
void WriteShared(Builder& builder);
void WriteAtomic(Builder& builder);
void WriteMemory(Builder& builder);
void WriteMatrix(Builder& builder);

}  // namespace kgrpo::generated
#endif  // KGRPO_TESTS_SIMT_GENERATED_BUILDER_H_

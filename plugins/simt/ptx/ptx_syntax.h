// The syntax of a PTX module: what the parser reads and the lowering turns into a Program. Views point into the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::simt {

// The type of a register or a variable's element.
enum class Type : uint8_t {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kNone
};
uint32_t TypeBytes(Type type);  // kPred 1
bool TypeIsSigned(Type type);
// The type that a ".u32" names, kNone where it names none.
Type TypeByName(std::string_view dotted);

// A place in the CUDA source; line 0 is unknown.
struct SourceLine {
  uint16_t file = 0;  // index in PtxModule::files
  int32_t line = 0;
};

// An operand as written.
struct Arg {
  enum class Kind : uint8_t { kRegister, kSpecial, kImmediate, kSymbol, kAddress, kVector, kSink };
  enum class Number : uint8_t { kInteger, kFloat, kDouble };
  Kind kind = Kind::kSink;
  Number number = Number::kInteger;
  bool negated = false;       // !%p
  int reg = -1;               // kRegister, kAddress with a register base
  int second = -1;            // the register after '|'
  bool second_sink = false;   // '|_'
  std::string_view symbol;    // kSpecial, kSymbol, kAddress with a symbol base
  int64_t offset = 0;         // kAddress, kSymbol
  uint64_t bits = 0;          // kImmediate: two's complement, or the bits of a float
  std::string_view selector;  // kRegister of a video instruction: the "b0" of %r1.b0
  std::vector<Arg> elements;  // kVector; of an address of an image, the coordinates
};

struct Statement {
  std::string_view opcode;  // "ld.global.v4.f32"; empty where only a label stands
  int predicate = -1;       // register of @%p
  bool predicate_negated = false;
  SourceLine where;
  int ptx_line = 0;
  std::vector<Arg> args;
  // call: results and arguments are names of .param variables
  std::string_view callee;
  int callee_register = -1;  // of a call through a pointer
  std::vector<std::string_view> results, arguments;
  int label = -1;                // index in Function::labels that stands before this statement, -1 where none
  bool no_unroll = false;        // the head of a loop that ptxas shall not unroll
  std::vector<int> more_labels;  // further labels at the same place
};

// A variable of a module or a function.
struct Variable {
  enum class Space : uint8_t { kGlobal, kConst, kShared, kLocal, kParam };
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  std::string_view name;
  uint32_t align = 1;
  uint64_t bytes = 0;  // 0: extern shared, sized at launch
  bool is_extern = false;
  std::vector<uint8_t> initial;  // empty: zero
  struct Reference {
    uint64_t offset;
    std::string_view symbol;
    int64_t addend;
    bool generic;
  };
  std::vector<Reference> references;  // addresses within initial
};

struct BranchTable {
  std::string_view name;
  std::vector<std::string_view> targets;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Variable> results, parameters;
  std::vector<Variable> variables;  // .local, .shared, .param of the body
  std::vector<Type> registers;      // of every scope; of ranges those that are mentioned
  std::vector<std::string_view> labels;
  std::vector<BranchTable> tables;
  std::vector<Statement> body;
  uint32_t max_threads = 0, min_blocks = 0;
  int ptx_line = 0;
  std::string refused;  // the first thing in it that is not interpreted, as Refusal has it; then the body is not parsed
};

struct PtxModule {
  std::vector<std::string> files;  // by .file number
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

// Parses PTX. Throws kgrpo::Error (see Module::Parse). The views of the result point into `text`.
PtxModule ParsePtx(std::string_view text);

// The message for something that is not interpreted: "FILE:LINE: WHAT is not supported by the GPU interpreter".
std::string Refusal(const PtxModule& module, const SourceLine& where, int ptx_line, const std::string& what);
// Throws that error.
[[noreturn]] void Refuse(const PtxModule& module, const SourceLine& where, int ptx_line, const std::string& what);

}  // namespace kgrpo::simt

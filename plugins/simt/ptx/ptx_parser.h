// A recursive-descent parser for the PTX that nvcc and NVRTC emit. Callers use ParsePtx of ptx_syntax.h; the members
// are defined in ptx_parser.cc and the ptx_parser_*.cc, by what they parse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simt/ptx/ptx_lexer.h"
#include "simt/ptx/ptx_syntax.h"

namespace kgrpo::simt {

class Parser {
 public:
  // `own_file`: as in Module::Parse.
  explicit Parser(std::string_view text, std::string_view own_file = {}) : lexer_(text) {
    ScanFiles(text);
    if (!own_file.empty() && module_.files.size() < 65535) {
      own_file_ = static_cast<uint16_t>(module_.files.size());
      module_.files.emplace_back(own_file);
    }
    ScanNames(text);
  }
  PtxModule Run();

 private:
  // The registers of one pair of braces.
  struct Scope {
    struct Range {
      std::string_view prefix;
      int count;
      Type type;
    };
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, int> names;
  };

  // ptx_parser.cc: tokens, and what stands outside of functions
  [[noreturn]] void Bad(const std::string& what);
  [[noreturn]] void BadToken(const std::string& wanted);
  [[noreturn]] void Unsupported(const std::string& what) { Refuse(module_, where_, lexer_.line(), what); }
  void Expect(char c);
  bool Accept(char c);
  std::string_view Word();
  void SkipTo(char c);
  void SkipBraces();
  void ModuleItem();
  void File();
  void ParseFunction(bool is_entry);
  void Directive();

  // ptx_parser_variables.cc
  static Variable::Space Space(std::string_view word);
  void ParseVariables(Variable::Space space, std::vector<Variable>& into);
  Variable ParseVariable(Variable::Space space);
  void Declarator(Variable& variable);
  void Initialiser(Variable& variable, bool unsized);
  void InitialList(Variable& variable);
  void InitialValue(Variable& variable);
  std::vector<Variable> Parameters();

  // ptx_parser_body.cc
  void Body();
  void BodyDirective(std::string_view word);
  void Registers(std::string_view type);
  void Table(std::string_view name);
  int Label(std::string_view name);
  void Instruction(std::string_view opcode);
  void Call(Statement& statement);
  void Emit(Statement statement);

  // ptx_parser_lines.cc
  void ScanFiles(std::string_view text);
  void ScanNames(std::string_view text);
  void Location();
  SourceLine Place();
  bool IsHeader(uint16_t file) const;

  // ptx_parser_operands.cc
  Arg Operand();
  void Name(Arg& arg, std::string_view name);
  void Address(Arg& arg);
  int NewRegister(Type type);
  int FindRegister(std::string_view name);
  Arg Number();
  int64_t Integer() { return static_cast<int64_t>(Number().bits); }

  // Held while a construct is read that may contain itself (blocks, lists, operands). Limits the nesting.
  class Nested {
   public:
    explicit Nested(Parser& parser) : depth_(parser.depth_) {
      if (depth_ == kDeepest) parser.Bad("nested more than " + std::to_string(kDeepest) + " deep");
      ++depth_;
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    static constexpr int kDeepest = 256;  // nvcc nests blocks as the source does
    int& depth_;
  };

  Lexer lexer_;
  PtxModule module_;
  int depth_ = 0;
  bool extern_ = false;
  // of the function being parsed
  Function function_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, int> label_index_;
  std::vector<int> pending_labels_;
  bool no_unroll_ = false;   // a pragma before the next statement
  bool video_ = false;       // within an instruction whose operands may name a part of a register
  std::string_view opcode_;  // of the instruction that is read
  SourceLine where_;
  std::optional<uint16_t> own_file_;  // the text's own name, for instructions without a .loc
  // Labels of the names of copy and move constructors and assignments.
  std::unordered_set<std::string_view> copies_;
  // Places in headers and in such functions, by PlaceKey: the user's own line that they were last inlined at.
  std::unordered_map<uint64_t, SourceLine> inlined_at_;
};

}  // namespace kgrpo::simt

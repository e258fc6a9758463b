// A kernel in a small form: dimensions (the variables that number its threads), guards, and statements down to loops
// and accesses. The rewrites of this folder read the form and write the kernel anew. A rewrite is not proven: the
// evaluator judges its result.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coder_offline/plain/source.h"
#include "coder_offline/plain/techniques.h"

namespace kgrpo::coder_offline {

// A statement of a kernel's body.
struct Statement {
  enum Kind { kExpression, kDeclaration, kIf, kFor, kBlock, kLeave, kOther };
  Kind kind = kOther;
  Range tokens;            // all of it, with its ; or }
  Range head;              // in the parentheses of an if
  Range inside;            // of a for, an if or a block: the body's tokens without its braces
  std::string type, name;  // of a declaration with one name; a for's variable
  Range value;             // a declaration's initial value, a for's first value; empty without one
  Range limit, step;       // of a for: the condition, and the expression that steps
  std::vector<Statement> body, otherwise;

  bool Holds(size_t token) const { return tokens.Holds(token); }
};

// A dimension over which the threads are spread: int row = blockIdx.y * blockDim.y + threadIdx.y.
struct Dimension {
  std::string name, type;
  char axis = 'x';
  bool whole = false;  // counts over blocks; false: blockIdx alone
  Range value;         // the tokens that number the threads
  Range declaration;   // the statement
  std::string limit;   // from a guard, in the kernel's names; empty without one
};

// How far an index moves with a variable: not at all, by one element, by more, or in no way that is known here.
enum class Stride { kNone, kUnit, kFar, kUnknown };

struct Access {
  std::string array;
  Range tokens, index;  // x[index] whole, and within the brackets
  bool stored = false;
};

class Form {
 public:
  // Sets *why to the reason why the kernel has no such form.
  Form(const PlainSource& source, const PlainFunction& kernel, std::string* why);

  const PlainSource& source() const { return source_; }
  const PlainFunction& kernel() const { return kernel_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  const Dimension* OnAxis(char axis) const;
  // The statements after dimensions and guards, and the tokens of the guards.
  const std::vector<Statement>& work() const { return work_; }
  const std::vector<Range>& guards() const { return guards_; }
  // The declarations before the work, without those of dimensions.
  const std::vector<Statement>& before() const { return before_; }

  std::vector<Access> Accesses(Range range) const;  // of arrays in global memory, and of pointers into them
  Stride StrideOf(Range index, std::string_view variable, int depth = 0) const;
  // Whether the expression depends on one of these, also through local variables.
  bool Depends(Range range, const std::set<std::string>& names, int depth = 0) const;
  // The text with local variables replaced by what they are set to, but for `kept`.
  std::string Inlined(Range range, const std::set<std::string>& kept, int depth = 0) const;
  // The names that the range assigns.
  std::set<std::string> Assigned(Range range) const;
  bool IsGlobalArray(std::string_view name) const;  // a parameter, or a local pointer
  bool Declared(std::string_view name, Range range) const;
  std::optional<Range> InitialOf(std::string_view name) const;
  std::string TypeOf(std::string_view name) const;

  // The limit of a dimension in the launch's words; without one, the threads of that axis.
  std::string ExtentIn(const PlainLaunch& launch, const Dimension& dimension) const;
  // An expression of the kernel's parameters in the launch's words; nullopt where that is not known.
  std::optional<std::string> InLaunch(const PlainLaunch& launch, const std::string& text) const;

  std::vector<Statement> Parse(Range range) const;

 private:
  Statement ParseOne(size_t* i, size_t end) const;
  bool IsType(std::string_view word) const;
  bool TakeDimension(const Statement& statement);
  bool TakeGuard(const Statement& statement, bool last);

  const PlainSource& source_;
  const PlainFunction& kernel_;
  std::vector<Dimension> dimensions_;
  std::vector<Statement> before_, work_;
  std::vector<Range> guards_;
  std::set<std::string, std::less<>> types_;  // the parameters of its template
};

// The text of a range in which each of these names is another text.
std::string Replaced(const PlainSource& source, Range range, const std::map<std::string, std::string>& names);

// Removes the kernel's __launch_bounds__, which a block of another size does not keep.
void DropBounds(const PlainSource& source, const PlainFunction& kernel, std::vector<Edit>* edits);

// Returns the source with one thread for each point in place of grid-stride loops whose number of points the launches
// pass. Returns an empty text if there is no such loop.
std::string OnePointAThread(const PlainSource& source);

// Rewrites one kernel: adds its edits and returns what they do, or returns an empty text and sets *reason.
using RewriteKernel = std::function<std::string(const Form& form, std::vector<Edit>* edits, std::string* reason)>;

// Rewrites each kernel that has launches and a form. Returns the source with all edits and what the last of them does;
// without any, the last kernel's reason, or `none` if there was no kernel.
PlainResult RewriteEach(const PlainSource& source, const std::string& none, const RewriteKernel& rewrite);

// Rewrites of kernels by their form; each looks at every kernel of the source.
PlainResult Cooperate(const PlainSource& source, int lanes);  // threads for the loops of each thread: 32 or a block
PlainResult ExchangeAxes(const PlainSource& source);          // neighbouring threads take neighbouring elements
PlainResult BlockShape(const PlainSource& source, int threads);
PlainResult TileProduct(const PlainSource& source, int tile, int outputs);  // shared memory, outputs x outputs a thread
PlainResult SeveralPoints(const PlainSource& source, int points);           // unroll and jam
PlainResult GatherAtomics(const PlainSource& source);  // a block adds up before it adds to global memory

}  // namespace kgrpo::coder_offline

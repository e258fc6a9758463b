// One thread's loops become the work of several threads: of a warp, of a block, or of a column of threads where
// neighbouring threads already take neighbouring elements. Reductions are joined by shuffles or in shared memory.
#include <algorithm>
#include <map>

#include "coder_offline/form/form.h"
#include "coder_offline/form/updates.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

enum class Team { kWarp, kBlock, kColumn };

constexpr int kBlockLanes = 128, kWarpBlock = 256;
// Threads of a column's block along x, and of each column: whole sectors of 32 bytes, or whole lines of 128 bytes.
constexpr int kSector = 8, kManyLanes = 64, kLine = 32, kFewLanes = 16;

// With a place, the place of the value that counts goes along.
constexpr const char* kHelper = R"(
// Joins the values of a @team@'s threads; each of them has the result.
template <@types@>
__device__ __forceinline__ void @name@(@arguments@) {
  @shuffled@
  @shared@
}

)";
constexpr const char* kShuffled = R"(
for (int offset = 16; offset > 0; offset >>= 1) {
  const T b = __shfl_xor_sync(0xffffffffu, a, offset);
  @place@const P other = __shfl_xor_sync(0xffffffffu, place, offset);
  @join@
}
)";
constexpr const char* kShared = R"(
__shared__ T parts[64][33];
@place@__shared__ P places[64][33];
__syncthreads();
if (@writes@) parts[@row@][@column@] = a;
@place@if (@writes@) places[@row@][@column@] = place;
__syncthreads();
a = parts[0][@column@];
@place@place = places[0][@column@];
for (int row = 1; row < (int)(@rows@); ++row) {
  const T b = parts[row][@column@];
  @place@const P other = places[row][@column@];
  @join@
}
)";

class Sharing {
 public:
  Sharing(const Form& form, Team team, int columns)
      : form_(form), source_(form.source()), team_(team), columns_(columns) {
    lane_ = team == Team::kWarp ? source_.Fresh("lane") : team == Team::kBlock ? "threadIdx.x" : "threadIdx.y";
    lanes_ = team == Team::kWarp ? "32" : team == Team::kBlock ? "blockDim.x" : "blockDim.y";
    for (const Dimension& dimension : form.dimensions()) {
      if (team == Team::kColumn && dimension.axis == 'x' && !dimension.limit.empty())
        inside_ = source_.Fresh(dimension.name + "_inside");
    }
  }

  // Collects the edits of the kernel; false if no loop can be shared.
  bool Run(std::vector<Edit>* edits, std::map<std::string, std::string>* helpers) {
    Work(form_.work());
    if (shared_ == 0) return false;
    Number();
    DropBounds(source_, form_.kernel(), edits);
    edits->insert(edits->end(), edits_.begin(), edits_.end());
    helpers->insert(helpers_.begin(), helpers_.end());
    return true;
  }
  const std::string& why() const { return why_; }

 private:
  size_t Begin(Range range) const { return source_.At(range.begin).begin; }
  size_t End(Range range) const { return source_.At(range.end - 1).end; }
  void Replace(Range range, std::string text) { edits_.push_back({Begin(range), End(range), std::move(text)}); }
  void Insert(size_t at, std::string text) { edits_.push_back({at, at, std::move(text)}); }

  // Numbers the points by the teams in place of the threads.
  void Number() {
    for (const Dimension& dimension : form_.dimensions()) {
      const std::string block = std::string("blockIdx.") + dimension.axis;
      const std::string pad = "\n" + source_.Indentation(dimension.declaration.begin);
      if (team_ == Team::kWarp && dimension.axis == 'x') {
        Replace(dimension.value, "blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32");
        Insert(End(dimension.declaration), pad + "const int " + lane_ + " = threadIdx.x % 32;");
      } else if (team_ == Team::kColumn && dimension.axis == 'x') {
        const std::string value = "blockIdx.x * " + std::to_string(columns_) + " + threadIdx.x";
        if (inside_.empty()) {
          Replace(dimension.value, value);
        } else {
          Replace(dimension.value, "min((int)(" + value + "), (int)(" + dimension.limit + ") - 1)");
          Insert(End(dimension.declaration),
                 pad + "const bool " + inside_ + " = " + value + " < " + dimension.limit + ";");
        }
      } else {
        Replace(dimension.value, block);
      }
    }
    if (team_ == Team::kWarp && form_.OnAxis('x') == nullptr) return;
    for (const PlainLaunch* launch : source_.LaunchesOf(form_.kernel())) {
      std::string extents[3] = {"1", "1", "1"};
      for (const Dimension& dimension : form_.dimensions())
        extents[dimension.axis - 'x'] = form_.ExtentIn(*launch, dimension);
      std::string block = std::to_string(team_ == Team::kBlock ? kBlockLanes : kWarpBlock);
      if (team_ == Team::kWarp)
        extents[0] = "(" + extents[0] + " * 32 + " + std::to_string(kWarpBlock - 1) + ") / " + block;
      if (team_ == Team::kColumn) {
        const std::string wide = std::to_string(columns_);
        extents[0] = "(" + extents[0] + " + " + std::to_string(columns_ - 1) + ") / " + wide;
        block = "dim3(" + wide + ", " + std::to_string(columns_ == kLine ? kFewLanes : kManyLanes) + ")";
      }
      std::string grid = extents[0];
      if (extents[1] != "1" || extents[2] != "1")
        grid = "dim3(" + grid + ", " + extents[1] + (extents[2] != "1" ? ", " + extents[2] : "") + ")";
      Replace(launch->grid, grid);
      Replace(launch->block, block);
    }
  }

  static void Loops(const Statement& statement, std::vector<const Statement*>* loops) {
    if (statement.kind == Statement::kFor) loops->push_back(&statement);
    for (const Statement& inner : statement.body) Loops(inner, loops);
    for (const Statement& inner : statement.otherwise) Loops(inner, loops);
  }

  int UnitAccesses(const Statement& loop) const {
    int units = 0;
    for (const Access& access : form_.Accesses(loop.inside))
      units += form_.StrideOf(access.index, loop.name) == Stride::kUnit ? 1 : 0;
    return units;
  }

  void Work(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      if (statement.kind == Statement::kFor) {
        Loop(statement);
      } else if (statement.kind == Statement::kIf || statement.kind == Statement::kBlock) {
        Work(statement.body);
        Work(statement.otherwise);
      } else {
        Once(statement, false);
      }
    }
  }

  // A store outside of shared loops is done by one thread of the team.
  void Once(const Statement& statement, bool update) {
    const std::vector<Access> accesses = form_.Accesses(statement.tokens);
    bool stores = std::any_of(accesses.begin(), accesses.end(), [](const Access& a) { return a.stored; });
    for (size_t i = statement.tokens.begin; i < statement.tokens.end; ++i)
      stores = stores || source_.At(i).text.starts_with("atomic");
    if (!stores && !update) return;
    if (statement.kind == Statement::kDeclaration) return;
    Insert(Begin(statement.tokens), "{ if (" + lane_ + " == 0" + (inside_.empty() ? "" : " && " + inside_) + ") ");
    Insert(End(statement.tokens), " }" + (ReadLater(statement) ? Barrier() : ""));
  }

  std::string Barrier() const { return team_ == Team::kWarp ? " __syncwarp();" : " __syncthreads();"; }

  // Whether an array that the statement stores to is used further on, maybe by another thread of the team.
  bool ReadLater(const Statement& statement) const {
    for (const Access& access : form_.Accesses(statement.tokens)) {
      if (access.stored && source_.Has({statement.tokens.end, form_.kernel().body.end}, access.array)) return true;
    }
    return false;
  }

  void Loop(const Statement& loop) {
    const Carried carried = CarriedBy(form_, loop);
    std::vector<const Statement*> inner;
    for (const Statement& one : loop.body) Loops(one, &inner);
    if (!carried.why.empty() || !StepOf(form_, loop) || source_.Has(loop.inside, "break")) {
      why_ = carried.why.empty() ? "a loop has another form than for (i = a; i < b; i += c)" : carried.why;
      if (carried.running && team_ == Team::kWarp && StepOf(form_, loop) == "1" && inner.empty()) {
        Running(loop, carried);
      } else {
        Work(loop.body);
        if (ReadLater(loop)) Insert(End(loop.tokens), Barrier());
      }
      return;
    }
    // The loop whose turns are neighbours in memory is the one to share.
    const Statement* best = &loop;
    int most = UnitAccesses(loop);
    for (const Statement* one : inner) {
      const int units = StepOf(form_, *one) ? UnitAccesses(*one) : 0;
      if (team_ == Team::kColumn || units <= most) continue;
      best = one;
      most = units;
    }
    if (best != &loop) {
      const Carried own = CarriedBy(form_, *best);
      const bool of_outer =
          own.why.empty() && std::all_of(own.reductions.begin(), own.reductions.end(), [&](const Reduction& r) {
            return std::any_of(carried.reductions.begin(), carried.reductions.end(),
                               [&](const Reduction& o) { return o.name == r.name; });
          });
      if (!of_outer && team_ == Team::kWarp) return Work(loop.body);
      if (!of_outer) best = &loop;
    }
    Share(loop, *best, carried.reductions);
  }

  // Shares the turns of `inner`, which is `loop` or within it, among the team.
  void Share(const Statement& loop, const Statement& inner, const std::vector<Reduction>& reductions) {
    ++shared_;
    const std::string first = source_.Text(inner.value), step = *StepOf(form_, inner);
    const std::string by = step == "1" ? "" : " * (" + step + ")";
    Replace(inner.value, (first == "0" ? "" : first + " + ") + (by.empty() ? lane_ : lane_ + by));
    Replace(inner.step, inner.name + " += " + lanes_ + by);
    if (&inner != &loop) Around(loop.body, inner);
    if (!inside_.empty()) Guarded(inner.body);
    const std::string pad = "\n" + source_.Indentation(loop.tokens.begin) + "  ";
    std::string before, after;
    for (const Reduction& reduction : reductions) {
      if (!reduction.Repeats())
        before += "if (" + lane_ + " != 0) " + reduction.name + " = " + reduction.Identity() + ";" + pad;
      after += pad + Joined(reduction) + ";";
    }
    if (ReadLater(loop)) after += pad + Trim(Barrier());
    const bool directive =
        source_.At(loop.tokens.begin - 1).kind == cuda_source::Token::Kind::kDirective;  // its unroll
    Insert(Begin({loop.tokens.begin - (directive ? 1 : 0), loop.tokens.end}), "{" + pad + before);
    Insert(End(loop.tokens), after + "\n" + source_.Indentation(loop.tokens.begin) + "}");
  }

  // Statements of a loop outside of the loop that is shared: changes count once.
  void Around(const std::vector<Statement>& statements, const Statement& inner) {
    for (const Statement& statement : statements) {
      if (statement.tokens.begin == inner.tokens.begin) continue;
      Range term;
      if (statement.Holds(inner.tokens.begin) || statement.kind == Statement::kIf ||
          statement.kind == Statement::kFor) {
        Around(statement.body, inner);
      } else {
        const auto update = ReadUpdate(form_, statement, &term);
        Once(statement, update && !update->Repeats());
      }
    }
  }

  // Stores within a shared loop, where a thread may stand for no point.
  void Guarded(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      Guarded(statement.body);
      Guarded(statement.otherwise);
      if (statement.kind != Statement::kExpression) continue;
      const std::vector<Access> accesses = form_.Accesses(statement.tokens);
      if (std::none_of(accesses.begin(), accesses.end(), [](const Access& a) { return a.stored; })) continue;
      Insert(Begin(statement.tokens), "{ if (" + inside_ + ") ");
      Insert(End(statement.tokens), " }");
    }
  }

  // A running total: a warp takes 32 turns at once, and adds up to each of them by shuffles.
  void Running(const Statement& loop, const Carried& carried) {
    ++shared_;
    const std::string pad = "\n" + source_.Indentation(loop.tokens.begin) + "  ";
    const Range update = *carried.running;
    const std::string total(source_.At(update.begin).text), type = form_.TypeOf(total);
    const std::string turn = source_.Fresh("first"), part = source_.Fresh("part");
    Range limit{loop.limit.begin + 1, loop.limit.end};
    const std::string condition = loop.name + " " + source_.Text(limit);
    std::string text = "for (" + loop.type + " " + turn + " = " + source_.Text(loop.value) + "; " + turn + " " +
                       source_.Text(limit) + "; " + turn + " += 32) {" + pad + "const " + loop.type + " " + loop.name +
                       " = " + turn + " + " + lane_ + ";" + pad + type + " " + part + " = 0;" + pad + "if (" +
                       condition + ") {\n";
    const std::string early = source_.Text({loop.inside.begin, update.begin});
    text += early + pad + part + " = " + source_.Text(*carried.term) + ";" + pad + "}" + pad +
            "for (int o = 1; o < 32; o <<= 1) {" + pad + "  const " + type + " t = __shfl_up_sync(0xffffffffu, " +
            part + ", o);" + pad + "  if (" + lane_ + " >= o) " + part + " += t;" + pad + "}" + pad + total +
            " += " + part + ";" + pad + "if (" + condition + ") {" + pad + early + pad +
            source_.Text({update.end, loop.inside.end}) + pad + "}" + pad + total + " = __shfl_sync(0xffffffffu, " +
            total + ", 31);" + "\n" + source_.Indentation(loop.tokens.begin) + "}";
    Replace(loop.tokens, text);
  }

  // The statement that joins a reduction over the team, by a helper that is added to the source.
  std::string Joined(const Reduction& reduction) {
    const char* teams[] = {"warp", "block", "column"};
    const char* kinds[] = {"sum", "product", "largest", "smallest"};
    const std::string team = teams[static_cast<int>(team_)];
    const bool place = !reduction.place.empty(), column = team_ == Team::kColumn;
    std::string join = "a = " + reduction.Join("a", "b") + ";";
    if (place) {
      join = std::string("if (b ") + (reduction.kind == Reduction::kMax ? ">" : "<") + " a || (b == a && other " +
             (reduction.last ? ">" : "<") + " place)) a = b, place = other;";
    }
    const std::string name =
        source_.Fresh(team + "_" + kinds[reduction.kind] + (place ? reduction.last ? "_last_place" : "_place" : ""));
    const Values values = {{"place", place ? "" : "// "},
                           {"join", join},
                           {"writes", column ? "true" : "threadIdx.x % 32 == 0"},
                           {"row", column ? "threadIdx.y" : "threadIdx.x / 32"},
                           {"column", column ? "threadIdx.x" : "0"},
                           {"rows", column ? "blockDim.y" : "blockDim.x / 32"}};
    std::string text;
    for (const std::string& line :
         SplitLines(Fill(kHelper, {{"team", team},
                                   {"types", place ? "typename T, typename P" : "typename T"},
                                   {"name", name},
                                   {"arguments", place ? "T& a, P& place" : "T& a"},
                                   {"shuffled", column ? "" : Fill(kShuffled, values)},
                                   {"shared", team_ == Team::kWarp ? "" : Fill(kShared, values)}}))) {
      if (!Trim(line).starts_with("// ") || line.starts_with("// Joins")) text += line + "\n";  // without a place
    }
    helpers_[name] = text;
    return name + "(" + reduction.name + (place ? ", " + reduction.place : "") + ")";
  }

  const Form& form_;
  const PlainSource& source_;
  const Team team_;
  const int columns_;  // a block takes these many
  std::string lane_, lanes_, inside_, why_ = "it has no loop whose turns several threads can share";
  int shared_ = 0;
  std::vector<Edit> edits_;
  std::map<std::string, std::string> helpers_;
};

// Whether neighbouring threads take neighbouring elements in the kernel's loops as it is.
bool Neighbours(const Form& form, const std::vector<Statement>& statements) {
  const Dimension* x = form.OnAxis('x');
  if (x == nullptr || !x->whole) return false;
  int across = 0, along = 0;
  for (const Statement& statement : statements) {
    if (statement.kind != Statement::kFor) {
      if (Neighbours(form, statement.body)) return true;
      continue;
    }
    for (const Access& access : form.Accesses(statement.inside)) {
      across += form.StrideOf(access.index, x->name) == Stride::kUnit ? 1 : 0;
      along += form.StrideOf(access.index, statement.name) == Stride::kUnit ? 1 : 0;
    }
  }
  return across > along;
}

}  // namespace

PlainResult Cooperate(const PlainSource& source, int lanes) {
  std::vector<Edit> edits;
  std::string why = "it has no kernel of one thread for each point", done;
  std::map<std::string, std::string> helpers;
  size_t first = 0;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global || source.LaunchesOf(kernel).empty()) continue;
    std::string reason;
    const Form form(source, kernel, &reason);
    if (reason.empty() && (form.OnAxis('x') == nullptr || !form.OnAxis('x')->whole))
      reason = kernel.name + " has no threads along x";
    if (!reason.empty()) {
      why = reason;
      continue;
    }
    const Team team = Neighbours(form, form.work()) ? Team::kColumn : lanes == 32 ? Team::kWarp : Team::kBlock;
    Sharing sharing(form, team, lanes == 32 ? kLine : kSector);
    if (!sharing.Run(&edits, &helpers)) {
      why = sharing.why();
      continue;
    }
    if (done.empty()) first = source.At(kernel.first).begin;
    done = team == Team::kWarp    ? "a warp in place of each thread, its loops shared among 32 lanes"
           : team == Team::kBlock ? "a block in place of each thread, its loops shared among 128 threads"
                                  : "several threads in place of each, which share its loops";
  }
  if (done.empty()) return {"", why};
  std::string text;
  for (const auto& [name, helper] : helpers) text += helper;
  edits.push_back({first, first, text});
  return {source.Edited(edits), done};
}

}  // namespace kgrpo::coder_offline

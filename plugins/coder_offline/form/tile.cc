// Products of two arrays over a loop, as in a matrix product, and copies that exchange axes: a block stages what its
// threads share in shared memory.
#include <algorithm>
#include <map>

#include "coder_offline/form/form.h"
#include "coder_offline/form/plane.h"
#include "coder_offline/form/updates.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

// A block computes kEdge x kEdge sums, each thread kOutputs x kOutputs of them.
constexpr const char* kProduct = R"(
  constexpr int kEdge = @edge@, kDepth = @depth@, kOutputs = @outputs@, kThreads = kEdge / kOutputs * (kEdge / kOutputs);
  @shared@
  const int first_row = blockIdx.y * kEdge, first_column = blockIdx.x * kEdge;
  const int row_in = (int)threadIdx.x / (kEdge / kOutputs) * kOutputs;
  const int column_in = (int)threadIdx.x % (kEdge / kOutputs) * kOutputs;
  @planes@
  @sums@
  for (int turn0 = @first@; turn0 < @end@; turn0 += kDepth) {
    @load@
    __syncthreads();
#pragma unroll
    for (int deep = 0; deep < kDepth; ++deep) {
      @turn@
      @registers@
#pragma unroll
      for (int of_row = 0; of_row < kOutputs; ++of_row) {
#pragma unroll
        for (int of_column = 0; of_column < kOutputs; ++of_column) {
          @where@
          @update@
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int of_row = 0; of_row < kOutputs; ++of_row) {
#pragma unroll
    for (int of_column = 0; of_column < kOutputs; ++of_column) {
      const @type@ @row@ = first_row + row_in + of_row;
      const @type@ @column@ = first_column + column_in + of_column;
      if (@row@ >= @rows@ || @column@ >= @columns@) continue;
      @declarations@
      @finish@
    }
  }
)";

constexpr const char* kLoad = R"(
#pragma unroll
for (int item = threadIdx.x; item < kEdge * kDepth; item += kThreads) {
  const int spot = @at@, deep = @depth@;
  const @type@ @name@ = first_@of@ + spot;
  const @turn_type@ @turn@ = turn0 + deep;
  @tile@[deep][spot] = @name@ < @limit@ && @turn@ < @end@ ? @value@ : @zero@;
}
)";

struct Staged {
  std::string value, tile, type;
  bool by_row = false, along_turn = false;
};

std::string ElementType(const Form& form, const std::string& array) {
  for (const PlainParameter& parameter : form.kernel().parameters) {
    if (parameter.name == array && parameter.pointer) return parameter.type;
  }
  for (const PlainParameter& parameter : form.kernel().parameters) {  // of a local pointer into it
    if (const auto value = form.InitialOf(array); value && parameter.pointer) {
      if (form.source().Has(*value, parameter.name)) return parameter.type;
    }
  }
  return "float";
}

class Product {
 public:
  Product(const Form& form, const Plane& plane) : form_(form), plane_(plane), source_(form.source()) {}

  // Reads the loop; returns the reason why the kernel has no product of two arrays.
  std::string Read() {
    const std::string& name = form_.kernel().name;
    const auto loop = std::find_if(plane_.rest.begin(), plane_.rest.end(),
                                   [](const Statement& s) { return s.kind == Statement::kFor; });
    if (loop != plane_.rest.begin() || loop == plane_.rest.end()) return name + " does not begin with a loop over sums";
    loop_ = *loop;
    after_.assign(loop + 1, plane_.rest.end());
    const auto step = StepOf(form_, loop_);
    const Carried carried = CarriedBy(form_, loop_);
    if (!step || *step != "1" || !carried.why.empty() || carried.reductions.empty())
      return name + "'s loop does not add up by steps of one";
    for (const Reduction& reduction : carried.reductions) {
      if (reduction.kind != Reduction::kSum) return name + "'s loop does not add up";
    }
    sums_ = carried.reductions;
    for (const Statement& statement : loop_.body) {
      if (statement.kind != Statement::kExpression && statement.kind != Statement::kDeclaration)
        return name + "'s loop has other statements than sums";
    }
    for (const Access& access : form_.Accesses(loop_.inside)) {
      if (access.stored) return name + " stores in its loop";
      const Range whole = access.tokens;
      const bool by_row = form_.Depends(whole, {plane_.row}), by_column = form_.Depends(whole, {plane_.column});
      if (!form_.Depends(access.index, {loop_.name})) continue;
      if (by_row && by_column) return name + " reads an element for each row, column and turn";
      if (!by_row && !by_column) continue;
      std::set<std::string> kept = plane_.names;
      kept.insert(loop_.name);
      kept.insert(plane_.index);
      const std::string value = form_.Inlined(whole, kept);
      if (!plane_.index.empty() && form_.Depends(whole, {plane_.index}) &&
          value.find(plane_.index) != std::string::npos && ReplaceWord(value, plane_.index, "") != value)
        return name + " reads by its whole index in the loop";
      for (size_t i = whole.begin; i < whole.end; ++i) staged_at_[i] = value;
      if (std::any_of(staged_.begin(), staged_.end(), [&](const Staged& s) { return s.value == value; })) continue;
      staged_.push_back({value, source_.Fresh("tile_" + std::to_string(staged_.size())),
                         ElementType(form_, access.array), by_row,
                         form_.StrideOf(access.index, loop_.name) == Stride::kUnit});
    }
    const auto rows = std::count_if(staged_.begin(), staged_.end(), [](const Staged& s) { return s.by_row; });
    if (rows == 0 || rows == static_cast<int>(staged_.size()))
      return name + "'s loop does not read one array by rows and one by columns";
    return "";
  }

  std::string Body(int edge, int outputs, int depth) const {
    std::string shared, load, registers, sums, update, declarations, finish;
    const std::string first = form_.Inlined(loop_.value, plane_.names);
    const std::string end = form_.Inlined({loop_.limit.begin + 2, loop_.limit.end}, plane_.names);
    const std::string turn_type = loop_.type;
    for (const Staged& one : staged_) {
      shared += "__shared__ __align__(16) " + one.type + " " + one.tile + "[kDepth][kEdge + 4];\n";
      load += Fill(kLoad, {{"at", one.along_turn ? "item / kDepth" : "item % kEdge"},
                           {"depth", one.along_turn ? "item % kDepth" : "item / kEdge"},
                           {"of", one.by_row ? "row" : "column"},
                           {"type", "int"},
                           {"name", one.by_row ? plane_.row : plane_.column},
                           {"limit", "(int)(" + (one.by_row ? plane_.rows : plane_.columns) + ")"},
                           {"turn", loop_.name},
                           {"turn_type", "int"},
                           {"end", "(int)(" + end + ")"},
                           {"tile", one.tile},
                           {"value", one.value},
                           {"zero", one.type + "(0)"}});
      registers += one.type + " " + one.tile +
                   "_own[kOutputs];\n#pragma unroll\nfor (int own = 0; own < kOutputs; ++own) " + one.tile +
                   "_own[own] = " + one.tile + "[deep][" + (one.by_row ? "row_in" : "column_in") + " + own];\n";
    }
    bool products = true;  // padding by zeros adds nothing
    for (const Statement& statement : loop_.body) {
      Range term;
      const auto one = ReadUpdate(form_, statement, &term);
      products = products && one && IsProduct(term);
      update += Turned(statement.tokens) + "\n";
    }
    for (const Reduction& sum : sums_) {
      const std::string own = sum.name + "_sums";
      sums += sum.type + " " + own + "[kOutputs][kOutputs] = {};\n";
      finish += sum.name + " += " + own + "[of_row][of_column];\n";
    }
    if (!plane_.index.empty())
      declarations += "const " + std::string("int ") + plane_.index + " = " + plane_.index_value + ";\n";
    for (const Statement& statement : plane_.declarations) {
      if (!plane_.names.contains(statement.name)) declarations += source_.Text(statement.tokens) + "\n";
    }
    for (const Statement& statement : after_) finish += source_.Text(statement.tokens) + "\n";
    const bool names_turn = update.find(loop_.name) != std::string::npos;
    const bool names_point = ReplaceWord(ReplaceWord(update, plane_.row, ""), plane_.column, "") != update;
    std::string turn = products && !names_turn ? "" : "const int " + loop_.name + " = turn0 + deep;\n";
    if (!products) turn += "if (" + loop_.name + " >= " + end + ") break;\n";
    return Fill(kProduct, {{"edge", edge},
                           {"depth", depth},
                           {"outputs", outputs},
                           {"shared", shared},
                           {"planes", PlaneDeclarations(form_, plane_)},
                           {"sums", sums},
                           {"first", first},
                           {"end", "(int)(" + end + ")"},
                           {"load", load},
                           {"turn", turn},
                           {"registers", registers},
                           {"where", names_point ? "const int " + plane_.row + " = first_row + row_in + of_row, " +
                                                       plane_.column + " = first_column + column_in + of_column;"
                                                 : ""},
                           {"update", update},
                           {"type", "int"},
                           {"row", plane_.row},
                           {"column", plane_.column},
                           {"rows", "(int)(" + plane_.rows + ")"},
                           {"columns", "(int)(" + plane_.columns + ")"},
                           {"declarations", declarations},
                           {"finish", finish}});
  }

 private:
  // Whether the term is one staged element times another.
  bool IsProduct(Range term) const {
    size_t i = term.begin;
    std::string between;
    while (i < term.end) {
      if (staged_at_.contains(i)) {
        i = source_.Close(i + 1) + 1;
        between += 'x';
      } else {
        between += source_.At(i++).text;
      }
    }
    return between == "x*x";
  }

  // The statement with its staged elements from registers, and its sums from the thread's own.
  std::string Turned(Range range) const {
    std::set<std::string> kept = plane_.names;
    kept.insert(loop_.name);
    for (const Reduction& sum : sums_) kept.insert(sum.name);
    for (const Statement& statement : loop_.body) kept.insert(statement.name);
    std::string text;
    size_t at = range.begin;
    for (size_t i = range.begin; i <= range.end; ++i) {
      const bool staged = i < range.end && staged_at_.contains(i);
      if (!staged && i < range.end) continue;
      text += form_.Inlined({at, i}, kept) + (text.empty() ? "" : " ");
      if (!staged) break;
      const std::string& value = staged_at_.at(i);
      const auto one = std::find_if(staged_.begin(), staged_.end(), [&](const Staged& s) { return s.value == value; });
      text += " " + one->tile + "_own[" + (one->by_row ? "of_row" : "of_column") + "]";
      i = source_.Close(i + 1);
      at = i + 1;
    }
    for (const Reduction& sum : sums_) text = ReplaceWord(text, sum.name, sum.name + "_sums[of_row][of_column]");
    return text;
  }

  const Form& form_;
  const Plane& plane_;
  const PlainSource& source_;
  Statement loop_;
  std::vector<Statement> after_;
  std::vector<Reduction> sums_;
  std::vector<Staged> staged_;
  std::map<size_t, std::string> staged_at_;
};

// A copy that reads along rows and writes along columns: through a padded tile, so that both are neighbours.
constexpr const char* kExchange = R"(
  __shared__ @element@ tile[32][33];
  const int first_row = blockIdx.y * 32, first_column = blockIdx.x * 32;
  @planes@
#pragma unroll
  for (int step = threadIdx.y; step < 32; step += 8) {
    const int @row@ = first_row + threadIdx.x, @column@ = first_column + step;
    if (@row@ < (int)(@rows@) && @column@ < (int)(@columns@)) {
      @declarations@
      tile[step][threadIdx.x] = @value@;
    }
  }
  __syncthreads();
#pragma unroll
  for (int step = threadIdx.y; step < 32; step += 8) {
    const int @row@ = first_row + step, @column@ = first_column + threadIdx.x;
    if (@row@ < (int)(@rows@) && @column@ < (int)(@columns@)) {
      @declarations@
      @target@ = tile[threadIdx.x][step];
    }
  }
)";

std::string ExchangeBody(const Form& form, const Plane& plane) {
  const PlainSource& source = form.source();
  if (plane.rest.size() != 1 || plane.rest[0].kind != Statement::kExpression) return "";
  const Range tokens = plane.rest[0].tokens;
  const std::vector<Access> accesses = form.Accesses(tokens);
  if (accesses.empty() || !accesses[0].stored || accesses[0].tokens.begin != tokens.begin ||
      !source.Follows(accesses[0].tokens.end, {"="}))
    return "";
  bool exchanged = form.StrideOf(accesses[0].index, plane.column) == Stride::kUnit;
  for (size_t i = 1; i < accesses.size(); ++i)
    exchanged = exchanged && form.StrideOf(accesses[i].index, plane.row) == Stride::kUnit;
  if (!exchanged || accesses.size() < 2) return "";
  std::string declarations;
  if (!plane.index.empty()) declarations = "const int " + plane.index + " = " + plane.index_value + ";\n";
  for (const Statement& statement : plane.declarations) {
    if (!plane.names.contains(statement.name)) declarations += source.Text(statement.tokens) + "\n";
  }
  return Fill(kExchange, {{"element", ElementType(form, accesses[0].array)},
                          {"planes", PlaneDeclarations(form, plane)},
                          {"row", plane.row},
                          {"column", plane.column},
                          {"rows", plane.rows},
                          {"columns", plane.columns},
                          {"declarations", declarations},
                          {"value", source.Text({accesses[0].tokens.end + 1, tokens.end - 1})},
                          {"target", source.Text(accesses[0].tokens)}});
}

}  // namespace

PlainResult TileProduct(const PlainSource& source, int tile, int outputs) {
  const auto rewrite = [&](const Form& form, std::vector<Edit>* edits, std::string* reason) -> std::string {
    const PlainFunction& kernel = form.kernel();
    const auto plane = ReadPlane(form, reason);
    if (!plane) return "";
    std::string body, words = "a tile of 32x32 in shared memory, read and written along its rows";
    int edge = 32, threads = 0;
    if (outputs == 1) body = ExchangeBody(form, *plane);
    if (body.empty()) {
      Product product(form, *plane);
      *reason = product.Read();
      if (!reason->empty()) return "";
      edge = tile;
      threads = (tile / outputs) * (tile / outputs);
      words = "tiles of " + std::to_string(tile) + "x" + std::to_string(tile) + " in shared memory, " +
              std::to_string(outputs * outputs) + (outputs == 1 ? " output" : " outputs") + " a thread";
      body = product.Body(tile, outputs, tile <= 32 ? tile : outputs == 8 ? 8 : 16);
    }
    edits->push_back(
        {source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin, "\n" + Indented(body, 1)});
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      const auto grid = PlaneGrid(form, *plane, *launch, edge, edge);
      if (!grid) {
        *reason = "the launch of " + kernel.name + " does not say how large its arrays are";
        return "";
      }
      edits->push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end, *grid});
      edits->push_back({source.At(launch->block.begin).begin, source.At(launch->block.end - 1).end,
                        threads == 0 ? "dim3(32, 8)" : std::to_string(threads)});
    }
    DropBounds(source, kernel, edits);
    return words;
  };
  return RewriteEach(source, "it has no kernel of one thread for each point", rewrite);
}

}  // namespace kgrpo::coder_offline

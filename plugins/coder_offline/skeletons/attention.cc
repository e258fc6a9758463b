// Weighted means over keys: out[query] = sum over keys of softmax(score)[key] * v[key]. Attention, kernel regression.
//
// The layout line says q[queries][kDim], k[keys][kDim], v[keys][kDim], out[queries][kDim]. The problem's part holds
// constexpr int kDim, term(float q, float k), summed over the dimensions, and score(float total, ...), whose other
// parameters are query, key or scalars of launch. The naive kernel gives each thread one query and sweeps the keys
// three times (maximum, sum of exponentials, result), computing the scores each time.
#include "coder_offline/skeleton.h"

namespace kgrpo::coder_offline {
namespace {

// Writes the parts of one kernel.
class Writer {
 public:
  explicit Writer(const Program& program)
      : program_(program),
        schedule_(program.schedule),
        each_(schedule_.Get("register", 1)),
        width_(schedule_.Get("vectorize", 1)),
        tile_(schedule_.Get("tile", 0)),
        half_(schedule_.Has("half")),
        exp_(schedule_.Has("fast") ? "__expf" : "expf") {}

  std::string Body() const;
  std::string Tiles() const {
    if (tile_ == 0) return "";
    const std::string rows = std::to_string(tile_);
    const std::string columns = "kDim" + std::string(schedule_.Has("pad") ? " + 4" : "");
    const std::string type =
        std::string("__shared__ ") + (width_ > 1 ? "__align__(16) " : "") + (half_ ? "__half " : "float ");
    return type + "k_tile[" + rows + "][" + columns + "];\n" + type + "v_tile[" + rows + "][" + columns + "];\n";
  }

 private:
  // The text of a value that each of the thread's queries has.
  std::string Of(const std::string& name) const { return each_ == 1 ? name : name + "[r]"; }
  std::string Declare(const std::string& name, const std::string& value) const {
    if (each_ == 1) return "float " + name + " = " + value + ";\n";
    return "float " + name + "[" + std::to_string(each_) + "];\n" + ForEach(name + "[r] = " + value + ";\n");
  }
  // Statements for each of the thread's queries.
  std::string ForEach(const std::string& statements) const {
    if (each_ == 1) return statements;
    return Fill("#pragma unroll\nfor (int r = 0; r < @each@; ++r) {\n  @s@\n}\n", {{"each", each_}, {"s", statements}});
  }
  std::string Query() const { return each_ == 1 ? "query" : "query[r]"; }

  // Element d of the thread's query.
  std::string QueryElement(const std::string& d) const {
    if (schedule_.Has("hoist")) return Of("q_value") + "[" + d + "]";
    return "q[(size_t)" + Query() + " * kDim + " + d + "]";
  }
  // Element d of the key or value that is being visited.
  std::string Visited(const std::string& matrix, const std::string& d) const {
    if (tile_ == 0) return matrix + "[(size_t)key * kDim + " + d + "]";
    const std::string text = matrix + "_tile[j][" + d + "]";
    return half_ ? "__half2float(" + text + ")" : text;
  }
  bool VectorReads() const { return width_ > 1 && !half_; }
  std::string VectorType() const { return "float" + std::to_string(width_); }

  // A loop over d. `statements` receives the text of d and of the visited matrix's element.
  std::string OverDimensions(
      const std::string& matrix,
      const std::function<std::string(const std::string&, const std::string&)>& statements) const {
    if (!VectorReads()) {
      return Fill(
          "#pragma unroll\nfor (int d = 0; d < kDim; ++d) {\n  @s@\n}\n",
          {{"s", "const float element = " + Visited(matrix, "d") + ";\n" + ForEach(statements("d", "element"))}});
    }
    std::string body = "const " + VectorType() + " element = *reinterpret_cast<const " + VectorType() + "*>(&" +
                       Visited(matrix, "d") + ");\n";
    std::string each;
    for (int c = 0; c < width_; ++c) {
      each += statements(c == 0 ? "d" : "d + " + std::to_string(c), "element" + Component(c));
    }
    return Fill("#pragma unroll\nfor (int d = 0; d < kDim; d += @width@) {\n  @s@\n}\n",
                {{"width", width_}, {"s", body + ForEach(each)}});
  }

  std::string Score() const {
    return Declare("total", "0.0f") + OverDimensions("k", [&](const std::string& d, const std::string& element) {
             return Of("total") + " += term(" + QueryElement(d) + ", " + element + ");\n";
           });
  }
  std::string ScoreValue() const {
    return CallText(*program_.FindFunction("score"), [&](const Parameter& parameter) -> std::string {
      if (parameter.name == "total") return Of("total");
      if (parameter.name == "query") return Query();
      return parameter.name;
    });
  }
  std::string AddValue() const {
    return OverDimensions("v", [&](const std::string& d, const std::string& element) {
      return Of("result") + "[" + d + "] += " + Of("weight") + " * " + element + ";\n";
    });
  }

  // A sweep over all keys. `uses_values`: it reads v as well.
  std::string Sweep(const std::string& statements, bool uses_values) const;

  const Program& program_;
  const Schedule& schedule_;
  int each_;
  int width_;
  int tile_;
  bool half_;
  std::string exp_;
};

std::string Writer::Sweep(const std::string& statements, bool uses_values) const {
  Values values = {{"unroll", UnrollPragma(schedule_)}, {"s", statements}, {"tile", tile_}};
  if (tile_ == 0) return Fill("@unroll@\nfor (int key = 0; key < keys; ++key) {\n  @s@\n}\n", values);
  std::string copies;
  for (const std::string matrix : {"k", "v"}) {
    if (matrix == "v" && !uses_values) continue;
    const std::string from = matrix + "[(size_t)(start + element / kDim) * kDim + element % kDim]";
    const std::string to = matrix + "_tile[element / kDim][element % kDim]";
    if (VectorReads()) {
      copies += Fill("*reinterpret_cast<@type@*>(&@to@) = *reinterpret_cast<const @type@*>(&@from@);\n",
                     {{"type", VectorType()}, {"to", to}, {"from", from}});
    } else {
      copies += to + " = " + (half_ ? "__float2half(" + from + ")" : from) + ";\n";
    }
  }
  values["copies"] = copies;
  values["step"] = VectorReads() ? " * " + std::to_string(width_) : "";
  return Fill(R"(
for (int start = 0; start < keys; start += @tile@) {
  const int count = min(@tile@, keys - start);
  for (int element = threadIdx.x@step@; element < count * kDim; element += blockDim.x@step@) {
    @copies@
  }
  __syncthreads();
  @unroll@
  for (int j = 0; j < count; ++j) {
    const int key = start + j;
    @s@
  }
  __syncthreads();  // the tiles may be written again
}
)",
              values);
}

std::string Writer::Body() const {
  std::string text;
  if (each_ == 1) {
    text =
        "const int own_query = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "const int query = min(own_query, queries - 1);  // threads beyond the end repeat the last query\n";
  } else {
    text = Fill(
        "int query[@each@];  // those beyond the end repeat the last query\n#pragma unroll\nfor (int r = 0; r < "
        "@each@; ++r) {\n"
        "  query[r] = min((int)((blockIdx.x * @each@ + r) * blockDim.x + threadIdx.x), queries - 1);\n}\n",
        {{"each", each_}});
  }
  if (schedule_.Has("hoist")) {
    text += std::string("float q_value") + (each_ == 1 ? "" : "[" + std::to_string(each_) + "]") + "[kDim];\n" +
            ForEach("#pragma unroll\nfor (int d = 0; d < kDim; ++d) " + Of("q_value") + "[d] = q[(size_t)" + Query() +
                    " * kDim + d];\n");
  }
  text += Declare("maximum", "kLowest");
  const std::string results =
      std::string("float result") + (each_ == 1 ? "" : "[" + std::to_string(each_) + "]") + "[kDim] = {};\n";
  if (schedule_.Has("one_pass")) {
    text += Declare("sum", "0.0f") + results;
    text +=
        Sweep(Score() + Declare("weight", "0.0f") +
                  ForEach("const float current = " + ScoreValue() + ";\nif (current > " + Of("maximum") +
                          ") {\n  const float scale = " + exp_ + "(" + Of("maximum") + " - current);\n  " + Of("sum") +
                          " *= scale;\n  #pragma unroll\n  for (int d = 0; d < kDim; ++d) " + Of("result") +
                          "[d] *= scale;\n  " + Of("maximum") + " = current;\n}\n" + Of("weight") + " = " + exp_ +
                          "(current - " + Of("maximum") + ");\n" + Of("sum") + " += " + Of("weight") + ";\n") +
                  AddValue(),
              true);
  } else {
    text += Sweep(Score() + ForEach(Of("maximum") + " = fmaxf(" + Of("maximum") + ", " + ScoreValue() + ");\n"), false);
    text += Declare("sum", "0.0f");
    text += Sweep(Score() + ForEach(Of("sum") + " += " + exp_ + "(" + ScoreValue() + " - " + Of("maximum") + ");\n"),
                  false);
    text += results;
    text += Sweep(Score() + Declare("weight", "0.0f") +
                      ForEach(Of("weight") + " = " + exp_ + "(" + ScoreValue() + " - " + Of("maximum") + ");\n") +
                      AddValue(),
                  true);
  }
  const std::string out = program_.Output()->name;
  if (each_ == 1) {
    return text + "if (own_query < queries) {\n  #pragma unroll\n  for (int d = 0; d < kDim; ++d) " + out +
           "[(size_t)query * kDim + d] = result[d] / sum;\n}\n";
  }
  return text + Fill(R"(
#pragma unroll
for (int r = 0; r < @each@; ++r) {
  if ((blockIdx.x * @each@ + r) * blockDim.x + threadIdx.x < queries) {
    #pragma unroll
    for (int d = 0; d < kDim; ++d) @out@[(size_t)query[r] * kDim + d] = result[r][d] / sum[r];
  }
}
)",
                     {{"each", each_}, {"out", out}});
}

std::string MissingAttention(const Program& program) {
  const std::string missing = MissingNames(program, {"term", "score"}, {"q", "k", "v", "queries", "keys"});
  if (!missing.empty()) return missing;
  const auto dim = program.constants.find("kDim");
  if (dim == program.constants.end() || dim->second % 4 != 0 || dim->second > 64)
    return "constexpr int kDim, a multiple of 4 up to 64";
  const Axes queries = {"queries", "kDim"}, keys = {"keys", "kDim"};
  if (program.AxesOf("q") != queries || program.AxesOf("k") != keys || program.AxesOf("v") != keys ||
      program.AxesOf(program.Output()->name) != queries) {
    return "a layout line with q[queries][kDim], k[keys][kDim], v[keys][kDim] and an output [queries][kDim]";
  }
  const std::string refused =
      Refused(program, *program.FindFunction("score"), "`total`, `query`, `key` or a scalar of launch",
              [](const std::string& name, const Parameter* given) {
                const bool known = name == "total" || name == "query" || name == "key";
                return known || (given != nullptr && !given->pointer);
              });
  if (!refused.empty()) return refused;
  return program.FindFunction("term")->parameters.size() == 2 ? "" : "term(float q, float k)";
}

std::string AttentionKernels(const Program& program) {
  const Schedule& schedule = program.schedule;
  const Writer writer(program);
  const int block = schedule.Get("block", 128);
  const int each = schedule.Get("register", 1);
  std::string comment = each == 1 ? "a thread a query" : std::to_string(each) + " queries a thread";
  comment += schedule.Has("one_pass") ? ", one sweep over the keys" : ", three sweeps over the keys";
  if (schedule.Has("tile")) comment += ", staged in shared memory";
  return Fill(R"(
// kernels: @comment@.
constexpr float kLowest = -3.402823466e38f;  // the most negative float

__global__ void attention_kernel(@parameters@) {
  @tiles@
  @body@
}

@launch@ {
  attention_kernel<<<(queries + @less_one@) / @queries@, @block@>>>(@arguments@);
}
)",
              CommonValues(program, 128,
                           {{"comment", comment},
                            {"tiles", writer.Tiles()},
                            {"body", writer.Body()},
                            {"queries", block * each},
                            {"less_one", block * each - 1}}));
}

}  // namespace

const Skeleton* AttentionSkeleton() {
  static const Skeleton kSkeleton = {
      "attention",
      {},
      {{kTile, "keys and values staged in shared memory, @value@ at a time", {16, 32, 64, 128}, 32},
       {kRegister, "register blocking, @value@ queries a thread", {2, 4, 8}, 2},
       VectorRule("keys and values read by float@value@"),
       UnrollRule("the loop over keys"),
       {kOnePass, "one pass over the keys (online softmax)"},
       RestrictRule(),
       BlockRule(),
       {kHoist, "the query kept in registers"},
       {kPad, "the tiles padded against bank conflicts", {}, 1, NeedsTile()},
       {kFast, FastRule().done},  // always applicable: the softmax has exponentials
       {kHalf, "the tiles held in half precision", {}, 1, NeedsTile()}},
      {{{kShuffle, kCooperate}, "a thread sums its own query, so threads have nothing to combine"},
       {{kFuse}, std::string(kOneKernel) + "; its sweeps can become one pass"},
       {{kCoalesce}, "all threads of a warp visit the same key, which is one access"},
       {{kGridStride}, "every thread has its query, and the grid covers them once"},
       {{kBranchless}, kSamePath},
       {{kPrefetch}, "the keys come from the caches, which keep ahead of the arithmetic"},
       {{kPrivatize}, "no two threads add to the same result"}},
      "it has no place for it",
      MissingAttention,
      AttentionKernels};
  return &kSkeleton;
}

}  // namespace kgrpo::coder_offline

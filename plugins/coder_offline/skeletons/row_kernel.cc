#include "coder_offline/skeletons/row_kernel.h"

#include <algorithm>

namespace kgrpo::coder_offline {
namespace {

bool AlongRow(const Program& program, const std::string& name) {
  const Axes axes = program.AxesOf(name);
  return !axes.empty() && axes.back() == "cols";
}

bool IsMatrix(const Program& program, const std::string& name) {
  return AlongRow(program, name) && program.AxesOf(name).size() == 2;
}

// The pointer to the elements of an array's row: x_row for a matrix, the array itself for a vector.
std::string RowPointer(const Program& program, const std::string& name) {
  return IsMatrix(program, name) ? name + "_row" : name;
}

}  // namespace

RowOwner OwnerOf(const Schedule& schedule) {
  if (schedule.Has("cooperate")) return RowOwner::kBlock;
  return schedule.Has("shuffle") ? RowOwner::kWarp : RowOwner::kThread;
}

std::vector<std::string> RowOperands(const Program& program, const Function& function) {
  std::vector<std::string> names;
  for (const Parameter& parameter : function.parameters) {
    if (AlongRow(program, parameter.name)) names.push_back(parameter.name);
  }
  return names;
}

std::string CallOnRow(const Program& program, const Function& function, const Element& element,
                      const std::vector<std::string>& known) {
  return CallText(function, [&](const Parameter& parameter) -> std::string {
    const std::string& name = parameter.name;
    if (std::find(known.begin(), known.end(), name) != known.end()) return name;
    if (AlongRow(program, name)) return element(name);
    return !program.AxesOf(name).empty() ? name + "[row]" : name;
  });
}

std::string SweepText(const Program& program, const std::vector<std::string>& loads, const std::string& store,
                      const std::function<std::string(const Element&)>& statements) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  Values values = {{"unroll", UnrollPragma(schedule)}, {"width", width}};
  const RowOwner owner = OwnerOf(schedule);
  values["first"] = owner == RowOwner::kThread ? "0" : owner == RowOwner::kWarp ? "lane" : "threadIdx.x";
  values["plus_first"] = owner == RowOwner::kThread ? "" : " + " + values["first"];
  const auto step = [&](const std::string& index) {
    return owner == RowOwner::kThread ? "++" + index
                                      : index + " += " + (owner == RowOwner::kWarp ? "32" : "blockDim.x");
  };
  values["next_col"] = step("col");
  values["next_i"] = step("i");
  values["single"] = statements([&](const std::string& name) { return RowPointer(program, name) + "[col]"; });
  if (width == 1) {
    return Fill(R"(
@unroll@
for (int col = @first@; col < cols; @next_col@) {
  @single@
}
)",
                values);
  }
  const std::string type = "float" + std::to_string(width);
  std::string vector;
  for (const std::string& name : loads) {
    vector += VectorLoad(type, name + "_vector", RowPointer(program, name));
  }
  values.insert({{"type", type}, {"store", store}, {"store_row", RowPointer(program, store)}});
  if (!store.empty()) vector += Fill("@type@ @store@_vector;\n", values);
  for (int k = 0; k < width; ++k) {
    const std::string text = statements([&](const std::string& name) { return name + "_vector" + Component(k); });
    // Statements that declare names stand in a block of their own.
    vector += text.find("const float ") == 0 ? Fill("{\n  @text@\n}\n", {{"text", text}}) : text;
  }
  if (!store.empty()) vector += Fill("reinterpret_cast<@type@*>(@store_row@)[i] = @store@_vector;\n", values);
  values["vector"] = vector;
  return Fill(R"(
@unroll@
for (int i = @first@; i < vectors; @next_i@) {
  @vector@
}
for (int col = vectors * @width@@plus_first@; col < cols; @next_col@) {
  @single@
}
)",
              values);
}

std::string JoinHelper(const Program& program, const std::string& name, const std::string& identity,
                       const std::function<std::string(const std::string&, const std::string&)>& join) {
  const Schedule& schedule = program.schedule;
  const int block = schedule.Get("block", 256);
  std::string text;
  if (schedule.Has("shuffle")) {
    text += Fill(R"(
// Every lane of a warp gets the joined value of all lanes.
__device__ float warp_@name@(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = @join@;
  }
  return value;
}

)",
                 {{"name", name}, {"join", join("value", "__shfl_xor_sync(0xffffffffu, value, offset)")}});
  }
  if (OwnerOf(schedule) != RowOwner::kBlock) return text;
  const Values values = {{"name", name},         {"block", block},
                         {"half", block / 2},    {"warps", block / 32},
                         {"identity", identity}, {"join", join("values[threadIdx.x]", "values[threadIdx.x + active]")}};
  if (schedule.Has("shuffle")) {
    return text + Fill(R"(
// Every thread of a block gets the joined value of all threads.
__device__ float block_@name@(float value) {
  __shared__ float values[@warps@];  // one for each warp
  value = warp_@name@(value);
  if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < @warps@ ? values[threadIdx.x % 32] : @identity@;
  value = warp_@name@(value);
  __syncthreads();  // values may be used again
  return value;
}

)",
                       values);
  }
  return text + Fill(R"(
// Every thread of a block gets the joined value of all threads.
__device__ float block_@name@(float value) {
  __shared__ float values[@block@];
  values[threadIdx.x] = value;
  __syncthreads();
  for (int active = @half@; active > 0; active /= 2) {
    if (threadIdx.x < active) values[threadIdx.x] = @join@;
    __syncthreads();
  }
  value = values[0];
  __syncthreads();  // values may be used again
  return value;
}

)",
                     values);
}

std::string JoinCall(const Program& program, const std::string& name, const std::string& text) {
  const RowOwner owner = OwnerOf(program.schedule);
  if (owner == RowOwner::kThread) return text;
  return (owner == RowOwner::kWarp ? "warp_" : "block_") + name + "(" + text + ")";
}

std::string RowStart(const Program& program) {
  const Schedule& schedule = program.schedule;
  std::string text;
  const RowOwner owner = OwnerOf(schedule);
  if (owner == RowOwner::kThread) text = "const int row = blockIdx.x * blockDim.x + threadIdx.x;\n";
  if (owner == RowOwner::kBlock) text = "const int row = blockIdx.x;\n";
  if (owner == RowOwner::kWarp) {
    text = "const int lane = threadIdx.x % 32;\nconst int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;\n";
  }
  if (owner != RowOwner::kBlock) text += "if (row >= rows) return;\n";
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer || !IsMatrix(program, parameter.name)) continue;
    text += (parameter.constant ? "const " : "") + parameter.type + "* " + parameter.name + "_row = " + parameter.name +
            " + (size_t)row * cols;\n";
  }
  const int width = schedule.Get("vectorize", 1);
  if (width > 1) {
    const std::string w = std::to_string(width);
    text += "const int vectors = cols % " + w + " == 0 ? cols / " + w + " : 0;  // whole vectors keep rows aligned\n";
  }
  return text;
}

std::string RowLaunch(const Program& program, const std::string& kernel, const std::string& shared_bytes) {
  const int block = program.schedule.Get("block", 256);
  std::string blocks = "rows";
  const RowOwner owner = OwnerOf(program.schedule);
  if (owner != RowOwner::kBlock) {
    const int rows = owner == RowOwner::kWarp ? block / 32 : block;
    blocks = "(rows + " + std::to_string(rows - 1) + ") / " + std::to_string(rows);
  }
  return Fill(
      "@launch@ {\n  @kernel@<<<@blocks@, @block@@shared@>>>(@arguments@);\n}\n",
      CommonValues(
          program, 256,
          {{"kernel", kernel}, {"blocks", blocks}, {"shared", shared_bytes.empty() ? "" : ", " + shared_bytes}}));
}

std::string OwnerComment(const Schedule& schedule) {
  const RowOwner owner = OwnerOf(schedule);
  if (owner == RowOwner::kThread) return "a thread a row";
  return std::string(owner == RowOwner::kWarp ? "a warp" : "a block") + " a row, joined by " +
         (schedule.Has("shuffle") ? "shuffles" : "a tree in shared memory");
}

std::vector<Rule> RowRules(const std::string& what_is_swept, const std::vector<Rule>& more) {
  std::vector<Rule> rules = {{kCooperate, "one block a row, reduced across its threads"},
                             {kShuffle, "reduction by warp shuffles (a warp a row unless a block has the row)"},
                             VectorRule("vectorised loads, float@value@"),
                             UnrollRule(what_is_swept),
                             RestrictRule(),
                             BlockRule()};
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

std::string MissingRowParts(const Program& program, const std::vector<std::string>& functions) {
  std::string missing = MissingNames(program, functions, {"rows", "cols"});
  if (!missing.empty()) return missing;
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer) continue;
    const Axes axes = program.AxesOf(parameter.name);
    if (axes != Axes{"rows", "cols"} && axes != Axes{"rows"} && axes != Axes{"cols"})
      return "a layout line that gives " + parameter.name + " the axes [rows][cols], [rows] or [cols]";
    if (parameter.type != "float") return parameter.name + " to be float";
  }
  return "";
}

}  // namespace kgrpo::coder_offline

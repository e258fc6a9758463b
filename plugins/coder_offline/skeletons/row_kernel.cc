#include "coder_offline/skeletons/row_kernel.h"

#include <algorithm>

#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

using Axes = std::vector<std::string>;

const Axes* LayoutOf(const Program& program, const std::string& name) {
  const auto found = program.layout.find(name);
  return found == program.layout.end() ? nullptr : &found->second;
}

bool AlongRow(const Program& program, const std::string& name) {
  const Axes* axes = LayoutOf(program, name);
  return axes != nullptr && axes->back() == "cols";
}

bool IsMatrix(const Program& program, const std::string& name) {
  const Axes* axes = LayoutOf(program, name);
  return axes != nullptr && axes->size() == 2 && axes->back() == "cols";
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
    return LayoutOf(program, name) != nullptr ? name + "[row]" : name;
  });
}

std::string SweepText(const Program& program, const std::vector<std::string>& loads, const std::string& store,
                      const std::function<std::string(const Element&)>& statements) {
  const Schedule& schedule = program.schedule;
  const int width = schedule.Get("vectorize", 1);
  std::map<std::string, std::string> values = {{"unroll", UnrollPragma(schedule)}, {"width", std::to_string(width)}};
  switch (OwnerOf(schedule)) {
    case RowOwner::kThread:
      values.insert({{"first", "0"}, {"plus_first", ""}, {"advance", "++"}});
      break;
    case RowOwner::kWarp:
      values.insert({{"first", "lane"}, {"plus_first", " + lane"}, {"advance", "32"}});
      break;
    case RowOwner::kBlock:
      values.insert({{"first", "threadIdx.x"}, {"plus_first", " + threadIdx.x"}, {"advance", "blockDim.x"}});
      break;
  }
  const auto step = [&](const std::string& index) {
    return values["advance"] == "++" ? "++" + index : index + " += " + values["advance"];
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
  const std::map<std::string, std::string> values = {
      {"name", name},
      {"block", std::to_string(block)},
      {"half", std::to_string(block / 2)},
      {"warps", std::to_string(block / 32)},
      {"identity", identity},
      {"join", join("values[threadIdx.x]", "values[threadIdx.x + active]")}};
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
  switch (OwnerOf(program.schedule)) {
    case RowOwner::kThread:
      return text;
    case RowOwner::kWarp:
      return "warp_" + name + "(" + text + ")";
    case RowOwner::kBlock:
      return "block_" + name + "(" + text + ")";
  }
  return text;
}

std::string RowStart(const Program& program) {
  const Schedule& schedule = program.schedule;
  std::string text;
  switch (OwnerOf(schedule)) {
    case RowOwner::kThread:
      text = "const int row = blockIdx.x * blockDim.x + threadIdx.x;\nif (row >= rows) return;\n";
      break;
    case RowOwner::kWarp:
      text =
          "const int lane = threadIdx.x % 32;\n"
          "const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;\nif (row >= rows) return;\n";
      break;
    case RowOwner::kBlock:
      text = "const int row = blockIdx.x;\n";
      break;
  }
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
  const std::string shared = shared_bytes.empty() ? "" : ", " + shared_bytes;
  return LaunchLine(program) + " {\n  " + kernel + "<<<" + blocks + ", " + std::to_string(block) + shared + ">>>(" +
         ArgumentList(program.parameters) + ");\n}\n";
}

std::string OwnerComment(const Schedule& schedule) {
  switch (OwnerOf(schedule)) {
    case RowOwner::kThread:
      return "a thread a row";
    case RowOwner::kWarp:
      return "a warp a row, joined by shuffles";
    case RowOwner::kBlock:
      return schedule.Has("shuffle") ? "a block a row, joined by shuffles"
                                     : "a block a row, joined by a tree in shared memory";
  }
  return "";
}

std::vector<Rule> RowRules(const std::string& what_is_swept) {
  return {
      {Technique::kCooperate, "cooperate", {}, 1, "one block a row, reduced across its threads", nullptr},
      {Technique::kShuffle,
       "shuffle",
       {},
       1,
       "reduction by warp shuffles (a warp a row unless a block has the row)",
       nullptr},
      {Technique::kVectorize, "vectorize", {2, 4}, 4, "vectorised loads, float@value@", nullptr},
      UnrollRule(what_is_swept),
      RestrictRule(),
      BlockRule(),
  };
}

std::string MissingRowParts(const Program& program, const std::vector<std::string>& functions) {
  std::string missing = MissingNames(program, functions, {"rows", "cols"});
  if (!missing.empty()) return missing;
  for (const Parameter& parameter : program.parameters) {
    if (!parameter.pointer) continue;
    const Axes* axes = LayoutOf(program, parameter.name);
    const bool known =
        axes != nullptr && (*axes == Axes{"rows", "cols"} || *axes == Axes{"rows"} || *axes == Axes{"cols"});
    if (!known) return "a layout line that gives " + parameter.name + " the axes [rows][cols], [rows] or [cols]";
    if (parameter.type != "float") return parameter.name + " to be float";
  }
  return "";
}

}  // namespace kgrpo::coder_offline

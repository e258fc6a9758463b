#include "builder.h"

#include <algorithm>
#include <iterator>

namespace kgrpo::generated {
namespace {

// What kernels know of a type by its letter: the C++ name, how it is stored, and how a value comes from an input word.
struct Type {
  char letter;
  const char* name;
  ValueType stored;
  const char *before, *after;
};
constexpr Type kTypes[] = {
    {'u', "unsigned", ValueType::kU32, "(unsigned)", ""},
    {'s', "int", ValueType::kU32, "(int)(unsigned)", ""},
    {'U', "unsigned long long", ValueType::kU64, "", ""},
    {'S', "long long", ValueType::kU64, "(long long)", ""},
    {'f', "float", ValueType::kF32, "__uint_as_float((unsigned)", ")"},
    {'d', "double", ValueType::kF64, "FromBits(", ")"},
    {'h', "__half", ValueType::kF16, "FromBits16<__half>((unsigned)", ")"},
    {'b', "__nv_bfloat16", ValueType::kBf16, "FromBits16<__nv_bfloat16>((unsigned)", ")"},
    {'H', "__half2", ValueType::kF16x2, "PairOf((unsigned)", ", __half())"},
    {'B', "__nv_bfloat162", ValueType::kBf16x2, "PairOf((unsigned)", ", __nv_bfloat16())"},
};

const Type& TypeOf(char letter) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [letter](const Type& type) { return type.letter == letter; });
}

}  // namespace

const char* CppType(char type) { return TypeOf(type).name; }

Builder::Builder(uint64_t number, Kind kind) : random(number), operations(Operations(kind)) {
  kernel.number = number;
  kernel.kind = kind;
  kernel.name = "k" + std::to_string(number);
  kernel.threads = 64;
  kernel.host = kind <= Kind::kControl;
}

std::string Builder::Value(char type) {
  std::vector<const Value_*> fitting;
  for (const Value_& value : values_) {
    if (value.type == type) fitting.push_back(&value);
  }
  if (!fitting.empty() && (inputs_ > 24 || random.Below(8) != 0)) return fitting[random.Below(fitting.size())]->name;
  const std::string name = "i" + std::to_string(inputs_++);
  const std::string word =
      "in[(t * " + std::to_string(2 * random.Below(16) + 1) + "u + " + Number(kInputWords) + "u) & 1023u]";
  const Type& known = TypeOf(type);
  before_ += "  const " + std::string(known.name) + " " + name + " = " + known.before + word + known.after + ";\n";
  values_.push_back({type, name});
  return name;
}

std::string Builder::Fill(const Operation& operation) {
  std::string text;
  std::vector<std::string> arguments;
  for (const char type : operation.arguments) arguments.push_back(Value(type));
  for (size_t at = 0; at < operation.text.size(); ++at) {
    if (operation.text[at] == '$')
      text += arguments[static_cast<size_t>(operation.text[++at] - '0')];
    else
      text += operation.text[at];
  }
  return text;
}

std::string Builder::Expression(const std::vector<Operation>& list, char type) {
  std::vector<const Operation*> fitting;
  for (const Operation& operation : list) {
    if (operation.result == type) fitting.push_back(&operation);
  }
  return Fill(*fitting[random.Below(fitting.size())]);
}

std::string Builder::Add(char type, const std::string& text, const std::string& description, double ulps,
                         double absolute) {
  const std::string name = "v" + std::to_string(kernel.results.size());
  std::string line;
  for (const char c : text) line += c == '$' ? name : std::string(1, c);
  Line(line);
  // A value that is only approximately known may not be an operand of others.
  if (ulps == 0 && absolute == 0) values_.push_back({type, name});
  stored_.push_back(name);
  kernel.results.push_back({TypeOf(type).stored, ulps, absolute, name + " = " + description});
  return name;
}

std::string Builder::AddExpression(char type, const std::string& expression, double ulps, double absolute) {
  return Add(type, std::string(CppType(type)) + " $ = " + expression + ";", expression, ulps, absolute);
}

void Builder::Straight(int count) {
  for (int i = 0; i < count; ++i) {
    const Operation& operation = operations[random.Below(operations.size())];
    AddExpression(operation.result, Fill(operation), operation.ulps, operation.absolute);
  }
}

GeneratedKernel Builder::Finish() {
  std::string& text = kernel.source;
  text = before_ + body_;
  const std::string threads = std::to_string(kernel.Threads());
  for (size_t i = 0; i < stored_.size(); ++i)
    text += "  out[" + std::to_string(i) + "u * " + threads + "u + t] = Stored(" + stored_[i] + ");\n";
  text = "extern \"C\" __global__ void " + kernel.name +
         "(const unsigned long long* in, unsigned long long* out, unsigned long long* scratch) {\n  const unsigned t = "
         "blockIdx.x * blockDim.x + threadIdx.x;\n" +
         text + "}\n";
  return kernel;
}

std::string HostSource(const GeneratedKernel& kernel) {
  const size_t body = kernel.source.find('\n', kernel.source.find("const unsigned t")) + 1;
  return "extern \"C\" void " + kernel.name +
         "(const unsigned long long* in, unsigned long long* out, unsigned long long*, unsigned t) {\n" +
         kernel.source.substr(body);
}

}  // namespace kgrpo::generated

#include "builder.h"

#include <string_view>

namespace kgrpo::generated {
namespace {

std::vector<Operation> OperationsOf(Kind kind) {
  switch (kind) {
    case Kind::kFloat:
      return FloatOperations();
    case Kind::kDouble:
      return DoubleOperations();
    case Kind::kConvert:
      return ConvertOperations();
    case Kind::kHalf:
      return HalfOperations();
    case Kind::kWarp:
      return WarpOperations();
    case Kind::kApproximate:
      return ApproximateOperations();
    case Kind::kMath:
      return MathOperations();
    default:
      return IntegerOperations();
  }
}

ValueType TypeOf(char type) {
  switch (type) {
    case 'U':
    case 'S':
      return ValueType::kU64;
    case 'f':
      return ValueType::kF32;
    case 'd':
      return ValueType::kF64;
    case 'h':
      return ValueType::kF16;
    case 'b':
      return ValueType::kBf16;
    case 'H':
      return ValueType::kF16x2;
    case 'B':
      return ValueType::kBf16x2;
    default:
      return ValueType::kU32;
  }
}

// How a value of the type comes from an input word.
std::string FromWord(char type, const std::string& word) {
  switch (type) {
    case 'u':
      return "(unsigned)" + word;
    case 's':
      return "(int)(unsigned)" + word;
    case 'S':
      return "(long long)" + word;
    case 'f':
      return "__uint_as_float((unsigned)" + word + ")";
    case 'd':
      return "FromBits(" + word + ")";
    case 'h':
      return "FromBits16<__half>((unsigned)" + word + ")";
    case 'b':
      return "FromBits16<__nv_bfloat16>((unsigned)" + word + ")";
    case 'H':
      return "PairOf((unsigned)" + word + ", __half())";
    case 'B':
      return "PairOf((unsigned)" + word + ", __nv_bfloat16())";
    default:
      return word;
  }
}

}  // namespace

const char* CppType(char type) {
  switch (type) {
    case 'u':
      return "unsigned";
    case 's':
      return "int";
    case 'U':
      return "unsigned long long";
    case 'S':
      return "long long";
    case 'f':
      return "float";
    case 'd':
      return "double";
    case 'h':
      return "__half";
    case 'b':
      return "__nv_bfloat16";
    case 'H':
      return "__half2";
    default:
      return "__nv_bfloat162";
  }
}

Builder::Builder(uint64_t number, Kind kind) : random(number), operations(OperationsOf(kind)) {
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
  before_ += "  const " + std::string(CppType(type)) + " " + name + " = " + FromWord(type, word) + ";\n";
  values_.push_back({type, name});
  return name;
}

std::string Builder::Fill(const Operation& operation) {
  std::string text;
  std::vector<std::string> arguments;
  for (const char* type = operation.arguments; *type != '\0'; ++type) arguments.push_back(Value(*type));
  for (const char* at = operation.text; *at != '\0'; ++at) {
    if (*at == '$') {
      text += arguments[static_cast<size_t>(*++at - '0')];
    } else {
      text += *at;
    }
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
  kernel.results.push_back({TypeOf(type), ulps, absolute, name + " = " + description});
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

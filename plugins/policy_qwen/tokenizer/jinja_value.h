// The values of a Jinja template: JSON, with Python's rules for truth, equality, order and text; a tuple is a list.
// They never change, as in jinja2's ImmutableSandboxedEnvironment. Errors are kgrpo::Error; Template::Render adds the
// place.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kgrpo::jinja {

using Json = nlohmann::ordered_json;
struct Object;

struct Value {
  Value() = default;  // undefined
  template <typename T>
  requires(std::constructible_from<Json, T> && !std::is_pointer_v<T> && !std::same_as<T, Value>) Value(T value)
      : data(std::make_shared<const Json>(std::move(value))) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Object* made) : object(made) {}
  Value(const Value& whole, const Json& part) : data(whole.data, &part) {}  // keeps `whole` alive

  bool undefined() const { return object == nullptr && (data == nullptr || data->is_discarded()); }
  bool none() const { return data != nullptr && data->is_null(); }
  bool boolean() const { return data != nullptr && data->is_boolean(); }
  bool text() const { return data != nullptr && data->is_string(); }
  bool list() const { return data != nullptr && data->is_array(); }
  bool dict() const { return data != nullptr && data->is_object(); }
  bool real() const { return data != nullptr && data->is_number_float(); }
  bool integer() const { return data != nullptr && (data->is_number_integer() || data->is_boolean()); }
  bool number() const { return integer() || real(); }
  const Json& json() const;        // fails for what is undefined or an object
  const std::string& str() const;  // these fail for another type
  int64_t whole() const;
  double real_value() const { return real() ? data->get<double>() : static_cast<double>(whole()); }

  std::shared_ptr<const Json> data;
  Object* object = nullptr;
  bool safe = false;  // a text of the filter `safe`: + escapes for HTML what is joined to it
  std::string what;   // of an undefined value: the error of its use
};
using Values = std::vector<Value>;

struct Arguments {
  Values list;
  std::vector<std::pair<std::string, Value>> named;
};

// What has an identity: a namespace, a loop, or a function. Owned by the Run that made it.
struct Object {
  std::string type;
  std::map<std::string, Value, std::less<>> members = {};
  std::function<Value(const Arguments&)> call = nullptr;
};

// The limits of one rendering, and what it owns.
struct Run {
  void Spend(size_t steps);                           // fails when the template has run for too long
  void Touch(const Value& value, bool deep = false);  // spends the size of a value, or of its first level
  Value Charge(Value value);  // of a value that was made here: spends its size; fails if it is nested too deeply
  Values ElementsOf(const Value& value);  // Elements, after spending their number
  Object& Make(Object object);

  size_t steps_left = size_t{1} << 24;
  std::deque<Object> objects = {};
  std::time_t now = 0;  // of strftime_now
};

[[noreturn]] void Fail(const std::string& what);
Value Undefined(const std::string& what);
std::string TypeName(const Value& value);  // as Python's error messages name it
bool Truth(const Value& value);
Value Operate(const std::string& op, const Value& a, const Value& b);  // fails if Python's operator does
size_t Length(const Value& value);
Values Elements(const Value& value);  // of a loop over the value: a dict's keys, a text's characters
Json ListOf(const Values& values);
Json JsonOf(const Value& value);            // a namespace is a dict
std::string MemberKey(const Value& value);  // of a dict's member: a key that is no text is marked
Value Item(const Value& value, const Value& key);
Value Slice(const Value& value, const Values& bounds);  // start, stop and step; each may be none
std::string Str(const Value& value);                    // str(value); "" if undefined
// repr(value) or, if not `python`, json.dumps(value), on several lines if there is an indentation.
struct DumpStyle {
  bool python = true, ascii = false, sorted = false;
  std::optional<std::string> indent = {};
  std::string comma = ", ", colon = ": ";
};
std::string Dump(const Json& json, const DumpStyle& style = {});
std::u32string CodePoints(std::string_view text);
std::string FromCodePoints(std::u32string_view code_points);
bool IsSpace(char32_t code_point);  // str.isspace

// In jinja_library.cc: filters '|', tests 'i' and methods '.'.
bool IsKnown(char kind, const Value& subject, std::string_view name);
Value Call(Run& run, char kind, const std::string& name, const Value& subject, const Arguments& arguments);
void AddFunctions(Run& run, std::map<std::string, Value, std::less<>>& names);  // range, namespace and the like

}  // namespace kgrpo::jinja
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_JINJA_VALUE_H_

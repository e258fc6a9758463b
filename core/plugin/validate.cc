#include "plugin/validate.h"

#include <kgrpo/sdk/error.h>
#include <kgrpo/sdk/text.h>

#include <algorithm>
#include <boost/dll/library_info.hpp>
#include <exception>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "config/schema.h"
#include "host/services.h"
#include "plugin/child.h"
#include "plugin/library.h"

namespace kgrpo {
namespace {

using Json = nlohmann::json;

constexpr int kSecondsPerGroup = 120;

// Runs checks within a child and reports each as a line of JSON: {"begin": name}, then {"end": name, ...}. A check that
// begins and does not end is the one that crashed.
class Session {
 public:
  explicit Session(const std::function<void(const std::string&)>& write) : write_(write) {}

  // `body` returns what was seen, or throws why the check failed.
  void Check(const std::string& name, const std::function<std::string()>& body) {
    Write({{"begin", name}});
    Json line = {{"end", name}};
    try {
      line["detail"] = body();
      line["passed"] = true;
    } catch (const std::exception& error) {
      line["detail"] = error.what();
      line["passed"] = false;
    }
    Write(line);
  }

 private:
  void Write(const Json& line) { write_(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

  const std::function<void(const std::string&)>& write_;
};

[[noreturn]] void Fail(const std::string& why) {
  throw Error(KGRPO_ERROR_INTERNAL, why);
}

// Runs a group of checks in a child and appends their results.
void RunGroup(const std::string& what, const std::function<void(Session&)>& group, std::vector<ContractCheck>* checks) {
  const ChildResult child = RunInChild(
      [&](const auto& write) {
        Session session(write);
        group(session);
      },
      kSecondsPerGroup);
  std::string running = what;
  std::istringstream lines(child.output);
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text);
    if (line.contains("begin")) {
      running = line["begin"];
    } else {
      checks->push_back({line["end"], line["passed"], line["detail"]});
      running = "after \"" + line["end"].get<std::string>() + "\"";
    }
  }
  if (!child.failure.empty()) checks->push_back({running, false, child.failure});
}

// Every table is struct_size and then function pointers: those that may be NULL, by index.
std::set<size_t> OptionalFunctions(Role role) {
  const auto index = [](size_t offset) { return offset / sizeof(void*) - 1; };
  if (role == Role::kCoder) return {index(offsetof(kgrpo_coder_interface, suggestions))};
  if (role == Role::kReward) return {index(offsetof(kgrpo_reward_interface, idle))};
  if (role == Role::kObserver) {
    std::set<size_t> events;
    for (size_t i = index(offsetof(kgrpo_observer_interface, begin));
         i <= index(offsetof(kgrpo_observer_interface, end)); ++i)
      events.insert(i);
    return events;
  }
  return {};
}

std::string CheckTable(const PluginLibrary& library, Role role) {
  const void* table = library.Table<void>(role);
  if (library.Table<void>(role) != table) Fail("get_interface returns another table each time: tables are static");
  const auto* functions = reinterpret_cast<void* const*>(table) + 1;
  const size_t count = RoleInterfaceSize(role) / sizeof(void*) - 1;
  const std::set<size_t> optional = OptionalFunctions(role);
  for (size_t i = 0; i < count; ++i) {
    if (functions[i] == nullptr && !optional.contains(i)) {
      Fail("function " + std::to_string(i + 1) + " of the table (in the header's order) is NULL, and is not optional");
    }
  }
  return std::to_string(count) + " functions";
}

std::string CheckSchema(const PluginLibrary& library, Role role) {
  const auto* table = library.Table<InterfacePrefix>(role);
  if (table->options_schema().data != table->options_schema().data)
    Fail("options_schema returns another text each time");
  const Schema schema = library.OptionsSchema(role);
  const std::vector<std::string> mistakes = FindSchemaMistakes(schema);
  if (mistakes.empty()) return std::to_string(schema.value("properties", Schema::object()).size()) + " options";
  std::string all;
  for (const std::string& mistake : mistakes) all += (all.empty() ? "" : "; ") + mistake;
  Fail(all);
}

// create and destroy of any role: they have the same shape, and stand in the same places.
struct Factory {
  uint32_t struct_size;
  kgrpo_str (*options_schema)(void);
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, void** out);
  void (*destroy)(void* self);
};
template <typename T>
constexpr bool kHasFactory = offsetof(T, create) == offsetof(Factory, create) &&
                             offsetof(T, destroy) == offsetof(Factory, destroy);
static_assert(kHasFactory<kgrpo_policy_interface> && kHasFactory<kgrpo_coder_interface> &&
              kHasFactory<kgrpo_evaluator_interface> && kHasFactory<kgrpo_reward_interface> &&
              kHasFactory<kgrpo_trainer_interface> && kHasFactory<kgrpo_observer_interface>);

// The error's message, checked for form; releases it.
std::string TakeMessage(kgrpo_error* error) {
  if (error->struct_size < KGRPO_ERROR_SIZE_1) Fail("the error's struct_size is " + std::to_string(error->struct_size));
  if (error->release == nullptr) Fail("the error has no release");
  std::string message = Copy(error->message);
  const uint32_t code = error->code;
  error->release(error);
  if (message.empty()) Fail("the error has no message");
  if (code < KGRPO_ERROR_INVALID || code > KGRPO_ERROR_INTERNAL)
    Fail("the error has the unknown code " + std::to_string(code));
  return message;
}

void CheckCreation(Session& session, const PluginLibrary& library, Role role) {
  HostServices services({});
  const kgrpo_host* host = services.ForInstance(library.name());
  const auto* factory = library.Table<Factory>(role);
  const std::string prefix = std::string(RoleName(role)) + ": ";

  session.Check(prefix + "destroy takes NULL", [&] {
    factory->destroy(nullptr);
    return std::string();
  });

  session.Check(prefix + "create with defaults works or says why not", [&]() -> std::string {
    Node node = Node::Mapping({});
    const Schema schema = library.OptionsSchema(role);
    FillDefaults(schema, &node);
    const std::string options = nlohmann::json(node.ToJson()).dump();
    if (!Satisfies(nlohmann::json(node.ToJson()), schema, nullptr, nullptr))
      return "not tried: some options have no default";
    void* instance = nullptr;
    if (kgrpo_error* error = factory->create(host, Str(options), &instance)) {
      if (instance != nullptr) Fail("create failed and yet wrote its output");
      return "refused: " + TakeMessage(error);
    }
    if (instance == nullptr) Fail("create reported success but made no instance");
    factory->destroy(instance);
    return "an instance was made and destroyed";
  });

  const std::pair<const char*, const char*> kBroken[] = {
      {"text that is not JSON", "{\"a\": "}, {"a list", "[]"}, {"null", "null"}, {"nothing at all", ""}};
  for (const auto& broken : kBroken) {
    session.Check(prefix + "create refuses " + broken.first + " as options", [&]() -> std::string {
      void* instance = nullptr;
      kgrpo_error* error = factory->create(host, Str(broken.second), &instance);
      if (error == nullptr) {
        factory->destroy(instance);
        Fail("create accepted them");
      }
      if (instance != nullptr) Fail("create failed and yet wrote its output");
      return TakeMessage(error);
    });
  }

  session.Check(prefix + "create survives options of the wrong type", [&]() -> std::string {
    size_t refused = 0, tried = 0;
    const Schema schema = library.OptionsSchema(role);
    const Schema properties = schema.value("properties", Schema::object());
    for (const auto& [key, property] : properties.items()) {
      const Json options = {{key, Json::array({Json::object()})}};
      void* instance = nullptr;
      kgrpo_error* error = factory->create(host, Str(options.dump()), &instance);
      ++tried;
      if (error != nullptr) {
        TakeMessage(error);
        ++refused;
      } else {
        factory->destroy(instance);
      }
    }
    return std::to_string(refused) + " of " + std::to_string(tried) + " refused by the plugin itself";
  });
}

void CheckBootstrap(Session& session, const std::filesystem::path& path) {
  std::unique_ptr<PluginLibrary> library;
  session.Check("the library loads and its bootstrap is sound", [&] {
    library = std::make_unique<PluginLibrary>(path);
    return library->name() + " " + library->version();
  });
  if (library == nullptr) return;
  session.Check("its name, version and summary are well formed", [&]() -> std::string {
    if (!std::regex_match(library->name(), std::regex("[a-z][a-z0-9_]*")))
      Fail("the name \"" + library->name() + "\" is not of the form [a-z][a-z0-9_]*");
    const std::string stem = path.stem().string();
    if (stem != library->name() && stem != "lib" + library->name())
      Fail("the file is named " + stem + ", the plugin " + library->name() + ": pipelines would look for the latter");
    if (library->version().empty()) Fail("the version is empty");
    if (library->summary().empty() || library->summary().find('\n') != std::string::npos)
      Fail("the summary must be one line");
    return library->summary();
  });
  session.Check("it exports " KGRPO_PLUGIN_ENTRY " alone", [&]() -> std::string {
    boost::dll::library_info info(boost::dll::fs::path(path.string()));
    std::string others;
    size_t count = 0;
    for (const std::string& symbol : info.symbols()) {
      if (symbol == KGRPO_PLUGIN_ENTRY || symbol.empty()) continue;
      if (++count <= 3) others += " " + symbol;
    }
    if (count > 0)
      Fail(std::to_string(count) + " other symbols are exported, which may clash with another plugin's:" + others);
    return "";
  });
  session.Check("an interface that nobody knows is NULL", [&]() -> std::string {
    for (const char* id : {"kgrpo.nothing/1", "kgrpo.reward/999", ""}) {
      if (library->bootstrap().get_interface(Str(id)) != nullptr)
        Fail("get_interface(\"" + std::string(id) + "\") is not NULL");
    }
    return "";
  });
  session.Check("it offers an interface", [&]() -> std::string {
    std::string roles;
    for (Role role : kRoles) {
      if (library->Plays(role)) roles += (roles.empty() ? "" : ", ") + std::string(RoleInterface(role));
    }
    if (roles.empty()) Fail("none that this host knows");
    return roles;
  });
  for (Role role : kRoles) {
    if (!library->Plays(role)) continue;
    const std::string prefix = std::string(RoleName(role)) + ": ";
    session.Check(prefix + "its table is complete", [&] { return CheckTable(*library, role); });
    session.Check(prefix + "its options schema is sound", [&] { return CheckSchema(*library, role); });
  }
}

}  // namespace

std::vector<ContractCheck> ValidatePlugin(const std::filesystem::path& path) {
  std::vector<ContractCheck> checks;
  RunGroup(
      "loading", [&](Session& session) { CheckBootstrap(session, path); }, &checks);
  // Creation goes through the table and the schema: with a broken one there is nothing more to learn.
  const bool sound = !checks.empty() && checks.front().passed &&
                     std::all_of(checks.begin(), checks.end(), [](const ContractCheck& check) {
                       return check.passed || !(check.name.ends_with("complete") || check.name.ends_with("sound"));
                     });
  if (!sound) return checks;
  for (Role role : kRoles) {
    RunGroup(
        std::string(RoleName(role)) + ": loading",
        [&](Session& session) {
          const PluginLibrary library(path);
          if (library.Plays(role)) CheckCreation(session, library, role);
        },
        &checks);
  }
  return checks;
}

}  // namespace kgrpo

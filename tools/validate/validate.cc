// The order of the checks, and those of the library itself: bootstrap, tables, schemas. create.cc creates
// instances; the role's own file (coder.cc, ...) calls each role.
#include "validate/validate.h"

#include <kgrpo/draft/collective.h>
#include <kgrpo/sdk/text.h>
#include <kgrpo/support/closest.h>  // JoinedText

#include <algorithm>
#include <boost/dll/library_info.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/directories.h"
#include "config/schema.h"
#include "plugin/child.h"
#include "plugin/library.h"
#include "validate/create.h"
#include "validate/session.h"

namespace kgrpo {
namespace {

using nlohmann::json;
using validate::Fail;
using validate::Session;

CheckOutcome OutcomeNamed(const std::string& name) {
  if (name == "passed") return CheckOutcome::kPassed;
  if (name == "skipped") return CheckOutcome::kSkipped;
  return name == "warning" ? CheckOutcome::kWarning : CheckOutcome::kFailed;
}

// Runs a group of checks in a child and appends their results.
void RunGroup(const std::string& what, int seconds, const std::function<void(Session&)>& group,
              std::vector<ContractCheck>* checks) {
  const ChildResult child = RunInChild(
      [&](const auto& write) {
        Session session(write);
        group(session);
      },
      seconds);
  std::string running = what;
  std::istringstream lines(child.output);
  for (std::string text; std::getline(lines, text);) {
    const json line = json::parse(text);
    if (line.contains("begin")) {
      running = line["begin"];
    } else {
      checks->push_back({line["end"], OutcomeNamed(line["outcome"]), line["detail"]});
      running = "after \"" + line["end"].get<std::string>() + "\"";
    }
  }
  if (!child.failure.empty()) checks->push_back({running, CheckOutcome::kFailed, child.failure});
}

// Returns the indices of the functions that may be NULL. Every table is struct_size and then function pointers.
std::set<size_t> OptionalFunctions(Role role) {
#define KGRPO_INDEX(role, function) (offsetof(kgrpo_##role##_interface, function) / sizeof(void*) - 1)
  switch (role) {
    case Role::kCoder:
      return {KGRPO_INDEX(coder, suggestions), KGRPO_INDEX(coder, describe_request), KGRPO_INDEX(coder, describe),
              KGRPO_INDEX(coder, spending), KGRPO_INDEX(coder, get_extension)};
    case Role::kEvaluator: return {KGRPO_INDEX(evaluator, get_extension)};
    case Role::kReward: return {KGRPO_INDEX(reward, idle), KGRPO_INDEX(reward, get_extension)};
    case Role::kObserver:
      return {KGRPO_INDEX(observer, begin),      KGRPO_INDEX(observer, round), KGRPO_INDEX(observer, step),
              KGRPO_INDEX(observer, checkpoint), KGRPO_INDEX(observer, end),   KGRPO_INDEX(observer, get_extension)};
    case Role::kPolicy: return {KGRPO_INDEX(policy, backward_in_pieces), KGRPO_INDEX(policy, get_extension)};
    case Role::kTrainer: return {KGRPO_INDEX(trainer, check_plan), KGRPO_INDEX(trainer, get_extension)};
  }
#undef KGRPO_INDEX
  return {};
}

// `size`: of the struct as released.
std::string CheckFunctions(const void* table, size_t size, const std::set<size_t>& optional) {
  const auto* functions = reinterpret_cast<void* const*>(table) + 1;
  const size_t count = size / sizeof(void*) - 1;
  for (size_t i = 0; i < count; ++i) {
    if (functions[i] == nullptr && !optional.contains(i)) {
      Fail("function " + std::to_string(i + 1) + " of the table (in the header's order) is NULL, and is not optional");
    }
  }
  return std::to_string(count) + " functions";
}

std::string CheckTable(const PluginLibrary& library, Role role) {
  const void* table = library.Table<void>(role);
  if (library.Table<void>(role) != table) Fail("get_interface returns another table each time: tables are static");
  return CheckFunctions(table, RoleInterfaceSize(role), OptionalFunctions(role));
}

// A transport has no role in a pipeline, and its calls need several ranks: only its tables are checked.
std::string CheckTransport(const kgrpo_transport_interface& transport) {
  if (transport.struct_size < KGRPO_TRANSPORT_INTERFACE_SIZE_1)
    Fail("its table has " + std::to_string(transport.struct_size) + " bytes of " +
         std::to_string(KGRPO_TRANSPORT_INTERFACE_SIZE_1));
  CheckFunctions(&transport, KGRPO_TRANSPORT_INTERFACE_SIZE_1, {});
  constexpr size_t kBegin = offsetof(kgrpo_collective_interface, begin_reduce_scatter) / sizeof(void*) - 1;
  return CheckFunctions(transport.collective, KGRPO_COLLECTIVE_INTERFACE_SIZE_1, {kBegin, kBegin + 1}) +
         " of the collective";
}

std::string CheckSchema(const PluginLibrary& library, Role role) {
  const auto* table = library.Table<InterfacePrefix>(role);
  if (table->options_schema().data != table->options_schema().data)
    Fail("options_schema returns another text each time");
  const Schema schema = library.OptionsSchema(role);
  const std::vector<std::string> mistakes = FindSchemaMistakes(schema);
  if (mistakes.empty()) return std::to_string(schema.value("properties", Schema::object()).size()) + " options";
  Fail(JoinedText(mistakes, "; "));
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
  session.Check("an unknown interface id returns NULL", [&]() -> std::string {
    for (const char* id : {"kgrpo.nothing/1", "kgrpo.reward/999", ""}) {
      if (library->bootstrap().get_interface(Str(id)) != nullptr)
        Fail("get_interface(\"" + std::string(id) + "\") is not NULL");
    }
    return "";
  });
  const kgrpo_transport_interface* const transport = library->transport();
  session.Check("it offers an interface", [&]() -> std::string {
    std::string roles = transport == nullptr ? "" : KGRPO_TRANSPORT_INTERFACE;
    for (Role role : kRoles) {
      if (library->Plays(role)) roles += (roles.empty() ? "" : ", ") + std::string(RoleInterface(role));
    }
    if (roles.empty()) Fail("none that this host knows");
    return roles;
  });
  if (transport != nullptr)
    session.Check("transport: its table is complete", [&] { return CheckTransport(*transport); });
  for (Role role : kRoles) {
    if (!library->Plays(role)) continue;
    const std::string prefix = std::string(RoleName(role)) + ": ";
    session.Check(prefix + "its table is complete", [&] { return CheckTable(*library, role); });
    session.Check(prefix + "its options schema is sound", [&] { return CheckSchema(*library, role); });
  }
}

}  // namespace

std::vector<ContractCheck> ValidatePlugin(const std::filesystem::path& path, const ValidateOptions& options) {
  std::vector<ContractCheck> checks;
  RunGroup(
      "loading", options.seconds, [&](Session& session) { CheckBootstrap(session, path); }, &checks);
  // The remaining checks use the tables and the schemas, so a broken one ends the validation.
  const auto is_sound = [](const ContractCheck& check) {
    return check.outcome != CheckOutcome::kFailed ||
           !(check.name.ends_with("complete") || check.name.ends_with("sound"));
  };
  if (checks.empty() || checks.front().outcome == CheckOutcome::kFailed ||
      !std::all_of(checks.begin(), checks.end(), is_sound)) {
    return checks;
  }
  const TemporaryDirectory directory;  // the children end without removing theirs
  for (Role role : kRoles) {
    const std::string loading = std::string(RoleName(role)) + ": loading";
    const auto run = [&](const auto& check) {
      RunGroup(
          loading, options.seconds,
          [&](Session& session) {
            const PluginLibrary library(path);
            if (library.Plays(role)) check(session, validate::Subject{library, role, options, directory.path()});
          },
          &checks);
    };
    run(validate::CheckCreation);
    run(validate::CheckCalls);
  }
  return checks;
}

}  // namespace kgrpo

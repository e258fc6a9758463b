#include "validate/create.h"

#include <kgrpo/sdk/text.h>

#include <optional>
#include <string>
#include <utility>

#include "base/services.h"
#include "config/load.h"
#include "config/schema.h"
#include "validate/calls.h"

namespace kgrpo::validate {
namespace {

using nlohmann::json;

// create and destroy of any role: all tables have them with the same form at the same offsets.
struct Factory {
  uint32_t struct_size;
  kgrpo_str (*options_schema)(void);
  kgrpo_error* (*create)(const kgrpo_host* host, kgrpo_str options, void** out);
  void (*destroy)(void* self);
};
template <typename T>
constexpr bool kHasFactory = offsetof(T, options_schema) == offsetof(Factory, options_schema) &&
                             offsetof(T, create) == offsetof(Factory, create) &&
                             offsetof(T, destroy) == offsetof(Factory, destroy);
static_assert(kHasFactory<kgrpo_policy_interface> && kHasFactory<kgrpo_coder_interface> &&
              kHasFactory<kgrpo_evaluator_interface> && kHasFactory<kgrpo_reward_interface> &&
              kHasFactory<kgrpo_trainer_interface> && kHasFactory<kgrpo_observer_interface>);

constexpr const char* kGiveOptions = "give options with --options FILE.json";

// A host whose folders are in the subject's.
HostServices Services(const Subject& subject) {
  HostOptions options;
  options.artifact_root = subject.directory / "artifacts";
  options.cache_root = subject.directory / "cache";
  return HostServices(std::move(options));
}

// Returns the options to create with, defaults filled in; nothing if the defaults alone do not satisfy the schema.
// Throws the mistakes of options that were given.
std::optional<std::string> Options(const Subject& subject) {
  size_t roles = 0;
  for (Role role : kRoles) roles += subject.library.Plays(role) ? 1 : 0;
  json given = subject.options.options;
  if (roles > 1 && given.is_object()) given = given.value(RoleName(subject.role), json());
  const Schema schema = subject.library.OptionsSchema(subject.role);
  if (!given.is_null()) return CheckOptions(nlohmann::ordered_json(given), schema, "", "--options").dump();
  Node node = Node::Mapping({});
  FillDefaults(schema, &node);
  const json options = node.ToJson();
  if (!Satisfies(options, schema)) return std::nullopt;
  return options.dump();
}

}  // namespace

void CheckCreation(Session& session, const Subject& subject) {
  HostServices services = Services(subject);
  const kgrpo_host* host = services.ForInstance(subject.library.name());
  const auto* factory = subject.library.Table<Factory>(subject.role);
  const std::string prefix = std::string(RoleName(subject.role)) + ": ";

  session.Check(prefix + "destroy takes NULL", [&] {
    factory->destroy(nullptr);
    return std::string();
  });
  const std::string which = subject.options.options.is_null() ? "with defaults" : "with the options given";
  session.Check(prefix + "create " + which + " works or says why not", [&]() -> std::string {
    const std::optional<std::string> options = Options(subject);
    if (!options) Skip(kGiveOptions);
    void* instance = nullptr;
    if (kgrpo_error* error = factory->create(host, Str(*options), &instance)) {
      if (instance != nullptr) Fail("create failed and yet wrote its output");
      const std::string refusal = TakeMessage(error);
      // Options that the user gave must work; defaults may fail for lack of a model or a device.
      if (!subject.options.options.is_null()) Fail("create refused the options given: " + refusal);
      return "refused: " + refusal;
    }
    if (instance == nullptr) Fail("create reported success but made no instance");
    factory->destroy(instance);
    return "an instance was made and destroyed";
  });
}

void CheckCalls(Session& session, const Subject& subject) {
  HostServices services = Services(subject);
  const kgrpo_host* host = services.ForInstance(subject.library.name());
  const auto* factory = subject.library.Table<Factory>(subject.role);
  const std::string prefix = std::string(RoleName(subject.role)) + ": ";

  void* instance = nullptr;
  session.Check(prefix + "an instance for the calls", [&] {
    const std::optional<std::string> options = Options(subject);
    if (!options) Skip(kGiveOptions);
    if (kgrpo_error* error = factory->create(host, Str(*options), &instance)) {
      instance = nullptr;
      Skip("create refused: " + TakeMessage(error));
    }
    return std::string();
  });
  if (instance == nullptr) return;

  const CallContext context = {subject.options, subject.directory};
  const auto table = [&]<typename T>(const T*) -> const T& { return *subject.library.Table<T>(subject.role); };
  switch (subject.role) {
    case Role::kPolicy:
      CheckPolicy(session, table(static_cast<const kgrpo_policy_interface*>(nullptr)),
                  static_cast<kgrpo_policy*>(instance), context);
      break;
    case Role::kCoder:
      CheckCoder(session, table(static_cast<const kgrpo_coder_interface*>(nullptr)),
                 static_cast<kgrpo_coder*>(instance), context);
      break;
    case Role::kEvaluator:
      CheckEvaluator(session, table(static_cast<const kgrpo_evaluator_interface*>(nullptr)),
                     static_cast<kgrpo_evaluator*>(instance), context);
      break;
    case Role::kReward:
      CheckReward(session, table(static_cast<const kgrpo_reward_interface*>(nullptr)),
                  static_cast<kgrpo_reward*>(instance));
      break;
    case Role::kTrainer:
      CheckTrainer(session, host, table(static_cast<const kgrpo_trainer_interface*>(nullptr)),
                   static_cast<kgrpo_trainer*>(instance));
      break;
    case Role::kObserver:
      CheckObserver(session, table(static_cast<const kgrpo_observer_interface*>(nullptr)),
                    static_cast<kgrpo_observer*>(instance), context);
      break;
  }
  session.Check(prefix + "destroy after the calls", [&] {
    factory->destroy(instance);
    return std::string();
  });
}

}  // namespace kgrpo::validate

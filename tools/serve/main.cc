// kgrpo-serve, which `kgrpo-host serve` runs: the evaluator for other programs and machines, over HTTP.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kgrpo/support/sha256.h>
#include <malloc.h>
#include <unistd.h>
#include "base/cancel.h"
#include "base/default_plugins.h"
#include "base/directories.h"  // ShippedProblems
#include "base/files.h"        // ReadFile
#include "cli/command_line.h"
#include "cli/session.h"
#include "config/problems.h"  // ExpandFolders, ProblemFolders
#include "serve/service.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ServeOptions {
  std::string file;
  std::string evaluator;
  std::vector<std::string> problems;
  std::vector<std::string> devices;
  std::vector<std::string> settings;
  std::string listen = "127.0.0.1:8421";
  std::string token_env = "KGRPO_TOKEN", tokens_file;
  unsigned workers = 0;
  serve::ServiceOptions service;
};

std::atomic<bool> stop_requested{false};

// The first signal drains the service; the next one, with the default action back in place, ends it.
void OnStopSignal(int) {
  stop_requested.store(true, std::memory_order_relaxed);
  constexpr char kText[] = "kgrpo-host: draining; a second signal ends it now\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) return;
}

void DrainOnSignals() {
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

struct Address {
  std::string host;
  int port = 0;
};

// "127.0.0.1:8421", "[::1]:8421", ":8421" for every address of the machine.
Address ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  Address address;
  char* end = nullptr;
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const long number = std::strtol(port.c_str(), &end, 10);
  if (port.empty() || *end != '\0' || number < 0 || number > 65535)
    throw Error(KGRPO_ERROR_INVALID, "--listen " + text + ": expected HOST:PORT, such as 127.0.0.1:8421");
  address.port = static_cast<int>(number);
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty()) address.host = "0.0.0.0";
  return address;
}

// The tokens of the file, if one is given; else that of the variable.
std::list<serve::ClientToken> TokensFrom(const std::string& file, const std::string& variable, const Address& address) {
  if (!file.empty()) return serve::ReadTokens(file, ReadFile(file));
  const char* value = std::getenv(variable.c_str());
  const std::string token = value == nullptr ? "" : value;
  if (token.find_first_of(" \t\r\n\"'") != std::string::npos)
    throw Error(KGRPO_ERROR_INVALID, "$" + variable + " must hold the token alone (no \"Bearer \", quotes or spaces)");
  if (token.empty() && variable != ServeOptions().token_env)
    throw Error(KGRPO_ERROR_INVALID, "--token-env " + variable + ": the variable is not set, or empty");
  const bool local = address.host == "localhost" || address.host.starts_with("127.") || address.host == "::1";
  if (token.empty() && !local) {
    throw Error(KGRPO_ERROR_INVALID, "--listen " + address.host + " is open to other machines, and $" + variable +
                                         " is not set: set it to a secret that clients send as a bearer token");
  }
  if (token.empty()) return {};
  return {{"", token}};
}

// The chosen evaluator and problems.
struct ServedChoice {
  std::string plugin;
  Json options;
  std::vector<std::string> problems;
};

ServedChoice Choose(Session& session, const ServeOptions& options) {
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  request.evaluator = options.evaluator;
  request.roles = {Role::kEvaluator};
  request.needs_train_problems = false;
  request.ignore_problems = !options.problems.empty();
  const PipelineConfig config = session.Load(request);
  ServedChoice chosen = {config.evaluator.plugin, config.evaluator.options, {}};
  for (const std::string& given : options.problems) {
    const std::vector<std::string> found = ProblemFolders(given);
    chosen.problems.insert(chosen.problems.end(), found.begin(), found.end());
  }
  if (!options.problems.empty()) return chosen;
  chosen.problems = config.train_problems;
  chosen.problems.insert(chosen.problems.end(), config.heldout_problems.begin(), config.heldout_problems.end());
  if (options.file.empty()) chosen.problems = ExpandFolders((ShippedProblems() / "*").string());
  return chosen;
}

// Throws if a folder is no problem: it has no problem.yaml, and the evaluator cannot open it. The mistakes of the
// others are answers to the requests that name them.
void RequireProblems(Evaluator& evaluator, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (HoldsProblemYaml(folder)) continue;
    try {
      evaluator.OpenProblem(folder);
    } catch (const Error& error) {
      throw Error(error.code(), folder + " is neither a problem nor a folder of problems: " + error.what());
    }
  }
}

// Makes one instance of the evaluator for each device. An evaluator that does not choose its device by name (an enum
// option `device`) has a single device, "default".
std::vector<serve::ServedDevice> MakeDevices(Session& session, const ServedChoice& chosen,
                                             const std::vector<std::string>& names) {
  std::vector<serve::ServedDevice> devices;
  const Json schema = session.loader().Load(chosen.plugin).OptionsSchema(Role::kEvaluator);
  const Json* property = nullptr;
  if (schema.contains("properties") && schema["properties"].contains("device"))
    property = &schema["properties"]["device"];
  const bool named = property != nullptr && property->value("type", Json()) == "string" && property->contains("enum");
  if (!named) {
    if (!names.empty())
      throw Error(KGRPO_ERROR_INVALID,
                  "--devices: the evaluator " + chosen.plugin + " does not choose its device by name");
    devices.push_back({"default", session.MakeEvaluator(chosen.plugin, chosen.options)});
    return devices;
  }
  std::vector<std::string> wanted = names;
  if (names.size() == 1 && names.front() == "all") wanted = property->at("enum").get<std::vector<std::string>>();
  if (wanted.empty()) wanted = {chosen.options.value("device", property->value("default", ""))};
  for (const std::string& name : wanted) {
    Json options = chosen.options;
    options["device"] = name;
    devices.push_back({name, session.MakeEvaluator(chosen.plugin, options)});
  }
  return devices;
}

Json About(Session& session, const ServedChoice& chosen, const HostServices& services) {
  const PluginLibrary& library = session.loader().Load(chosen.plugin);
  Json about = {{"evaluator", library.name()},
                {"version", library.version()},
                {"sha256", Sha256(ReadFile(library.path()))},
                {"options", chosen.options},
                {"metrics", Json::array()}};
  services.metrics().ForEach([&](const kgrpo_metric_declaration& metric) {
    about["metrics"].push_back({{"name", Copy(metric.name)},
                                {"label", Copy(metric.label)},
                                {"unit", Copy(metric.unit)},
                                {"group", Copy(metric.group)},
                                {"kind", metric.kind},
                                {"direction", metric.direction},
                                {"combination", metric.combination}});
  });
  return about;
}

int Serve(const Globals& globals, const ServeOptions& options) {
  // Large requests and objects go back to the system: glibc raises the limit itself to 32 MiB, for each thread's heap.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  const Address address = ParseAddress(options.listen);
  serve::ServiceOptions service_options = options.service;
  service_options.tokens = TokensFrom(options.tokens_file, options.token_env, address);
  if (service_options.json_log) {
    service_options.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
  service_options.workers = options.workers > 0 ? options.workers : std::max(1U, std::thread::hardware_concurrency());
  Session session(globals);
  HostServices& services = session.StartServices(0);
  const ServedChoice chosen = Choose(session, options);
  std::vector<serve::ServedDevice> devices = MakeDevices(session, chosen, options.devices);
  RequireProblems(*devices.front().evaluator, chosen.problems);
  std::string names;
  for (const serve::ServedDevice& device : devices) names += (names.empty() ? "" : ", ") + device.name;
  serve::Service service(service_options, std::move(devices), chosen.problems, About(session, chosen, services));
  DrainOnSignals();
  const int port = service.Bind(address.host, address.port);
  std::printf("serving %s (%s) with %zu %s on http://%s:%d\n", chosen.plugin.c_str(), names.c_str(),
              chosen.problems.size(), chosen.problems.size() == 1 ? "problem" : "problems",
              address.host.find(':') == std::string::npos ? address.host.c_str() : ("[" + address.host + "]").c_str(),
              port);
  std::fflush(stdout);
  // A signal before DrainOnSignals has set the flag of HandleSignals instead.
  service.Run([] { return stop_requested.load(std::memory_order_relaxed) || CancelRequested(); });
  return kFine;
}

void AddServeCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "Judge kernels for other programs and machines, over HTTP");
  command->add_option("FILE", options->file, "A pipeline file: its evaluator and problems are served");
  command
      ->add_option("--listen", options->listen,
                   "Address; port 0 picks a free port. Other addresses than this machine's own require a token")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command
      ->add_option("--evaluator", options->evaluator,
                   "The evaluator plugin (default: FILE's, or " KGRPO_DEFAULT_EVALUATOR ")")
      ->type_name("PLUGIN");
  command
      ->add_option("--problems", options->problems,
                   "Problem folders, folders of them, or patterns (default: FILE's, or problems/*)")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  command
      ->add_option(
          "--devices", options->devices,
          "Devices to serve (values of the evaluator's option device), separated by commas, or all. The first one "
          "is the default for requests")
      ->type_name("NAME[,NAME...]")
      ->delimiter(',')
      ->expected(1)
      ->take_all();
  command->add_option("--workers", options->workers, "Kernels judged at the same time (default: as many as cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command->add_option("--queue", options->service.queue, "Evaluations that may wait; further requests get 429")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--connections", options->service.http.connections, "Connections at the same time")
      ->type_name("N")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  command->add_option("--drain", options->service.drain_seconds, "Seconds to finish running evaluations at shutdown")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* token_env = command
                               ->add_option("--token-env", options->token_env,
                                            "Environment variable that holds the token that clients must send")
                               ->type_name("NAME")
                               ->capture_default_str();
  command
      ->add_option("--tokens", options->tokens_file,
                   "File of several clients' tokens, in place of the variable: a YAML list of {name, token, "
                   "evaluations: limit of those under way}")
      ->type_name("FILE")
      ->excludes(token_env);
  command->add_flag("--json-log", options->service.json_log, "Log each request as a line of JSON on standard error");
  command->add_flag(
      "--inline-code", options->service.inline_code,
      "Take problems in requests that bring an oracle: it runs outside the sandbox, so trust who may send one");
  AddSetOption(command, &options->settings, "Changes one key of FILE; without FILE, an option of the evaluator");
  command->footer(
      "Examples:\n"
      "  kgrpo-host serve --devices all\n"
      "  curl -s localhost:8421/v1/problems\n"
      "  KGRPO_TOKEN=$(openssl rand -hex 16) kgrpo-host serve configs/quickstart_cuda.yaml --listen 0.0.0.0:8421");
  command->callback([=, &globals] { *action = [=, &globals] { return Serve(globals, *options); }; });
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) {
  kgrpo::cli::CommandLine line("The evaluator for other programs and machines, over HTTP.");
  line.Add(kgrpo::cli::AddServeCommand);
  return line.Run({argv + 1, argv + argc});
}

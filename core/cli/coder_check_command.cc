// `kgrpo-host coder-check FILE`: asks a pipeline's coder once, and shows what was sent, what came back, and what it
// took.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/session.h"
#include "host/cancel.h"
#include "host/log.h"

namespace kgrpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSuggestion =
    "Let each thread read and write several neighbouring elements at once, as float4 where the addresses allow it.";

struct CoderCheckOptions {
  std::string file;
  std::string problem;
  std::string evaluator;
  std::string suggestion;
  std::vector<std::string> settings;
  bool json = false;
};

// One call. Ctrl-C cancels it.
CoderAnswer Ask(Coder& coder, const kgrpo_coder_request& request) {
  std::mutex mutex;
  std::condition_variable landed;
  bool done = false, cancelled = false;
  std::optional<CoderAnswer> answer;
  std::exception_ptr failure;
  coder.Implement(request, [&](std::optional<CoderAnswer> given, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex);
    answer = std::move(given);
    failure = error;
    done = true;
    landed.notify_one();
  });
  std::unique_lock lock(mutex);
  while (!landed.wait_for(lock, std::chrono::milliseconds(100), [&] { return done; })) {
    if (!CancelRequested() || cancelled) continue;
    cancelled = true;
    lock.unlock();
    coder.Cancel();
    lock.lock();
  }
  if (failure) std::rethrow_exception(failure);
  if (cancelled) throw Error(KGRPO_ERROR_CANCELLED, "stopped by the user");
  return *std::move(answer);
}

// The problem to ask about: the one that is named, else the pipeline's first.
std::string ProblemOf(const CoderCheckOptions& options, const PipelineConfig& config) {
  if (!options.problem.empty()) return options.problem;
  for (const auto* problems : {&config.train_problems, &config.heldout_problems}) {
    if (!problems->empty()) return problems->front();
  }
  throw Error(KGRPO_ERROR_INVALID, options.file + " names no problem: choose one by --problem DIR");
}

void PrintBlock(const char* title, const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return;
  std::printf("---- %s\n    %s\n", title, PrintableText(text.substr(0, end + 1)).c_str());  // which indents other lines
}

void PrintAnswer(const CoderAnswer& answer) {
  PrintBlock("answer", answer.text);
  PrintBlock("kernel", answer.source);
  std::printf("----\noutcome   %s\n", CoderOutcomeName(answer.outcome));
  if (!answer.summary.empty()) std::printf("summary   %s\n", PrintableText(answer.summary).c_str());
  if (!answer.message.empty()) std::printf("message   %s\n", PrintableText(answer.message).c_str());
  std::printf("time      %.2f s, %u %s\ntokens    %llu sent, %llu answered\ncost      $%.6f\n", answer.seconds,
              answer.attempts, answer.attempts == 1 ? "attempt" : "attempts",
              static_cast<unsigned long long>(answer.prompt_tokens),
              static_cast<unsigned long long>(answer.completion_tokens), answer.cost);
}

int CheckCoder(const Globals& globals, const CoderCheckOptions& options) {
  Session session(globals);
  LoadRequest request;
  request.file = options.file;
  request.settings = options.settings;
  if (!options.evaluator.empty()) request.settings.push_back("evaluator.plugin=" + options.evaluator);
  request.roles = {Role::kCoder, Role::kEvaluator};
  request.needs_train_problems = false;
  request.ignore_problems = !options.problem.empty();
  const PipelineConfig config = session.Load(request);
  session.StartServices(config.seed);
  PipelineParts parts = session.MakeParts(config, request.roles);  // a key that is missing is found here
  const Problem problem = parts.evaluator->OpenProblem(ProblemOf(options, config));
  const Evaluation baseline = parts.evaluator->Baseline(problem);

  std::string suggestion = options.suggestion;
  if (suggestion.empty()) {
    const std::vector<std::string> known = parts.coder->Suggestions();
    suggestion = known.empty() ? kSuggestion : known.front();
  }
  const EvaluationView current = baseline.ToC();
  kgrpo_coder_request asked{};
  asked.struct_size = sizeof(asked);
  asked.problem = &problem.info();
  asked.code_a = asked.code_b = problem.info().source;
  asked.suggestion = {suggestion.data(), suggestion.size()};
  asked.current = current.c();
  asked.seed = config.seed;
  const std::string sent = parts.coder->DescribeRequest(asked);
  if (!options.json) {
    std::printf("coder     %s\nproblem   %s\nsuggests  %s\n", config.coder.plugin.c_str(), problem.name().c_str(),
                PrintableText(suggestion).c_str());
    PrintBlock("request", sent);
    std::fflush(stdout);  // before the wait
  }
  const CoderAnswer answer = Ask(*parts.coder, asked);
  if (options.json) {
    const Json json = {{"coder", config.coder.plugin},
                       {"problem", problem.name()},
                       {"suggestion", suggestion},
                       {"request", sent},
                       {"answer", answer.text},
                       {"outcome", CoderOutcomeName(answer.outcome)},
                       {"source", answer.source},
                       {"summary", answer.summary},
                       {"message", answer.message},
                       {"seconds", answer.seconds},
                       {"attempts", answer.attempts},
                       {"prompt_tokens", answer.prompt_tokens},
                       {"completion_tokens", answer.completion_tokens},
                       {"cost", answer.cost}};
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    PrintAnswer(answer);
  }
  const bool answered = answer.outcome == KGRPO_CODER_OK || answer.outcome == KGRPO_CODER_NOT_APPLICABLE ||
                        answer.outcome == KGRPO_CODER_UNCLEAR;
  return answered ? kFine : kFailed;
}

}  // namespace

void AddCoderCheckCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<CoderCheckOptions>();
  CLI::App* command =
      app.add_subcommand("coder-check", "Ask a pipeline's coder once, and show request, answer and cost");
  command->add_option("FILE", options->file, "The pipeline file")->required();
  command->add_option("--problem", options->problem, "What to ask about (default: the file's first problem)")
      ->type_name("DIR");
  command->add_option("--suggestion", options->suggestion, "What to ask for")->type_name("TEXT");
  command
      ->add_option("--evaluator", options->evaluator,
                   "Another evaluator than the file's, for a machine without its device")
      ->type_name("PLUGIN");
  AddSetOption(command, &options->settings, "Changes one key of the file");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Example:\n"
      "  kgrpo-host coder-check configs/seed.yaml --problem problems/softmax_long --evaluator evaluator_sim");
  command->callback([=, &globals] { *action = [=, &globals] { return CheckCoder(globals, *options); }; });
}

}  // namespace kgrpo::cli

// kgrpo-eval, which `kgrpo-host eval` runs: evaluates kernels for one problem (--kernel), a kernel for each problem of
// a suite (--suite), or a policy on held-out problems (--policy).
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/default_plugins.h"
#include "cli/command_line.h"
#include "eval/command.h"
#include "eval/eval_policy.h"
#include "eval/kernel_eval.h"
#include "eval/suite.h"

namespace kgrpo::cli {
namespace {

struct Options : EvalOptions {
  std::vector<std::string> kernels_of_problem;  // files and folders
  std::string suite, kernels, pytorch_times;
  bool thorough = false, markdown = false, kernelbench = false;
  PolicyEvalOptions policies;
};

int Evaluate(const Globals& globals, Options options) {
  const bool of_kernel = !options.kernels_of_problem.empty();
  const std::vector<std::string> files = KernelFiles(options.kernels_of_problem);
  // A folder or --jobs gives a line each, also for one file: a script need not count them.
  const bool lines = files.size() > 1 || files != options.kernels_of_problem || options.jobs > 0;
  if (files.size() == 1) options.kernel = files[0];
  const bool of_policy = !options.policies.policies.empty() || !options.policies.checkpoints.empty();
  const auto refuse = [](const char* message) {
    std::fprintf(stderr, "%s; see kgrpo-host eval --help\n", message);
    return static_cast<int>(kUsage);
  };
  if (!options.suite.empty() || !options.kernels.empty()) {
    if (of_kernel || of_policy || options.suite.empty() || options.kernels.empty() || !options.file.empty())
      return refuse("--suite DIR and --kernels FOLDER go together, with neither FILE nor --kernel nor --policy");
    if (!options.problem.empty() || !options.report.empty() || options.seed || options.quick || options.show_hidden ||
        options.profile || options.policies.IsAskedFor())
      return refuse(
          "--problem, --report, --seed, --quick, --show-hidden and --profile go with --kernel, --episodes, --repeat, "
          "--save-kernels and --out with --policy; --suite has none of them");
    return EvaluateSuite(globals, {.suite = options.suite,
                                   .kernels = options.kernels,
                                   .evaluator = options.evaluator.empty() ? KGRPO_DEFAULT_EVALUATOR : options.evaluator,
                                   .settings = options.settings,
                                   .include = options.include,
                                   .jobs = options.jobs,
                                   .thorough = options.thorough,
                                   .kernelbench = options.kernelbench || !options.pytorch_times.empty(),
                                   .pytorch_times = options.pytorch_times,
                                   .json = options.json,
                                   .markdown = options.markdown});
  }
  if (options.kernelbench || !options.pytorch_times.empty() || options.markdown)
    return refuse("--as-kernelbench, --pytorch-times and --markdown go with --suite");
  if (options.jobs > 0 && !of_kernel) return refuse("--jobs goes with --suite or --kernel");
  const bool of_one = options.dispute_bound || !options.report.empty();
  if (files.size() > 1 && of_one) return refuse("--report and --dispute-bound are about one kernel");
  if (of_kernel == of_policy) return refuse("eval takes either --kernel F.cu and --problem DIR, or FILE and --policy");
  if (options.dispute_bound && !options.report.empty())
    return refuse("--dispute-bound prints what was counted and writes no report: leave --report out");
  if (!of_kernel && !options.include.empty()) return refuse("--include goes with --kernel and --suite");
  if (of_kernel && options.problem.empty())
    return refuse(
        "--kernel needs --problem DIR, the problem that the kernel solves; kgrpo-host problems new KERNEL.cu drafts "
        "one");
  if (of_policy && options.file.empty())
    return refuse("--policy needs a pipeline FILE: its coder, evaluator, reward and held-out problems");
  if (of_policy && options.profile)
    return refuse("--profile goes with --kernel; a policy's evaluator profiles by its own option profile");
  if (of_policy && !options.report.empty()) return refuse("--report goes with --kernel: it is about one kernel");
  if (of_policy && (options.seed || options.quick || options.thorough))
    return refuse("--seed, --quick and --thorough go with --kernel; a policy's episodes follow --set seed=N");
  if (of_policy && options.show_hidden)
    return refuse("--show-hidden goes with --kernel: a policy may not know what is hidden");
  if (of_policy && !options.problem.empty())
    return refuse("--problem goes with --kernel; choose problems with --set problems.heldout=[DIR]");
  if (of_policy && options.dispute_bound) return refuse("--dispute-bound goes with --kernel: it is about one kernel");
  if (of_kernel && options.policies.IsAskedFor())
    return refuse("--episodes, --repeat, --save-kernels and --out go with --policy");
  if (lines && !of_one) return EvaluateKernels(globals, options, files);
  return of_kernel ? EvaluateKernel(globals, options) : EvaluatePolicies(globals, options.policies);
}

void AddEvalCommand(CLI::App& app, const Globals& globals, Action* action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("eval", "Evaluate kernels, or a policy on held-out problems");
  command->add_option("FILE", options->file, "A pipeline file; for --kernel, its evaluator is used");
  command
      ->add_option("--kernel", options->kernels_of_problem,
                   "Kernel source to evaluate; several, or folders of them, get a line each")
      ->type_name("F.cu|DIR...");
  command
      ->add_option("--include", options->include, "A folder of the kernel's own headers, besides the kernel's folder")
      ->type_name("DIR")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--problem", options->problem,
                   "The problem that the kernel solves: a folder, or a name among FILE's problems or in problems/")
      ->type_name("DIR|NAME");
  command
      ->add_option("--evaluator", options->evaluator,
                   "The evaluator plugin, without FILE (default: " KGRPO_DEFAULT_EVALUATOR ")")
      ->type_name("PLUGIN");
  command->add_option("--seed", options->seed, "Seed of the secret inputs of --kernel (default: 0)")->type_name("N");
  CLI::Option* quick =
      command->add_flag("--quick", options->quick,
                        "With --kernel: evaluate as in training: fewer inputs, the fast compiler, kept evaluations");
  command
      ->add_flag_callback(
          "--thorough", [options] { options->thorough = true; },
          "Thorough evaluation: the default with --kernel, not with --suite")
      ->excludes(quick);
  command->add_flag("--show-hidden", options->show_hidden,
                    "With --kernel: name the sizes that the problem hides from policy and coder");
  command->add_flag("--profile", options->profile,
                    "With --kernel: add profiler counters, if the evaluator has a profiler");
  command->add_flag("--dispute-bound", options->dispute_bound,
                    "With --kernel: compare the problem's `needs` with the counted work");
  command->add_option("--report", options->report, "With --kernel: write the evaluation as one self-contained web page")
      ->type_name("FILE.html");
  AddPolicyEvalOptions(command, &options->policies);
  command->add_option("--suite", options->suite, "Evaluate a kernel for each problem in this folder, and count fast_p")
      ->type_name("DIR");
  command->add_option("--kernels", options->kernels, "With --suite: PROBLEM.cu of each; results.jsonl is kept there")
      ->type_name("FOLDER");
  command->add_option("--jobs", options->jobs, "Kernels evaluated at a time (default: the number of cores)")
      ->type_name("N");
  command->add_flag("--as-kernelbench", options->kernelbench,
                    "With --suite: count by KernelBench's rules too, and name each verdict that differs");
  command
      ->add_option("--pytorch-times", options->pytorch_times,
                   "With --as-kernelbench: speedups over PyTorch's times, by a file of KernelBench's results/timing")
      ->type_name("FILE.json");
  command->add_flag("--markdown", options->markdown, "With --suite: print the table as Markdown");
  AddSetOption(command, &options->settings, "Changes one key of FILE; without FILE, an option of the evaluator");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  kgrpo-host eval --kernel mine.cu --problem softmax_long\n"
      "  kgrpo-host eval --kernel mine.cu --problem my_problem/ --seed 2 --show-hidden --json\n"
      "  kgrpo-host eval --kernel a.cu b.cu variants/ --problem softmax_long --jobs 2\n"
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --report mine.html\n"
      "  kgrpo-host eval --kernel mine.cu --problem problems/softmax_long --evaluator evaluator_cuda --profile\n"
      "  kgrpo-host eval --kernel mine.cu --problem my_problem/ --dispute-bound\n"
      "  kgrpo-host eval --suite kernelbench/ --kernels mine/ --jobs 2 --as-kernelbench\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --episodes 8\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy uniform --policy runs/a/final --policy runs/b/final\n"
      "  kgrpo-host eval configs/quickstart.yaml --checkpoints runs/quickstart\n"
      "  kgrpo-host eval configs/quickstart.yaml --policy runs/quickstart/final --save-kernels best/");
  command->callback([=, &globals] {
    *action = [=, &globals] {
      options->policies.file = options->file;
      options->policies.settings = options->settings;
      options->policies.json = options->json;
      return Evaluate(globals, *options);
    };
  });
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) {
  using namespace kgrpo::cli;
  CommandLine line("Evaluates kernels, policies and problems, and asks coders.");
  for (auto* add : {AddEvalCommand, AddCoderCheckCommand, AddProblemsCommand}) line.Add(add);
  return line.Run({argv + 1, argv + argc});
}

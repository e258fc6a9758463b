// The common parts of the measurements' main functions: options that several of them take, and how they end. Exit
// codes: 0 fine, 1 a measured figure is not as it must be, 2 bad usage, or nothing could be measured.
#ifndef KGRPO_TOOLS_COMMON_COMMAND_H
#define KGRPO_TOOLS_COMMON_COMMAND_H

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <vector>

namespace kgrpo::bench {

inline void AddThreads(CLI::App& app, size_t& threads) {
  app.add_option("--threads", threads)->check(CLI::PositiveNumber)->capture_default_str();
}

inline void AddRoute(CLI::App& app, std::string& route) {
  app.add_option("--route", route)->check(CLI::IsMember({"fast", "nvcc"}))->capture_default_str();
}

inline void AddChecks(CLI::App& app, std::string& checks) {
  app.add_option("--checks", checks)->check(CLI::IsMember({"interpreted", "device"}))->capture_default_str();
}

inline CLI::Option* AddProblems(CLI::App& app, std::vector<std::string>& folders) {
  return app.add_option("problems", folders, "Folders of problems");
}

// The kernels of SimKernels.
inline void AddSimKernels(CLI::App& app, std::vector<std::string>& problems, size_t& variants, std::string& folder) {
  app.add_option("--variants", variants, "Kernels of coder_offline for each problem")->capture_default_str();
  app.add_option("--folder", folder, "Kernels whose first line names their problem");
  AddProblems(app, problems);
}

// The measured kernels that a device of the time model is compared with or fitted to.
inline void AddMeasuredKernels(CLI::App& app, std::string& problems, std::vector<std::string>& except,
                               std::string& counts) {
  app.add_option("--problems", problems, "Folder of problems")->capture_default_str();
  app.add_option("--except", except, "Problems to leave out")->delimiter(',');
  app.add_option("--counts", counts, "File that keeps what was counted");
}

// Reads the arguments, then calls `work`. An exception of `work` is printed after the program's name, from `app`. If
// `work` returns a bool, true means that all figures are as they must be.
template <typename Work>
int RunCommand(CLI::App& app, int argc, const char* const* argv, Work work) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // help is no error
  }
  try {
    if constexpr (std::is_same_v<decltype(work()), bool>)
      return work() ? 0 : 1;
    else
      work();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return 2;
  }
}

}  // namespace kgrpo::bench

#endif

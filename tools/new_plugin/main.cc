// kgrpo-new-plugin, which `kgrpo-host plugins new KIND NAME [--lang c|c++|python]` runs: writes a project that builds,
// validates and passes its own test: an example of examples/, renamed to NAME.
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/directories.h"
#include "base/files.h"
#include "cli/command_line.h"

namespace kgrpo::cli {
namespace {

namespace fs = std::filesystem;

struct ProjectFile {
  const char *project, *name, *text;
};
constexpr ProjectFile kFiles[] = {
#include "project_files.inc"
};

struct Project {
  const char *kind, *language, *example;
};
constexpr std::array kProjects = {Project{"reward", "c", "reward_c"},
                                  Project{"reward", "c++", "reward_bytes_saved"},
                                  Project{"reward", "python", "reward_python"},
                                  Project{"coder", "c", "coder_c"},
                                  Project{"coder", "c++", "coder_launch_bounds"},
                                  Project{"coder", "python", "coder_python"},
                                  Project{"evaluator", "c", "evaluator_c"},
                                  Project{"evaluator", "c++", "evaluator_cpu"},
                                  Project{"evaluator", "python", "evaluator_python"},
                                  Project{"trainer", "c", "trainer_c"},
                                  Project{"trainer", "c++", "trainer_reinforce"},
                                  Project{"policy", "c", "policy_c"},
                                  Project{"policy", "c++", "policy_bandit"},
                                  Project{"observer", "c", "observer_c"},
                                  Project{"observer", "c++", "observer_collapse"}};

const Project& Find(const std::string& kind, const std::string& language) {
  std::string there;
  for (const Project& project : kProjects) {
    if (kind == project.kind && language == project.language) return project;
    there += std::string(there.empty() ? "" : ", ") + project.kind + " in " + project.language;
  }
  throw Error(KGRPO_ERROR_UNSUPPORTED,
              "there is no project for a plugin of kind " + kind + " in " + language + "; there are: " + there);
}

// Refuses a name that is not valid as a file, a symbol and a module.
void CheckName(const std::string& name) {
  const bool fine = !name.empty() &&
                    name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos &&
                    name[0] >= 'a';
  if (!fine) {
    throw Error(KGRPO_ERROR_INVALID,
                "\"" + name + "\": a plugin's name is lower-case letters, digits and _, and begins with a letter");
  }
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

int NewPlugin(const std::string& kind, const std::string& name, const std::string& language) {
  CheckName(name);
  const Project& project = Find(kind, language);
  std::error_code code;
  if (fs::exists(name, code)) throw Error(KGRPO_ERROR_INVALID, name + " exists already: choose another name");
  if (!fs::create_directory(name, code)) {
    throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot make the folder " + name + ": " + code.message());
  }
  for (const ProjectFile& file : kFiles) {
    if (std::string_view(file.project) != project.example) continue;
    const std::string target = Replaced(file.name, project.example, name);
    const fs::path path = fs::path(name) / target;
    fs::create_directories(path.parent_path());
    WriteFileAtomically(path, Replaced(file.text, project.example, name));
    std::printf("%s/%s\n", name.c_str(), target.c_str());
  }
  const char* shown = name.c_str();
  if (language == "python") {
    std::printf(
        "\nNext:\n  cd %s\n  python3 test_%s.py\n  kgrpo-host plugins validate %s_program --options options.json\n",
        shown, shown, kind.c_str());
  } else {
    // CMake finds an installed kgrpo by itself, but not the checkout that this program was built in.
    const fs::path checkout = HostFolder().parent_path().parent_path();
    const bool installed = !fs::exists(checkout / "cmake/kgrpo-config.cmake");
    std::printf("\nNext:\n  cd %s\n  cmake -G Ninja -B build%s\n  cmake --build build\n  ctest --test-dir build\n",
                shown, installed ? "" : (" -Dkgrpo_ROOT=" + checkout.string()).c_str());
  }
  return kFine;
}

int Main(int argc, char** argv) {
  std::string kind, name, language = "c++";
  CLI::App app("Creates a plugin project: it builds, validates and has a test.", "kgrpo-host plugins new");
  app.add_option("KIND", kind, "reward, coder, evaluator, trainer, policy or observer")->required();
  app.add_option("NAME", name, "The plugin's name, and the folder to write; must not exist")->required();
  app.add_option("--lang", language, "c++, c, or python for a reward, a coder or an evaluator")->capture_default_str();
  app.footer(
      "Examples:\n"
      "  kgrpo-host plugins new reward my_reward --lang python\n"
      "  kgrpo-host plugins new trainer my_trainer");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kFine : kUsage;  // help is not an error
  }
  return ReportErrors([&] { return NewPlugin(kind, name, language); });
}

}  // namespace
}  // namespace kgrpo::cli

int main(int argc, char** argv) { return kgrpo::cli::Main(argc, argv); }

// Every flag of every command's --help has an effect: a row says which. A flag without a row fails the test, and so
// does a row whose flag is ignored. Flags that do not go together are refused.
#include "commands.h"

#include "test.h"

namespace kgrpo {
namespace {

using test::Result;

struct Use {
  const char* command;
  const char* flag;
  const char* arguments;  // after the command; the flag is among them
  const char* shows;      // is in what the command prints only with the flag
};

constexpr Use kUses[] = {
    {"run", "--set", "p.yaml --set looop.rounds=1", "looop"},
    {"run", "--overwrite",
     "p.yaml --set output_dir=runs/done --set checkpoint.every=1 --set checkpoint.keep_last=5 --overwrite", "final/"},
    {"run", "--variant", "p.yaml --variant zzz", "has no variants"},
    {"run", "--jobs", "p.yaml --jobs 2", "describes one run"},
    {"run", "--time-limit", "p.yaml --set output_dir=runs/limited --time-limit 0.001", "time limit"},
    {"run", "--ranks", "p.yaml --ranks 2000", "--ranks"},
    {"resume", "--set", "runs/done --set looop.rounds=1", "looop"},
    {"resume", "--from-step", "runs/done --from-step 99", "99"},
    {"resume", "--time-limit", "runs/done --from-step 1 --time-limit 0.001", "time limit"},
    {"resume", "--ranks", "runs/done --ranks 2000", "--ranks"},
    {"check", "--set", "p.yaml --set looop.rounds=1", "looop"},
    {"check", "--resolve", "p.yaml --resolve", "# p.yaml:"},
    {"check", "--file-only", "p.yaml --file-only", "no part was made"},
    {"check", "--variant", "p.yaml --variant zzz", "has no variants"},
    {"check", "--json", "p.yaml --json", "\"ok\": true"},
    {"eval kernel", "--problem", "k.cu --evaluator fakes --problem nowhere", "nowhere"},
    {"eval kernel", "--pipeline", "k.cu --problem one --pipeline nowhere.yaml", "nowhere.yaml"},
    {"eval kernel", "--include", "inc.cu --problem one --evaluator fakes --include headers --json",
     "\"verdict\": \"wrong\""},
    {"eval kernel", "--evaluator", "k.cu --problem one --evaluator nobody", "nobody"},
    {"eval kernel", "--seed", "k.cu --problem one --evaluator fakes --seed 7", "seed 7"},
    {"eval kernel", "--quick", "k.cu --problem one --evaluator fakes --quick --thorough", "--quick"},
    {"eval kernel", "--thorough", "k.cu --problem one --evaluator fakes --thorough --quick", "--thorough"},
    {"eval kernel", "--show-hidden", "k.cu --problem one --evaluator fakes --show-hidden", "hidden shown"},
    {"eval kernel", "--profile", "k.cu --problem one --evaluator fakes --profile -v", "trace all"},
    {"eval kernel", "--format", "k.cu --problem one --evaluator fakes --format junit", "<testsuite"},
    {"eval kernel", "--require", "k.cu --problem one --evaluator fakes --require wrong", "--require"},
    {"eval kernel", "--min-speedup", "k.cu --problem one --evaluator fakes --min-speedup 99", "below the required 99"},
    {"eval kernel", "--dispute-bound", "k.cu --problem one --evaluator fakes --dispute-bound", "Comments needed"},
    {"eval kernel", "--report", "k.cu --problem one --evaluator fakes --report k.html", "writes no reports"},
    {"eval kernel", "--jobs", "k.cu --problem one --evaluator fakes --jobs 2", "k.cu  "},
    {"eval kernel", "--set", "k.cu --problem one --evaluator fakes --set unt=1", "unt"},
    {"eval kernel", "--json", "k.cu --problem one --evaluator fakes --json", "\"verdict\""},
    {"eval policy", "--policy", "p.yaml --policy nowhere", "nowhere"},
    {"eval policy", "--checkpoints", "p.yaml --checkpoints nowhere", "nowhere"},
    {"eval policy", "--episodes", "p.yaml --policy uniform --episodes 5", "5, seed"},
    {"eval policy", "--repeat", "p.yaml --policy uniform --episodes 500000 --repeat 2", "repeats"},
    {"eval policy", "--save-kernels", "p.yaml --policy uniform --episodes 2 --save-kernels kept", "are in kept"},
    {"eval policy", "--output", "p.yaml --policy uniform --episodes 1 --output problems", "--output"},
    {"eval policy", "--evaluator", "p.yaml --policy uniform --evaluator nobody", "nobody"},
    {"eval policy", "--set", "p.yaml --policy uniform --set looop.rounds=1", "looop"},
    {"eval policy", "--json", "p.yaml --policy uniform --episodes 1 --json", "\"policy\""},
    {"eval suite", "--kernels", "'problems/*' --evaluator fakes --kernels nowhere", "nowhere"},
    {"eval suite", "--evaluator", "'problems/*' --kernels ks --evaluator nobody", "nobody"},
    {"eval suite", "--thorough", "'problems/*' --kernels kt --evaluator fakes --thorough", ", thorough"},
    {"eval suite", "--jobs", "'problems/*' --kernels ks --evaluator fakes --jobs x", "--jobs"},
    {"eval suite", "--as-kernelbench", "'problems/*' --kernels ks --evaluator fakes --as-kernelbench", "rules"},
    {"eval suite", "--pytorch-times", "'problems/*' --kernels ks --evaluator fakes --pytorch-times nowhere.json",
     "nowhere.json"},
    {"eval suite", "--include", "'problems/*' --kernels ki --evaluator fakes --include headers --json", "\"wrong\""},
    {"eval suite", "--set", "'problems/*' --kernels ks --evaluator fakes --set unt=1", "unt"},
    {"eval suite", "--json", "'problems/*' --kernels ks --evaluator fakes --json", "\"fast_p\""},
    {"eval suite", "--markdown", "'problems/*' --kernels ks --evaluator fakes --markdown", "| "},
    {"coder-check", "--problem", "p.yaml --problem nowhere", "nowhere"},
    {"coder-check", "--suggestion", "p.yaml --suggestion 'please tile'", "please tile"},
    {"coder-check", "--evaluator", "p.yaml --evaluator nobody", "nobody"},
    {"coder-check", "--set", "p.yaml --set looop.rounds=1", "looop"},
    {"coder-check", "--json", "p.yaml --json", "\"suggestion\""},
    {"problems list", "--evaluator", "'problems/*' --evaluator nobody", "nobody"},
    {"problems list", "--set", "'problems/*' --evaluator fakes --set unt=1", "unt"},
    {"problems list", "--json", "'problems/*' --evaluator fakes --json", "\"name\""},
    {"problems check", "--evaluator", "'problems/*' --evaluator nobody", "nobody"},
    {"problems check", "--set", "'problems/*' --evaluator fakes --set unt=1", "unt"},
    {"problems check", "--json", "'problems/*' --evaluator fakes --json", "\"name\""},
    {"optimize", "--problem", "k.cu --policy uniform --pipeline p.yaml --problem nowhere", "nowhere"},
    {"optimize", "--policy", "problems/one --pipeline p.yaml --policy nowhere", "nowhere"},
    {"optimize", "--pipeline", "problems/one --policy uniform --pipeline nowhere.yaml", "nowhere.yaml"},
    {"optimize", "--evaluations", "problems/one --policy uniform --pipeline p.yaml --output o1 --evaluations 0",
     "--evaluations"},
    {"optimize", "--budget", "problems/one --policy uniform --pipeline p.yaml --output o2 --budget soon", "soon"},
    {"optimize", "--max-cost", "problems/one --policy uniform --pipeline p.yaml --output o3 --max-cost x",
     "--max-cost"},
    {"optimize", "--beam", "problems/one --policy uniform --pipeline p.yaml --output o4 --beam 0", "--beam"},
    {"optimize", "--samples", "problems/one --policy uniform --pipeline p.yaml --output o5 --samples 0", "--samples"},
    {"optimize", "--rounds", "problems/one --policy uniform --pipeline p.yaml --output o6 --rounds 100000", "rounds"},
    {"optimize", "--seed", "problems/one --policy uniform --pipeline p.yaml --output o7 --seed x", "--seed"},
    {"optimize", "--output", "problems/one --policy uniform --pipeline p.yaml --output problems", "--output"},
    {"optimize", "--include", "inc.cu --problem one --policy uniform --pipeline p.yaml --output o9 --include headers",
     "is not correct"},
    {"optimize", "--set", "problems/one --policy uniform --pipeline p.yaml --set looop.rounds=1", "looop"},
    {"optimize", "--json", "problems/one --policy uniform --pipeline p.yaml --evaluations 2 --output o8 --json",
     "\"evaluations\""},
    {"optimize", "--progress",
     "problems/one --policy uniform --pipeline p.yaml --evaluations 2 --output o9 --progress jsonl", "\"candidate\""},
    {"compare", "--json", "runs/done runs/other --json", "\"groups\""},
    {"compare", "--markdown", "runs/done runs/other --markdown", "## "},
    {"report", "--output", "runs/done --output made.html", "made.html"},
    {"report", "--no-samples", "runs/done --no-samples --output none/made.html", "none"},
    {"export", "--format", "runs/done --format datasets --output data", "load_dataset"},
    {"export", "--purpose", "runs/done --purpose heldout", "has no rounds of \"heldout\""},
    {"export", "--output", "runs/done --output lines.jsonl", "lines.jsonl: "},
    {"merge", "--output", "adapter --output problems", "problems"},
    {"merge", "--plugin", "adapter --output merged --plugin nobody", "nobody"},
    {"merge", "--set", "adapter --output merged --plugin fakes --set unt=1", "unt"},
    {"merge", "--dtype", "adapter --output merged --dtype fp8", "--dtype"},
    {"plugins list", "--json", "--json", "\"roles\""},
    {"plugins describe", "--json", "fakes --json", "\"options\""},
    {"plugins validate", "--options", "fakes --options nowhere.json", "nowhere.json"},
    {"plugins validate", "--timeout", "fakes --timeout x", "--timeout"},
    {"plugins validate", "--send", "fakes --send", "coder"},
    {"plugins validate", "--problem", "fakes --problem nowhere", "nowhere"},
    {"plugins validate", "--json", "fakes --json", "{"},
    {"serve", "--listen", "--evaluator fakes --problems problems --listen nowhere", "nowhere"},
    {"serve", "--evaluator", "--evaluator nobody", "nobody"},
    {"serve", "--problems", "--evaluator fakes --problems nowhere", "nowhere"},
    {"serve", "--devices", "--evaluator fakes --problems problems --devices a", "--devices"},
    {"serve", "--workers", "--workers 0", "--workers"},
    {"serve", "--queue", "--queue 0", "--queue"},
    {"serve", "--connections", "--connections 0", "--connections"},
    {"serve", "--drain", "--drain -1", "--drain"},
    {"serve", "--token-env", "--listen 0.0.0.0:1 --token-env NOBODYS", "NOBODYS"},
    {"serve", "--tokens", "--tokens nowhere.yaml", "nowhere.yaml"},
    {"serve", "--set", "--evaluator fakes --problems problems --set unt=1", "unt"},
};

// Flags whose effect no single call of the command shows, and the test that shows it.
const std::set<std::string> kElsewhere = {"serve --inline-code", "serve --json-log" /* tests/serve */};

// These have command lines of their own: evaluator/draft_test, import_kernelbench, cli/example_test.
const std::set<std::string> kOtherParsers = {"problems new", "problems import", "plugins new"};

class FlagsTest : public CliTest {
 protected:
  FlagsTest() {
    Write("k.cu", "void launch() {} // asked\n");
    Write("inc.cu", "#include \"own.h\"\nvoid launch() {}\n");
    Write("headers/own.h", "// wrong\n");
    Write("ki/one.cu", "#include \"own.h\"\nvoid launch() {}\n");
    Write("ks/one.cu", "void launch() {} // a\n");
    Write("kt/one.cu", "void launch() {} // asked, wrong\n");
    Write("adapter/adapter_config.json", "{}");
  }

  // The commands of --help, with their subcommands.
  std::vector<std::string> Commands() {
    std::vector<std::string> commands;
    for (const std::string& command : Words(Run("--help").out, "Subcommands:")) {
      const std::vector<std::string> own = Words(Run(command + " --help").out, "Subcommands:");
      if (own.empty()) commands.push_back(command);
      for (const std::string& one : own) commands.push_back(command + " " + one);
    }
    return commands;
  }

  // The first word of each line below a heading of --help.
  static std::vector<std::string> Words(const std::string& help, const std::string& heading) {
    std::vector<std::string> words;
    std::istringstream lines(help);
    bool below = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) below = false;
      if (below && line.size() > 2 && line[2] != ' ') words.push_back(line.substr(2, line.find_first_of(" ", 2) - 2));
      if (line.starts_with(heading)) below = true;
    }
    return words;
  }

  // "-o,--output,--out": "--output".
  static std::string FlagOf(const std::string& names) {
    const size_t at = names.find("--");
    return at == std::string::npos ? names : names.substr(at, names.find(',', at) - at);
  }
};

TEST_F(FlagsTest, EachIsUsedOrRefused) {
  for (const char* folder : {"done", "other"})
    ASSERT_EQ(
        Run(std::string("-q p.yaml --set checkpoint.every=1 --set checkpoint.keep_last=5 --set output_dir=runs/") +
            folder)
            .code,
        0);
  std::set<std::string> rows;
  for (const Use& row : kUses) {
    rows.insert(std::string(row.command) + " " + row.flag);
    ASSERT_THAT(std::string(" ") + row.arguments, HasSubstr(std::string(" ") + row.flag));
    const Result result = Run(std::string(row.command) + " " + row.arguments);
    EXPECT_THAT(result.out + result.err, HasSubstr(row.shows)) << row.command << " " << row.arguments;
  }
  size_t commands = 0;
  for (const std::string& command : Commands()) {
    if (kOtherParsers.contains(command)) continue;
    ++commands;
    for (const std::string& names : Words(Run(command + " --help").out, "Options:")) {
      const std::string flag = command + " " + FlagOf(names);
      if (flag.ends_with(" --help")) continue;
      EXPECT_TRUE(rows.erase(flag) == 1 || kElsewhere.contains(flag)) << flag << " has no row here";
    }
  }
  EXPECT_GE(commands, 18U);
  EXPECT_THAT(rows, IsEmpty()) << "flags that no command has";
}

TEST_F(FlagsTest, OfOtherModesAreRefused) {
  for (const char* wrong :
       {"eval policy p.yaml --policy uniform --quick", "eval policy p.yaml --policy uniform --jobs 2",
        "eval policy p.yaml --policy uniform --problem one", "eval policy p.yaml --policy uniform --dispute-bound",
        "eval policy p.yaml --policy uniform --report k.html", "eval kernel k.cu --problem one --episodes 2",
        "eval kernel k.cu --problem one --kernels ks", "eval kernel k.cu --problem one --markdown",
        "eval suite 'problems/*' --kernels ks --dispute-bound",
        "eval suite 'problems/*' --kernels ks --json --markdown",
        "eval kernel k.cu --problem one --report a --dispute-bound", "compare runs/done runs/done --json --markdown"})
    EXPECT_EQ(Run(wrong).code, 2) << wrong;
}

TEST_F(FlagsTest, ExportOfAPurposeWritesThatPurpose) {
  ASSERT_EQ(Run("-q p.yaml --set output_dir=run --set evaluation.every=1 --set evaluation.episodes=1").code, 0);
  ASSERT_EQ(Run("export run --format datasets --purpose heldout --output data").code, 0);
  EXPECT_TRUE(fs::exists(directory_.path() / "data/heldout.jsonl"));
  EXPECT_FALSE(fs::exists(directory_.path() / "data/train.jsonl"));
  EXPECT_EQ(Run("export run --format datasets --purpose search --output none").code, 3);
}

}  // namespace
}  // namespace kgrpo

// Finding, loading, listing and validating plugins: good ones, and one broken in each way.
#include "plugin/loader.h"

#include <elf.h>

#include "base/directories.h"
#include "in_process.h"
#include "plugin/instances.h"
#include "test.h"
#include "validate/catalog.h"

namespace kgrpo {
namespace {

using test::kBad;
using test::kGood;
using test::MessageOf;

TEST(PluginLoader, FindsANameInItsDirectoriesInOrder) {
  PluginLoader loader({"/nowhere", kBad, kGood});
  const PluginLibrary& library = loader.Load("fakes");
  EXPECT_EQ(library.name(), "fakes");
  EXPECT_EQ(library.version(), "1.2.3");
  EXPECT_EQ(library.path(), kGood / "fakes.so");
  for (Role role : kRoles) EXPECT_TRUE(library.Plays(role)) << RoleName(role);
  EXPECT_EQ(&loader.Load((kGood / "fakes.so").string()), &library) << "a library is opened once";
}

TEST(PluginLoader, NamesEveryPathItTried) {
  PluginLoader loader({"/nowhere", kGood});
  EXPECT_EQ(MessageOf([&] { loader.Load("fake"); }),
            "there is no plugin \"fake\"; did you mean \"fakes\"?; tried\n"
            "    /nowhere/fake.so: no such file\n"
            "    /nowhere/libfake.so: no such file\n"
            "    " +
                (kGood / "fake.so").string() +
                ": no such file\n"
                "    " +
                (kGood / "libfake.so").string() + ": no such file");
  EXPECT_THAT(MessageOf([] { PluginLoader({}).Load("any"); }), HasSubstr("--plugin-path"));
}

TEST(PluginLoader, SaysWhenTheBuildLeavesOutAShippedPlugin) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "shipped_plugins") << "reward_short\nreward_long\n";
  PluginLoader loader({directory.path()});
  EXPECT_EQ(MessageOf([&] { loader.Load("reward_long"); }),
            "\"reward_long\" is a shipped plugin that this build leaves out: run scripts/setup; tried\n    " +
                (directory.path() / "reward_long.so").string() + ": no such file\n    " +
                (directory.path() / "libreward_long.so").string() + ": no such file");
  EXPECT_THAT(MessageOf([&] { loader.Load("reward_shrt"); }), HasSubstr("did you mean \"reward_short\"?"));

  std::ifstream built(KGRPO_BINARY_DIR "/lib/kgrpo/shipped_plugins");
  const std::string names{std::istreambuf_iterator<char>(built), {}};
  EXPECT_THAT(names, HasSubstr("reward_expression\n"));
  EXPECT_THAT(names, testing::Not(HasSubstr("fakes")));
}

TEST(PluginLoader, TakesPathsAsTheyAre) {
  PluginLoader loader({});
  EXPECT_EQ(loader.Load((kGood / "fakes.so").string()).name(), "fakes");
  EXPECT_EQ(MessageOf([&] { loader.Load("/nowhere/x.so"); }), "cannot load the plugin /nowhere/x.so: no such file");
  EXPECT_THAT(MessageOf([&] { loader.Load("./"); }), HasSubstr("it is a folder"));
}

TEST(PluginLoader, SaysHowAScriptIsUsed) {
  const TemporaryDirectory directory;
  const std::string python = (directory.path() / "mine.py").string(), shell = (directory.path() / "mine").string();
  std::ofstream(python) << "print(1)\n";
  std::ofstream(shell) << "#!/bin/sh\n";
  PluginLoader loader({});
  EXPECT_EQ(MessageOf([&] { loader.Load(python); }), "cannot load the plugin " + python +
                                                         ": it is no shared library; for a script set plugin: "
                                                         "ROLE_program (ROLE: reward, coder or evaluator), options: "
                                                         "{command: [python3, " +
                                                         python + "]}");
  EXPECT_THAT(MessageOf([&] { loader.Load(shell); }), HasSubstr("options: {command: [" + shell + "]}"));
  EXPECT_THAT(MessageOf([&] { loader.Load(python + "/absent.py"); }), testing::EndsWith("/absent.py: no such file"));
}

TEST(PluginLoader, DoesNotPassOverABrokenPlugin) {
  const TemporaryDirectory directory;
  fs::copy_file(kBad / "not_elf.so", directory.path() / "fakes.so");
  PluginLoader loader({directory.path(), kGood});
  EXPECT_THAT(MessageOf([&] { loader.Load("fakes"); }), HasSubstr((directory.path() / "fakes.so").string() + ": "));
}

TEST(PluginLoader, SaysWhatAPluginOffersInstead) {
  const TemporaryDirectory directory;
  const PluginLibrary library(kBad / "throws_in_create.so");
  EXPECT_THAT(MessageOf([&] { library.Table<void>(Role::kCoder); }),
              HasSubstr("plugin \"throws_in_create\" is no coder: it offers kgrpo.reward/1, not kgrpo.coder/1"));
}

TEST(PluginLibrary, RefusesBrokenBootstraps) {
  const auto reason = [](const char* name) {
    return MessageOf([&] { const PluginLibrary library(kBad / (std::string(name) + ".so")); });
  };
  EXPECT_EQ(reason("wrong_major"), "built for plugin ABI 2, this host has 1: rebuild it with the headers of this host");
  EXPECT_EQ(reason("no_entry"), "not a kgrpo plugin: it does not export kgrpo_plugin_entry");
  EXPECT_EQ(reason("null_entry"), "kgrpo_plugin_entry returned NULL");
  EXPECT_EQ(reason("short_bootstrap"), "its kgrpo_plugin has struct_size 12, below 72");
  EXPECT_THAT(reason("missing_dependency"), HasSubstr("undefined symbol: kgrpo_test_symbol_of_nobody"));
  EXPECT_EQ(reason("needs_absent_library"), "needs libgone.so.1, which is not installed (ldd " +
                                                (kBad / "needs_absent_library.so").string() + " lists what it needs)");
  EXPECT_THAT(reason("not_elf"), testing::AnyOf(HasSubstr("invalid ELF header"), HasSubstr("file too short")));
  EXPECT_EQ(reason("none_at_all"), "no such file");
}

// As a plugin that was copied from a machine of another kind.
TEST(PluginLibrary, SaysWhichMachineAPluginIsFor) {
  const TemporaryDirectory directory;
  const fs::path copy = directory.path() / "copy.so";
  const auto reason = [&](const std::function<void(Elf64_Ehdr*)>& change) {
    fs::copy_file(kGood / "fakes.so", copy, fs::copy_options::overwrite_existing);
    std::fstream file(copy, std::ios::binary | std::ios::in | std::ios::out);
    Elf64_Ehdr header;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    change(&header);
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.close();
    return MessageOf([&] { const PluginLibrary library(copy); });
  };
#ifdef __x86_64__
  EXPECT_EQ(reason([](Elf64_Ehdr* header) { header->e_machine = EM_AARCH64; }),
            "was built for aarch64; this machine is x86-64");
  EXPECT_EQ(reason([](Elf64_Ehdr* header) { header->e_machine = 9999; }),
            "was built for machine 9999 (ELF's number); this machine is x86-64");
#endif
  EXPECT_EQ(reason([](Elf64_Ehdr* header) { header->e_ident[EI_CLASS] = ELFCLASS32; }),
            "was built as 32-bit code; this program is 64-bit");
  EXPECT_THAT(reason([](Elf64_Ehdr* header) { header->e_ident[EI_DATA] = 3 - header->e_ident[EI_DATA]; }),
              HasSubstr("was built for a machine of the other byte order"));
  EXPECT_EQ(reason([](Elf64_Ehdr* header) { header->e_type = ET_REL; }),
            "is an object file, not a shared library: link it with -shared");
}

TEST(PluginLibrary, RefusesBrokenTables) {
  const PluginLibrary empty(kBad / "null_table.so");
  EXPECT_THAT(MessageOf([&] { empty.Table<void>(Role::kReward); }),
              HasSubstr("it offers no interface that this host knows"));
  const PluginLibrary cut(kBad / "short_table.so");
  EXPECT_THAT(MessageOf([&] { cut.Table<void>(Role::kReward); }), HasSubstr("has struct_size 16, below 56"));
}

// ---- list ---------------------------------------------------------------------------------------

TEST(ListPlugins, AsksEachAndSurvivesThoseThatCrash) {
  const std::vector<PluginSummary> plugins = ListPlugins(PluginLoader({kGood, kBad}));
  ASSERT_GE(plugins.size(), 14U);
  EXPECT_EQ(plugins[0].name, "fakes");
  EXPECT_EQ(plugins[0].roles,
            (std::vector<std::string>{"policy", "coder", "evaluator", "reward", "trainer", "observer"}));
  EXPECT_EQ(plugins[0].error, "");
  const auto error_of = [&](const std::string& name) {
    for (const PluginSummary& plugin : plugins) {
      if (plugin.path.stem() == name) return plugin.error;
    }
    return std::string("not listed");
  };
  EXPECT_EQ(error_of("crashes_at_load"), "loading it crashed with signal 9 (Killed)");
  EXPECT_THAT(error_of("wrong_major"), HasSubstr("built for plugin ABI 2"));
  EXPECT_THAT(error_of("null_table"), HasSubstr("offers no interface"));
}

}  // namespace
}  // namespace kgrpo

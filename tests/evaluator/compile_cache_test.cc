// The cache of compiled kernels: hits and misses, damage, its size limit, several processes at once, and the files that
// the compiler keeps in it.
#include "judge/compile/compile_cache.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_toolkit.h"
#include "fixtures/virtual_sleep.h"
#include "judge/compile/compiler.h"
#include "judge/compile/nvcc_compile.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

CompileOutcome Outcome(const std::string& object) {
  CompileOutcome outcome;
  outcome.kernel.object = object;
  outcome.kernel.ptx = ".version 9.0";
  outcome.kernel.cubin = std::string("\177ELF\0x", 6);
  outcome.kernel.route = "fast";
  outcome.kernel.usage["_Z1kPf"] = {40, 8, 4, 2048, 64};
  outcome.kernel.usage["_Z1lPf"] = {16, 0, 0, 0, 0};
  return outcome;
}

CompileKey Key(const std::string& source) {
  return {source, "entry", "fast", "flags", "nvcc 13.0", "sm_90", "policy", "evaluator"};
}

class CompileCacheTest : public testing::Test {
 protected:
  CompileCacheTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CompileCacheTest() override { fs::remove_all(folder_); }

  // Runs SQL on the file behind the cache's back.
  void Execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    sqlite3_close(database);
  }

  const std::string folder_ = testing::TempDir() + "/kgrpo_compile_cache_" + std::to_string(getpid());
  const std::string file_ = folder_ + "/compiles.sqlite";
};

TEST_F(CompileCacheTest, GivesBackWhatItKept) {
  CompileCache cache(file_);
  EXPECT_FALSE(cache.Find(Key("a")).has_value());
  cache.Keep(Key("a"), Outcome(std::string("ob\0ject", 7)));
  const std::optional<CompileOutcome> found = CompileCache(file_).Find(Key("a"));  // by another connection
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->Succeeded());
  EXPECT_TRUE(found->cached);
  EXPECT_FALSE(found->transient);
  EXPECT_EQ(ToBytes(*found), ToBytes(Outcome(std::string("ob\0ject", 7))));
  EXPECT_EQ(found->kernel.object.size(), 7u);
  EXPECT_EQ(found->kernel.usage.at("_Z1kPf").constant_bytes, 64);
}

TEST_F(CompileCacheTest, KeepsRefusals) {
  CompileCache cache(file_);
  CompileOutcome outcome;
  outcome.verdict = "not_compiled";
  outcome.diagnosis = "It does not compile.\n| error";
  cache.Keep(Key("a"), outcome);
  const std::optional<CompileOutcome> found = cache.Find(Key("a"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->verdict, "not_compiled");
  EXPECT_EQ(found->diagnosis, outcome.diagnosis);
}

TEST_F(CompileCacheTest, EachPartOfTheKeyCounts) {
  CompileCache cache(file_);
  cache.Keep(Key("a"), Outcome("object"));
  for (std::string CompileKey::*part :
       {&CompileKey::source, &CompileKey::entry, &CompileKey::route, &CompileKey::flags, &CompileKey::compiler,
        &CompileKey::architecture, &CompileKey::policy, &CompileKey::evaluator}) {
    CompileKey other = Key("a");
    other.*part += " ";
    EXPECT_FALSE(cache.Find(other).has_value()) << other.*part;
  }
  EXPECT_TRUE(cache.Find(Key("a")).has_value());
}

TEST_F(CompileCacheTest, TransientOutcomesAreNotKept) {
  CompileCache cache(file_);
  CompileOutcome outcome = Outcome("object");
  outcome.transient = true;
  cache.Keep(Key("a"), outcome);
  EXPECT_FALSE(cache.Find(Key("a")).has_value());
}

TEST_F(CompileCacheTest, DamagedEntryIsAMissAndReplaced) {
  CompileCache cache(file_);
  for (const char* damage : {"UPDATE compiled SET outcome = zeroblob(length(outcome))",
                             "UPDATE compiled SET outcome = substr(outcome, 1, 20)", "UPDATE compiled SET digest = ''",
                             "UPDATE compiled SET outcome = x'', digest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b"
                             "934ca495991b7852b855'"}) {
    cache.Keep(Key("a"), Outcome("object"));
    ASSERT_TRUE(cache.Find(Key("a")).has_value());
    Execute(damage);
    EXPECT_FALSE(cache.Find(Key("a")).has_value()) << damage;
  }
  cache.Keep(Key("a"), Outcome("again"));
  ASSERT_TRUE(cache.Find(Key("a")).has_value());
  EXPECT_EQ(cache.Find(Key("a"))->kernel.object, "again");
}

TEST_F(CompileCacheTest, DamagedFileIsBegunAnew) {
  {
    CompileCache cache(file_);
    for (int i = 0; i < 50; ++i) cache.Keep(Key(std::to_string(i)), Outcome(std::string(5000, 'x')));
  }
  {  // every page but the first
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    const auto bytes = static_cast<size_t>(fs::file_size(file_));
    file.seekp(4096);
    file << std::string(bytes - 4096, '\x5a');
  }
  {
    CompileCache cache(file_);
    EXPECT_FALSE(cache.Find(Key("7")).has_value());
    cache.Keep(Key("7"), Outcome("again"));
    cache.Keep(Key("7"), Outcome("again"));
    EXPECT_TRUE(cache.Find(Key("7")).has_value());
  }
  std::ofstream(file_, std::ios::trunc) << std::string(10000, 'y');
  fs::remove(file_ + "-wal");
  CompileCache cache(file_);
  EXPECT_TRUE(fs::exists(file_ + ".damaged"));
  cache.Keep(Key("8"), Outcome("again"));
  EXPECT_TRUE(cache.Find(Key("8")).has_value());
}

TEST_F(CompileCacheTest, AFileInUseIsWaitedForAndKept) {
  { CompileCache(file_).Keep(Key("a"), Outcome("object")); }
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr),
            SQLITE_OK);
  const VirtualSleep leaves(std::chrono::milliseconds(200), [other] {
    sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(other);
  });
  CompileCache cache(file_);
  EXPECT_TRUE(leaves.over()) << "it was not in use";
  EXPECT_TRUE(cache.Find(Key("a")).has_value());
  EXPECT_FALSE(fs::exists(file_ + ".damaged"));
}

TEST_F(CompileCacheTest, OneOfSeveralSetsADamagedFileAside) {
  CompileCache first(file_), second(file_);
  for (int i = 0; i < 50; ++i) first.Keep(Key(std::to_string(i)), Outcome(std::string(5000, 'x')));
  Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    const auto bytes = static_cast<size_t>(fs::file_size(file_));
    file.seekp(4096);
    file << std::string(bytes - 4096, '\x5a');
  }
  const auto use = [](CompileCache& cache) {
    EXPECT_FALSE(cache.Find(Key("7")).has_value());
    cache.Keep(Key("mended"), Outcome("again"));
    cache.Keep(Key("mended"), Outcome("again"));
  };
  use(first);
  ASSERT_TRUE(first.Find(Key("mended")).has_value());
  use(second);
  EXPECT_TRUE(first.Find(Key("mended")).has_value());
  EXPECT_TRUE(second.Find(Key("mended")).has_value());
}

TEST_F(CompileCacheTest, OldestAreEvicted) {
  constexpr uint64_t kMost = 100'000;
  CompileCache cache(file_, kMost);
  for (int i = 0; i < 200; ++i) {
    cache.Keep(Key(std::to_string(i)), Outcome(std::string(2000, 'x')));
    EXPECT_TRUE(cache.Find(Key(std::to_string(i))).has_value());
  }
  int kept = 0, last_lost = -1;
  for (int i = 0; i < 200; ++i) {
    if (cache.Find(Key(std::to_string(i))).has_value()) {
      ++kept;
    } else {
      last_lost = i;
    }
  }
  EXPECT_EQ(last_lost, 199 - kept) << "those kept longest ago go first";
  const uint64_t each = ToBytes(Outcome(std::string(2000, 'x'))).size();
  EXPECT_LE(static_cast<uint64_t>(kept) * each, kMost);
  EXPECT_GE(static_cast<uint64_t>(kept) * each, kMost * 8 / 10);
  // One that is larger than the whole is not kept, and evicts nothing.
  cache.Keep(Key("huge"), Outcome(std::string(2 * kMost, 'x')));
  EXPECT_FALSE(cache.Find(Key("huge")).has_value());
  EXPECT_TRUE(cache.Find(Key("199")).has_value());
}

TEST_F(CompileCacheTest, ManyProcessesWriteAtOnce) {
  constexpr int kProcesses = 4, kEntries = 40;
  // Each writes entries of its own and ones that all write, and finds what it wrote; in two threads.
  const auto work = [this](int process) {
    CompileCache cache(file_);
    std::atomic<bool> good = true;
    const auto half = [&](int first) {
      for (int i = first; i < kEntries; i += 2) {
        const std::string own = std::to_string(process) + " " + std::to_string(i);
        cache.Keep(Key(own), Outcome(own + std::string(3000, 'x')));
        cache.Keep(Key("all " + std::to_string(i)), Outcome(std::string(3000, 'y')));
        const std::optional<CompileOutcome> found = cache.Find(Key(own));
        if (!found || found->kernel.object != own + std::string(3000, 'x')) good = false;
      }
    };
    std::thread other(half, 1);
    half(0);
    other.join();
    return good ? 0 : 1;
  };
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) _exit(work(process));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  CompileCache cache(file_);
  for (int i = 0; i < kEntries; ++i) {
    EXPECT_TRUE(cache.Find(Key("all " + std::to_string(i))).has_value());
    for (int process = 0; process < kProcesses; ++process)
      EXPECT_TRUE(cache.Find(Key(std::to_string(process) + " " + std::to_string(i))).has_value());
  }
}

// The compiler with a toolkit of scripts, whose nvcc counts how often it is asked to compile.
class CompilerCacheTest : public CompileCacheTest {
 protected:
  CompileOutcome Compile(const std::string& nvcc, const std::string& source, double seconds = 60, int capability = 90) {
    fake_.Nvcc(release_, "compute_90 compute_120", nvcc);
    const CudaToolkit toolkit = FindToolkit(fake_.home());
    const Sandbox sandbox(SandboxMode::kAuto, helpers_, toolkit.readable);
    Compiler compiler(toolkit, sandbox, helpers_,
                      {.route = CompileRoute::kNvcc,
                       .seconds = seconds,
                       .library_directory = helpers_,
                       .compute_capability = capability,
                       .cache_file = file_});
    return compiler.Compile(problem_, source, false);
  }

  FakeToolkit fake_;
  const std::string helpers_ = FindHelperDirectory();
  std::string release_ = "13.0, V13.0.88";
  Problem problem_ = LoadProblem(std::string(KGRPO_SOURCE_DIR) + "/tests/evaluator/problems/affine");
};

constexpr char kRefuses[] = "echo 'kernel.cu(1): error: expected a declaration'; exit 2";

TEST_F(CompilerCacheTest, CompilesTheSameOnce) {
  EXPECT_FALSE(Compile(kRefuses, "a").cached);
  const CompileOutcome again = Compile("echo 'error: not asked'; exit 2", "a");
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.verdict, "not_compiled");
  EXPECT_THAT(again.diagnosis, HasSubstr("expected a declaration"));
  EXPECT_FALSE(Compile(kRefuses, "b").cached);
  EXPECT_FALSE(Compile(kRefuses, "a", 60, 120).cached);
  release_ = "13.1, V13.1.2";
  EXPECT_FALSE(Compile(kRefuses, "a").cached);
  EXPECT_TRUE(Compile(kRefuses, "a").cached);
  problem_.allowed_libraries.emplace_back("cub");
  EXPECT_FALSE(Compile(kRefuses, "a").cached);
  problem_.entry += "_renamed";
  EXPECT_FALSE(Compile(kRefuses, "a").cached);
  EXPECT_TRUE(Compile(kRefuses, "a").cached);
}

// An nvcc that does not know the option for pointers to shared memory is asked without it.
TEST_F(CompilerCacheTest, AsksWithoutAnOptionThatNvccDoesNotKnow) {
  fake_.Nvcc("13.0, V13.0.88", "compute_90",
             "case \"$*\" in *--sharedmem32*) echo 'Command-line error: invalid option: --sharedmem32'; exit 1;; "
             "*) echo 'kernel.cu(1): error: asked plainly'; exit 2;; esac");
  const CudaToolkit toolkit = FindToolkit(fake_.home());
  const Sandbox sandbox(SandboxMode::kAuto, helpers_, toolkit.readable);
  EXPECT_THAT(CompileWithNvcc(toolkit, sandbox, helpers_, 90, {"", "a", "", {}, {}}, 60, true).diagnosis,
              HasSubstr("asked plainly"));
}

TEST_F(CompilerCacheTest, KeepsNoFailureOfTheMoment) {
  const char* const kMoments[] = {
      "kill -9 $$",
      "echo \"nvcc error   : 'cicc' died due to signal 9 (Kill signal)\"; exit 1",
      "echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1",
      "echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1",
      "echo '/tmp/x: No space left on device'; exit 1",
  };
  for (const char* moment : kMoments) {
    const CompileOutcome outcome = Compile(moment, "a");
    EXPECT_EQ(outcome.verdict, "not_compiled") << moment;
    EXPECT_TRUE(outcome.transient) << moment;
  }
  EXPECT_TRUE(Compile("sleep 100", "a", 0.5).transient);
  const CompileOutcome later = Compile(kRefuses, "a");
  EXPECT_FALSE(later.cached);
  EXPECT_FALSE(later.transient);
  EXPECT_TRUE(Compile(kRefuses, "a").cached);
}

}  // namespace
}  // namespace kgrpo::evaluator

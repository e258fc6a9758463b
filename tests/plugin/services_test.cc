// The host's services for plugins: metrics, folders, random numbers, the stop flag. Device locks: device_locks_test.cc.
#include "base/services.h"

#include <kgrpo/sdk/collective.h>
#include <kgrpo/sdk/host.h>

#include "base/keyed.h"
#include "base/log.h"
#include "test.h"

namespace kgrpo {
namespace {

TEST(HostServices, MetricsAreMeansWhateverTheOrder) {
  HostServices forward({}), backward({});
  const Host a(forward.ForInstance("x")), b(backward.ForInstance("x"));
  for (int i = 0; i < 1000; ++i) a.Metric("m", 1.0 / (i + 1));
  for (int i = 999; i >= 0; --i) b.Metric("m", 1.0 / (i + 1));
  const double mean = forward.TakeMetrics().at("m");
  EXPECT_EQ(mean, backward.TakeMetrics().at("m"));
  EXPECT_NEAR(mean, 7.485470860550345 / 1000, 1e-15);
  EXPECT_TRUE(forward.TakeMetrics().empty()) << "taken once";
  a.Metric("m", std::nan(""));
  EXPECT_TRUE(std::isnan(forward.TakeMetrics().at("m")));
}

// A transport of the first release only blocks, and the host says so: plugins look before they call.
TEST(HostServices, OffersOfTheCollectiveWhatTheTransportHas) {
  static int begun = 0;
  kgrpo_collective_interface transport{};
  transport.struct_size = sizeof(transport);
  transport.begin_reduce_scatter = [](void*, const kgrpo_tensor*, size_t begin, size_t end, void*) -> kgrpo_error* {
    begun = static_cast<int>(begin * 10 + end);
    return nullptr;
  };
  transport.finish_reductions = [](void*) -> kgrpo_error* { return nullptr; };
  HostServices services({});
  services.SetCollective(&transport, nullptr);
  const Collective several(services.ForInstance("x"));
  ASSERT_TRUE(several.reduces_in_background());
  several.BeginReduceScatter(ArrayTensor(static_cast<double*>(nullptr), 0), 4, 2, nullptr);
  EXPECT_EQ(begun, 42);
  several.FinishReductions();

  transport.begin_reduce_scatter = nullptr;
  HostServices blocking({});
  blocking.SetCollective(&transport, nullptr);
  EXPECT_FALSE(Collective(blocking.ForInstance("x")).reduces_in_background());
}

TEST(HostServices, FoldersAreMadeWhenAskedFor) {
  const TemporaryDirectory directory;
  HostOptions options;
  options.artifact_root = directory.path() / "run" / "artifacts";
  options.cache_root = directory.path() / "cache";
  HostServices services(options);
  const Host host(services.ForInstance("trainer[0]", "trainer_x"));
  EXPECT_TRUE(fs::is_empty(directory.path()));
  EXPECT_EQ(host.ArtifactDirectory(), (directory.path() / "run" / "artifacts" / "trainer[0]").string());
  EXPECT_EQ(host.CacheDirectory(), (directory.path() / "cache" / "trainer_x").string());
  EXPECT_TRUE(fs::is_directory(host.ArtifactDirectory()));
  EXPECT_TRUE(fs::is_directory(host.CacheDirectory()));
}

TEST(HostServices, TemporaryArtifactsGo) {
  std::string path;
  {
    HostServices services({});
    path = Host(services.ForInstance("x")).ArtifactDirectory();
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(HostServices, RandomNumbersBelongToTheInstance) {
  HostOptions options;
  options.seed = 9;
  HostServices services(options);
  const Host a(services.ForInstance("a")), b(services.ForInstance("b"));
  EXPECT_EQ(a.Random({1, 2}, 3), Keyed(9, "a", {1, 2}, 3));
  EXPECT_NE(a.Random({1, 2}, 3), b.Random({1, 2}, 3));
}

TEST(CacheRoot, FollowsTheVariables) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  setenv("KGRPO_CACHE_DIR", "/a/b", 1);
  EXPECT_EQ(CacheRoot(), "/a/b");
  unsetenv("KGRPO_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(CacheRoot(), "/x/kgrpo");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(CacheRoot(), "/h/.cache/kgrpo");
  unsetenv("HOME");
  EXPECT_THROW(CacheRoot(), Error);
  setenv("HOME", home.c_str(), 1);
}

TEST(PrintableText, DefusesControlCharacters) {
  EXPECT_EQ(PrintableText("a\x1b[31mb\x7f\tc\nd"), "a\\x1b[31mb\\x7f\tc\n    d");
}

}  // namespace
}  // namespace kgrpo

// The example plugin is built as its author would: copied elsewhere, with nothing of this tree but the header folders,
// by its own CMakeLists.txt; then the host uses it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "host/directories.h"

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

TEST(ExamplePlugin, BuildsOutOfTreeAndValidates) {
  const TemporaryDirectory directory;
  const fs::path source(KGRPO_SOURCE_DIR);
  fs::copy(source / "examples" / "reward_bytes_saved", directory.path() / "plugin", fs::copy_options::recursive);
  fs::create_directories(directory.path() / "include");
  fs::copy(source / "core" / "abi" / "kgrpo", directory.path() / "include" / "kgrpo", fs::copy_options::recursive);
  fs::copy(source / "core" / "sdk" / "kgrpo" / "sdk", directory.path() / "include" / "kgrpo" / "sdk",
           fs::copy_options::recursive);
  const std::string at = "cd '" + directory.path().string() + "' && ";
  const auto run = [&](const std::string& command) { return std::system((at + command + " > log 2>&1").c_str()); };
  const auto log = [&] {
    std::ifstream stream(directory.path() / "log");
    return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  };
  ASSERT_EQ(run("cmake -G Ninja -S plugin -B build -DKGRPO_INCLUDE=include"), 0) << log();
  ASSERT_EQ(run("cmake --build build"), 0) << log();
  EXPECT_EQ(
      run("KGRPO_CACHE_DIR=cache '" KGRPO_BINARY_DIR "/bin/kgrpo-host' plugins validate build/reward_bytes_saved.so"),
      0)
      << log();
  EXPECT_EQ(
      run("KGRPO_CACHE_DIR=cache '" KGRPO_BINARY_DIR "/bin/kgrpo-host' plugins describe build/reward_bytes_saved.so"),
      0)
      << log();
  EXPECT_THAT(log(), testing::HasSubstr("weight"));
}

}  // namespace
}  // namespace kgrpo

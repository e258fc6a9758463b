// What most tests include: GoogleTest, JSON, Error, and the standard library's containers, files, text and threads,
// with their usual short names. Precompiled (kgrpo_precompile in cmake/Kgrpo.cmake).
#ifndef KGRPO_TESTS_TEST_H
#define KGRPO_TESTS_TEST_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace kgrpo {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

namespace test {

// The message of the Error that `body` throws, of which the code is expected if one is given; `otherwise` if it throws
// none.
inline std::string MessageOf(const std::function<void()>& body, uint32_t code = 0,
                             const std::string& otherwise = "nothing thrown") {
  try {
    body();
  } catch (const Error& error) {
    if (code != 0) EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return otherwise;
}

}  // namespace test
}  // namespace kgrpo
#endif

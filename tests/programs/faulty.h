// A Pool of copies of tests/programs/faulty.py with a given failure. Used by the tests of this folder.
#ifndef KGRPO_TESTS_PROGRAMS_FAULTY_H
#define KGRPO_TESTS_PROGRAMS_FAULTY_H

#include "base/directories.h"
#include "base/services.h"
#include "program_shared/pool.h"
#include "test.h"

namespace kgrpo::program {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    HostOptions options;
    options.cache_root = directory_.path() / "cache";
    services_ = std::make_unique<HostServices>(std::move(options));
  }

  PoolOptions Faulty(const std::string& how) const {
    PoolOptions options;
    options.command = {"python3", "-S", "-E", KGRPO_SOURCE_DIR "/tests/programs/faulty.py", how, state()};
    options.request_seconds = 20;
    options.options = nlohmann::json::object();
    return options;
  }
  Host host() { return Host(services_->ForInstance("program")); }
  std::string state() const { return (directory_.path() / "state").string(); }

  // The result of a request that makes the copy fail: the error's text, or the answer as JSON.
  std::string Failing(Pool& pool) const {
    try {
      return pool.Call("fail", nullptr).dump();
    } catch (const Error& error) {
      return error.what();
    }
  }
  std::string Failing(const std::string& how) {
    Pool pool(host(), "reward", Faulty(how));
    const std::string message = Failing(pool);
    EXPECT_EQ(pool.Call("echo", 7), 7) << "it is not started anew";
    return message;
  }
  std::string Starting(const PoolOptions& options) {
    return test::MessageOf([&] { Pool pool(host(), "reward", options); }, 0, "it started");
  }

  TemporaryDirectory directory_;
  std::unique_ptr<HostServices> services_;
};

}  // namespace kgrpo::program

#endif  // KGRPO_TESTS_PROGRAMS_FAULTY_H

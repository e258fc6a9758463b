// python/kgrpo_client.py against a service in the process.
#include <cstdlib>

#include "running_service.h"

namespace kgrpo::test {
namespace {

using ClientTest = ServeTest;

TEST_F(ClientTest, ThePythonClientKeepsItsWord) {
  RunningService running({.workers = 2});
  const TemporaryDirectory directory;
  WriteProblem(directory.path() / "mine");
  const std::string command = "python3 -W error '" KGRPO_SOURCE_DIR "/tests/serve/check_client.py' " +
                              running.address() + " '" + (directory.path() / "mine").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_TRUE(Eventually([&] { return running.service().active() == 0; })) << "what the client left is cancelled";
  EXPECT_EQ(judge().cancelled, 1);
}

}  // namespace
}  // namespace kgrpo::test

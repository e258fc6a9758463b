// The plugin as the host sees it: loaded from its file, through the C interface alone. Tests plugin.cc.
#include <dlfcn.h>
#include <kgrpo/coder.h>
#include <kgrpo/sdk/text.h>

#include "coder_offline/techniques.h"
#include "shipped.h"
#include "test.h"

namespace kgrpo::coder_offline {
namespace {

struct Received {
  int calls = 0;
  uint32_t outcome = 99;
  std::string source, summary, message;
};

void Receive(void* context, const kgrpo_coder_answer* answer, kgrpo_error* error) {
  auto* received = static_cast<Received*>(context);
  ++received->calls;
  ASSERT_EQ(error, nullptr);
  received->outcome = answer->outcome;
  received->source = Copy(answer->source);
  received->summary = Copy(answer->summary);
  received->message = Copy(answer->message);
  EXPECT_EQ(answer->attempts, 1u);
}

class Plugin : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(KGRPO_BINARY_DIR "/lib/kgrpo/coder_offline.so", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    const auto entry = reinterpret_cast<kgrpo_plugin_entry_function>(dlsym(library_, KGRPO_PLUGIN_ENTRY));
    ASSERT_NE(entry, nullptr);
    plugin_ = entry();
    table_ = static_cast<const kgrpo_coder_interface*>(plugin_->get_interface(Str(KGRPO_CODER_INTERFACE)));
    ASSERT_NE(table_, nullptr);
    Check(table_->create(nullptr, Str("{}"), &coder_));
  }
  void TearDown() override {
    if (table_ != nullptr) table_->destroy(coder_);
    if (library_ != nullptr) dlclose(library_);
  }

  Received Ask(const std::string& source, const std::string& suggestion) {
    kgrpo_coder_request request = {};
    request.struct_size = sizeof request;
    kgrpo_problem_info problem = {};
    problem.struct_size = sizeof problem;
    request.problem = &problem;
    request.code_a = Str("int not_this_one;");
    request.code_b = Str(source);
    request.suggestion = Str(suggestion);
    Received received;
    Check(table_->implement(coder_, &request, {&received, Receive}));
    return received;
  }

  void* library_ = nullptr;
  const kgrpo_plugin* plugin_ = nullptr;
  const kgrpo_coder_interface* table_ = nullptr;
  kgrpo_coder* coder_ = nullptr;
};

TEST_F(Plugin, SaysWhatItIs) {
  EXPECT_EQ(View(plugin_->name), "coder_offline");
  EXPECT_EQ(plugin_->get_interface(Str("kgrpo.reward/1")), nullptr);
  EXPECT_NE(View(table_->options_schema()).find("\"additionalProperties\": false"), std::string_view::npos);
}

TEST_F(Plugin, AnswersEachRequestOnceWithItsOutcome) {
  const Received ok = Ask(Reference("matmul"), "tile in shared memory 16");
  EXPECT_EQ(ok.calls, 1);
  EXPECT_EQ(ok.outcome, static_cast<uint32_t>(KGRPO_CODER_OK));
  EXPECT_EQ(ok.summary, "shared-memory tiling, tile 16");
  EXPECT_NE(ok.source.find("tile=16"), std::string::npos);
  EXPECT_EQ(ok.message, "");

  const Received refused = Ask(Reference("matmul"), "warp shuffle reduction");
  EXPECT_EQ(refused.outcome, static_cast<uint32_t>(KGRPO_CODER_NOT_APPLICABLE));
  EXPECT_EQ(refused.source, "");
  EXPECT_NE(refused.message, "");

  const Received unclear = Ask(Reference("matmul"), "please");
  EXPECT_EQ(unclear.outcome, static_cast<uint32_t>(KGRPO_CODER_UNCLEAR));
  EXPECT_EQ(unclear.source, "");
}

TEST_F(Plugin, RefusesARequestItCantAnswer) {
  Received received;
  kgrpo_error* error = table_->implement(coder_, nullptr, {&received, Receive});
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, static_cast<uint32_t>(KGRPO_ERROR_INVALID));
  error->release(error);
  EXPECT_EQ(received.calls, 0);
}

TEST_F(Plugin, ListsItsSuggestionsInOrder) {
  std::vector<std::string> listed;
  Check(table_->suggestions(coder_, {&listed, [](void* context, kgrpo_str text) {
                                       static_cast<std::vector<std::string>*>(context)->push_back(Copy(text));
                                     }}));
  EXPECT_EQ(listed, Suggestions());
}

TEST_F(Plugin, ManyThreadsGetTheSameAnswers) {
  const std::string source = Reference("softmax_long");
  const std::string expected = Ask(source, "one block per row").source;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(Ask(source, "one block per row").source, expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kgrpo::coder_offline

// The plugin coder_direct through the C interface.
#include <dlfcn.h>
#include <kgrpo/coder.h>
#include <kgrpo/sdk/text.h>
#include "test.h"

namespace kgrpo {
namespace {

class CoderDirectPlugin : public testing::Test {
 protected:
  CoderDirectPlugin() {
    library_ = dlopen(KGRPO_BINARY_DIR "/lib/kgrpo/coder_direct.so", RTLD_NOW | RTLD_LOCAL);
    const auto entry = reinterpret_cast<kgrpo_plugin_entry_function>(dlsym(library_, KGRPO_PLUGIN_ENTRY));
    table_ = static_cast<const kgrpo_coder_interface*>(entry()->get_interface(Str(KGRPO_CODER_INTERFACE)));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CoderDirectPlugin() override { dlclose(library_); }

  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  kgrpo_coder* Create(const std::string& examples) {
    kgrpo_coder* coder = nullptr;
    Check(table_->create(nullptr, Str("{\"examples\": \"" + examples + "\"}"), &coder));
    return coder;
  }
  std::string Refusal(const std::string& examples) {
    return test::MessageOf([&] { table_->destroy(Create(examples)); }, KGRPO_ERROR_INVALID, "");
  }
  // The outcome of `suggestion`, which ended at its token limit if `truncated`.
  uint32_t Outcome(kgrpo_coder* coder, const std::string& suggestion, bool truncated) {
    kgrpo_problem_info problem{};
    problem.struct_size = sizeof problem;
    problem.signature = Str("extern \"C\" void launch(float* x)");
    kgrpo_coder_request request{};
    request.struct_size = sizeof request;
    request.problem = &problem;
    request.code_b = Str("int old;");
    request.suggestion = Str(suggestion);
    request.truncated = truncated ? 1 : 0;
    uint32_t outcome = 99;
    Check(table_->implement(coder, &request,
                            {&outcome, [](void* context, const kgrpo_coder_answer* answer, kgrpo_error*) {
                               *static_cast<uint32_t*>(context) = answer->outcome;
                             }}));
    return outcome;
  }

  void* library_ = nullptr;
  const kgrpo_coder_interface* table_ = nullptr;
  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "coder_direct_examples";
};

TEST_F(CoderDirectPlugin, ACompletionIsTheKernel) {
  kgrpo_coder* coder = Create("");
  const std::string open = "```cuda\nextern \"C\" void launch(float* x) {}\n";
  EXPECT_EQ(Outcome(coder, open + "```\n", false), KGRPO_CODER_OK);
  EXPECT_EQ(Outcome(coder, open, false), KGRPO_CODER_OK);
  EXPECT_EQ(Outcome(coder, open, true), KGRPO_CODER_NO_KERNEL) << "the rest of the file may be missing";
  EXPECT_EQ(Outcome(coder, "use shared memory", false), KGRPO_CODER_NO_KERNEL);
  table_->destroy(coder);
}

TEST_F(CoderDirectPlugin, RefusesARequestWithoutItsLastMember) {
  kgrpo_coder* coder = Create("");
  const kgrpo_problem_info problem{};
  kgrpo_coder_request request{};
  request.struct_size = KGRPO_SIZEOF_THROUGH(kgrpo_coder_request, seed);
  request.problem = &problem;
  const kgrpo_coder_done done = {nullptr, [](void*, const kgrpo_coder_answer*, kgrpo_error*) { ADD_FAILURE(); }};
  EXPECT_NE(test::MessageOf([&] { Check(table_->implement(coder, &request, done)); }, KGRPO_ERROR_INVALID),
            "nothing thrown");
  table_->destroy(coder);
}

TEST_F(CoderDirectPlugin, ListsItsExamplesByName) {
  Write("b.cu", "second");
  Write("a.cu", "first\n");
  kgrpo_coder* coder = Create(folder_.string());
  std::vector<std::string> listed;
  Check(table_->suggestions(coder, {&listed, [](void* context, kgrpo_str text) {
                                      static_cast<std::vector<std::string>*>(context)->push_back(Copy(text));
                                    }}));
  EXPECT_THAT(listed, ElementsAre("first\n", "second"));
  table_->destroy(coder);
}

TEST_F(CoderDirectPlugin, RefusesExamplesThatItCannotRead) {
  EXPECT_THAT(Refusal("/nowhere"), HasSubstr("options.examples: cannot read the folder /nowhere: No such file"));
  EXPECT_THAT(Refusal(folder_.string()), HasSubstr("has no file"));
  Write("empty", "");
  EXPECT_THAT(Refusal(folder_.string()), HasSubstr("empty, or it is empty"));
}

}  // namespace
}  // namespace kgrpo

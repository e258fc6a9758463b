#include "coder_direct/completion.h"

#include "coder_shared/answer.h"
#include "coder_shared/blocks.h"
#include "coder_shared/text.h"
#include "coder_shared/thoughts.h"

#include <utility>

namespace kgrpo::coder_direct {
namespace {

// Models often describe their change beside the code. A completion without a fence is code from its first line on.
std::string Summary(std::string_view completion) {
  bool unfinished = false;
  std::string prose;
  const std::string text = coder_shared::WithoutThoughts(std::string(completion), &unfinished);
  if (coder_shared::FencedBlocks(text, &prose).empty()) return "";
  return coder_shared::OneLine(coder_shared::Trimmed(prose));
}

}  // namespace

CoderAnswer ReadCompletion(const Completion& completion, std::string_view signature, std::string_view current) {
  coder_shared::ReadAnswer read =
      coder_shared::ReadKernel({completion.text, "", completion.truncated ? "length" : "stop"}, {signature, current});
  CoderAnswer written;
  written.outcome = KGRPO_CODER_NO_KERNEL;
  if (read.outcome == KGRPO_CODER_OK || std::string_view(read.form) == coder_shared::kUnchanged) {
    written.outcome = KGRPO_CODER_OK;
    // Byte for byte, so that the host finds the kernel unchanged. A kernel that was wrong stays wrong: to repeat it is
    // no way around its penalty.
    written.source = read.outcome == KGRPO_CODER_OK ? std::move(read.source) : std::string(current);
    written.summary = Summary(completion.text);
    return written;
  }
  // The table has the words of a service's coder for this one.
  written.message = read.outcome == KGRPO_CODER_TRUNCATED
                        ? std::string("the completion ends before its kernel does") +
                              (completion.truncated ? ", at loop.sampling.max_new_tokens" : "")
                        : std::move(read.message);
  return written;
}

}  // namespace kgrpo::coder_direct

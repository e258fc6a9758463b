// The common event of a stream, read without building a JSON tree: an answer of a thousand tokens has a thousand of
// them. Used by response_reader.cc.
#ifndef KGRPO_CODER_GPT4O_CLIENT_CONTENT_CHUNK_H
#define KGRPO_CODER_GPT4O_CLIENT_CONTENT_CHUNK_H

#include <string>
#include <string_view>

namespace kgrpo::coder_gpt4o {

// Whether `event` is a chunk that holds a piece of the first choice's content and nothing else that matters: no error,
// no usage, no refusal, no reason to finish. Appends the piece to `text` then; otherwise leaves it alone.
bool TakeContentChunk(std::string_view event, std::string& text);

}  // namespace kgrpo::coder_gpt4o
#endif

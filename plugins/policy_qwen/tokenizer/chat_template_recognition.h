// Recognises the Jinja program of a chat template as a format that ChatTemplate renders. Called by
// ChatTemplate::Recognise.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_RECOGNITION_H_
#define KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_RECOGNITION_H_
#include <string_view>

#include "policy_qwen/tokenizer/chat_template.h"

namespace kgrpo::tokenizer {

// Throws Error that quotes the first part of the program that is not known.
ChatTemplate::Format RecogniseChatTemplate(std::string_view jinja);

}  // namespace kgrpo::tokenizer
#endif  // KGRPO_PLUGINS_POLICY_QWEN_TOKENIZER_CHAT_TEMPLATE_RECOGNITION_H_

// Every kind of error in tokenizer.json and tokenizer_config.json, with its message.
#include "policy_qwen/tokenizer/tokenizer.h"
#include "test.h"
#include "test_files.h"

namespace kgrpo::tokenizer {
namespace {

// A small tokenizer in which everything is right.
json RightFile() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 4, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\s+|\\S+"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "", "end_of_word_suffix": "",
              "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3}, "merges": [["a", "b"]]}})");
}

std::string MessageFor(const json& file, const char* config = nullptr) {
  const TemporaryFolder folder;
  folder.Write("tokenizer.json", file.dump());
  if (config != nullptr) folder.Write("tokenizer_config.json", config);
  return MessageOf([&] { Tokenizer::Load(folder.path()); }, folder.path());
}

TEST(TokenizerErrorsTest, TheRightFileLoads) {
  EXPECT_EQ(MessageFor(RightFile()), "(no error)");
  const TemporaryFolder folder;
  folder.Write("tokenizer.json", RightFile().dump());
  EXPECT_EQ(Tokenizer::Load(folder.path()).Encode("abc<end>"), (std::vector<int32_t>{2, 3, 4}));
}

// A post-processor with this template for one text, as tokenizers writes it.
json Template(const std::string& single) {
  return {
      {"type", "TemplateProcessing"},
      {"single", json::parse(single)},
      {"pair", json::parse(R"([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}])")},
      {"special_tokens", json::object()}};
}

// transformers gives the steps of these classes in place of tokenizer.json's.
TEST(TokenizerErrorsTest, ClassesWithStepsOfTheirOwn) {
  EXPECT_EQ(MessageFor(RightFile(), R"({"tokenizer_class": "CodeLlamaTokenizerFast"})"),
            "DIR/tokenizer_config.json: tokenizer_class: is CodeLlamaTokenizer, which makes steps of its own that are "
            "not supported here; if tokenizer.json has the right steps, set it to \"PreTrainedTokenizerFast\"");
  for (const char* name : {"GPTNeoXTokenizerFast", "GemmaTokenizer", "RobertaTokenizer", "XLNetTokenizerFast"}) {
    EXPECT_THAT(MessageFor(RightFile(), json{{"tokenizer_class", name}}.dump().c_str()),
                testing::HasSubstr("makes steps of its own"))
        << name;
  }
  for (const char* name : {"PreTrainedTokenizerFast", "BloomTokenizerFast", "Qwen3Tokenizer", "NobodysTokenizer"})
    EXPECT_EQ(MessageFor(RightFile(), json{{"tokenizer_class", name}}.dump().c_str()), "(no error)") << name;
}

// Each replaces one value of the right file.
TEST(TokenizerErrorsTest, NamesTheWrongKey) {
  const std::string bpe =
      "; only \"BPE\" is supported. The ids are the model's, so no other tokenizer can take its place: use a model "
      "with "
      "a BPE tokenizer, such as those of the Qwen, Llama, Mistral and SmolLM families";
  const std::string single =
      "post_processor.single: is not of the form that is supported: special tokens, then the text (\"Sequence\" "
      "\"A\"); "
      "set post_processor to null if texts need no tokens around them";
  struct Case {
    const char* pointer;
    json value;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"/model/type", "WordPiece", "model.type: is \"WordPiece\"" + bpe},
      {"/model/type", "Unigram", "model.type: is \"Unigram\"" + bpe},
      {"/model/dropout", 0.1, "model.dropout: is 0.1: tokens would be random; set it to null"},
      {"/model/continuing_subword_prefix", "##", "model.continuing_subword_prefix: is \"##\", which is not supported"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix: is \"</w>\", which is not supported"},
      {"/model/byte_fallback", 1, "model.byte_fallback: is a JSON number, must be true or false"},
      {"/model/fuse_unk", "no", "model.fuse_unk: is a JSON string, must be true or false"},
      {"/model/unk_token", "<unk>", "model.unk_token: is '<unk>', which model.vocab lacks"},
      {"/model/unk_token", 3, "model.unk_token: is a JSON number, must be a string"},
      {"/model/vocab", json::array(), "model.vocab: is a JSON array, must be an object"},
      {"/model/vocab", nullptr, "model.vocab: is missing"},
      {"/model/vocab/b", -1, "model.vocab.'b': is -1, must be a token id: a whole number from 0 to 16000000"},
      {"/model/vocab/b", 1.5, "model.vocab.'b': is 1.5, must be a token id: a whole number from 0 to 16000000"},
      {"/model/vocab/b", 99999999999,
       "model.vocab.'b': is 99999999999, must be a token id: a whole number from 0 to 16000000"},
      {"/model/vocab/b", 0, "model.vocab.'b': has the id 0, which another token has too"},
      {"/model/merges", "a b", "model.merges: is a JSON string, must be an array"},
      {"/model/merges/0", "ab", "model.merges[0]: is \"ab\", must be two tokens with one space between them"},
      {"/model/merges/0", "a b c", "model.merges[0]: is \"a b c\", must be two tokens with one space between them"},
      {"/model/merges/0", {"a"}, "model.merges[0]: is [\"a\"], must be \"left right\" or [\"left\", \"right\"]"},
      {"/model/merges/0", {"a", "x"}, "model.merges[0]: needs the token 'x', which model.vocab lacks"},
      {"/model/merges/0", {"b", "a"}, "model.merges[0]: needs the token 'ba', which model.vocab lacks"},
      {"/model/novelty", 1,
       "model.novelty: is not known here, and may change how text is tokenized; remove it if it has no effect"},
      {"/model", nullptr, "model: is missing"},
      {"/model", "BPE", "model: is a JSON string, must be an object"},
      {"/novelty", 1,
       "novelty: is not known here, and may change how text is tokenized; remove it if it has no effect"},
      {"/added_tokens", 1, "added_tokens: is a JSON number, must be an array"},
      {"/added_tokens/0", "<end>", "added_tokens[0]: is a JSON string, must be an object"},
      {"/added_tokens/0/content", nullptr, "added_tokens[0].content: is missing"},
      {"/added_tokens/0/content", "", "added_tokens[0].content: is empty"},
      {"/added_tokens/0/content", "ab", "added_tokens[0].id: is 4, but 'ab' has the id 2"},
      {"/added_tokens/0/id", 2,
       "added_tokens[0].id: is 2, but '<end>' is not in model.vocab and gets the next free id, 4"},
      {"/model/vocab/c", 4, "added_tokens[0].id: '<end>' gets the next free id, 4, which another token has"},
      {"/added_tokens/0/id", "4",
       "added_tokens[0].id: is \"4\", must be a token id: a whole number from 0 to 16000000"},
      {"/added_tokens/0/lstrip", 1, "added_tokens[0].lstrip: is a JSON number, must be true or false"},
      {"/added_tokens/0/novelty", 1,
       "added_tokens[0].novelty: is not known here, and may change how text is tokenized; remove it if it has no "
       "effect"},
      {"/normalizer/type", "Nmt",
       "normalizer.type: normalizer 'Nmt' is not supported (NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, "
       "ByteLevel and Sequence are)"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Precompiled"}}}}},
       "normalizer.normalizers[1].type: normalizer 'Precompiled' is not supported (NFC, NFD, NFKC, NFKD, Lowercase, "
       "Strip, Prepend, Replace, ByteLevel and Sequence are)"},
      {"/normalizer/type", nullptr, "normalizer.type: is missing"},
      {"/normalizer", {{"type", "Prepend"}}, "normalizer.prepend: is missing"},
      {"/normalizer",
       {{"type", "Replace"}, {"pattern", {{"Regex", "(a"}}}, {"content", ""}},
       "normalizer.pattern.Regex: the pattern (a is not a regular expression: end pattern with unmatched parenthesis"},
      {"/pre_tokenizer/pretokenizers/0/type", "BertPreTokenizer",
       "pre_tokenizer.pretokenizers[0].type: pre-tokenizer 'BertPreTokenizer' is not supported (ByteLevel, Digits, "
       "Metaspace, Punctuation, Split, Whitespace, WhitespaceSplit and Sequence are)"},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Isolate",
       "pre_tokenizer.pretokenizers[0].behavior: 'Isolate' is not a behaviour of Split: Isolated, Removed, "
       "MergedWithPrevious, MergedWithNext, Contiguous"},
      {"/pre_tokenizer/pretokenizers/0/pattern",
       {{"Glob", "*"}},
       "pre_tokenizer.pretokenizers[0].pattern.Regex: is missing"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "[a",
       "pre_tokenizer.pretokenizers[0].pattern.Regex: the pattern [a is not a regular expression: premature end of "
       "char-class"},
      {"/pre_tokenizer/pretokenizers/1/novelty", true,
       "pre_tokenizer.pretokenizers[1].novelty: is not known here, and may change how text is tokenized; remove it if "
       "it has no effect"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "ab"}},
       "pre_tokenizer.replacement: is 'ab', must be one character"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
       "pre_tokenizer.prepend_scheme: is 'last', must be always, first or never"},
      {"/pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}},
       "pre_tokenizer.add_prefix_space: is false, which contradicts the prepend_scheme 'always'"},
      {"/decoder/type", "WordPiece",
       "decoder.type: decoder 'WordPiece' is not supported (ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip "
       "and "
       "Sequence are)"},
      {"/decoder",
       {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}},
       "decoder.start: is -1, must be a whole number of 0 or more"},
      {"/post_processor", {{"type", "TemplateProcessing"}}, "post_processor.single: is missing"},
      {"/post_processor", Template(R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}])"),
       "post_processor.special_tokens.<s>: is missing"},
      {"/post_processor", Template(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}])"),
       single},
      {"/post_processor", Template(R"([{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}])"), single},
      {"/post_processor", Template(R"([{"Sequence": {"id": "B"}}])"), single},
      {"/post_processor", Template(R"([{"Sequence": {"id": 1}}])"), single},
      {"/post_processor", Template("[]"), single},
      {"/post_processor",
       {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, {{"type", "BertProcessing"}}}}},
       "post_processor.processors[1].type: post-processor 'BertProcessing' is not supported (ByteLevel, "
       "TemplateProcessing and Sequence are)"},
  };
  for (const Case& test : cases) {
    json file = RightFile();
    file[json::json_pointer(test.pointer)] = test.value;
    EXPECT_EQ(MessageFor(file), "DIR/tokenizer.json: " + test.message) << test.pointer;
  }
}

TEST(TokenizerErrorsTest, NamesTheBrokenFile) {
  const TemporaryFolder folder;
  const auto message = [&] { return MessageOf([&] { Tokenizer::Load(folder.path()); }, folder.path()); };
  EXPECT_EQ(message(),
            "DIR/tokenizer.json: no such file; a model folder needs the tokenizer.json that AutoTokenizer's "
            "save_pretrained writes");
  std::filesystem::create_directory(folder.path() / "tokenizer.json");
  EXPECT_EQ(message(), "DIR/tokenizer.json: not a file");
  std::filesystem::remove(folder.path() / "tokenizer.json");
  folder.Write("tokenizer.json", "");
  EXPECT_EQ(message(), "DIR/tokenizer.json: is empty; copy the file again");
  folder.Write("tokenizer.json", "{\"[\\\"[\": " + std::string(100000, '[') + std::string(100000, ']') + "}");
  EXPECT_EQ(message(), "DIR/tokenizer.json: is nested more than 200 deep");
  folder.Write("tokenizer.json", "[1]");
  EXPECT_EQ(message(), "DIR/tokenizer.json: is a JSON array, must be an object");
  folder.Write("tokenizer.json", "{\"a\": x}");
  EXPECT_EQ(message(), "DIR/tokenizer.json: is not JSON: stopped at byte 7 of 8; repair or copy the file again");
  folder.Write("tokenizer.json", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(
      message(),
      "DIR/tokenizer.json: is a Git LFS pointer, and the file itself was not downloaded; run `git lfs pull` in that "
      "folder");
}

TEST(TokenizerErrorsTest, TruncatedAnywhereIsAnError) {
  const TemporaryFolder folder;
  const std::string text = RightFile().dump();
  for (size_t length = 1; length < text.size(); length += 3) {
    folder.Write("tokenizer.json", text.substr(0, length));
    ASSERT_THAT(MessageOf([&] { Tokenizer::Load(folder.path()); }, folder.path()),
                testing::AllOf(testing::HasSubstr("DIR/tokenizer.json: is not JSON"),
                               testing::HasSubstr("the file looks cut short")))
        << length;
  }
}

TEST(TokenizerErrorsTest, NamesTheWrongKeyOfTheConfig) {
  const json right = RightFile();
  EXPECT_EQ(MessageFor(right, R"({"eos_token": "<end>", "added_tokens_decoder": {"4": {"content": "<end>"}}})"),
            "(no error)");
  EXPECT_EQ(MessageFor(right, R"({"pad_token": 5})"),
            "DIR/tokenizer_config.json: pad_token: is a JSON number, must be a string or an object");
  EXPECT_EQ(MessageFor(right, R"({"bos_token": {"lstrip": true}})"),
            "DIR/tokenizer_config.json: bos_token.content: is missing");
  EXPECT_EQ(MessageFor(right, R"({"added_tokens_decoder": {"5": {"content": "<end>"}}})"),
            "DIR/tokenizer_config.json: added_tokens_decoder.5: is 5, but '<end>' has the id 4");
  EXPECT_EQ(MessageFor(right, R"({"added_tokens_decoder": {"6": {"content": "<x>"}}})"),
            "DIR/tokenizer_config.json: added_tokens_decoder.6: is 6, but '<x>' is not in model.vocab and gets the "
            "next free id, 5");
  EXPECT_EQ(MessageFor(right, R"({"split_special_tokens": true})"),
            "DIR/tokenizer_config.json: split_special_tokens: is true, which would spell the chat template's markers; "
            "set it to false");
  EXPECT_EQ(MessageFor(right, R"({"extra_special_tokens": ["<x>", 1]})"),
            "DIR/tokenizer_config.json: extra_special_tokens[1]: is a JSON number, must be a string or an object");
  EXPECT_EQ(MessageFor(right, R"({"added_tokens_decoder": {"five": {"content": "<x>"}}})"),
            "DIR/tokenizer_config.json: added_tokens_decoder.five: is not a token id");
  EXPECT_EQ(
      MessageFor(right, R"({"chat_template": 1})"),
      "DIR/tokenizer_config.json: chat_template: is a JSON number, must be a string or an array of {name, template}");
  EXPECT_EQ(MessageFor(right, R"({"chat_template": [{"name": "default"}]})"),
            "DIR/tokenizer_config.json: chat_template[0].template: is missing");
  EXPECT_EQ(MessageFor(right, "{"),
            "DIR/tokenizer_config.json: is not JSON: stopped at byte 2 of 1; the file looks cut short: copy it again");
}

}  // namespace
}  // namespace kgrpo::tokenizer

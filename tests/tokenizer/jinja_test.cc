// The template language against jinja2 (tests/golden/tokenizer/make_chat_golden.py), its errors, and its limits.
#include "policy_qwen/tokenizer/jinja.h"

#include "policy_qwen/files.h"
#include "policy_qwen/tokenizer/jinja_value.h"
#include "policy_qwen/tokenizer/unicode.h"
#include "test.h"
#include "test_files.h"

namespace kgrpo::jinja {
namespace {

using tokenizer::MessageOf;

// 14:05:06 on 3 February 2026, here.
std::time_t GoldenTime() {
  std::tm time = {};
  time.tm_year = 126, time.tm_mon = 1, time.tm_mday = 3, time.tm_hour = 14, time.tm_min = 5, time.tm_sec = 6;
  time.tm_isdst = -1;
  return std::mktime(&time);
}

Json Golden() { return Json::parse(policy::ReadFile(tokenizer::GoldenFolder() / "jinja.json")); }

std::string Rendered(const std::string& text, const Json& variables = Json::object()) {
  return Template(text, "t").Render(variables, GoldenTime());
}

std::string ErrorOf(const std::string& text, const Json& variables = Json::object()) {
  return MessageOf([&] { Rendered(text, variables); });
}

TEST(JinjaTest, RendersAsJinja2Does) {
  const Json golden = Golden();
  size_t texts = 0, refusals = 0;
  for (const Json& test : golden.at("cases")) {
    const std::string text = test[0];
    if (test[1].is_null()) {
      EXPECT_THAT(ErrorOf(text, golden["variables"]), StartsWith("t:")) << text;
      ++refusals;
      continue;
    }
    try {
      EXPECT_EQ(Rendered(text, golden["variables"]), test[1].get<std::string>()) << text;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what() << " of " << text;
    }
    ++texts;
  }
  EXPECT_GE(texts, 90u);
  EXPECT_GE(refusals, 60u);
}

TEST(JinjaTest, ErrorsNameTheLine) {
  EXPECT_EQ(ErrorOf("a\n{{ x | nope }}"), "t:2: the filter 'nope' is not known here");
  EXPECT_EQ(ErrorOf("\n\n{% if x is nope %}"), "t:3: the test 'nope' is not known here");
  EXPECT_EQ(ErrorOf("\n{% include 'x' %}"), "t:2: the statement 'include' is not known here");
  EXPECT_EQ(ErrorOf("{% for x in a %}\n{{ x }}\n"), "t:2: the template ends before its {% endfor %}");
  EXPECT_EQ(ErrorOf("{{ a\n\nb }}"), "t:3: expected }}, found 'b'");
  EXPECT_EQ(ErrorOf("{% macro m() %}\n{{ y.z }}{% endmacro %}\n\n{{ m() }}"), "t:2: 'y' is undefined");
  EXPECT_EQ(ErrorOf("{% if true %}\n{{\nraise_exception('no ' ~ 'way') }}{% endif %}"), "t:3: no way");
  EXPECT_EQ(ErrorOf("{{ 'a' + 1 }}"), "t:1: '+' is not for str and int");
}

// A template is a file of a stranger.
TEST(JinjaTest, TimeMemoryAndDepthAreBounded) {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}x";
  EXPECT_THAT(ErrorOf(loops + "{% endfor %}{% endfor %}{% endfor %}"), HasSubstr("runs for too long"));
  const std::string text(100000, 'x');
  EXPECT_THAT(ErrorOf("{% for a in range(99999) %}{% raw %}" + text + "{% endraw %}{% endfor %}"),
              HasSubstr("runs for too long"));
  EXPECT_THAT(ErrorOf("{% for a in range(99999) %}" + text + "{% endfor %}"), HasSubstr("runs for too long"));
  EXPECT_THAT(ErrorOf("{{ 'x' * 999999999999 }}"), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf("{% set s = 'x' * 9999999 %}{{ (s * 50) | replace('x', s) }}"), HasSubstr("too"));
  EXPECT_THAT(ErrorOf("{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}"),
              HasSubstr("too large"));
  EXPECT_THAT(ErrorOf("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("too deeply"));
  for (const char* piece : {"{% if a %}", "{{ (", "{{ not ", "{{ - ", "{{ [", "{{ f(", "{{ a[", "{{ 1 if 1 else "}) {
    std::string deep;
    for (int i = 0; i < 20000; ++i) deep += i == 0 ? piece : piece[1] == '%' ? piece : piece + 3;
    EXPECT_THAT(ErrorOf(deep + " }}"), HasSubstr("nested too deeply")) << piece;
  }
  std::string chain = "{{ 1", filters = "{{ 'x'";
  for (int i = 0; i < 50000; ++i) chain += " + 1", filters += " | trim";
  EXPECT_EQ(Rendered(chain + " }}"), "50001");
  EXPECT_EQ(Rendered(filters + " }}"), "x");
  // An index, an element and a length take no time that grows with the list; splitting takes linear time.
  EXPECT_EQ(Rendered("{% set r = range(99999) | list %}{% for i in r %}{% if r[i] != i or r | length < i %}x{% endif %}"
                     "{% endfor %}"),
            "");
  const std::string spaced = [] {
    std::string made;
    for (int i = 0; i < 100000; ++i) made += "word ";
    return made;
  }();
  EXPECT_EQ(Rendered("{{ x.split() | length }} {{ x.split(' ') | length }}", {{"x", spaced}}), "100000 100001");
  EXPECT_THAT(ErrorOf("{% set r = range(99999) | list %}{% for i in r %}{% for j in r %}{% break %}{% endfor %}"
                      "{% endfor %}"),
              HasSubstr("runs for too long"));
  EXPECT_THAT(ErrorOf("{% for i in range(999) %}{{ (range(20000) | list | sort(reverse=true))[0] }}{% endfor %}"),
              HasSubstr("runs for too long"));
  EXPECT_THAT(ErrorOf("{% set s = 'a' * 1000000 %}{{ ([s] * 60000) | length }}"), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf("{{ ('a' * 20000000) | list | length }}"), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf("{{ ('a\\n' * 100000) | indent('b' * 100000) | length }}"), HasSubstr("runs for too long"));
  Json nested = Json::array();
  for (int i = 0; i < 5000; ++i) nested = Json::array({std::move(nested)});
  EXPECT_THAT(ErrorOf("{{ x }}", {{"x", nested}}), HasSubstr("nested too deeply"));
}

TEST(JinjaTest, LongConversationsAreRendered) {
  Json messages = Json::array();
  for (int i = 0; i < 500; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(8000, 'x')}});
  }
  const std::string text = policy::ReadFile(tokenizer::TemplatesFolder() / "qwen3.jinja");
  EXPECT_GT(Rendered(text, {{"messages", messages}}).size(), 4000000U);
}

TEST(JinjaTest, LiteralsReadBack) {
  const Json value = {{"a", {1, 2.5, nullptr, true}}, {"it's", "q\"\n\\ é"}};
  EXPECT_EQ(Rendered("{{ " + Dump(value) + " | tojson }}"), Rendered("{{ x | tojson }}", {{"x", value}}));
}

// Cut, changed and mixed templates end in a text or an error.
TEST(JinjaTest, DamagedTemplatesNeverCrash) {
  const Json golden = Golden();
  std::vector<std::string> sources;
  for (const Json& test : golden.at("cases")) sources.push_back(test[0]);
  for (const auto& file : std::filesystem::directory_iterator(tokenizer::TemplatesFolder())) {
    sources.push_back(policy::ReadFile(file.path()));
  }
  Json variables = golden["variables"];
  variables["messages"] = {{{"role", "user"}, {"content", "hi"}},
                           {{"role", "assistant"}, {"content", "<think>a</think>b"}}};
  std::mt19937_64 random(7);
  size_t texts = 0, errors = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto pick = [&](size_t size) { return size == 0 ? 0 : random() % size; };
    std::string text = sources[pick(sources.size())];
    const std::string& other = sources[pick(sources.size())];
    const size_t at = pick(text.size() + 1), from = pick(other.size() + 1);
    const size_t size = std::min<size_t>(pick(40), other.size() - from);
    if (round % 4 == 0) text.resize(at);
    if (round % 4 == 1) text.erase(at, pick(20));
    if (round % 4 == 2) text.replace(at, std::min<size_t>(pick(20), text.size() - at), other, from, size);
    if (round % 4 == 3 && at < text.size()) text[at] = static_cast<char>(random());
    try {
      Rendered(tokenizer::ReplaceInvalidUtf8(text), variables);
      ++texts;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("t:")) << text;
      ++errors;
    }
  }
  EXPECT_GE(texts, 300u);
  EXPECT_GE(errors, 300u);
}

}  // namespace
}  // namespace kgrpo::jinja

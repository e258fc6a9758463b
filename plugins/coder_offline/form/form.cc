#include "coder_offline/form/form.h"

#include <algorithm>
#include <cctype>

namespace kgrpo::coder_offline {
namespace {

// The axis of `blockIdx.x * blockDim.x + threadIdx.x`, written in any order and with a number or a constant for the
// block's size, or of `blockIdx.y` alone; 0 for others.
char AxisOf(std::string text, bool* whole) {
  std::erase_if(text, [](char c) { return c == '(' || c == ')'; });
  for (const char axis : {'x', 'y', 'z'}) {
    const std::string a = std::string(".") + axis, b = "blockIdx" + a, d = "blockDim" + a, t = "threadIdx" + a;
    std::string product = text;
    *whole = text != b;
    if (!*whole) return axis;
    if (text.starts_with(t + "+")) {
      product = text.substr(t.size() + 1);
    } else if (text.ends_with("+" + t)) {
      product = text.substr(0, text.size() - t.size() - 1);
    } else {
      continue;
    }
    std::string size;
    if (product.starts_with(b + "*")) size = product.substr(b.size() + 1);
    if (product.ends_with("*" + b)) size = product.substr(0, product.size() - b.size() - 1);
    const bool word = !size.empty() && std::all_of(size.begin(), size.end(),
                                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (size == d || word) return axis;
  }
  return 0;
}

}  // namespace

void DropBounds(const PlainSource& source, const PlainFunction& kernel, std::vector<Edit>* edits) {
  for (size_t i = kernel.first; i < kernel.name_token; ++i) {
    if (source.Follows(i, {"__launch_bounds__", "("}))
      edits->push_back({source.At(i).begin, source.At(source.Close(i + 1)).end, ""});
  }
}

PlainResult RewriteEach(const PlainSource& source, const std::string& none, const RewriteKernel& rewrite) {
  std::vector<Edit> edits;
  std::string why = none, done;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global || source.LaunchesOf(kernel).empty()) continue;
    std::string reason;
    const Form form(source, kernel, &reason);
    std::vector<Edit> own;
    const std::string words = reason.empty() ? rewrite(form, &own, &reason) : "";
    if (words.empty()) {
      why = reason;
      continue;
    }
    edits.insert(edits.end(), own.begin(), own.end());
    done = words;
  }
  if (done.empty()) return {"", why};
  return {source.Edited(edits), done};
}

std::string OnePointAThread(const PlainSource& source) {
  std::vector<Edit> edits;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global || source.LaunchesOf(kernel).empty()) continue;
    std::string ignored;
    const Form form(source, kernel, &ignored);
    const std::vector<Statement> statements = form.Parse(kernel.body);
    if (statements.size() != 1 || statements[0].kind != Statement::kFor) continue;
    const Statement& loop = statements[0];
    bool whole = false;
    if (AxisOf(source.Plain(loop.value), &whole) != 'x' || !whole || !source.At(loop.limit.begin).Is(loop.name))
      continue;
    const std::string step = source.Plain(loop.step);
    if (!IsOneOf(step, {loop.name + "+=blockDim.x*gridDim.x", loop.name + "+=gridDim.x*blockDim.x"})) continue;
    const std::string limit = source.Text({loop.limit.begin + 2, loop.limit.end});
    std::vector<Edit> own = {
        {source.At(loop.tokens.begin).begin, source.At(loop.step.end).end,
         loop.type + " " + loop.name + " = " + source.Text(loop.value) + ";\n  if (" + source.Text(loop.limit) + ")"}};
    for (size_t i = loop.inside.begin; i < loop.inside.end; ++i) {
      if (source.At(i).Is("continue")) own.push_back({source.At(i).begin, source.At(i).end, "return"});
    }
    bool known = source.At(loop.limit.begin + 1).Is("<") && !source.At(loop.limit.begin + 2).Is("=");
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      const auto points = form.InLaunch(*launch, limit);
      const auto threads = source.Number(launch->block);
      known = known && points && threads;
      if (!known) break;
      const std::string block = std::to_string(threads->value);
      own.push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
                     "((" + *points + ") + " + std::to_string(threads->value - 1) + ") / " + block});
      own.push_back({source.At(launch->block.begin).begin, source.At(launch->block.end - 1).end, block});
    }
    if (known) edits.insert(edits.end(), own.begin(), own.end());
  }
  return edits.empty() ? "" : source.Edited(edits);
}

Form::Form(const PlainSource& source, const PlainFunction& kernel, std::string* why)
    : source_(source), kernel_(kernel) {
  for (const std::string& name : source.TemplateParameters(kernel)) types_.insert(name);
  std::vector<Statement> statements = Parse(kernel.body);
  bool started = false;
  for (size_t s = 0; s < statements.size(); ++s) {
    const Statement& statement = statements[s];
    if (!started && TakeDimension(statement)) continue;
    if (!started && statement.kind == Statement::kIf && TakeGuard(statement, s + 1 == statements.size())) {
      if (s + 1 == statements.size() && statement.body.size() + statement.otherwise.size() > 0 &&
          statement.body.front().kind != Statement::kLeave) {
        statements = std::vector<Statement>(statement.body);
        s = static_cast<size_t>(-1);
      }
      continue;
    }
    const bool plain = statement.kind == Statement::kDeclaration && Accesses(statement.tokens).empty();
    bool later = false;  // a guard or a dimension follows
    for (size_t k = s + 1; k < statements.size() && !started; ++k) {
      later = later ||
              (statements[k].kind == Statement::kIf && statements[k].body.size() == 1 &&
               statements[k].body[0].kind == Statement::kLeave) ||
              (k + 1 == statements.size() && statements[k].kind == Statement::kIf) ||
              source.Has(statements[k].tokens, "blockIdx");
    }
    if (plain && !started && later) {
      before_.push_back(statement);
      continue;
    }
    started = true;
    work_.push_back(statement);
  }
  if (dimensions_.empty()) *why = kernel.name + " does not number its threads by blockIdx.x * blockDim.x + threadIdx.x";
  bool other = false;
  for (size_t i = kernel.body.begin; i < kernel.body.end; ++i) {
    other = other || (IsOneOf(source.At(i).text, {"threadIdx", "blockIdx", "blockDim", "gridDim"}) &&
                      std::none_of(dimensions_.begin(), dimensions_.end(),
                                   [i](const Dimension& dimension) { return dimension.value.Holds(i); }));
  }
  // Where a block works on a point, its threads share the loops of one.
  const bool whole = std::any_of(dimensions_.begin(), dimensions_.end(), [](const Dimension& d) { return d.whole; });
  if (why->empty() && other && whole) *why = kernel.name + " uses its threads' numbers in other ways too";
  for (const char* word : {"__shared__", "__syncthreads", "goto", "asm", "switch", "while", "do"}) {
    if (why->empty() && source.Has(kernel.body, word)) *why = kernel.name + " has " + word + " in it";
  }
  if (why->empty() && work_.empty()) *why = kernel.name + " has no work that is understood";
}

const Dimension* Form::OnAxis(char axis) const {
  for (const Dimension& dimension : dimensions_) {
    if (dimension.axis == axis) return &dimension;
  }
  return nullptr;
}

bool Form::TakeDimension(const Statement& statement) {
  if (statement.kind != Statement::kDeclaration || statement.value.begin >= statement.value.end) return false;
  Dimension dimension;
  dimension.name = statement.name;
  dimension.type = statement.type;
  dimension.axis = AxisOf(source_.Plain(statement.value), &dimension.whole);
  if (dimension.axis == 0 || OnAxis(dimension.axis) != nullptr) return false;
  dimension.value = statement.value;
  dimension.declaration = statement.tokens;
  dimensions_.push_back(dimension);
  return true;
}

// `if (a < n && b < m) { all the rest }`, `if (a >= n || b >= m) return;`
bool Form::TakeGuard(const Statement& statement, bool last) {
  const bool leaves = statement.body.size() == 1 && statement.body[0].kind == Statement::kLeave;
  if (!leaves && (!last || !statement.otherwise.empty())) return false;
  const char* between = leaves ? "|" : "&";
  std::map<std::string, std::string> limits;
  size_t begin = statement.head.begin;
  for (size_t i = begin; i <= statement.head.end; ++i) {
    const bool end = i == statement.head.end;
    if (!end && source_.At(i).Is("(")) i = source_.Close(i);
    if (!end && !source_.Follows(i, {between, between})) continue;
    size_t from = begin, to = i;
    while (source_.At(from).Is("(") && source_.Close(from) + 1 == to) ++from, --to;
    const std::string name(source_.At(from).text);
    size_t limit = from + 1;
    if (!source_.At(limit).Is(leaves ? ">" : "<")) return false;
    ++limit;
    if (leaves) {
      if (!source_.At(limit).Is("=")) return false;
      ++limit;
    }
    if (source_.At(limit).Is("=")) return false;
    if (std::none_of(dimensions_.begin(), dimensions_.end(), [&](const Dimension& d) { return d.name == name; }))
      return false;
    limits[name] = Inlined({limit, to}, {});
    begin = i + 2;
    ++i;
  }
  for (Dimension& dimension : dimensions_) {
    if (limits.contains(dimension.name)) dimension.limit = limits[dimension.name];
  }
  guards_.push_back(statement.tokens);
  return true;
}

std::vector<Statement> Form::Parse(Range range) const {
  std::vector<Statement> statements;
  for (size_t i = range.begin; i < range.end;) {
    if (source_.At(i).kind == cuda_source::Token::Kind::kDirective || source_.At(i).Is(";")) {
      ++i;
      continue;
    }
    statements.push_back(ParseOne(&i, range.end));
  }
  return statements;
}

Statement Form::ParseOne(size_t* at, size_t end) const {
  Statement statement;
  size_t i = *at;
  const size_t first = i;
  while (i < end && source_.At(i).kind == cuda_source::Token::Kind::kDirective) ++i;
  const auto inner = [&](std::vector<Statement>* into) {
    size_t k = i;
    while (k < end && source_.At(k).kind == cuda_source::Token::Kind::kDirective) ++k;
    if (source_.At(k).Is("{")) {
      const size_t close = source_.Close(k);
      *into = Parse({k + 1, close});
      i = close + 1;
      return Range{k + 1, close};
    }
    into->push_back(ParseOne(&k, end));
    const Range all{i, k};
    i = k;
    return all;
  };
  if (source_.At(i).Is("{")) {
    statement.kind = Statement::kBlock;
    statement.inside = inner(&statement.body);
  } else if (source_.Follows(i, {"if", "("})) {
    const size_t close = source_.Close(i + 1);
    statement.kind = Statement::kIf;
    statement.head = {i + 2, close};
    i = close + 1;
    statement.inside = inner(&statement.body);
    if (i < end && source_.At(i).Is("else")) {
      ++i;
      inner(&statement.otherwise);
    }
  } else if (source_.Follows(i, {"for", "("})) {
    const auto head = source_.ForAt(i);
    const size_t close = source_.Close(i + 1);
    if (head) {
      statement.kind = Statement::kFor;
      statement.limit = head->condition;
      statement.step = head->step;
      size_t equals = head->start.begin;
      while (equals < head->start.end && !source_.At(equals).Is("=")) ++equals;
      if (equals > head->start.begin && equals < head->start.end) {
        statement.name = source_.At(equals - 1).text;
        statement.type = source_.Text({head->start.begin, equals - 1});
        statement.value = {equals + 1, head->start.end};
      }
    }
    i = close + 1;
    statement.inside = inner(&statement.body);
  } else {
    const size_t begin = i;
    while (i < end && !source_.At(i).Is(";")) {
      const bool open = source_.At(i).Is("(") || source_.At(i).Is("[") || source_.At(i).Is("{");
      i = open ? source_.Close(i) + 1 : i + 1;
    }
    const size_t last = i;
    if (i < end) ++i;
    statement.kind = Statement::kExpression;
    if (IsOneOf(source_.At(begin).text, {"return", "break", "continue"})) statement.kind = Statement::kLeave;
    if (source_.IsName(begin) && (IsType(source_.At(begin).text) || source_.IsName(begin + 1)) &&
        statement.kind == Statement::kExpression) {
      statement.kind = Statement::kDeclaration;
      size_t equals = begin;
      while (equals < last && !source_.At(equals).Is("=") && !source_.At(equals).Is("[")) ++equals;
      const size_t name = equals - 1;
      statement.name = source_.At(name).text;
      statement.type = source_.Text({begin, name});
      if (equals < last && source_.At(equals).Is("=")) statement.value = {equals + 1, last};
      if (source_.Split({begin, last}).size() > 1) statement.name = "", statement.value = {};  // several names
    }
  }
  statement.tokens = {first, i};
  *at = i;
  return statement;
}

std::optional<std::string> Form::InLaunch(const PlainLaunch& launch, const std::string& text) const {
  if (launch.arguments.size() != kernel_.parameters.size()) return std::nullopt;
  const cuda_source::LexedSource lexed = cuda_source::Lex(text);
  std::string result;
  for (const cuda_source::Token& token : lexed.tokens) {
    if (token.kind != cuda_source::Token::Kind::kIdentifier) {
      result += token.text;
      continue;
    }
    std::string word(token.text);
    for (size_t i = 0; i < kernel_.parameters.size(); ++i) {
      if (kernel_.parameters[i].name != token.text) continue;
      if (kernel_.parameters[i].pointer) return std::nullopt;
      word = source_.Text(launch.arguments[i]);
      if (launch.arguments[i].end != launch.arguments[i].begin + 1) word = "(" + word + ")";
    }
    const bool local = Declared(token.text, kernel_.body);
    if (local || (word == token.text && IsOneOf(token.text, {"threadIdx", "blockIdx", "blockDim", "gridDim"})))
      return std::nullopt;
    result += IsType(word) ? word + " " : word;
  }
  return result;
}

std::string Form::ExtentIn(const PlainLaunch& launch, const Dimension& dimension) const {
  const std::string axis = std::string(".") + dimension.axis;
  if (!dimension.limit.empty()) {
    if (const auto limit = InLaunch(launch, dimension.limit)) {
      const bool simple = limit->find_first_of("+-*/%(< ") == std::string::npos;
      return simple ? *limit : "(" + *limit + ")";
    }
  }
  const std::string grid = "dim3(" + source_.Text(launch.grid) + ")" + axis;
  return dimension.whole ? "(int)(" + grid + " * dim3(" + source_.Text(launch.block) + ")" + axis + ")"
                         : "(int)" + grid;
}

}  // namespace kgrpo::coder_offline

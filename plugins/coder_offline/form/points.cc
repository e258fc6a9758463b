// A thread computes several points in place of one: what does not depend on the point is read once for all of them
// (unroll and jam, the outputs in registers).
#include <algorithm>

#include "coder_offline/form/form.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

// The dimension of which a thread takes several points.
struct Choice {
  const Dimension* dimension = nullptr;
  int reused = 0;       // accesses in loops that do not depend on it
  bool spread = false;  // neighbouring threads take neighbouring points: the points of a thread are a block apart
};

class Several {
 public:
  Several(const Form& form, const Choice& choice, int points)
      : form_(form), source_(form.source()), choice_(choice), points_(points) {
    name_ = choice.dimension->name;
    inside_ = source_.Fresh(name_ + "_inside");
    own_ = source_.Fresh("point");
    limit_ = choice.dimension->limit;
    if (limit_.empty()) added_ = limit_ = source_.Fresh(name_ + "_limit");
  }

  // The kernel's new body, or nothing and the reason.
  std::string Body(std::string* why) {
    varying_ = {name_};
    while (Spread(form_.before()) || Spread(form_.work())) {
    }
    std::string text = Numbers();
    text += Emit(form_.before()) + Emit(form_.work());
    *why = why_;
    return "\n" + Indented(text, 1);
  }
  const std::string& added() const { return added_; }

 private:
  bool Names(Range range, const std::set<std::string>& names) const {
    for (size_t i = range.begin; i < range.end; ++i) {
      if (source_.IsName(i) && names.contains(std::string(source_.At(i).text))) return true;
    }
    return false;
  }
  Range HeadOf(const Statement& statement) const { return {statement.tokens.begin, statement.inside.begin}; }

  // Adds the variables that differ between points; returns whether there were any new ones.
  bool Spread(const std::vector<Statement>& statements, bool under = false) {
    bool more = false;
    for (const Statement& statement : statements) {
      const bool nested = !statement.body.empty();
      if (nested) {
        const bool differs = under || Names(HeadOf(statement), varying_);
        if (differs && statement.kind == Statement::kFor) more = varying_.insert(statement.name).second || more;
        more = Spread(statement.body, differs) || more;
        more = Spread(statement.otherwise, differs) || more;
        continue;
      }
      if (!under && !Names(statement.tokens, varying_)) continue;
      for (const std::string& name : form_.Assigned(statement.tokens)) {
        if (!form_.IsGlobalArray(name) || statement.kind == Statement::kDeclaration)
          more = varying_.insert(name).second || more;
      }
    }
    return more;
  }

  std::string Indexed(Range range) const {
    std::map<std::string, std::string> names;
    for (const std::string& name : varying_) {
      if (!own_loops_.contains(name)) names[name] = name + "[" + own_ + "]";
    }
    return Replaced(source_, range, names);
  }

  // The dimensions, with an array of points in place of one.
  std::string Numbers() {
    std::string text, guards;
    const std::string n = std::to_string(points_);
    const std::string each = "#pragma unroll\n  for (int " + own_ + " = 0; " + own_ + " < " + n + "; ++" + own_ + ") ";
    std::string base;
    for (const Dimension& dimension : form_.dimensions()) {
      const std::string axis = std::string(".") + dimension.axis;
      if (&dimension != choice_.dimension) {
        text += "  " + source_.Text(dimension.declaration) + "\n";
        if (!dimension.limit.empty()) guards += "  if (" + dimension.name + " >= " + dimension.limit + ") return;\n";
      } else if (choice_.spread) {
        base = "(int)(blockIdx" + axis + " * " + n + " * blockDim" + axis + " + threadIdx" + axis + ")";
      } else {
        base = "(int)(" + source_.Text(dimension.value) + ") * " + n;
      }
    }
    const std::string by = choice_.spread ? own_ + " * (int)blockDim." + std::string(1, choice_.dimension->axis) : own_;
    text += guards + "  int " + name_ + "[" + n + "];\n  bool " + inside_ + "[" + n + "];\n";
    text += each + "{\n    " + name_ + "[" + own_ + "] = " + base + " + " + by + ";\n    " + inside_ + "[" + own_ +
            "] = " + name_ + "[" + own_ + "] < (int)(" + limit_ + ");\n    if (!" + inside_ + "[" + own_ + "]) " +
            name_ + "[" + own_ + "] = (int)(" + limit_ + ") - 1;\n";
    return text + "  }\n";
  }

  // Statements over all points: loops and conditions that are the same for all stay outside.
  std::string Emit(const std::vector<Statement>& statements) {
    std::string text, declared, group;
    const auto flush = [&] {
      if (!group.empty())
        text += declared + "#pragma unroll\n  for (int " + own_ + " = 0; " + own_ + " < " + std::to_string(points_) +
                "; ++" + own_ + ") {\n" + group + "  }\n";
      if (group.empty()) text += declared;
      declared.clear();
      group.clear();
    };
    for (const Statement& statement : statements) {
      const bool nested = !statement.body.empty();
      if (!Names(statement.tokens, varying_)) {
        flush();
        text += source_.Text(statement.tokens) + "\n";
      } else if (nested && !Names(HeadOf(statement), varying_)) {
        flush();
        Range head = HeadOf(statement);
        if (source_.At(head.end - 1).Is("{")) --head.end;
        text += source_.Text(head) + " {\n" + Emit(statement.body) + "}\n";
        if (!statement.otherwise.empty()) text += "else {\n" + Emit(statement.otherwise) + "}\n";
      } else {
        group += Alone(statement, &declared);
      }
    }
    flush();
    return text;
  }

  // A statement for one point. Its declarations go before the points, as arrays, unless `declared` is null.
  std::string Alone(const Statement& statement, std::string* declared) {
    const auto all = [&](const std::vector<Statement>& statements) {
      std::string text;
      for (const Statement& one : statements) text += Alone(one, nullptr);
      return text;
    };
    if (statement.kind == Statement::kIf || statement.kind == Statement::kFor || statement.kind == Statement::kBlock) {
      if (statement.kind == Statement::kFor) own_loops_.insert(statement.name);
      Range head = HeadOf(statement);
      if (source_.At(head.end - 1).Is("{")) --head.end;
      std::string text = Indexed(head) + " {\n" + all(statement.body) + "}\n";
      if (!statement.otherwise.empty()) text += "else {\n" + all(statement.otherwise) + "}\n";
      return text;
    }
    if (statement.kind == Statement::kLeave) why_ = form_.kernel().name + " leaves its work at a condition";
    if (statement.kind == Statement::kDeclaration) {
      if (statement.name.empty() || statement.type.find("auto") != std::string::npos)
        return SeveralNames(statement, declared);
      if (declared == nullptr) {
        own_loops_.insert(statement.name);
        return Indexed(statement.tokens) + "\n";
      }
      std::string type = statement.type;
      if (type.starts_with("const ") && type.find('*') == std::string::npos) type = type.substr(6);
      *declared += "  " + type + " " + statement.name + "[" + std::to_string(points_) + "];\n";
      if (statement.value.begin >= statement.value.end) return "";
      return statement.name + "[" + own_ + "] = " + Indexed(statement.value) + ";\n";
    }
    const std::vector<Access> accesses = form_.Accesses(statement.tokens);
    bool stores = std::any_of(accesses.begin(), accesses.end(), [](const Access& a) { return a.stored; });
    for (size_t i = statement.tokens.begin; i < statement.tokens.end; ++i)
      stores = stores || source_.At(i).text.starts_with("atomic");
    return (stores ? "{ if (" + inside_ + "[" + own_ + "]) " : "") + Indexed(statement.tokens) +
           (stores ? " }\n" : "\n");
  }

  // `float a = 0, b = 0;`
  std::string SeveralNames(const Statement& statement, std::string* declared) {
    const Range all{statement.tokens.begin, statement.tokens.end - 1};
    std::string text, type;
    size_t begin = all.begin;
    while (begin + 1 < all.end && source_.IsName(begin) && source_.IsName(begin + 1)) {
      if (!source_.At(begin).Is("const")) type += std::string(source_.At(begin).text) + " ";
      ++begin;
    }
    for (const Range& part : source_.Split({begin, all.end})) {
      const std::string name(source_.At(part.begin).text);
      if (declared == nullptr || !source_.IsName(part.begin) || type.find("auto") != std::string::npos) {
        why_ = form_.kernel().name + " declares its variables in a way that is not understood";
        return "";
      }
      varying_.insert(name);
      *declared += "  " + type + name + "[" + std::to_string(points_) + "];\n";
      if (part.end > part.begin + 1) text += name + "[" + own_ + "]" + Indexed({part.begin + 1, part.end}) + ";\n";
    }
    return text;
  }

  const Form& form_;
  const PlainSource& source_;
  const Choice& choice_;
  const int points_;
  std::string name_, inside_, own_, limit_, added_, why_;
  std::set<std::string> varying_, own_loops_;
};

void CountReused(const Form& form, const std::vector<Statement>& statements, const std::string& name, bool in_loop,
                 int* reused) {
  for (const Statement& statement : statements) {
    const bool loop = in_loop || statement.kind == Statement::kFor;
    if (!statement.body.empty()) {
      CountReused(form, statement.body, name, loop, reused);
      CountReused(form, statement.otherwise, name, loop, reused);
      continue;
    }
    for (const Access& access : form.Accesses(statement.tokens))
      *reused += loop && !access.stored && !form.Depends(access.tokens, {name}) ? 1 : 0;
  }
}

}  // namespace

PlainResult SeveralPoints(const PlainSource& source, int points) {
  const auto rewrite = [&](const Form& form, std::vector<Edit>* edits, std::string* reason) -> std::string {
    const PlainFunction& kernel = form.kernel();
    Choice best;
    for (const Dimension& dimension : form.dimensions()) {
      Choice choice;
      choice.dimension = &dimension;
      CountReused(form, form.work(), dimension.name, false, &choice.reused);
      if (choice.reused == 0 || choice.reused < best.reused) continue;
      for (const Access& access : form.Accesses(kernel.body)) {
        if (dimension.axis == 'x' && dimension.whole && form.StrideOf(access.index, dimension.name) == Stride::kUnit)
          choice.spread = true;
      }
      best = choice;
    }
    if (best.reused == 0) {
      *reason = kernel.name + " has no loop that reads the same for several of its points";
      return "";
    }
    Several several(form, best, points);
    const std::string body = several.Body(reason), added = several.added();
    if (body.empty() || !reason->empty()) return "";
    edits->push_back({source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin, body});
    const char axis = best.dimension->axis;
    if (!added.empty()) {
      const size_t at = source.At(kernel.parameters.back().tokens.end - 1).end;
      edits->push_back({at, at, ", int " + added});
    }
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      const std::string grid = source.Text(launch->grid), n = std::to_string(points);
      std::string extents[3];
      for (int i = 0; i < 3; ++i) {
        extents[i] = "dim3(" + grid + ")." + static_cast<char>('x' + i);
        if ('x' + i == axis) extents[i] = "(" + extents[i] + " + " + std::to_string(points - 1) + ") / " + n;
      }
      edits->push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
                        "dim3(" + extents[0] + ", " + extents[1] + ", " + extents[2] + ")"});
      if (!added.empty()) {
        const size_t at = source.At(launch->arguments.back().end - 1).end;
        edits->push_back({at, at, ", " + form.ExtentIn(*launch, *best.dimension)});
      }
    }
    return std::to_string(points) + " points a thread, in registers";
  };
  return RewriteEach(source, "it has no kernel of one thread for each point", rewrite);
}

}  // namespace kgrpo::coder_offline

// Which axis of a block takes which dimension of the data, and the block's shape.
#include <algorithm>

#include "coder_offline/form/form.h"

namespace kgrpo::coder_offline {
namespace {

// Counts the accesses of the kernel that are neighbours along a dimension; those in loops count more.
int WeighNeighbours(const Form& form, const std::vector<Statement>& statements, const std::string& name,
                    int weight = 1) {
  int count = 0;
  for (const Statement& statement : statements) {
    if (!statement.body.empty()) {
      const int inner = statement.kind == Statement::kFor ? 4 * weight : weight;
      count +=
          WeighNeighbours(form, statement.body, name, inner) + WeighNeighbours(form, statement.otherwise, name, inner);
      continue;
    }
    for (const Access& access : form.Accesses(statement.tokens))
      count += form.StrideOf(access.index, name) == Stride::kUnit ? weight : 0;
  }
  return count;
}

// Launches with blocks of this shape, in which x and `first` are exchanged.
void Reshape(const Form& form, char first, const int (&shape)[3], std::vector<Edit>* edits) {
  const PlainSource& source = form.source();
  DropBounds(source, form.kernel(), edits);
  for (const PlainLaunch* launch : source.LaunchesOf(form.kernel())) {
    std::string grid[3] = {"1", "1", "1"}, block[3] = {"1", "1", "1"};
    for (const Dimension& dimension : form.dimensions()) {
      const char axis = dimension.axis == first ? 'x' : dimension.axis == 'x' && first != 'x' ? first : dimension.axis;
      const int i = axis - 'x', size = dimension.whole ? shape[i] : 1;
      block[i] = std::to_string(size);
      grid[i] = form.ExtentIn(*launch, dimension);
      if (size > 1) grid[i] = "(" + grid[i] + " + " + std::to_string(size - 1) + ") / " + std::to_string(size);
    }
    const auto dim3 = [](const std::string(&of)[3]) { return "dim3(" + of[0] + ", " + of[1] + ", " + of[2] + ")"; };
    edits->push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end, dim3(grid)});
    edits->push_back({source.At(launch->block.begin).begin, source.At(launch->block.end - 1).end, dim3(block)});
  }
}

constexpr const char* kNone = "it has no kernel over two or three axes";

}  // namespace

PlainResult ExchangeAxes(const PlainSource& source) {
  return RewriteEach(
      source, kNone, [&](const Form& form, std::vector<Edit>* edits, std::string* reason) -> std::string {
        const std::string& name = form.kernel().name;
        const Dimension *x = form.OnAxis('x'), *best = x;
        if (x == nullptr || !x->whole || form.dimensions().size() < 2) {
          *reason = name + " is not over two or three axes";
          return "";
        }
        for (const Dimension& dimension : form.dimensions()) {
          if (dimension.whole &&
              WeighNeighbours(form, form.work(), dimension.name) > WeighNeighbours(form, form.work(), best->name))
            best = &dimension;
        }
        if (best == x) {
          *reason = "already applied: neighbouring threads of " + name + " take neighbouring elements";
          return "";
        }
        for (const Dimension* dimension : {x, best}) {
          const char axis = dimension == x ? best->axis : 'x';
          for (size_t i = dimension->value.begin; i + 2 < dimension->value.end + 1; ++i) {
            if (IsOneOf(source.At(i).text, {"threadIdx", "blockIdx", "blockDim"}))
              edits->push_back({source.At(i + 2).begin, source.At(i + 2).end, std::string(1, axis)});
          }
        }
        Reshape(form, best->axis, {32, 8, 1}, edits);
        return "neighbouring threads take neighbouring elements, in blocks of 32x8";
      });
}

PlainResult BlockShape(const PlainSource& source, int threads) {
  return RewriteEach(source, kNone,
                     [&](const Form& form, std::vector<Edit>* edits, std::string* reason) -> std::string {
                       const auto whole = std::count_if(form.dimensions().begin(), form.dimensions().end(),
                                                        [](const Dimension& d) { return d.whole; });
                       if (whole < 2) {
                         *reason = form.kernel().name + " is not over two or three axes";
                         return "";
                       }
                       Reshape(form, 'x', {32, std::max(1, threads / 32), 1}, edits);
                       return "blocks of 32x" + std::to_string(std::max(1, threads / 32)) + " threads";
                     });
}

}  // namespace kgrpo::coder_offline

#include "policy_qwen/generation/page_pool.h"

#include <algorithm>
#include <iterator>

#include "policy_qwen/gpu/kernels.h"

namespace kgrpo::policy {

std::optional<std::vector<int32_t>> PagePool::Take(std::span<const int32_t> prompt, int32_t shareable, int32_t total,
                                                   int32_t& shared) {
  const auto content_of = [&](int32_t index, uint64_t before) {
    const auto tokens = prompt.subspan(static_cast<size_t>(index) * kPageSize, kPageSize);
    return Content(before, std::vector<int32_t>(tokens.begin(), tokens.end()));
  };
  std::vector<int32_t> taken;
  uint64_t before = 0;
  int64_t from_unused = 0;
  while (static_cast<int32_t>(taken.size()) < shareable) {
    const auto found = shared_.find(content_of(static_cast<int32_t>(taken.size()), before));
    if (found == shared_.end()) break;
    taken.push_back(found->second);
    before = At(found->second).number;
    if (At(found->second).users == 0) ++from_unused;
  }
  shared = static_cast<int32_t>(taken.size());
  if (static_cast<int64_t>(unused_.size()) - from_unused < total - shared) return std::nullopt;

  for (const int32_t page : taken) {
    if (At(page).users++ == 0) unused_.erase(At(page).place);
  }
  while (static_cast<int32_t>(taken.size()) < total) {
    const int32_t page = unused_.front();
    unused_.pop_front();
    Page& fresh = At(page);
    if (fresh.number != 0) shared_.erase(fresh.content);
    fresh.users = 1;
    fresh.number = 0;
    const auto index = static_cast<int32_t>(taken.size());
    if (index < shareable) {
      fresh.number = next_number_++;
      fresh.content = shared_.emplace(content_of(index, before), page).first;
      before = fresh.number;
    }
    taken.push_back(page);
  }
  return taken;
}

void PagePool::Release(std::span<const int32_t> pages) {
  // The last page goes first, so that it is reused first: a page can be shared only together with all pages before it.
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
    if (--At(*page).users > 0) continue;
    At(*page).place = unused_.insert(At(*page).number == 0 ? unused_.begin() : unused_.end(), *page);
  }
}

void PagePool::Forget() {
  for (const auto& [content, page] : shared_) At(page).number = 0;
  shared_.clear();
}

void PagePool::Clear() {
  shared_.clear();
  unused_.clear();
  for (size_t i = 0; i < pages_.size(); ++i) {
    pages_[i].users = 0;
    pages_[i].number = 0;
    pages_[i].place = unused_.insert(unused_.end(), static_cast<int32_t>(i));
  }
}

}  // namespace kgrpo::policy

// The pages of the cache: which are free, which hold the beginning of a prompt that others may share. Used by the
// scheduler.
#ifndef KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PAGE_POOL_H_
#define KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PAGE_POOL_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kgrpo::policy {

class PagePool {
 public:
  explicit PagePool(int32_t count) : pages_(static_cast<size_t>(count)) { Clear(); }

  // Returns `total` pages for a sequence. The first ones already hold the beginning of the prompt, from earlier
  // prompts; `shared` receives their number. Only the prompt's first `shareable` whole pages can be shared; those that
  // are not yet are offered to later calls. Returns nothing, and changes nothing, if there are not enough pages.
  std::optional<std::vector<int32_t>> Take(std::span<const int32_t> prompt, int32_t shareable, int32_t total,
                                           int32_t& shared);
  // Gives pages back. Their content may still be shared until Take reuses them.
  void Release(std::span<const int32_t> pages);
  // Nothing is shared any longer with later prompts. Takes time for what is shared, not for all pages.
  void Forget();
  // All pages are free, and hold nothing.
  void Clear();

  int32_t size() const { return static_cast<int32_t>(pages_.size()); }

 private:
  // A page's content is its tokens and all tokens before them. A number that is never used again identifies the content
  // of the previous page.
  using Content = std::pair<uint64_t, std::vector<int32_t>>;
  struct Page {
    int32_t users = 0;
    uint64_t number = 0;  // of its content; 0: nothing to share
    std::map<Content, int32_t>::iterator content;
    std::list<int32_t>::iterator place;  // in unused_, while it has no users
  };

  Page& At(int32_t page) { return pages_[static_cast<size_t>(page)]; }

  std::vector<Page> pages_;
  std::list<int32_t> unused_;  // the longest unused first
  std::map<Content, int32_t> shared_;
  uint64_t next_number_ = 1;
};

}  // namespace kgrpo::policy

#endif  // KGRPO_PLUGINS_POLICY_QWEN_GENERATION_PAGE_POOL_H_

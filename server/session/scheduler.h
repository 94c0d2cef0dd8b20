// SPDX-License-Identifier: Apache-2.0
// Who calls the driver, and when. The command path only adds work to lanes; a lane is an ordered
// queue (one per stream, and one for calls on no stream). Work starts when all before it in its lane
// was issued and all that it depends on in other lanes was issued, too: dependencies point backwards
// in the command stream, so they cannot form a circle.
//
//   add() → lanes ── issuing role: never blocks in the driver ──→ driver
//        → the blocking lane ── a thread of its own ────────────→ driver
//
// The issuing role is taken by one thread at a time: by the thread that added work, if nobody holds
// it, or by the issuer thread, which sleeps otherwise. Things that happen elsewhere (completions,
// arrived bytes) come in with defer() and run in the role. So what the role touches needs no lock.
//
// Threads: add(), defer() and pump() from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace remora::server {

enum class Step {
  done,   // issued; the next in the lane may follow
  again,  // not yet (bytes missing): asked again after the next thing that happens; not in the
          // blocking lane, where work simply waits
};

class Work {
 public:
  virtual ~Work() = default;
  virtual Step run() = 0;
};

/// Work that is a callable: f() → Step. It may own things that only move.
template <typename F>
std::unique_ptr<Work> work_of(F f) {
  struct Callable final : Work {
    explicit Callable(F f) : f(std::move(f)) {}
    Step run() override { return f(); }
    F f;
  };
  return std::make_unique<Callable>(std::move(f));
}

/// How far a lane has come; outlives the lane, since others may depend on it.
using Position = std::atomic<std::uint64_t>;

/// "All of that lane up to this sequence was issued."
struct After {
  std::shared_ptr<const Position> position;  // null: nothing to wait for
  std::uint64_t sequence = 0;

  bool holds() const { return position == nullptr || position->load(std::memory_order_acquire) >= sequence; }
};

class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  /// The lane as it is now, for work that must follow it. Only in the thread that adds.
  After here() const { return {issued_, added_}; }

 protected:
  /// In the role: whether the driver has room for more of this lane.
  virtual bool has_room() { return true; }
  /// In the role, when the last of the lane was issued.
  virtual void ran_empty() {}

 private:
  friend class Scheduler;
  struct Item {
    std::uint64_t sequence;
    std::unique_ptr<Work> work;
    std::vector<After> after;
  };
  std::deque<Item> items_;  // under the scheduler's lock; the first is used outside of it in the role
  bool active_ = false;     // in the scheduler's list; under its lock
  std::uint64_t added_ = 0;  // of the adding thread
  std::shared_ptr<Position> issued_ = std::make_shared<Position>(0);
};

class Scheduler {
 public:
  Scheduler();
  ~Scheduler();  // stops and joins both threads; what is queued is dropped

  /// Work of a stream or of no stream, for the issuing role. Begins by itself.
  void add(Lane& lane, std::uint64_t sequence, std::unique_ptr<Work> work, std::vector<After> after = {});
  /// Work that may block in the driver.
  void add_blocking(std::uint64_t sequence, std::unique_ptr<Work> work, std::vector<After> after = {});
  /// The blocking lane as it is now. Only in the thread that adds.
  After blocking_here() const { return blocking_.here(); }

  /// Runs `what` in the issuing role, soon, by the issuer thread.
  void defer(std::function<void()> what);

  /// Takes the role, if it is free, and issues all that is ready.
  void pump();

  /// Work added and not yet issued.
  std::size_t backlog() const { return backlog_.load(std::memory_order_relaxed); }

  /// Calls `what` once, soon after the backlog has fallen to `low`, outside of the role. One at a time.
  void when_backlog_below(std::size_t low, std::function<void()> what);

 private:
  void issue_ready();
  bool issue_some(Lane& lane, std::unique_lock<std::mutex>& hold);
  bool run_deferred(std::unique_lock<std::mutex>& hold);
  void run_issuer();
  void run_blocking();
  static bool is_ready(const Lane::Item& item);

  void tell_of_backlog();

  std::atomic<bool> role_taken_{false};
  std::atomic<bool> wanted_{false};  // something happened since the role looked last

  std::mutex mutex_;  // guards everything below
  std::condition_variable issuer_wake_, blocking_wake_;
  std::vector<Lane*> active_;
  std::vector<std::function<void()>> deferred_;
  bool poked_ = false;  // the issuer thread should pump
  bool stopping_ = false;
  Lane blocking_;
  std::function<void()> on_low_backlog_;

  std::atomic<std::size_t> backlog_{0};
  std::atomic<std::size_t> low_backlog_{0};
  std::atomic<bool> low_backlog_wanted_{false};
  std::thread issuer_, blocker_;
};

}  // namespace remora::server

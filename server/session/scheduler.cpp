// SPDX-License-Identifier: Apache-2.0
#include "server/session/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace remora::server {

Scheduler::Scheduler()
    : issuer_([this] { run_issuer(); }), blocker_([this] { run_blocking(); }) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  issuer_wake_.notify_all();
  blocking_wake_.notify_all();
  issuer_.join();
  blocker_.join();
}

void Scheduler::add(Lane& lane, std::uint64_t sequence, std::unique_ptr<Work> work,
                    std::vector<After> after) {
  lane.added_ = sequence;
  backlog_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard hold(mutex_);
    lane.items_.push_back({sequence, std::move(work), std::move(after)});
    if (!lane.active_) active_.push_back(&lane);
    lane.active_ = true;
  }
  pump();
}

void Scheduler::add_blocking(std::uint64_t sequence, std::unique_ptr<Work> work,
                             std::vector<After> after) {
  blocking_.added_ = sequence;
  backlog_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard hold(mutex_);
    blocking_.items_.push_back({sequence, std::move(work), std::move(after)});
  }
  blocking_wake_.notify_one();
}

void Scheduler::defer(std::function<void()> what) {
  {
    const std::lock_guard hold(mutex_);
    deferred_.push_back(std::move(what));
    poked_ = true;
  }
  issuer_wake_.notify_one();
}

void Scheduler::pump() {
  wanted_ = true;
  // Whoever holds the role looks at wanted_ once more after giving it back, so nothing is missed.
  while (wanted_ && !role_taken_.exchange(true)) {
    wanted_ = false;
    issue_ready();
    role_taken_ = false;
  }
  tell_of_backlog();
}

void Scheduler::when_backlog_below(std::size_t low, std::function<void()> what) {
  {
    const std::lock_guard hold(mutex_);
    on_low_backlog_ = std::move(what);
    low_backlog_ = low;
    low_backlog_wanted_ = true;
    poked_ = true;  // it may have fallen already
  }
  issuer_wake_.notify_one();
}

void Scheduler::tell_of_backlog() {
  if (!low_backlog_wanted_ || backlog() > low_backlog_ || !low_backlog_wanted_.exchange(false)) return;
  std::function<void()> what;
  {
    const std::lock_guard hold(mutex_);
    what = std::exchange(on_low_backlog_, nullptr);
  }
  if (what) what();
}

void Scheduler::issue_ready() {
  std::unique_lock hold(mutex_);
  bool moved = true;
  while (moved) {
    moved = run_deferred(hold);
    // By index: lanes may be added meanwhile.
    for (std::size_t i = 0; i < active_.size();) {
      Lane& lane = *active_[i];
      moved |= issue_some(lane, hold);
      if (lane.items_.empty()) {
        lane.active_ = false;
        active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
        hold.unlock();
        lane.ran_empty();
        hold.lock();
      } else {
        ++i;
      }
    }
  }
  hold.unlock();
  blocking_wake_.notify_one();  // it may depend on what was issued
}

bool Scheduler::run_deferred(std::unique_lock<std::mutex>& hold) {
  if (deferred_.empty()) return false;
  auto deferred = std::exchange(deferred_, {});
  hold.unlock();
  for (auto& what : deferred) what();
  deferred.clear();
  hold.lock();
  return true;
}

bool Scheduler::is_ready(const Lane::Item& item) {
  return std::all_of(item.after.begin(), item.after.end(), [](const After& a) { return a.holds(); });
}

bool Scheduler::issue_some(Lane& lane, std::unique_lock<std::mutex>& hold) {
  bool moved = false;
  while (!lane.items_.empty() && is_ready(lane.items_.front())) {
    // Others only append, which leaves references into a deque valid.
    Lane::Item& item = lane.items_.front();
    hold.unlock();
    const bool issued = lane.has_room() && item.work->run() == Step::done;
    if (issued) item.work.reset();
    hold.lock();
    if (!issued) return moved;
    lane.issued_->store(item.sequence, std::memory_order_release);
    lane.items_.pop_front();
    backlog_.fetch_sub(1, std::memory_order_relaxed);
    moved = true;
  }
  return moved;
}

void Scheduler::run_issuer() {
  std::unique_lock hold(mutex_);
  while (true) {
    issuer_wake_.wait(hold, [this] { return stopping_ || poked_; });
    if (stopping_) return;
    poked_ = false;
    hold.unlock();
    pump();  // when another thread holds the role, that thread looks once more afterwards
    hold.lock();
  }
}

void Scheduler::run_blocking() {
  std::unique_lock hold(mutex_);
  while (true) {
    blocking_wake_.wait(hold, [this] {
      return stopping_ || (!blocking_.items_.empty() && is_ready(blocking_.items_.front()));
    });
    if (stopping_) return;
    Lane::Item& item = blocking_.items_.front();
    hold.unlock();
    const Step step = item.work->run();
    REMORA_CHECK(step == Step::done);  // here it may simply wait
    item.work.reset();
    hold.lock();
    blocking_.issued_->store(item.sequence, std::memory_order_release);
    blocking_.items_.pop_front();
    backlog_.fetch_sub(1, std::memory_order_relaxed);
    hold.unlock();
    pump();  // others may have waited for it
    hold.lock();
  }
}

}  // namespace remora::server

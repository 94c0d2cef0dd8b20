// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/stream.h"

#include <chrono>
#include <utility>

namespace remora::softgpu {
namespace {

// A stream without work gives its thread back after a while.
constexpr auto kIdleThread = std::chrono::seconds(2);

}  // namespace

bool Mark::reached() const {
  if (!stream) return true;
  const std::lock_guard hold(stream->mutex_);
  return stream->completed_ >= number;
}

void Mark::wait() const {
  if (!stream) return;
  std::unique_lock hold(stream->mutex_);
  stream->changed_.wait(hold, [&] { return stream->completed_ >= number; });
}

Stream::~Stream() = default;

Mark Stream::submit(std::function<void()> work, std::vector<Mark> after) {
  std::unique_lock hold(mutex_);
  queue_.push_back({std::move(work), std::move(after)});
  const Mark mark{shared_from_this(), ++submitted_};
  if (!running_) {
    running_ = true;
    // Keeps the stream alive until its queue is empty; joined by nobody.
    std::thread([self = shared_from_this()] { self->run(); }).detach();
  }
  hold.unlock();
  changed_.notify_all();
  return mark;
}

Mark Stream::last() {
  const std::lock_guard hold(mutex_);
  return {shared_from_this(), submitted_};
}

bool Stream::idle() {
  const std::lock_guard hold(mutex_);
  return submitted_ == completed_;
}

void Stream::run() {
  std::unique_lock hold(mutex_);
  while (true) {
    const bool work =
        changed_.wait_for(hold, kIdleThread, [&] { return !queue_.empty(); });
    if (!work) break;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    hold.unlock();
    for (const Mark& mark : item.after) mark.wait();
    item.work();
    item = {};  // what it held goes before its completion is known
    hold.lock();
    ++completed_;
    changed_.notify_all();
  }
  running_ = false;
}

}  // namespace remora::softgpu

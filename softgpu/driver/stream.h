// SPDX-License-Identifier: Apache-2.0
// Streams: queues of work that run in order, each on a thread of its own that exists while the
// stream has had work. Work that must wait for other streams (events, the legacy default stream)
// carries marks: points in other streams' queues, all submitted earlier, so waiting cannot circle.
//
// Threads: everything from any thread. Ownership: shared; a stream that is destroyed first finishes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "softgpu/driver/cuda_api.h"

namespace remora::softgpu {

class Stream;

/// "Everything that was submitted to this stream up to here".
struct Mark {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
  bool reached() const;
  void wait() const;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(unsigned flags, int priority, std::uint64_t id) : flags_(flags), priority_(priority), id_(id) {}
  ~Stream();

  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  std::uint64_t id() const { return id_; }
  bool blocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) == 0; }

  /// Runs `work` after all that was submitted before and after the marks are reached.
  Mark submit(std::function<void()> work, std::vector<Mark> after = {});
  Mark last();
  bool idle();

 private:
  friend struct Mark;
  struct Item {
    std::function<void()> work;
    std::vector<Mark> after;
  };
  void run();

  const unsigned flags_;
  const int priority_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t completed_ = 0;
  bool running_ = false;  // the thread exists
};

}  // namespace remora::softgpu

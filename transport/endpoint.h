// SPDX-License-Identifier: Apache-2.0
// One end of a connection: a wire, the lock around it, and who drives it. Channel (ordered records)
// and Bulk (chunks of data) are attached to an Endpoint and share its progress, its waiting and its
// failure.
//
// Driving. A thread that waits spins first, making progress itself; then it sleeps on a condition
// variable. One thread (the progress thread, or the thread that calls run()) sleeps on the wire's
// event descriptor and works when no waiter spins. Consumption (handing records to the receiver,
// completion callbacks) happens outside the lock, by one thread at a time, in order.
//
// Failure is final: the first one wins (peer gone, malformed bytes, fail()), every waiter returns
// at once, and all later operations report it.
//
// Threads: all functions from any thread, except create(), connect() and attach, which come first.
// Lock order: the consumer role, then the lock; nothing is called back with the lock held.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/spin_lock.h"
#include "transport/wire.h"

namespace remora::transport {

struct EndpointOptions {
  std::uint32_t spin_us = 30;     // of a waiting thread, before it sleeps; ~0u: for ever
  std::uint32_t run_spin_us = 0;  // of run() and the progress thread, before they sleep
  bool same_host = false;         // both ends say the same: UCX may use shared memory, and of
                                  // network devices only the loopback one
};

/// Relaxed atomics: read at any time.
struct EndpointCounters {
  std::atomic<std::uint64_t> messages_sent{0};
  std::atomic<std::uint64_t> messages_received{0};
  std::atomic<std::uint64_t> bytes_sent{0};  // channel messages and bulk data
  std::atomic<std::uint64_t> bytes_received{0};
  std::atomic<std::uint64_t> stalls{0};  // waits for flow control
  std::atomic<std::uint64_t> sleeps{0};  // times a thread went to sleep on the descriptor
  std::atomic<std::uint64_t> waits{0};   // wait() calls that did not find it done already
};

enum class WaitOutcome { done, timed_out, failed };

/// What Channel and Bulk are to their Endpoint. Calls with `_locked` come under its lock.
class EndpointPart {
 public:
  virtual void message_arrived_locked(Bytes) {}
  virtual void chunk_announced_locked(const BulkHeader&, AnnouncementId) {}
  /// After each progress: send what became sendable.
  virtual void after_progress_locked() {}
  /// Before the driving thread sleeps, and when all was consumed.
  virtual void before_sleep_locked() {}
  /// By the consumer, without the lock; returns true when anything was consumed.
  virtual bool consume() { return false; }
  /// Once, without the lock; consume() follows.
  virtual void failed(const Error&) {}

 protected:
  ~EndpointPart() = default;
};

/// Completion of one send, announce or fetch; owned by whoever started it. Called under the lock,
/// possibly before the call that started the operation has returned.
class WireCompletion {
 public:
  virtual void finished_locked(bool ok) = 0;

 protected:
  ~WireCompletion() = default;
};

class Endpoint final : private WireHandler {
 public:
  /// Opens UCX (late, in its own configuration space) and makes context and worker: the slow part,
  /// milliseconds. Servers do it ahead of time.
  static Result<std::unique_ptr<Endpoint>> create(EndpointOptions options);
  /// Over another wire (tests).
  static std::unique_ptr<Endpoint> over(std::unique_ptr<Wire> wire, EndpointOptions options);
  ~Endpoint();

  /// Our address, for the peer's connect(). Valid as long as the Endpoint.
  Bytes address() const { return wire_->address(); }
  Result<> connect(Bytes peer_address);
  /// The socket whose end of file means that the peer is gone; not owned, must outlive us.
  void watch_control(int descriptor);

  std::string description() const { return wire_->description(); }
  EndpointCounters& counters() { return counters_; }

  /// Waits until `done()` is true. `done` is called often, from this thread only, without the lock.
  template <typename Predicate>
  WaitOutcome wait(Predicate&& done, Deadline deadline) {
    if (done()) return WaitOutcome::done;
    using Function = std::remove_reference_t<Predicate>;
    return wait_until(
        [](void* context) { return static_cast<bool>((*static_cast<Function*>(context))()); },
        const_cast<void*>(static_cast<const void*>(&done)), deadline);
  }

  /// A thread of our own that drives while nobody waits. Called once, after connect().
  void start_progress_thread();
  /// Drives in the calling thread until failure or stop(). The server's loop.
  void run();
  /// Ends run() and the progress thread (and joins it). Afterwards nothing drives.
  void stop();
  /// stop(), and the wire lets go of every buffer. Parts call it before they go.
  void close();

  void fail(Error error);
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  /// Only after has_failed().
  const Error& failure() const { return failure_; }

  // For Channel and Bulk.
  void attach(EndpointPart* part) { parts_.push_back(part); }
  void lock() { lock_.lock(); }
  /// Also reports a failure that was noted under the lock, and sees to it that operations which did
  /// not finish at once are driven.
  void unlock();
  void fail_locked(Error error);
  void send_locked(Bytes message, WireCompletion* completion);
  void announce_locked(const BulkHeader& header, const std::byte* data, WireCompletion* completion);
  void fetch_locked(AnnouncementId announcement, MutableBytes destination,
                    WireCompletion* completion);
  void drop_locked(AnnouncementId announcement);
  /// One round of progress and consumption; true when something happened.
  bool progress();
  /// Lets the parts consume what is ready, unless another thread is at it.
  bool consume_all();
  /// Wakes threads whose predicate may have changed outside of consumption.
  void notify();

 private:
  Endpoint(std::unique_ptr<Wire> wire, EndpointOptions options);

  void message_arrived(Bytes message) override;
  void chunk_announced(const BulkHeader& header, AnnouncementId announcement) override;
  void send_finished(void* cookie, bool ok) override;
  void fetch_finished(void* cookie, bool ok) override;
  void wire_failed(Error error) override;

  WaitOutcome wait_until(bool (*done)(void*), void* context, Deadline deadline);
  bool spin_until(bool (*done)(void*), void* context, Deadline deadline);
  void sleep_until_change(std::uint64_t seen, Deadline deadline);
  void drive();
  void sleep_on_wire(Deadline deadline);
  void leave_to_spinners();
  void idle_locked();
  void kick_driver();
  void close_wire();
  void check_control();

  const EndpointOptions options_;
  const std::unique_ptr<Wire> wire_;
  std::vector<EndpointPart*> parts_;  // fixed after connect()
  EndpointCounters counters_;
  UniqueFd wake_;  // an eventfd that ends a driver's sleep
  std::atomic<int> control_descriptor_{-1};

  SpinLock lock_;                           // guards the wire and the parts' sending state
  std::size_t unfinished_ = 0;              // operations of the wire; under the lock
  bool closed_ = false;                     // under the lock
  std::atomic<bool> consuming_{false};      // the consumer role
  std::atomic<bool> consume_again_{false};  // asked for while somebody held it

  std::mutex sleep_mutex_;           // guards the condition variables' sleeps only
  std::condition_variable changed_;  // consumption, failure
  std::condition_variable unpark_;   // the parked driver should look again
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<int> sleepers_{0};            // threads on changed_
  std::atomic<int> spinners_{0};            // threads that make progress themselves
  std::atomic<int> drivers_{0};             // threads in drive(), 0 or 1
  std::atomic<bool> driver_asleep_{false};  // for long, with no operation to look after
  std::atomic<bool> driver_parked_{false};

  std::atomic<bool> failed_{false};
  std::atomic<bool> stopping_{false};
  std::mutex failure_mutex_;
  Error failure_;
  std::atomic<bool> failure_noted_{false};  // under the lock; reported by unlock()
  Error noted_failure_;
  std::thread progress_thread_;
};

}  // namespace remora::transport

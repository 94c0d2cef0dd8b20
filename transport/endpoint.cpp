// SPDX-License-Identifier: Apache-2.0
#include "transport/endpoint.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "transport/ucx/ucx_wire.h"

namespace remora::transport {
namespace {

// A driver looks around at least this often, whatever it was told: no wait depends on one wake-up.
constexpr int kSleepMs = 1000;
// While the wire still holds operations, in case that it has no event for their completion.
constexpr int kUnfinishedSleepMs = 2;
constexpr auto kParkTime = std::chrono::milliseconds(1);
constexpr auto kWaiterSleep = std::chrono::milliseconds(200);
constexpr std::uint64_t kControlCheckNs = 1'000'000;
constexpr int kSpinsPerClock = 32;
constexpr int kIdleSpins =
    256;  // of a driver that spins for ever: then acknowledge what was consumed

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::create(EndpointOptions options) {
  REMORA_TRY(auto wire, UcxWire::open({.same_host = options.same_host}));
  return over(std::move(wire), options);
}

std::unique_ptr<Endpoint> Endpoint::over(std::unique_ptr<Wire> wire, EndpointOptions options) {
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(wire), options));
}

Endpoint::Endpoint(std::unique_ptr<Wire> wire, EndpointOptions options)
    : options_(options), wire_(std::move(wire)), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  wire_->set_handler(this);
}

Endpoint::~Endpoint() { close(); }

Result<> Endpoint::connect(Bytes peer_address) {
  lock_.lock();
  auto result = wire_->connect(peer_address);
  unlock();
  return result;
}

void Endpoint::watch_control(int descriptor) { control_descriptor_.store(descriptor); }

void Endpoint::start_progress_thread() {
  progress_thread_ = std::thread([this] { drive(); });
}

void Endpoint::run() { drive(); }

void Endpoint::stop() {
  stopping_.store(true);
  kick_driver();
  if (progress_thread_.joinable() && progress_thread_.get_id() != std::this_thread::get_id()) {
    progress_thread_.join();
  }
  notify();
}

void Endpoint::close() {
  stop();
  close_wire();
}

void Endpoint::close_wire() {
  lock_.lock();
  if (!std::exchange(closed_, true)) wire_->close();
  lock_.unlock();
}

// --- The wire, under the lock ----------------------------------------------------------------

void Endpoint::unlock() {
  const bool noted = failure_noted_.load(std::memory_order_relaxed);
  const bool unfinished = unfinished_ != 0;
  lock_.unlock();
  if (noted) [[unlikely]] {
    Error error;
    lock_.lock();
    const bool mine = failure_noted_.exchange(false);
    if (mine) error = std::move(noted_failure_);
    lock_.unlock();
    if (mine) fail(std::move(error));
  } else if (unfinished && driver_asleep_.load(std::memory_order_relaxed)) {
    kick_driver();
  }
}

void Endpoint::send_locked(Bytes message, WireCompletion* completion) {
  if (closed_) return completion->finished_locked(false);
  counters_.messages_sent.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_sent.fetch_add(message.size(), std::memory_order_relaxed);
  ++unfinished_;
  wire_->send(message, completion);
}

void Endpoint::announce_locked(const BulkHeader& header, const std::byte* data,
                               WireCompletion* completion) {
  if (closed_) return completion->finished_locked(false);
  counters_.bytes_sent.fetch_add(header.size_bytes, std::memory_order_relaxed);
  ++unfinished_;
  wire_->announce(header, data, completion);
}

void Endpoint::fetch_locked(AnnouncementId announcement, MutableBytes destination,
                            WireCompletion* completion) {
  if (closed_) return completion->finished_locked(false);
  counters_.bytes_received.fetch_add(destination.size(), std::memory_order_relaxed);
  ++unfinished_;
  wire_->fetch(announcement, destination, completion);
}

void Endpoint::drop_locked(AnnouncementId announcement) {
  if (!closed_) wire_->drop(announcement);
}

void Endpoint::message_arrived(Bytes message) {
  counters_.messages_received.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_received.fetch_add(message.size(), std::memory_order_relaxed);
  for (EndpointPart* part : parts_) part->message_arrived_locked(message);
}

void Endpoint::chunk_announced(const BulkHeader& header, AnnouncementId announcement) {
  for (EndpointPart* part : parts_) part->chunk_announced_locked(header, announcement);
}

void Endpoint::send_finished(void* cookie, bool ok) {
  --unfinished_;
  static_cast<WireCompletion*>(cookie)->finished_locked(ok);
}

void Endpoint::fetch_finished(void* cookie, bool ok) {
  --unfinished_;
  static_cast<WireCompletion*>(cookie)->finished_locked(ok);
}

void Endpoint::wire_failed(Error error) { fail_locked(std::move(error)); }

// --- Failure ---------------------------------------------------------------------------------

void Endpoint::fail_locked(Error error) {
  if (failure_noted_.load(std::memory_order_relaxed)) return;
  noted_failure_ = std::move(error);
  failure_noted_.store(true, std::memory_order_relaxed);
}

void Endpoint::fail(Error error) {
  {
    const std::lock_guard hold(failure_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  log::debug("connection ended: {}", failure_.text);
  close_wire();  // first: whoever is told of the failure may reuse its memory
  for (EndpointPart* part : parts_) part->failed(failure_);
  consume_all();
  notify();
  kick_driver();
}

void Endpoint::check_control() {
  const int descriptor = control_descriptor_.load(std::memory_order_relaxed);
  if (descriptor < 0 || has_failed()) return;
  char byte;
  const ssize_t got = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) {
    fail({ErrorKind::invalid_input, 0,
          "The peer sends on a control connection that is to be silent."});
  } else if (got == 0) {
    fail({ErrorKind::unavailable, 0, "The peer has closed the connection."});
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    fail(system_error("watching the control connection"));
  }
}

// --- Progress and consumption ----------------------------------------------------------------

bool Endpoint::progress() {
  bool something = false;
  if (!has_failed() && lock_.try_lock_politely()) {
    if (!closed_) {
      something = wire_->progress();
      for (EndpointPart* part : parts_) part->after_progress_locked();
    }
    unlock();
  }
  if (something) notify();  // an acknowledgement is news too, and is never consumed
  return consume_all() || something;
}

bool Endpoint::consume_all() {
  bool something = false;
  consume_again_.store(true);
  // Whoever holds the role looks at the flag again after giving it up, so no request is lost.
  while (consume_again_.load() && !consuming_.exchange(true)) {
    consume_again_.store(false);
    bool consumed = false;
    for (EndpointPart* part : parts_) consumed |= part->consume();
    consuming_.store(false);
    something |= consumed;
  }
  if (something) notify();
  return something;
}

void Endpoint::notify() {
  changes_.fetch_add(1);
  if (sleepers_.load() == 0) return;
  { const std::lock_guard hold(sleep_mutex_); }
  changed_.notify_all();
}

void Endpoint::kick_driver() {
  if (driver_parked_.load()) {
    { const std::lock_guard hold(sleep_mutex_); }
    unpark_.notify_all();
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void Endpoint::idle_locked() {
  for (EndpointPart* part : parts_) part->before_sleep_locked();
}

// --- Waiting ---------------------------------------------------------------------------------

WaitOutcome Endpoint::wait_until(bool (*done)(void*), void* context, Deadline deadline) {
  counters_.waits.fetch_add(1, std::memory_order_relaxed);
  if (spin_until(done, context, deadline)) return WaitOutcome::done;
  while (true) {
    const std::uint64_t seen = changes_.load();
    if (done(context)) return WaitOutcome::done;
    if (has_failed()) return WaitOutcome::failed;
    if (deadline.passed()) return WaitOutcome::timed_out;
    if (drivers_.load() == 0) {
      if (!progress()) sleep_on_wire(deadline);  // nobody else drives
      check_control();
    } else {
      sleep_until_change(seen, deadline);
    }
  }
}

bool Endpoint::spin_until(bool (*done)(void*), void* context, Deadline deadline) {
  const bool for_ever = options_.spin_us == ~0u;
  const std::uint64_t start_ns = now_ns();
  const std::uint64_t spin_ns = std::uint64_t{options_.spin_us} * 1000;
  std::uint64_t control_checked_ns = start_ns;
  bool is_done = false;
  spinners_.fetch_add(1);
  for (int spins = 1;; ++spins) {
    const bool something = progress();
    if (done(context)) {
      is_done = true;
      break;
    }
    if (has_failed()) break;
    if (something) continue;
    cpu_relax();
    if (spins % kSpinsPerClock != 0) continue;
    const std::uint64_t now = now_ns();
    if (now - control_checked_ns > kControlCheckNs) {
      control_checked_ns = now;
      check_control();
    }
    if ((!for_ever && now - start_ns >= spin_ns) || deadline.passed()) break;
  }
  // Who goes on to sleep counts on the driver; who is done leaves it to look in by itself, which
  // spares a wake-up per awaited call.
  if (spinners_.fetch_sub(1) == 1 && !is_done && driver_parked_.load()) {
    { const std::lock_guard hold(sleep_mutex_); }
    unpark_.notify_all();
  }
  return is_done;
}

void Endpoint::sleep_until_change(std::uint64_t seen, Deadline deadline) {
  const auto longest = std::chrono::nanoseconds(kWaiterSleep);
  const auto remaining = deadline.remaining_ns();
  const auto time = remaining < static_cast<std::uint64_t>(longest.count())
                        ? std::chrono::nanoseconds(remaining)
                        : longest;
  std::unique_lock hold(sleep_mutex_);
  sleepers_.fetch_add(1);
  changed_.wait_for(hold, time, [&] { return changes_.load() != seen || has_failed(); });
  sleepers_.fetch_sub(1);
}

// --- Driving ---------------------------------------------------------------------------------

void Endpoint::drive() {
  drivers_.store(1);
  std::uint64_t idle_since_ns = 0;
  int idle = 0;
  while (!stopping_.load() && !has_failed()) {
    if (spinners_.load() > 0) {
      leave_to_spinners();
      check_control();
      continue;
    }
    if (progress()) {
      idle = 0;
      continue;
    }
    if (++idle == 1 && options_.run_spin_us != 0) idle_since_ns = now_ns();
    if (options_.run_spin_us != 0) {
      if (idle == kIdleSpins) {
        lock_.lock();
        idle_locked();
        unlock();
      }
      cpu_relax();
      if (idle % kSpinsPerClock != 0) continue;
      if (options_.run_spin_us == ~0u) {
        if (idle % (kSpinsPerClock * 256) == 0) check_control();
        continue;
      }
      if (now_ns() - idle_since_ns < std::uint64_t{options_.run_spin_us} * 1000) continue;
    }
    idle = 0;
    sleep_on_wire(Deadline::never());
    check_control();
  }
  drivers_.store(0);
  notify();  // a waiter that counted on this driver drives itself from now on
}

void Endpoint::leave_to_spinners() {
  std::unique_lock hold(sleep_mutex_);
  driver_parked_.store(true);
  unpark_.wait_for(hold, kParkTime,
                   [&] { return spinners_.load() == 0 || stopping_.load() || has_failed(); });
  driver_parked_.store(false);
}

void Endpoint::sleep_on_wire(Deadline deadline) {
  lock_.lock();
  if (closed_) {
    lock_.unlock();
    return;
  }
  idle_locked();
  const bool armed = wire_->arm();
  const bool unfinished = unfinished_ != 0;
  driver_asleep_.store(!unfinished);
  unlock();
  if (armed && !has_failed() && !stopping_.load()) {
    counters_.sleeps.fetch_add(1, std::memory_order_relaxed);
    pollfd watched[] = {{wire_->event_descriptor(), POLLIN, 0},
                        {wake_.get(), POLLIN, 0},
                        {control_descriptor_.load(), POLLIN | POLLRDHUP, 0}};
    const int longest_ms = unfinished ? kUnfinishedSleepMs : kSleepMs;
    const int remaining_ms = deadline.poll_timeout_ms();
    poll(watched, 3, remaining_ms < 0 ? longest_ms : std::min(longest_ms, remaining_ms));
    if (watched[1].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
  }
  driver_asleep_.store(false);
}

}  // namespace remora::transport

// SPDX-License-Identifier: Apache-2.0
#include "transport/fake/fake_wire.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace remora::transport {
namespace {

struct Event {
  enum class Kind { message, chunk, sent } kind;
  std::vector<std::byte> message;
  BulkHeader header;
  AnnouncementId announcement = 0;
  void* cookie = nullptr;
  bool ok = true;
};

struct Offer {
  const std::byte* data;  // null: an injected chunk without bytes
  std::size_t size;
  void* cookie;
};

}  // namespace

/// What is on its way to one end, and what that end has offered.
struct FakeWire::Side {
  std::deque<Event> arriving;
  std::map<AnnouncementId, Offer> offers;
  UniqueFd event{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  bool held = false;
  bool told_of_cut = false;
};

struct FakeWire::Link {
  std::mutex mutex;
  FakeOptions options;
  std::mt19937_64 random;
  Side sides[2];
  AnnouncementId next_announcement = 1;
  bool cut = false;

  void arrive(Side& side, Event event) {
    auto at = side.arriving.end();
    if (options.reorder_seed != 0 && !side.arriving.empty()) {
      at -= static_cast<std::ptrdiff_t>(random() %
                                        std::min<std::size_t>(side.arriving.size() + 1, 4));
    }
    side.arriving.insert(at, std::move(event));
    wake(side);
  }
  static void wake(Side& side) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(side.event.get(), &one, sizeof one);
  }
};

std::pair<std::unique_ptr<FakeWire>, std::unique_ptr<FakeWire>> fake_pair(FakeOptions options) {
  const auto link = std::make_shared<FakeWire::Link>();
  link->options = options;
  link->random.seed(options.reorder_seed);
  return {std::make_unique<FakeWire>(link, 0), std::make_unique<FakeWire>(link, 1)};
}

FakeWire::FakeWire(std::shared_ptr<Link> link, int side) : link_(std::move(link)), side_(side) {}
FakeWire::~FakeWire() { close(); }

FakeWire::Side& FakeWire::mine() const { return link_->sides[side_]; }
FakeWire::Side& FakeWire::theirs() const { return link_->sides[1 - side_]; }

void FakeWire::inject(Bytes message) {
  const std::lock_guard hold(link_->mutex);
  link_->arrive(mine(), {Event::Kind::message, {message.begin(), message.end()}});
}

void FakeWire::inject_chunk(const BulkHeader& header) {
  const std::lock_guard hold(link_->mutex);
  const AnnouncementId id = link_->next_announcement++;
  theirs().offers.emplace(id, Offer{nullptr, header.size_bytes, nullptr});
  link_->arrive(mine(), {Event::Kind::chunk, {}, header, id});
}

void FakeWire::cut() {
  const std::lock_guard hold(link_->mutex);
  link_->cut = true;
  for (Side& side : link_->sides) Link::wake(side);
}

void FakeWire::hold(bool held) {
  const std::lock_guard hold(link_->mutex);
  mine().held = held;
  Link::wake(mine());
}

void FakeWire::send(Bytes message, void* cookie) {
  {
    const std::lock_guard hold(link_->mutex);
    link_->arrive(theirs(), {Event::Kind::message, {message.begin(), message.end()}});
  }
  handler_->send_finished(cookie, true);
}

void FakeWire::announce(const BulkHeader& header, const std::byte* data, void* cookie) {
  const std::lock_guard hold(link_->mutex);
  const AnnouncementId id = link_->next_announcement++;
  mine().offers.emplace(id, Offer{data, header.size_bytes, cookie});
  link_->arrive(theirs(), {Event::Kind::chunk, {}, header, id});
}

void FakeWire::fetch(AnnouncementId announcement, MutableBytes destination, void* cookie) {
  bool ok = false;
  {
    const std::lock_guard hold(link_->mutex);
    auto& offers = theirs().offers;
    if (const auto offer = offers.find(announcement); offer != offers.end()) {
      ok = offer->second.data != nullptr && offer->second.size == destination.size();
      if (ok) std::memcpy(destination.data(), offer->second.data, destination.size());
      if (offer->second.cookie != nullptr) {
        link_->arrive(theirs(), {Event::Kind::sent, {}, {}, 0, offer->second.cookie, ok});
      }
      offers.erase(offer);
    }
  }
  handler_->fetch_finished(cookie, ok);
}

void FakeWire::drop(AnnouncementId announcement) {
  const std::lock_guard hold(link_->mutex);
  auto& offers = theirs().offers;
  const auto offer = offers.find(announcement);
  if (offer == offers.end()) return;
  if (offer->second.cookie != nullptr) {
    link_->arrive(theirs(), {Event::Kind::sent, {}, {}, 0, offer->second.cookie, true});
  }
  offers.erase(offer);
}

bool FakeWire::progress() {
  if (closed_) return false;
  bool something = false;
  for (std::size_t i = 0; i < link_->options.per_progress; ++i) {
    Event event;
    {
      const std::lock_guard hold(link_->mutex);
      std::uint64_t count;
      [[maybe_unused]] const ssize_t got = read(mine().event.get(), &count, sizeof count);
      if (link_->cut) {
        if (std::exchange(mine().told_of_cut, true)) return something;
        handler_->wire_failed({ErrorKind::unavailable, 0, "The fake wire was cut."});
        return true;
      }
      if (mine().held || mine().arriving.empty()) return something;
      event = std::move(mine().arriving.front());
      mine().arriving.pop_front();
    }
    something = true;
    if (event.kind == Event::Kind::message) {
      handler_->message_arrived(event.message);
    } else if (event.kind == Event::Kind::chunk) {
      handler_->chunk_announced(event.header, event.announcement);
    } else {
      handler_->send_finished(event.cookie, event.ok);
    }
  }
  return something;
}

int FakeWire::event_descriptor() const { return mine().event.get(); }

bool FakeWire::arm() {
  const std::lock_guard hold(link_->mutex);
  return mine().held || mine().arriving.empty();
}

void FakeWire::close() {
  if (std::exchange(closed_, true)) return;
  std::vector<void*> unfinished;
  {
    const std::lock_guard hold(link_->mutex);
    for (auto& [id, offer] : mine().offers) {
      if (offer.cookie != nullptr) unfinished.push_back(offer.cookie);
    }
    mine().offers.clear();
    for (Event& event : mine().arriving) {
      if (event.kind == Event::Kind::sent) unfinished.push_back(event.cookie);
    }
    mine().arriving.clear();
  }
  for (void* cookie : unfinished) handler_->send_finished(cookie, false);
}

}  // namespace remora::transport

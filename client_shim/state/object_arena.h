// SPDX-License-Identifier: Apache-2.0
// Where the objects behind CUDA handles live. A handle is the address of an object; every address
// that a program may pass, however wrong, is judged by arithmetic on a reserved region and one
// load, without a lock or a hash, and without touching memory that is not ours. The slot number and
// its generation are the object's id on the wire.
//
// Ownership: the arena owns the objects and is never destroyed. A destroyed object's slot is reused
// as late as possible, so that a stale handle is recognised for a long time. Threads: find() from
// anywhere; create() and destroy() take the arena's lock. A program that uses a handle in one
// thread while it destroys it in another gets a wrong answer, but never a crash: slots stay mapped.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

namespace remora::client_shim {

template <typename T, std::uint32_t kSlots>
class ObjectArena {
 public:
  ObjectArena() {
    void* region = ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region != MAP_FAILED) base_ = static_cast<std::byte*>(region);
  }
  ObjectArena(const ObjectArena&) = delete;
  ObjectArena& operator=(const ObjectArena&) = delete;

  /// Null when all slots are taken or the region could not be reserved. The constructor receives
  /// {slot number + 1, generation} first.
  template <typename... Args>
  T* create(Args&&... args) {
    if (base_ == nullptr) return nullptr;
    std::uint32_t number;
    {
      const std::lock_guard lock(mutex_);
      // Fresh slots first: they postpone the reuse of an address.
      if (used_.load(std::memory_order_relaxed) < kFreshSlots) {
        number = used_.fetch_add(1, std::memory_order_relaxed);
      } else if (!free_.empty()) {
        number = free_.front();
        free_.pop_front();
      } else if (used_.load(std::memory_order_relaxed) < kSlots) {
        number = used_.fetch_add(1, std::memory_order_relaxed);
      } else {
        return nullptr;
      }
    }
    Slot* slot = slot_at(number);
    ++slot->generation;
    T* object = ::new (slot->storage) T(number + 1, slot->generation, std::forward<Args>(args)...);
    slot->live.store(kLive, std::memory_order_release);  // pairs with the acquire in find()
    return object;
  }

  void destroy(T* object) {
    Slot* slot = reinterpret_cast<Slot*>(reinterpret_cast<std::byte*>(object) - kStorageOffset);
    slot->live.store(0, std::memory_order_release);
    object->~T();
    const std::lock_guard lock(mutex_);
    free_.push_back(
        static_cast<std::uint32_t>((reinterpret_cast<std::byte*>(slot) - base_) / kStride));
  }

  /// The live object at `handle`, or null.
  T* find(const void* handle) const {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) -
                                  reinterpret_cast<std::uintptr_t>(base_) - kStorageOffset;
    if (offset >= kRegionBytes || offset % kStride != 0 || base_ == nullptr) return nullptr;
    Slot* slot = reinterpret_cast<Slot*>(base_ + offset);
    if (slot->live.load(std::memory_order_acquire) != kLive) return nullptr;
    return std::launder(reinterpret_cast<T*>(slot->storage));
  }

  /// The live object with this id, or null: what a pushed record names.
  T* find(std::uint32_t index, std::uint32_t generation) const {
    if (index == 0 || index > used_.load(std::memory_order_acquire)) return nullptr;
    Slot* slot = slot_at(index - 1);
    if (slot->live.load(std::memory_order_acquire) != kLive || slot->generation != generation) {
      return nullptr;
    }
    return std::launder(reinterpret_cast<T*>(slot->storage));
  }

  /// Calls f(T&) for every live object. Objects made or destroyed meanwhile may or may not be seen.
  template <typename F>
  void for_each(F&& f) const {
    const std::uint32_t used = used_.load(std::memory_order_acquire);
    for (std::uint32_t number = 0; number < used; ++number) {
      Slot* slot = slot_at(number);
      if (slot->live.load(std::memory_order_acquire) == kLive) {
        f(*std::launder(reinterpret_cast<T*>(slot->storage)));
      }
    }
  }

 private:
  static constexpr std::uint32_t kLive = 0x4C495645;
  static constexpr std::uint32_t kFreshSlots = kSlots < 256 ? kSlots : 256;
  static constexpr std::size_t kStorageOffset = alignof(T) > 2 * sizeof(std::uint32_t)
                                                    ? alignof(T)
                                                    : 2 * sizeof(std::uint32_t);

  struct Slot {
    std::atomic<std::uint32_t> live;
    std::uint32_t generation;  // written by create() alone, before `live`
    alignas(T) std::byte storage[sizeof(T)];
  };
  static_assert(offsetof(Slot, storage) == kStorageOffset);
  // A power of two, so that find() divides by a mask.
  static constexpr std::size_t kStride = std::bit_ceil(sizeof(Slot));
  static constexpr std::size_t kRegionBytes = kStride * kSlots;

  Slot* slot_at(std::uint32_t number) const {
    return reinterpret_cast<Slot*>(base_ + number * kStride);
  }

  std::byte* base_ = nullptr;
  std::mutex mutex_;  // guards free_ and the growth of used_
  std::deque<std::uint32_t> free_;
  std::atomic<std::uint32_t> used_{0};
};

}  // namespace remora::client_shim

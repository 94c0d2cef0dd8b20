// SPDX-License-Identifier: Apache-2.0
// ObjectTable: what the server keeps behind the ids that its client chooses. The client is not
// trusted to choose well: the number of slots is bounded, a slot is filled once at a time, and the
// generation of a slot must rise, so that an id names at most one object for the session's life.
//
// Not thread-safe; the owner locks, or keeps it on one thread. A pointer that find() returns stays
// valid until that object is erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/handle/object_id.h"

namespace remora::protocol {

template <typename T>
class ObjectTable {
 public:
  explicit ObjectTable(std::size_t max_index = 1u << 20) : max_index_(max_index) {}
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  /// The object, now owned by the table; null when the id is not one that the client may choose: no
  /// object, beyond the bound, a slot that is taken, or a generation that did not rise.
  T* insert(ObjectId id, std::unique_ptr<T> object) {
    if (id.is_null() || id.index > max_index_ || object == nullptr) return nullptr;
    if (id.index >= slots_.size()) slots_.resize(id.index + 1);
    Slot& slot = slots_[id.index];
    if (slot.object != nullptr || (slot.used && id.generation <= slot.generation)) return nullptr;
    slot.used = true;
    slot.generation = id.generation;
    slot.object = std::move(object);
    ++size_;
    return slot.object.get();
  }

  /// Null when there is no such object, or no longer.
  T* find(ObjectId id) const {
    if (id.index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[id.index];
    return slot.generation == id.generation ? slot.object.get() : nullptr;
  }

  /// By index alone, as the header of a record names its context.
  T* find_index(std::uint32_t index) const {
    return index < slots_.size() ? slots_[index].object.get() : nullptr;
  }

  /// Gives the object back to the caller; null as for find().
  std::unique_ptr<T> erase(ObjectId id) {
    if (find(id) == nullptr) return nullptr;
    --size_;
    return std::move(slots_[id.index].object);
  }

  std::size_t size() const { return size_; }

  /// visit(id, object) for each object, by index.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t index = 0; index < slots_.size(); ++index) {
      const Slot& slot = slots_[index];
      if (slot.object != nullptr) visit(ObjectId{index, slot.generation}, *slot.object);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<T> object;
    std::uint32_t generation = 0;
    bool used = false;  // ever: generation 0 may be the first
  };

  std::size_t max_index_;
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace remora::protocol

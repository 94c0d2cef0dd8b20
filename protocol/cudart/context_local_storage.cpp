// SPDX-License-Identifier: Apache-2.0
#include "protocol/cudart/context_local_storage.h"

#include <vector>

namespace remora::cudart {
namespace {

/// Makes the sequence odd while entries change, so that readers look again.
class Writing {
 public:
  explicit Writing(std::atomic<unsigned>& sequence) : sequence_(sequence) {
    sequence_.fetch_add(1, std::memory_order_acq_rel);
  }
  ~Writing() { sequence_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<unsigned>& sequence_;
};

}  // namespace

ContextLocalStorage::Entry* ContextLocalStorage::find_locked(CUcontext context, void* key) {
  const std::size_t used = used_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    Entry& entry = entries_[i];
    if (entry.context.load(std::memory_order_relaxed) == context &&
        (context == nullptr || entry.key.load(std::memory_order_relaxed) == key))
      return &entry;
  }
  return nullptr;
}

CUresult ContextLocalStorage::put(CUcontext context, void* key, void* value,
                                  Destructor destructor) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(writing_);
  Entry* entry = find_locked(context, key);
  if (entry == nullptr) entry = find_locked(nullptr, nullptr);
  if (entry == nullptr) {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    if (used == kCapacity) return CUDA_ERROR_OUT_OF_MEMORY;
    entry = &entries_[used];
    used_.store(used + 1, std::memory_order_release);
  }
  Writing writing(sequence_);
  entry->destructor = destructor;
  entry->key.store(key, std::memory_order_release);
  entry->value.store(value, std::memory_order_release);
  entry->context.store(context, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult ContextLocalStorage::get(void** value, CUcontext context, void* key) const {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  for (;;) {
    const unsigned before = sequence_.load(std::memory_order_acquire);
    void* found = nullptr;
    bool present = false;
    const std::size_t used = used_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used && !present; ++i) {
      const Entry& entry = entries_[i];
      if (entry.context.load(std::memory_order_acquire) != context ||
          entry.key.load(std::memory_order_acquire) != key)
        continue;
      found = entry.value.load(std::memory_order_acquire);
      present = true;
    }
    // The loads above are acquires, so this one cannot move before them; it pairs with Writing.
    if ((before & 1) == 0 && sequence_.load(std::memory_order_relaxed) == before) {
      *value = found;
      return present ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
  }
}

CUresult ContextLocalStorage::remove(CUcontext context, void* key) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(writing_);
  Entry* entry = find_locked(context, key);
  if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Writing writing(sequence_);
  entry->context.store(nullptr, std::memory_order_release);
  return CUDA_SUCCESS;
}

void ContextLocalStorage::destroy(CUcontext context) {
  if (context == nullptr) return;
  struct Dropped {
    Destructor destructor;
    void* key;
    void* value;
  };
  std::vector<Dropped> dropped;
  {
    std::lock_guard lock(writing_);
    Writing writing(sequence_);
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      Entry& entry = entries_[i];
      if (entry.context.load(std::memory_order_relaxed) != context) continue;
      dropped.push_back({entry.destructor, entry.key.load(), entry.value.load()});
      entry.context.store(nullptr, std::memory_order_release);
    }
  }
  for (const Dropped& value : dropped)
    if (value.destructor != nullptr) value.destructor(context, value.key, value.value);
}

ContextLocalStorage& context_local_storage() {
  static auto* const instance = new ContextLocalStorage;
  return *instance;
}

}  // namespace remora::cudart

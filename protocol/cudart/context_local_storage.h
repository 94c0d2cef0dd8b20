// SPDX-License-Identifier: Apache-2.0
// Values that the runtime keeps per context and key (the table CTX_LOCAL_STORAGE). The runtime
// reads one before almost every call that it makes, so get() takes no lock: entries stand in a
// small fixed array that is only appended to and marked free, and readers check a sequence number.
//
// A value's destructor runs when its context is destroyed or reset, not when the runtime deletes
// the value itself (cuda-abi: the delete slot leaves the destructor alone).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

namespace remora::cudart {

class ContextLocalStorage {
 public:
  using Destructor = void (*)(CUcontext context, void* key, void* value);

  /// CUDA_ERROR_OUT_OF_MEMORY when full (kCapacity values at once).
  CUresult put(CUcontext context, void* key, void* value, Destructor destructor);
  /// CUDA_ERROR_INVALID_HANDLE when there is none.
  CUresult get(void** value, CUcontext context, void* key) const;
  CUresult remove(CUcontext context, void* key);

  /// Drops every value of the context and runs their destructors, in the calling thread, with no
  /// lock held.
  void destroy(CUcontext context);

 private:
  static constexpr std::size_t kCapacity = 4096;
  struct Entry {
    std::atomic<CUcontext> context{nullptr};  // null: free
    std::atomic<void*> key{nullptr};
    std::atomic<void*> value{nullptr};
    Destructor destructor = nullptr;
  };

  Entry* find_locked(CUcontext context, void* key);

  std::mutex writing_;                 // serialises put, remove and destroy
  std::atomic<unsigned> sequence_{0};  // odd while a writer changes entries
  std::atomic<std::size_t> used_{0};   // entries [0, used_) may be occupied
  std::unique_ptr<Entry[]> entries_{new Entry[kCapacity]};
};

/// The one of this process; made at first use, never destroyed.
ContextLocalStorage& context_local_storage();

}  // namespace remora::cudart

// SPDX-License-Identifier: Apache-2.0
#include "protocol/cudart/export_tables.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.h"
#include "protocol/cudart/context_local_storage.h"
#include "protocol/cudart/handshake.h"

namespace remora::cudart {
namespace {

std::atomic<CudartHost*> installed_host{nullptr};

CudartHost& host() { return *installed_host.load(std::memory_order_acquire); }

CUcontext or_current(CUcontext context) {
  return context != nullptr ? context : host().current_context();
}

// ---- tables: arrays of 8-byte slots, slot 0 holds the size in bytes ----

enum class TableName {
  cudart_interface,
  tools_rt_hooks,
  tools_tls,
  context_checks,
  integrity,
  context_streams,
  module_functions,
};

constexpr const char* kTableNames[] = {"CUDART_INTERFACE", "TOOLS_RT_HOOKS", "TOOLS_TLS",
                                       "CONTEXT_CHECKS",   "INTEGRITY",      "CONTEXT_STREAMS",
                                       "MODULE_FUNCTIONS"};

/// What a slot that is not known to us does: refuse, and say so once.
template <TableName kTable, std::size_t kSlot>
CUresult refuse_slot() {
  static std::atomic_flag said;
  if (!said.test_and_set())
    log::warn("slot {} of the private table {} was called and is not supported", kSlot,
              kTableNames[static_cast<int>(kTable)]);
  return CUDA_ERROR_NOT_SUPPORTED;
}

template <TableName kTable, std::size_t kSlots>
struct Table {
  std::array<const void*, kSlots> slots;

  Table() : Table(std::make_index_sequence<kSlots>()) {
    slots[0] = reinterpret_cast<const void*>(kSlots * sizeof(void*));
  }

  template <typename Function>
  Table& set(std::size_t slot, Function* function) {
    slots[slot] = reinterpret_cast<const void*>(function);
    return *this;
  }

 private:
  template <std::size_t... kIndex>
  explicit Table(std::index_sequence<kIndex...>)
      : slots{reinterpret_cast<const void*>(&refuse_slot<kTable, kIndex>)...} {}
};

// ---- CUDART_INTERFACE ----

CUresult load_from_wrapper(CUmodule* module, const void* wrapper) {
  return host().load_module(module, wrapper);
}
CUresult primary_context_of(CUcontext* context, CUdevice device) {
  return host().primary_context(device, context);
}
CUresult load_from_wrapper_with_options(CUmodule* module, const void* wrapper, void*, void*,
                                        unsigned) {
  return host().load_module(module, wrapper);
}
void drop_wrapper(const void* wrapper) { host().module_dropped(wrapper); }
CUresult load_from_fat_binary(const void* fat_binary, CUmodule* module, void*, void*, unsigned) {
  return host().load_module(module, fat_binary);
}
CUresult load_compilers() { return CUDA_SUCCESS; }  // there are none to load ahead of time

const void* cudart_interface_table() {
  static const auto table = Table<TableName::cudart_interface, 13>()
                                .set(1, &load_from_wrapper)
                                .set(2, &primary_context_of)
                                .set(6, &load_from_wrapper_with_options)
                                .set(7, &drop_wrapper)
                                .set(8, &load_from_fat_binary)
                                .set(12, &load_compilers);
  return table.slots.data();
}

// ---- TOOLS_RT_HOOKS: places where a tool would put callbacks; there is no tool ----

std::uint32_t tool_hooks[1024];
std::uint32_t tool_domain_hooks[14];

void tool_hooks_of(void** buffer, std::size_t* count) {
  *buffer = tool_hooks;
  *count = std::size(tool_hooks);
}
void tool_domain_hooks_of(void** buffer, std::size_t* count) {
  *buffer = tool_domain_hooks;
  *count = std::size(tool_domain_hooks);
}

const void* tools_rt_hooks_table() {
  static const auto table =
      Table<TableName::tools_rt_hooks, 7>().set(2, &tool_hooks_of).set(6, &tool_domain_hooks_of);
  return table.slots.data();
}

// ---- TOOLS_TLS ----

CUresult thread_context(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = host().current_context();
  return CUDA_SUCCESS;
}

const void* tools_tls_table() {
  static const auto table = Table<TableName::tools_tls, 4>().set(2, &thread_context);
  return table.slots.data();
}

// ---- CTX_LOCAL_STORAGE: no size slot, ends with null ----

CUresult storage_put(CUcontext context, void* key, void* value,
                     ContextLocalStorage::Destructor destructor) {
  return context_local_storage().put(or_current(context), key, value, destructor);
}
CUresult storage_remove(CUcontext context, void* key) {
  return context_local_storage().remove(or_current(context), key);
}
CUresult storage_get(void** value, CUcontext context, void* key) {
  return context_local_storage().get(value, or_current(context), key);
}

const void* context_local_storage_table() {
  static const std::array<const void*, 4> table = {
      reinterpret_cast<const void*>(&storage_put), reinterpret_cast<const void*>(&storage_remove),
      reinterpret_cast<const void*>(&storage_get), nullptr};
  return table.data();
}

// ---- CONTEXT_CHECKS ----

CUresult check_context(CUcontext, std::uint32_t* flags, void**) {
  if (flags != nullptr) *flags = 0;
  return CUDA_SUCCESS;
}
std::uint32_t no_check() { return 0; }

const void* context_checks_table() {
  static const auto table =
      Table<TableName::context_checks, 4>().set(2, &check_context).set(3, &no_check);
  return table.slots.data();
}

// ---- INTEGRITY ----

const void* integrity_table();

CUresult check_integrity(std::uint32_t version, std::uint64_t unix_seconds, std::uint8_t* result) {
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const HandshakeQuestion question{
      .driver_version = static_cast<std::uint32_t>(host().driver_version()),
      .asked_version = version,
      .process = static_cast<std::uint32_t>(getpid()),
      .thread = static_cast<std::uint32_t>(pthread_self()),
      .cudart_interface_table = reinterpret_cast<std::uint64_t>(cudart_interface_table()),
      .integrity_table = reinterpret_cast<std::uint64_t>(integrity_table()),
      .integrity_function = reinterpret_cast<std::uint64_t>(&check_integrity),
      .unix_seconds = unix_seconds,
  };
  const Md2::Digest answer = handshake_answer(question, host().device_identities());
  std::memcpy(result, answer.data(), answer.size());
  return CUDA_SUCCESS;
}

const void* integrity_table() {
  static const auto table = Table<TableName::integrity, 3>().set(1, &check_integrity);
  return table.slots.data();
}

// ---- CONTEXT_STREAMS, for cuBLAS and cuFFT ----

CUresult context_id(CUcontext context, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return host().context_id(context, id);
}

// The private stream object is only ever handed back to us, so the handle itself serves; the null
// stream is named by its context, which is never null.
CUresult private_stream(CUcontext context, CUstream stream, void** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  context = or_current(context);
  if (!host().is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  *out = stream != nullptr ? static_cast<void*>(stream) : static_cast<void*>(context);
  return CUDA_SUCCESS;
}
CUresult private_stream_state(CUcontext, void*, std::uint32_t* state) {
  if (state != nullptr) *state = 0;
  return CUDA_SUCCESS;
}

const void* context_streams_table() {
  static const auto table = Table<TableName::context_streams, 64>()
                                .set(4, &context_id)
                                .set(39, &private_stream_state)
                                .set(51, &private_stream);
  return table.slots.data();
}

// ---- MODULE_FUNCTIONS, for cuFFT: calls back once per function, returns their number ----

using FunctionVisitor = void (*)(void* opaque, CUfunction node, CUmodule owner);

int visit_functions(CUcontext, CUmodule module, FunctionVisitor visit, void* opaque) {
  std::vector<CUfunction> functions;
  if (visit == nullptr || host().module_functions(module, &functions) != CUDA_SUCCESS) return 0;
  for (CUfunction function : functions) visit(opaque, function, module);
  return static_cast<int>(functions.size());
}

const void* module_functions_table() {
  static const auto table = Table<TableName::module_functions, 16>().set(7, &visit_functions);
  return table.slots.data();
}

// ---- which identifier names which table ----

struct KnownTable {
  unsigned char id[16];  // in memory order
  const void* (*table)();
};

constexpr KnownTable kKnownTables[] = {
    {{0x6B, 0xD5, 0xFB, 0x6C, 0x5B, 0xF4, 0xE7, 0x4A, 0x89, 0x87, 0xD9, 0x39, 0x12, 0xFD, 0x9D,
      0xF9},
     &cudart_interface_table},
    {{0xA0, 0x94, 0x79, 0x8C, 0x2E, 0x74, 0x2E, 0x74, 0x93, 0xF2, 0x08, 0x00, 0x20, 0x0C, 0x0A,
      0x66},
     &tools_rt_hooks_table},
    {{0x42, 0xD8, 0x5A, 0x81, 0x23, 0xF6, 0xCB, 0x47, 0x82, 0x98, 0xF6, 0xE7, 0x8A, 0x3A, 0xEC,
      0xDC},
     &tools_tls_table},
    {{0xC6, 0x93, 0x33, 0x6E, 0x11, 0x21, 0xDF, 0x11, 0xA8, 0xC3, 0x68, 0xF3, 0x55, 0xD8, 0x95,
      0x93},
     &context_local_storage_table},
    {{0x26, 0x3E, 0x88, 0x60, 0x7C, 0xD2, 0x61, 0x43, 0x92, 0xF6, 0xBB, 0xD5, 0x00, 0x6D, 0xFA,
      0x7E},
     &context_checks_table},
    {{0xD4, 0x08, 0x20, 0x55, 0xBD, 0xE6, 0x70, 0x4B, 0x8D, 0x34, 0xBA, 0x12, 0x3C, 0x66, 0xE1,
      0xF2},
     &integrity_table},
    {{0x21, 0x31, 0x8C, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8C, 0xA6, 0x41, 0xFF, 0x73, 0x24, 0xC8,
      0xF2},
     &context_streams_table},
    {{0x6E, 0x16, 0x3F, 0xBE, 0xB9, 0x58, 0x44, 0x4D, 0x83, 0x5C, 0xE1, 0x82, 0xAF, 0xF1, 0x99,
      0x1E},
     &module_functions_table},
};

// Asked for and not missed: the runtime's optional table (before cuInit), and NVRTC's, which must
// be refused or it makes empty programs. Not worth a line.
constexpr unsigned char kQuietlyRefused[][16] = {
    {0xF8, 0xCF, 0xF9, 0x51, 0x21, 0x46, 0x8B, 0x4E, 0xB9, 0xE2, 0xFB, 0x46, 0x9E, 0x7C, 0x0D,
     0xD9},
    {0xDA, 0x91, 0x51, 0xD3, 0x3A, 0xE6, 0xCC, 0x41, 0xA5, 0xC0, 0x4F, 0x26, 0xD5, 0x33, 0xE3,
     0x28},
};

std::string text_of(const CUuuid& id) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02X}", static_cast<unsigned char>(id.bytes[i]));
  }
  return text;
}

/// True the first time for each identifier (a bounded number of them).
bool first_refusal(const CUuuid& id) {
  static std::mutex guard;
  static auto* const seen = new std::vector<CUuuid>;
  std::lock_guard lock(guard);
  for (const CUuuid& other : *seen)
    if (std::memcmp(&other, &id, sizeof id) == 0) return false;
  if (seen->size() < 64) seen->push_back(id);
  return true;
}

}  // namespace

void install_cudart_host(CudartHost* host) {
  installed_host.store(host, std::memory_order_release);
}

CUresult export_table(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  if (installed_host.load(std::memory_order_acquire) != nullptr) {
    for (const KnownTable& known : kKnownTables) {
      if (std::memcmp(known.id, id->bytes, sizeof known.id) != 0) continue;
      if (known.table == &integrity_table && !handshake_built()) break;
      *table = known.table();
      return CUDA_SUCCESS;
    }
  }
  for (const auto& quiet : kQuietlyRefused)
    if (std::memcmp(quiet, id->bytes, sizeof quiet) == 0) return CUDA_ERROR_INVALID_VALUE;
  if (first_refusal(*id)) log::warn("the private table {} is not supported", text_of(*id));
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace remora::cudart

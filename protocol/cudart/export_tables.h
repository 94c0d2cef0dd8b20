// SPDX-License-Identifier: Apache-2.0
// The private tables that a CUDA runtime (and cuBLAS, cuFFT …, each with a runtime of its own
// inside) asks a driver for with cuGetExportTable, for any driver of ours that a program sees as
// libcuda.so.1: the preload library and the software GPU's face. Everything here is answered in the
// program's process; nothing of it ever travels.
//
// A driver implements CudartHost, calls install_cudart_host() once before it hands out the first
// table (in cuInit), and lets cuGetExportTable end in export_table(). When it destroys or resets a
// context it calls context_local_storage().destroy(context).
//
// Threads: all functions may be called from any thread at any time after install. The tables are
// static: their addresses are the same for every copy of the runtime in the process, as the
// validity handshake wants it. Slots that are not known are functions that return
// CUDA_ERROR_NOT_SUPPORTED and say so once in the log; unknown tables are CUDA_ERROR_INVALID_VALUE,
// said once in the log. That line is how a new version of a library is supported.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace remora::cudart {

/// One visible device as the program sees it: exactly what cuDeviceGetUuid and the attributes
/// PCI_DOMAIN_ID, PCI_BUS_ID and PCI_DEVICE_ID tell the same process.
struct DeviceIdentity {
  std::array<std::uint8_t, 16> uuid;
  std::int32_t pci_domain;
  std::int32_t pci_bus;
  std::int32_t pci_device;
};

/// What the tables need to know of the driver they belong to. Never destroyed.
class CudartHost {
 public:
  /// What cuDriverGetVersion reports.
  virtual int driver_version() = 0;

  /// The visible devices in ordinal order.
  virtual std::vector<DeviceIdentity> device_identities() = 0;

  /// The primary context's handle of a device. It exists and is stable before the first retain, and
  /// this does not retain it.
  virtual CUresult primary_context(CUdevice device, CUcontext* context) = 0;

  /// The calling thread's current context, null when there is none. On the path of every runtime
  /// call: no lock, no round trip.
  virtual CUcontext current_context() = 0;

  /// What cuCtxGetId reports; CUDA_ERROR_INVALID_CONTEXT for what is no context. Null means
  /// current.
  virtual CUresult context_id(CUcontext context, unsigned long long* id) = 0;

  /// True for a live context handle of this driver.
  virtual bool is_context(CUcontext context) = 0;

  /// Loads a module into the current context from a fat binary wrapper or a bare fat binary, as
  /// runtimes before CUDA 12 do through the private table; like cuModuleLoadData.
  virtual CUresult load_module(CUmodule* module, const void* image) = 0;

  /// A wrapper whose module the runtime is about to drop. Called a thousand times at exit by cuBLAS
  /// 11: must be cheap. Nothing need happen.
  virtual void module_dropped(const void* /*image*/) {}

  /// The functions of a module in a stable order, for cuFFT's iteration.
  virtual CUresult module_functions(CUmodule module, std::vector<CUfunction>* functions) = 0;

 protected:
  ~CudartHost() = default;
};

/// Sets the host for the life of the process; a second call with the same host does nothing.
void install_cudart_host(CudartHost* host);

/// cuGetExportTable: CUDA_SUCCESS and the table, or CUDA_ERROR_INVALID_VALUE and a null table.
CUresult export_table(const void** table, const CUuuid* id);

}  // namespace remora::cudart

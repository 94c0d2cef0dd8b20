// SPDX-License-Identifier: Apache-2.0
// Modules and libraries. An image goes by its content hash; its bytes went before, once
// (remora_module_bytes). A library belongs to no context, its kernels are loaded at first use.

// The program asks for the outcome, hence awaited.
AWAITED BY_HAND(client, server) SINCE(2000)
CUresult cuModuleLoadData(NEW CUmodule *module, IMAGE const void *image);

AWAITED LOWERED(cuModuleLoadData) BY_HAND(client) SINCE(2010)
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                            CUjit_option *options, void **optionValues);

AWAITED LOWERED(cuModuleLoadData) BY_HAND(client) SINCE(2000)
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin);

AWAITED LOWERED(cuModuleLoadData) BY_HAND(client) SINCE(2000)
CUresult cuModuleLoad(CUmodule *module, const char *fname);

POSTED BY_HAND(client, server) SINCE(2000)
CUresult cuModuleUnload(CUmodule hmod);

LOCAL BY_HAND(client) SINCE(11070)
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode);

// Posted when the client's own summary of the image lists the name, otherwise it asks.
POSTED BY_HAND(client, server) SINCE(2000)
CUresult cuModuleGetFunction(NEW CUfunction *hfunc, CUmodule hmod, STR const char *name);

// The driver places globals: the range is foreign, and enters the pointer map with the reply.
AWAITED BY_HAND(client) SINCE(3020)
CUresult cuModuleGetGlobal_v2(OUT NULLABLE CUdeviceptr *dptr, OUT NULLABLE size_t *bytes, CUmodule hmod,
                              STR const char *name);

// Posted: garbage is refused by the client's own parse, the rest at a kernel's first use.
POSTED BY_HAND(client, server) SINCE(12000)
CUresult cuLibraryLoadData(NEW CUlibrary *library, IMAGE const void *code, OPAQUE CUjit_option *jitOptions,
                           OPAQUE void **jitOptionsValues, unsigned int numJitOptions,
                           OPAQUE CUlibraryOption *libraryOptions, OPAQUE void **libraryOptionValues,
                           unsigned int numLibraryOptions);

POSTED LOWERED(cuLibraryLoadData) BY_HAND(client) SINCE(12000)
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions);

POSTED BY_HAND(client, server) SINCE(12000)
CUresult cuLibraryUnload(CUlibrary library);

POSTED BY_HAND(client, server) SINCE(12000)
CUresult cuLibraryGetKernel(NEW CUkernel *pKernel, CUlibrary library, STR const char *name);

POSTED BY_HAND(client, server) SINCE(12000)
CUresult cuLibraryGetModule(NEW CUmodule *pMod, CUlibrary library);

AWAITED BY_HAND(client) SINCE(12000)
CUresult cuLibraryGetGlobal(OUT NULLABLE CUdeviceptr *dptr, OUT NULLABLE size_t *bytes, CUlibrary library,
                            STR const char *name);

// The kernel in the current context: the same object id, since the server keeps a kernel's function
// per context.
LOCAL BY_HAND(client) SINCE(12000)
CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel);

LOCAL BY_HAND(client) SINCE(12050)
CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel);

LOCAL BY_HAND(client) SINCE(12030)
CUresult cuKernelGetName(const char **name, CUkernel hfunc);

LOCAL BY_HAND(client) SINCE(12040)
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize);

LOCAL BY_HAND(client) SINCE(12000)
CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev);

AWAITED BY_HAND(client) SINCE(12000)
CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev);

LOCAL BY_HAND(client) SINCE(12000)
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev);

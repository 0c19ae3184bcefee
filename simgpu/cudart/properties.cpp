// SPDX-License-Identifier: BSD-3-Clause
// cudaGetDeviceProperties. The structure is the one thing that differs between the runtimes 12 and 13:
// fields marked "12" are gone, those marked "13" are new. What the simulated devices do not say is 0.
#include <cstring>

#include "runtime.hpp"

namespace {

struct Properties {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    std::size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    std::size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if CUDART_VERSION < 13000
    int clockRate;
#endif
    std::size_t totalConstMem;
    int major, minor;
    std::size_t textureAlignment, texturePitchAlignment;
#if CUDART_VERSION < 13000
    int deviceOverlap;
#endif
    int multiProcessorCount;
#if CUDART_VERSION < 13000
    int kernelExecTimeoutEnabled;
#endif
    int integrated, canMapHostMemory;
#if CUDART_VERSION < 13000
    int computeMode;
#endif
    int maxTexture1D, maxTexture1DMipmap;
#if CUDART_VERSION < 13000
    int maxTexture1DLinear;
#endif
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
    int maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
    int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    std::size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing;
#if CUDART_VERSION < 13000
    int memoryClockRate;
#endif
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    std::size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
#if CUDART_VERSION < 13000
    int singleToDoublePrecisionPerfRatio;
#endif
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if CUDART_VERSION < 13000
    int cooperativeMultiDeviceLaunch;
#endif
    std::size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    std::size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers;
#if CUDART_VERSION < 13000
    int reserved[63];
#else
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
#endif
};
// The binary interface: whoever includes cuda_runtime_api.h has this much room.
#if CUDART_VERSION < 13000
static_assert(sizeof(Properties) == 1032);
#else
static_assert(sizeof(Properties) == 1008);
#endif

struct Field {
    int Properties::*value;
    CUdevice_attribute attribute;
};
constexpr Field kFields[] = {
    {&Properties::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&Properties::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&Properties::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&Properties::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&Properties::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&Properties::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&Properties::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&Properties::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
#if CUDART_VERSION < 13000
    {&Properties::clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {&Properties::deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP},
    {&Properties::computeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
    {&Properties::memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
#endif
    {&Properties::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&Properties::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&Properties::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&Properties::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&Properties::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&Properties::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&Properties::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&Properties::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&Properties::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&Properties::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&Properties::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&Properties::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&Properties::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&Properties::hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {&Properties::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&Properties::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&Properties::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&Properties::canUseHostPointerForRegisteredMem,
     CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&Properties::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&Properties::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&Properties::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&Properties::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&Properties::gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
    {&Properties::ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
};

int attribute(CUdevice_attribute which, int device) {
    int value = 0;
    return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

std::size_t bytes(CUdevice_attribute which, int device) {
    return static_cast<std::size_t>(attribute(which, device));
}

CUresult properties(Properties* all, int device) {
    if (all == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult started = simgpu::cudart::start();
    if (started != CUDA_SUCCESS) {
        return started;
    }
    std::memset(all, 0, sizeof *all);
    const CUresult named = cuDeviceGetName(all->name, sizeof all->name, device);
    if (named != CUDA_SUCCESS) {
        return named;
    }
    cuDeviceGetUuid_v2(&all->uuid, device);
    cuDeviceTotalMem_v2(&all->totalGlobalMem, device);
    for (const Field& field : kFields) {
        all->*field.value = attribute(field.attribute, device);
    }
    all->sharedMemPerBlock = bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device);
    all->sharedMemPerBlockOptin =
        bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    all->sharedMemPerMultiprocessor =
        bytes(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
    all->memPitch = bytes(CU_DEVICE_ATTRIBUTE_MAX_PITCH, device);
    all->totalConstMem = bytes(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, device);
    all->textureAlignment = bytes(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
    constexpr CUdevice_attribute kBlock[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                                             CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                             CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    constexpr CUdevice_attribute kGrid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                                            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                            CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
    for (int i = 0; i < 3; ++i) {
        all->maxThreadsDim[i] = attribute(kBlock[i], device);
        all->maxGridSize[i] = attribute(kGrid[i], device);
    }
    return CUDA_SUCCESS;
}

}  // namespace

#if CUDART_VERSION < 13000
CUDART_EXPORT simgpu::cudart::Error cudaGetDeviceProperties_v2(Properties* all, int device) {
#else
CUDART_EXPORT simgpu::cudart::Error cudaGetDeviceProperties(Properties* all, int device) {
#endif
    return simgpu::cudart::remember(properties(all, device));
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Compiled code in place of PTX: an ELF file as ptxas writes it, put together here without its instructions.
#include <elf.h>

#include <array>
#include <cstring>

#include "harness.hpp"

namespace {

// As the header says it: 90 for 9.0, in the first byte of the flags; files of newer compilers have it in the
// second one.
enum class Abi : unsigned char { older = 7, newer = 8 };

class CubinFile {
  public:
    CubinFile(unsigned architecture, Abi abi, const std::string& kernel,
              const std::vector<unsigned>& parameter_bytes) {
        const std::string names = std::string("\0.names\0.strings\0.symbols\0", 26) + ".nv.info." +
                                  kernel + std::string(1, '\0');
        const std::string strings = std::string(1, '\0') + kernel + std::string(1, '\0');
        std::array<Elf64_Sym, 2> symbols{};
        symbols[1].st_name = 1;
        symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        symbols[1].st_other = 0x10;
        std::string info = word(0x001b'ff03);  // something else first, without bytes behind it
        unsigned ordinal = 0;
        for (const unsigned bytes : parameter_bytes) {
            info += word(0x000c'1704) + word(0) + word(ordinal++) + word(bytes << 18 | 0x1f000);
        }
        bytes_.resize(sizeof(Elf64_Ehdr));
        std::array<Elf64_Shdr, 5> sections{};
        sections[1] = section(1, SHT_STRTAB, names);
        sections[2] = section(8, SHT_STRTAB, strings);
        sections[3] = section(17, SHT_SYMTAB,
                              {reinterpret_cast<const char*>(symbols.data()), sizeof symbols});
        sections[3].sh_link = 2;
        sections[4] = section(26, SHT_LOPROC, info);
        Elf64_Ehdr header{};
        memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_ABIVERSION] = static_cast<unsigned char>(abi);
        header.e_machine = 190;
        header.e_flags = architecture << (abi == Abi::newer ? 8 : 0);
        header.e_shoff = bytes_.size();
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = sections.size();
        header.e_shstrndx = 1;
        memcpy(bytes_.data(), &header, sizeof header);
        bytes_.append(reinterpret_cast<const char*>(sections.data()), sizeof sections);
    }
    const void* image() const { return bytes_.data(); }
    const std::string& bytes() const { return bytes_; }

  private:
    static std::string word(std::uint32_t value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }
    Elf64_Shdr section(std::uint32_t name, std::uint32_t type, const std::string& contents) {
        Elf64_Shdr made{};
        made.sh_name = name;
        made.sh_type = type;
        made.sh_offset = bytes_.size();
        made.sh_size = contents.size();
        bytes_ += contents;
        return made;
    }

    std::string bytes_;
};

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
    memcpy(bytes.data() + at, &value, sizeof value);
}
// As LZ4 packs bytes that hardly repeat: literals, but for runs of zeros.
std::string packed(const std::string& bytes) {
    const auto lengths = [](std::size_t length) {
        std::string more;
        for (length -= 15; length >= 255; length -= 255) {
            more += '\xff';
        }
        return more + static_cast<char>(length);
    };
    std::string out;
    for (std::size_t at = 0, begin = 0; at <= bytes.size(); ++at) {
        std::size_t zeros = at;
        while (zeros < bytes.size() && bytes[zeros] == 0) {
            ++zeros;
        }
        const bool last = at == bytes.size();
        if (!last && zeros - at < 24) {
            continue;
        }
        // The first zero is a literal, the others repeat it.
        const std::string literals = bytes.substr(begin, at + (last ? 0 : 1) - begin);
        const std::size_t match = last ? 0 : zeros - at - 1;
        out += static_cast<char>(std::min<std::size_t>(literals.size(), 15) << 4 | (last ? 0 : 15));
        out += literals.size() >= 15 ? lengths(literals.size()) : "";
        out += literals;
        if (!last) {
            out += std::string("\1\0", 2) + lengths(match - 4);
            begin = zeros;
            at = zeros - 1;
        }
    }
    return out;
}
// As fatbinary writes it.
std::string fat_binary(const CubinFile& cubin, std::uint64_t flags, const std::string& content) {
    std::string bytes(16 + 64, '\0');
    put(bytes, 0, std::uint32_t{0xba55ed50});
    put(bytes, 6, std::uint16_t{16});
    put(bytes, 8, std::uint64_t{64 + content.size()});
    put(bytes, 16, std::uint16_t{2});
    put(bytes, 20, std::uint32_t{64});
    put(bytes, 24, std::uint64_t{content.size()});
    put(bytes, 32, static_cast<std::uint32_t>(content.size()));
    put(bytes, 56, flags);
    put(bytes, 72, std::uint64_t{cubin.bytes().size()});
    return bytes + content;
}

void with_twins(const std::function<void()>& body) {
    setenv("SIMGPU_KERNELS", SIMGPU_TEST_TWINS, 1);
    simulated("", body);
    unsetenv("SIMGPU_KERNELS");
}

// On the machine of no settings: an H200, 9.0.
CUresult load(unsigned architecture, Abi abi) {
    CUmodule module = nullptr;
    return cuda().cuModuleLoadData(&module, CubinFile(architecture, abi, "add", {8, 4, 8}).image());
}

}  // namespace

TEST(Cubins, KernelsOfCompiledCodeRunAsTheirTwins) {
    NEEDS_SIMULATOR();
    with_twins([] {
        const CubinFile file(90, Abi::newer, "add", {8, 4, 8});
        CUmodule module = nullptr;
        CUfunction add = nullptr;
        OK(cuda().cuModuleLoadData(&module, file.image()));
        OK(cuda().cuModuleGetFunction(&add, module, "add"));
        EXPECT_EQ(cuda().cuModuleGetFunction(&add, module, "other"), CUDA_ERROR_NOT_FOUND);
        OK(cuda().cuModuleGetFunction(&add, module, "add"));
        const CUstream stream = new_stream();
        CUdeviceptr data = device_memory(400);
        OK(cuda().cuMemsetD32Async(data, 40, 100, stream));
        int value = 2;
        unsigned long long count = 100;
        void* parameters[] = {&data, &value, &count};
        OK(cuda().cuLaunchKernel(add, 2, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
        OK(cuda().cuStreamSynchronize(stream));
        std::vector<int> seen(100);
        OK(cuda().cuMemcpyDtoH_v2(seen.data(), data, 400));
        EXPECT_EQ(seen, std::vector<int>(100, 42));
    });
}

TEST(Cubins, CodeRunsOnItsMajorArchitectureFromItsMinorOneUp) {
    NEEDS_SIMULATOR();
    with_twins([] {
        for (const Abi abi : {Abi::older, Abi::newer}) {
            EXPECT_EQ(load(90, abi), CUDA_SUCCESS);
            EXPECT_EQ(load(93, abi), CUDA_ERROR_NO_BINARY_FOR_GPU);
            EXPECT_EQ(load(80, abi), CUDA_ERROR_NO_BINARY_FOR_GPU);
            EXPECT_EQ(load(120, abi), CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
    });
}

TEST(Cubins, AFatBinaryIsUnpackedAndLoaded) {
    NEEDS_SIMULATOR();
    with_twins([] {
        const CubinFile file(90, Abi::newer, "add", {8, 4, 8});
        const std::string content = packed(file.bytes());
        EXPECT_LT(content.size(), file.bytes().size());
        CUmodule module = nullptr;
        CUfunction add = nullptr;
        for (const std::string& image :
             {fat_binary(file, 0x2011, content), fat_binary(file, 0x11, file.bytes())}) {
            OK(cuda().cuModuleLoadData(&module, image.data()));
            OK(cuda().cuModuleGetFunction(&add, module, "add"));
        }
        // Packed in a way that nobody here knows.
        EXPECT_EQ(cuda().cuModuleLoadData(&module, fat_binary(file, 0x8011, content).data()),
                  CUDA_ERROR_NO_BINARY_FOR_GPU);
        const std::string half = content.substr(0, content.size() / 2);
        EXPECT_EQ(cuda().cuModuleLoadData(&module, fat_binary(file, 0x2011, half).data()),
                  CUDA_ERROR_NO_BINARY_FOR_GPU);
    });
}

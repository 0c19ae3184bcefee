// SPDX-License-Identifier: BSD-3-Clause
//
//   ELF header   machine 190; the architecture (90 for 9.0) is byte 0 of the flags, of newer files byte 1
//   .symtab      kernels are global functions with bit 4 of st_other
//   .nv.info.K   attributes of kernel K: format u8, attribute u8, value u16; of format 4 so many bytes follow.
//                Attribute 0x17 is a parameter: index u32, ordinal u16, offset u16, u32 with its size from bit 18 up
#include "cubin.hpp"

#include <elf.h>
#include <string.h>

#include <map>
#include <string_view>

namespace simgpu {
namespace {

constexpr unsigned kCuda = 190, kKernel = 0x10, kNewerAbi = 8;
constexpr unsigned char kSized = 4, kParameter = 0x17;
constexpr unsigned kSizeShift = 18;

struct Parameter {
    std::uint32_t index;
    std::uint16_t ordinal, offset;
    std::uint32_t packed;
};

class Elf {
  public:
    explicit Elf(const void* image) : bytes_(static_cast<const char*>(image)) {
        memcpy(&header_, image, sizeof header_);
    }
    const Elf64_Ehdr& header() const { return header_; }
    Elf64_Shdr section(unsigned index) const {
        return at<Elf64_Shdr>(header_.e_shoff + std::uint64_t{index} * header_.e_shentsize);
    }
    const char* name(const Elf64_Shdr& of) const {
        return bytes_ + section(header_.e_shstrndx).sh_offset + of.sh_name;
    }
    const char* text(std::uint64_t offset) const { return bytes_ + offset; }
    template <class T>
    T at(std::uint64_t offset) const {
        T value;
        memcpy(&value, bytes_ + offset, sizeof value);
        return value;
    }

  private:
    const char* bytes_;
    Elf64_Ehdr header_;
};

std::vector<std::size_t> parameter_sizes(const Elf& elf, const Elf64_Shdr& info) {
    std::map<std::uint16_t, std::size_t> by_ordinal;
    for (std::uint64_t at = info.sh_offset; at + 4 <= info.sh_offset + info.sh_size;) {
        const auto format = elf.at<unsigned char>(at), attribute = elf.at<unsigned char>(at + 1);
        const auto value = elf.at<std::uint16_t>(at + 2);
        at += 4;
        if (format != kSized) {
            continue;
        }
        if (attribute == kParameter && value >= sizeof(Parameter)) {
            const auto parameter = elf.at<Parameter>(at);
            by_ordinal[parameter.ordinal] = parameter.packed >> kSizeShift;
        }
        at += value;
    }
    std::vector<std::size_t> sizes;
    for (const auto& [ordinal, bytes] : by_ordinal) {
        sizes.push_back(bytes);
    }
    return sizes;
}

std::vector<std::string> kernel_names(const Elf& elf, const Elf64_Shdr& symbols) {
    std::vector<std::string> names;
    const Elf64_Shdr strings = elf.section(symbols.sh_link);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = elf.at<Elf64_Sym>(symbols.sh_offset + at);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & kKernel) != 0) {
            names.emplace_back(elf.text(strings.sh_offset + symbol.st_name));
        }
    }
    return names;
}

}  // namespace

bool looks_like_cubin(const void* image) {
    return memcmp(image, ELFMAG, SELFMAG) == 0 && Elf(image).header().e_machine == kCuda;
}

Cubin read_cubin(const void* image) {
    const Elf elf(image);
    Cubin cubin;
    const bool newer = elf.header().e_ident[EI_ABIVERSION] >= kNewerAbi;
    const unsigned architecture = elf.header().e_flags >> (newer ? 8 : 0) & 0xff;
    cubin.major = static_cast<int>(architecture / 10);
    cubin.minor = static_cast<int>(architecture % 10);
    std::map<std::string, std::vector<std::size_t>> sizes;
    constexpr std::string_view kInfo = ".nv.info.";
    for (unsigned i = 0; i < elf.header().e_shnum; ++i) {
        const Elf64_Shdr section = elf.section(i);
        const std::string_view name = elf.name(section);
        if (name.starts_with(kInfo)) {
            sizes[std::string(name.substr(kInfo.size()))] = parameter_sizes(elf, section);
        }
    }
    for (unsigned i = 0; i < elf.header().e_shnum; ++i) {
        const Elf64_Shdr section = elf.section(i);
        if (section.sh_type != SHT_SYMTAB) {
            continue;
        }
        for (std::string& name : kernel_names(elf, section)) {
            KernelDeclaration kernel;
            kernel.parameter_bytes = sizes[name];
            kernel.name = std::move(name);
            cubin.kernels.push_back(std::move(kernel));
        }
    }
    return cubin;
}

}  // namespace simgpu

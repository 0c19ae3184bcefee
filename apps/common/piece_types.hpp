// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces of a message as one datatype, relative to Fields::base().
#pragma once

#include "fields.hpp"
#include "pattern.hpp"

namespace gantry::apps {

enum class End { sender, receiver };

class PieceType {
  public:
    PieceType(const Fields& fields, const Message& message, End end);
    ~PieceType() { free(); }
    PieceType(PieceType&& other) noexcept : type_(other.type_) { other.type_ = MPI_DATATYPE_NULL; }
    PieceType& operator=(PieceType&&) = delete;

    MPI_Datatype get() const { return type_; }

  private:
    void free() {
        if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
    }
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace gantry::apps

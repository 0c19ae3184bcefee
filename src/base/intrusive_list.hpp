// SPDX-License-Identifier: BSD-3-Clause
//
// A doubly linked list whose links live in the elements, so that queues of requests and waiting
// tasks never allocate. An element is in at most one list per Link base, and leaves it when it
// dies.
#pragma once

#include "base/status.hpp"

namespace gantry {

template <class Tag>
struct Link {
    Link() = default;
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link() { unlink(); }  // an element that dies leaves its list

    Link* previous = nullptr;
    Link* next = nullptr;
    bool linked() const { return next != nullptr; }
    void unlink() {
        if (!linked()) return;
        previous->next = next;
        next->previous = previous;
        previous = next = nullptr;
    }
};

template <class T, class Tag = T>
class IntrusiveList {
  public:
    IntrusiveList() { head_.previous = head_.next = &head_; }
    IntrusiveList(const IntrusiveList&) = delete;
    IntrusiveList& operator=(const IntrusiveList&) = delete;
    ~IntrusiveList() { clear(); }

    bool empty() const { return head_.next == &head_; }
    T* front() { return empty() ? nullptr : static_cast<T*>(head_.next); }
    T* back() { return empty() ? nullptr : static_cast<T*>(head_.previous); }
    void push_back(T& element) { insert(*head_.previous, element); }
    void push_front(T& element) { insert(head_, element); }
    T* pop_front() {
        T* element = front();
        if (element != nullptr) static_cast<Link<Tag>*>(element)->unlink();
        return element;
    }
    // The element after this one, or null; pass null for the first.
    T* next(const T* element) {
        Link<Tag>* link =
            element != nullptr ? static_cast<const Link<Tag>*>(element)->next : head_.next;
        return link == &head_ ? nullptr : static_cast<T*>(link);
    }
    void clear() {
        while (!empty())
            head_.next->unlink();
    }

  private:
    static void insert(Link<Tag>& after, T& element) {
        Link<Tag>& link = element;
        GANTRY_ASSERT(!link.linked());
        link.previous = &after;
        link.next = after.next;
        after.next->previous = &link;
        after.next = &link;
    }
    Link<Tag> head_;
};

}  // namespace gantry

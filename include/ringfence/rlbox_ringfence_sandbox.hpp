// ringfence/rlbox_ringfence_sandbox.hpp - a back end of RLBox: its sandboxes are Ringfence's domains. Included behind rlbox.hpp.
//
//     rlbox::rlbox_sandbox<rlbox::rlbox_ringfence_sandbox> box;
//     if (!box.create_sandbox("libcodec.rf")) ...   // rf_error tells
//
// Pointers are the same numbers on both sides and C's types have the same sizes, so that nothing is translated. What fails in the
// domain returns 0, as in C, and rf_error tells. Structs of more than 16 bytes pass by value too. Threads: as RLBox says.
#ifndef RINGFENCE_RLBOX_RINGFENCE_SANDBOX_HPP
#define RINGFENCE_RLBOX_RINGFENCE_SANDBOX_HPP

#include <ringfence/tainted.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>

namespace rlbox {

namespace ringfence_detail {

// How a C function with structs by value is called: numbers and pointers in registers, structs of more than 16 bytes as words of the
// stack, and one that is returned by the address that it is to be written to, which comes first.
template <typename T> constexpr bool by_value = std::is_class_v<T> || std::is_union_v<T>;
template <typename T> constexpr bool in_float = std::is_floating_point_v<T>;
template <typename T> constexpr std::size_t words = by_value<T> ? (sizeof(T) + 7) / 8 : 0;
template <typename T>
constexpr bool fits = !by_value<T> || (sizeof(T) > 16 && alignof(T) <= 8 && std::is_trivially_copyable_v<T>);

template <std::size_t> using word = std::int64_t;

template <typename T> auto floats(const T &value) {
    if constexpr (in_float<T>)
        return std::tuple<T>(value);
    else
        return std::tuple<>();
}

// What the integer registers and the stack get.
template <std::size_t N> struct places {
    std::array<std::int64_t, 6> ints{};
    std::array<std::int64_t, N> stack{};
    std::size_t used = 0, top = 0;

    template <typename T> void put(const T &value) {
        if constexpr (by_value<T>) {
            std::memcpy(stack.data() + top, &value, sizeof value);
            top += words<T>;
        } else if constexpr (std::is_pointer_v<T>) {
            ints[used++] = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(value));
        } else if constexpr (!in_float<T>) {
            ints[used++] = static_cast<std::int64_t>(value);
        }
    }
};

template <typename F> struct lowered;
template <typename R, typename... A> struct lowered<R(A...)> {
    static constexpr bool needed = by_value<R> || (by_value<A> || ... || false);
    static constexpr std::size_t stack = (words<A> + ... + 0);
    using result = std::conditional_t<by_value<R>, void *, R>;

    template <typename... F, std::size_t... I, std::size_t... S>
    static result (*type(std::tuple<F...>, std::index_sequence<I...>, std::index_sequence<S...>))(F..., word<I>..., word<S>...);
    using function = std::remove_pointer_t<decltype(type(std::tuple_cat(floats(std::declval<A>())...), std::make_index_sequence<6>(),
                                                         std::make_index_sequence<stack>()))>;

    // `f` in the domain. A failed call gives what a failed call of that kind gives: zeroes, and rf_error tells.
    static R call(rf_domain *domain, function *f, const A &...arguments) {
        static_assert(fits<R> && (fits<A> && ... && true), "a struct of 16 bytes or less does not pass a gate by value: pass a pointer");
        static_assert((std::size_t{by_value<R>} + ... + std::size_t{!by_value<A> && !in_float<A>}) <= 6 &&
                          (std::size_t{in_float<A>} + ... + 0) <= 8,
                      "beside structs by value no more arguments pass than registers hold");
        places<stack> all;
        [[maybe_unused]] void *out = nullptr;
        if constexpr (by_value<R>) {
            if (!(out = rf_memory_alloc(domain, sizeof(R))))
                return R{};
            all.put(out);
        }
        (all.put(arguments), ...);
        auto list = std::tuple_cat(floats(arguments)..., all.ints, all.stack);
        if constexpr (std::is_void_v<R>) {
            std::apply(f, list);
        } else if constexpr (by_value<R>) {
            R made{};
            std::apply(f, list);
            (void)rf_memory_read(domain, out, &made, sizeof made);
            (void)rf_memory_free(domain, out);
            return made;
        } else {
            return std::apply(f, list);
        }
    }
};

} // namespace ringfence_detail

class rlbox_ringfence_sandbox {
  public:
    using T_LongLongType = long long;
    using T_LongType = long;
    using T_IntType = int;
    using T_PointerType = void *;
    using T_ShortType = short;

  private:
    std::unique_ptr<ringfence::sandbox> box_;
    std::map<void *, std::string> names_; // of functions that were looked up, by their addresses in the domain
    std::map<void *, ringfence::sandbox::slot *> callbacks_; // by RLBox's keys
    std::mutex mutex_;
    // The callback that runs on this thread.
    thread_local static inline std::pair<rlbox_ringfence_sandbox *, void *> running_{nullptr, nullptr};

    static std::uintptr_t window(const void *p) { return reinterpret_cast<std::uintptr_t>(p) >> 32; }

  protected:
    bool impl_create_sandbox(const char *path, const rf_domain_options *options = nullptr) {
        box_ = std::make_unique<ringfence::sandbox>(path, options);
        return static_cast<bool>(*box_);
    }
    void impl_destroy_sandbox() { box_.reset(); }

    template <typename T> void *impl_get_unsandboxed_pointer(T_PointerType p) const { return p; }
    template <typename T> T_PointerType impl_get_sandboxed_pointer(const void *p) const { return const_cast<T_PointerType>(p); }
    template <typename T>
    static void *impl_get_unsandboxed_pointer_no_ctx(T_PointerType p, const void *, rlbox_ringfence_sandbox *(*)(const void *)) {
        return p;
    }
    template <typename T>
    static T_PointerType impl_get_sandboxed_pointer_no_ctx(const void *p, const void *, rlbox_ringfence_sandbox *(*)(const void *)) {
        return const_cast<T_PointerType>(p);
    }

    T_PointerType impl_malloc_in_sandbox(size_t size) { return rf_memory_alloc(box_->domain(), size); }
    void impl_free_in_sandbox(T_PointerType p) { (void)rf_memory_free(box_->domain(), p); }
    static bool impl_is_in_same_sandbox(const void *a, const void *b) { return window(a) == window(b); }
    bool impl_is_pointer_in_sandbox_memory(const void *p) { return rf_memory_contains(box_->domain(), p, 1) == 1; }
    bool impl_is_pointer_in_app_memory(const void *p) { return !impl_is_pointer_in_sandbox_memory(p); }
    size_t impl_get_total_memory() { return size_t{1} << 32; }
    void *impl_get_memory_location() {
        void *probe = rf_memory_alloc(box_->domain(), 1);
        (void)rf_memory_free(box_->domain(), probe);
        return reinterpret_cast<void *>(window(probe) << 32);
    }

    // A function's address in the domain, by which RLBox names it.
    void *impl_lookup_symbol(const char *name) {
        void *address = rf_domain_find_symbol(box_->domain(), nullptr, name);
        std::lock_guard<std::mutex> lock(mutex_);
        if (address)
            names_[address] = name;
        return address;
    }

    template <typename T, typename T_Converted, typename... T_Args> auto impl_invoke_with_func_ptr(T_Converted *address, T_Args &&...params) {
        std::string name;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            name = names_[reinterpret_cast<void *>(address)];
        }
        using lowered = ringfence_detail::lowered<T_Converted>;
        using type = std::conditional_t<lowered::needed, typename lowered::function, T_Converted>;
        type *function = box_->find<type>(name);
        auto call = [&] {
            if constexpr (lowered::needed)
                return lowered::call(box_->domain(), function, params...);
            else
                return function(params...);
        };
        using result = decltype(call());
        if constexpr (std::is_void_v<result>) {
            if (function)
                call();
        } else {
            return function ? call() : result{};
        }
    }

    template <typename T_Ret, typename... T_Args> T_PointerType impl_register_callback(void *key, void *callback) {
        auto [slot, address] = box_->lend([this, key, callback](rf_caller *caller) {
            auto before = std::exchange(running_, {this, key});
            auto function = reinterpret_cast<T_Ret (*)(T_Args...)>(callback);
            ringfence::detail::arguments in{box_->domain(), caller};
            std::tuple<T_Args...> list{in.template next<T_Args>().UNSAFE_unverified()...};
            if constexpr (std::is_void_v<T_Ret>)
                std::apply(function, list);
            else
                ringfence::detail::give_back<T_Ret>(caller, std::apply(function, list));
            running_ = before;
        });
        std::lock_guard<std::mutex> lock(mutex_);
        if (slot)
            callbacks_[key] = slot;
        return address;
    }
    static std::pair<rlbox_ringfence_sandbox *, void *> impl_get_executed_callback_sandbox_and_key() { return running_; }
    template <typename T_Ret, typename... T_Args> void impl_unregister_callback(void *key) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = callbacks_.find(key);
        if (found == callbacks_.end())
            return;
        *found->second = nullptr;
        callbacks_.erase(found);
    }
};

} // namespace rlbox

#endif

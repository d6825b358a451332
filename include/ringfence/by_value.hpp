// ringfence/by_value.hpp - calls that pass structs by value, for ringfence/tainted.hpp and the back end of RLBox.
//
// A gate passes what a prototype names, and clears every other register. So structs are taken apart here, into the numbers that the
// System V ABI (AMD64, 3.2.3) makes of them: words on the stack if they have more than 16 bytes; else registers, by the types of their
// fields, which C++ does not tell and `ringfence bind --lang c++` writes down. Padding reaches no domain where fields are known.
#ifndef RINGFENCE_BY_VALUE_HPP
#define RINGFENCE_BY_VALUE_HPP

#include <ringfence.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#if __cplusplus < 201703L
#error "ringfence/by_value.hpp needs C++17 or newer"
#endif

namespace ringfence {

// Eight bytes of a struct: whether floating-point fields are all that is there, and the bits that fields fill.
struct eightbyte {
    bool floating;
    std::uint64_t fields;
};

// The eightbytes of S, as `static constexpr eightbyte words[]`. NAME_fenced.hpp specialises it.
template <typename S> struct by_value {};

namespace detail {

template <typename T> inline constexpr bool is_struct = std::is_class_v<T> || std::is_union_v<T>;
template <typename T, typename = void> inline constexpr bool is_large = false;
template <typename T> inline constexpr bool is_large<T, std::enable_if_t<is_struct<T>>> = (sizeof(T) > 16);
template <typename T> inline constexpr std::size_t words = (sizeof(T) + 7) / 8;
template <typename S, typename = void> inline constexpr bool is_known = false;
template <typename S>
inline constexpr bool is_known<S, std::void_t<decltype(by_value<S>::words)>> = sizeof by_value<S>::words == words<S> * sizeof(eightbyte);

// Word `n` of T. What is not known is not masked.
template <typename T> constexpr eightbyte eightbyte_of(std::size_t n) {
    if constexpr (is_known<T>)
        return by_value<T>::words[n];
    else
        return {std::is_floating_point_v<T>, ~std::uint64_t{0}};
}

template <typename T> constexpr bool passes() {
    if constexpr (is_struct<T>) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 8, "this does not pass a gate by value: pass a pointer into the domain's memory");
        static_assert(is_large<T> || is_known<T>,
                      "a struct of 16 bytes or less passes by value only if its fields are known: include NAME_fenced.hpp of `ringfence bind --lang c++`; "
                      "if that says nothing of it (long double, vectors, packed fields), call a function that takes a pointer, if need be a wrapper in the module");
    }
    return true;
}

// The places of arguments that are taken.
struct places {
    std::size_t ints = 0, floats = 0, stack = 0;

    // Takes those of a T: whether they are registers. A struct is in them as a whole, or not at all.
    template <typename T> constexpr bool take() {
        std::size_t floating = 0;
        for (std::size_t n = 0; n < words<T>; n++)
            floating += eightbyte_of<T>(n).floating;
        bool memory = is_large<T> || std::is_same_v<T, long double>;
        if (!memory && floats + floating <= 8 && ints + words<T> - floating <= 6) {
            floats += floating;
            ints += words<T> - floating;
            return true;
        }
        stack += (alignof(T) > 8 ? stack % 2 : 0) + words<T>;
        return false;
    }
};

template <typename R, typename... A> constexpr std::size_t stack_words() {
    places all;
    if (is_large<R>)
        all.take<void *>();
    (all.take<A>(), ...);
    return all.stack;
}

// What the registers get, and N words of the stack.
template <std::size_t N> struct sent {
    std::array<double, 8> floats{};
    std::array<std::int64_t, 6> ints{};
    std::array<std::int64_t, N> stack{};
    places taken;

    // `value` may have a type of its own with the layout of T: RLBox has such structs.
    template <typename T, typename X> void put(const X &value) {
        std::array<std::uint64_t, words<T>> bits{};
        if constexpr (is_struct<T>) {
            static_assert(sizeof(X) == sizeof(T), "a struct of the same layout");
            std::memcpy(bits.data(), &value, sizeof value);
            for (std::size_t n = 0; n < words<T>; n++)
                bits[n] &= eightbyte_of<T>(n).fields;
        } else if constexpr (std::is_floating_point_v<T>) {
            std::memcpy(bits.data(), &value, std::is_same_v<T, long double> ? 10 : sizeof value);
        } else if constexpr (std::is_pointer_v<T>) {
            bits[0] = reinterpret_cast<std::uintptr_t>(value);
        } else {
            bits[0] = static_cast<std::uint64_t>(value);
        }
        places at = taken;
        if (!taken.take<T>()) {
            std::memcpy(stack.data() + taken.stack - words<T>, bits.data(), sizeof bits);
            return;
        }
        for (std::size_t n = 0; n < words<T>; n++) {
            if (eightbyte_of<T>(n).floating)
                std::memcpy(&floats[at.floats++], &bits[n], 8);
            else
                ints[at.ints++] = static_cast<std::int64_t>(bits[n]);
        }
    }
};

// The type that is returned in the registers that R is returned in; void if R is written to memory.
template <bool Floating> using in_register = std::conditional_t<Floating, double, std::int64_t>;
template <typename A, typename B> struct two {
    A first;
    B second;
};
template <typename T> struct type {
    using is = T;
};
template <typename R> constexpr auto returned_in() {
    if constexpr (!is_struct<R>)
        return type<R>{};
    else if constexpr (is_large<R>)
        return type<void>{};
    else if constexpr (words<R> == 1)
        return type<in_register<eightbyte_of<R>(0).floating>>{};
    else
        return type<two<in_register<eightbyte_of<R>(0).floating>, in_register<eightbyte_of<R>(1).floating>>>{};
}

template <typename T, std::size_t> using each = T;
template <typename R, typename... Counts> struct registers;
template <typename R, std::size_t... F, std::size_t... I, std::size_t... S>
struct registers<R, std::index_sequence<F...>, std::index_sequence<I...>, std::index_sequence<S...>> {
    using function = R(each<double, F>..., each<std::int64_t, I>..., each<std::int64_t, S>...);
};

// How a function of type F is called if structs pass by value: with all registers for arguments, which are 0 if they carry nothing.
// `Caller` is F with the types that the caller has in place of F's structs.
template <typename F, typename Caller = F> struct lowered {
    static constexpr bool needed = false;
};
template <typename R, typename... A, typename To, typename... X> struct lowered<R(A...), To(X...)> {
    static constexpr bool needed = is_struct<R> || (is_struct<A> || ... || false);

    static constexpr std::size_t stack = stack_words<R, A...>();
    template <typename Result>
    using taking_all = typename registers<Result, std::make_index_sequence<8>, std::make_index_sequence<6>, std::make_index_sequence<stack>>::function;
    // What rf_dlsym is asked for; prototypes have no structs, and results need none: gates pass what comes from a domain as it is.
    using prototype = taking_all<std::conditional_t<is_struct<R>, void, R>>;

    // What fails gives what a failed call of that kind gives: zeroes, and rf_error tells.
    static To call(rf_domain *domain, prototype *found, const X &...arguments) {
        static_assert(passes<R>() && (passes<A>() && ... && true));
        static_assert(stack * 8 <= RF_STACK_ARGS_MAX, "so many bytes do not pass on the stack: pass a pointer into the domain's memory");
        using result = typename decltype(returned_in<R>())::is;
        auto function = reinterpret_cast<taking_all<result> *>(reinterpret_cast<void (*)()>(found));
        sent<stack> all;
        [[maybe_unused]] void *memory = nullptr;
        if constexpr (is_large<R>) {
            if (!(memory = rf_memory_alloc(domain, sizeof(R))))
                return To{};
            all.template put<void *>(memory);
        }
        (all.template put<A>(arguments), ...);
        auto list = std::tuple_cat(all.floats, all.ints, all.stack);
        if constexpr (!is_struct<R>) {
            return std::apply(function, list);
        } else {
            static_assert(sizeof(To) == sizeof(R), "a struct of the same layout");
            To made{};
            if constexpr (is_large<R>) {
                std::apply(function, list);
                if (rf_call_status() == RF_OK)
                    (void)rf_memory_read(domain, memory, &made, sizeof made);
                (void)rf_memory_free(domain, memory);
            } else {
                result in_registers = std::apply(function, list);
                std::memcpy(&made, &in_registers, sizeof made);
            }
            return made;
        }
    }
};

} // namespace detail
} // namespace ringfence

#endif
